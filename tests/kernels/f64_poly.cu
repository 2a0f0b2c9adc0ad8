// Double precision with every rounding spelled out: Horner by fma, sums, products, quotients and roots in all four modes.
extern "C" __global__ void f64_poly(const double *x, const double *y, double *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double a = x[i], b = y[i], p = 1.0 / 5040;
    p = __fma_rn(p, a, 1.0 / 720); p = __fma_rn(p, a, 1.0 / 120); p = __fma_rn(p, a, 1.0 / 24); p = __fma_rz(p, a, 1.0 / 6); p = __fma_ru(p, a, 0.5); p = __fma_rd(p, a, b);
    out[i] = p;
    out[n + i] = __dadd_rz(a, b); out[2 * n + i] = __dadd_ru(a, b); out[3 * n + i] = __dmul_rd(a, b); out[4 * n + i] = __dmul_rz(a, b);
    out[5 * n + i] = __ddiv_rn(a, b); out[6 * n + i] = __ddiv_ru(a, b); out[7 * n + i] = __dsqrt_rd(b * b); out[8 * n + i] = __drcp_rz(b);
}
