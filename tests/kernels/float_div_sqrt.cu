// Correctly rounded division, square root and reciprocal in both precisions.
extern "C" __global__ void float_div_sqrt(const float *a, const float *b, float *out, const double *c, const double *d, double *dout, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = a[i] / b[i]; out[n + i] = sqrtf(fabsf(a[i])); out[2 * n + i] = __frcp_rn(b[i]);
    dout[i] = c[i] / d[i]; dout[n + i] = sqrt(fabs(c[i])); dout[2 * n + i] = __drcp_rn(d[i]);
}
