// Single precision in all rounding modes: sums, products, fused, quotients, roots, and conversions to integers.
extern "C" __global__ void f32_rounding(const float *x, const float *y, float *out, int *iout, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = x[i], b = y[i], c = fabsf(a);
    float r[12] = {__fadd_rz(a, b), __fadd_ru(a, b), __fadd_rd(a, b), __fmul_ru(a, b), __fmul_rz(a, b), __fmaf_rd(a, b, c), __fmaf_rz(a, b, -c),
                   __fdiv_ru(a, b), __fdiv_rz(a, b), __fsqrt_rd(c), __frcp_ru(b), __fdiv_rn(a, b)};
    for (int k = 0; k < 12; ++k) out[k * n + i] = r[k];
    iout[i] = __float2int_ru(a); iout[n + i] = __float2int_rd(a); iout[2 * n + i] = (int)__float2uint_rn(c); iout[3 * n + i] = __float_as_int(__int2float_rz(__float_as_int(b)));
}
