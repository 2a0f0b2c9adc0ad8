// Sums and maxima of halves by shuffles; half, half2 and bfloat162 atomics on numbers that add without rounding.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void half_reduce(const __half2 *in, __half2 *sum, __half *top, __half2 *total, __half *single, __nv_bfloat162 *brain, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __half2 v = in[i], s = v;
    __half m = __hmax(v.x, v.y);
    for (int step = 16; step; step >>= 1) {
        s = __hadd2(s, __shfl_xor_sync(~0u, s, step));
        m = __hmax(m, __shfl_xor_sync(~0u, m, step));
    }
    if ((i & 31) == 0) { sum[i / 32] = s; top[i / 32] = m; }
    __half2 whole = h2rint(v);
    atomicAdd(total, whole);
    atomicAdd(single, whole.x);
    atomicAdd(brain, __nv_bfloat162(__nv_bfloat16(float(i & 1)), __nv_bfloat16(1.0f)));
}
