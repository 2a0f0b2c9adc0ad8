// Floats to 8-bit formats, saturating, and back through halves.
#include <cuda_fp8.h>
extern "C" __global__ void fp8_convert(const float2 *in, unsigned short *e4m3, unsigned short *e5m2, __half2 *back4, __half2 *back5, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __nv_fp8x2_storage_t a = __nv_cvt_float2_to_fp8x2(in[i], __NV_SATFINITE, __NV_E4M3), b = __nv_cvt_float2_to_fp8x2(in[i], __NV_SATFINITE, __NV_E5M2);
    e4m3[i] = a; e5m2[i] = b;
    back4[i] = __half2(__nv_cvt_fp8x2_to_halfraw2(a, __NV_E4M3)); back5[i] = __half2(__nv_cvt_fp8x2_to_halfraw2(b, __NV_E5M2));
}
