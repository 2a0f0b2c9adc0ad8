// Library functions of single precision: power, error function, gamma, arcs, remainders, decomposition, neighbours.
extern "C" __global__ void f32_functions(const float *x, const float *y, float *out, float *exact, int *iout, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = x[i], b = y[i], p = fabsf(a) + 0.125f;
    float r[8] = {powf(p, b), erff(a), lgammaf(p), atan2f(a, b), asinf(fminf(fmaxf(a * 0.125f, -1.f), 1.f)), log1pf(p), expm1f(a * 0.25f), hypotf(a, b)};
    for (int k = 0; k < 8; ++k) out[k * n + i] = r[k];
    int e;
    float m = frexpf(a, &e);
    exact[i] = m; exact[n + i] = ldexpf(b, e & 15); exact[2 * n + i] = fmodf(a, b); exact[3 * n + i] = remainderf(a, b); exact[4 * n + i] = nextafterf(a, b);
    exact[5 * n + i] = copysignf(a, b); exact[6 * n + i] = roundf(a); exact[7 * n + i] = truncf(b);
    iout[i] = e; iout[n + i] = isnan(a) | isinf(b) << 1 | signbit(a) << 2 | isfinite(b) << 3; iout[2 * n + i] = (int)llrintf(a); iout[3 * n + i] = ilogbf(p);
}
