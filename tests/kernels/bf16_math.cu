// Packed bfloat16: sums, products, fused, extremes with NaN, comparisons, conversions both ways.
#include <cuda_bf16.h>
extern "C" __global__ void bf16_math(const __nv_bfloat162 *a, const __nv_bfloat162 *b, __nv_bfloat162 *out, float2 *wide, unsigned *flags, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __nv_bfloat162 x = a[i], y = b[i];
    out[i] = __hadd2_rn(x, y); out[n + i] = __hmul2_rn(x, y); out[2 * n + i] = __hfma2(x, y, x); out[3 * n + i] = __hmax2(x, y); out[4 * n + i] = __hmin2_nan(x, y);
    out[5 * n + i] = __habs2(__hneg2(x)); out[6 * n + i] = __hfma2_relu(x, y, y); out[7 * n + i] = __hsub2(y, x);
    float2 f = __bfloat1622float2(x);
    wide[i] = f;
    out[8 * n + i] = __floats2bfloat162_rn(f.x * 1.01f, f.y / 3.0f);
    out[9 * n + i] = __halves2bfloat162(__float2bfloat16_rz(f.x * 1.7f), __float2bfloat16_ru(f.y * 1.7f));
    flags[i] = __hgt2_mask(x, y); flags[n + i] = __hbeq2(x, y) | __hisnan(y.x) << 1 | __hlt(x.y, y.y) << 2 | __hequ(x.x, y.y) << 3;
}
