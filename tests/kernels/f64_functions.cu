// Library functions of double precision: exponential, logarithm, sine, power, hyperbolic tangent, error function, cube root.
extern "C" __global__ void f64_functions(const double *x, double *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double v = x[i], p = fabs(v) + 0.25;
    double r[8] = {exp(v * 0.5), log(p), sin(v), pow(p, v * 0.25), tanh(v), erf(v), cbrt(v), atan2(v, p - 1)};
    for (int k = 0; k < 8; ++k) out[k * n + i] = r[k];
}
