// Two-stage pipeline of asynchronous copies into shared memory.
__device__ void copy16(void *to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)));
}
extern "C" __global__ void cp_async(const float *in, float *out, int tiles) {
    __shared__ __align__(16) float stage[2][128];
    int t = threadIdx.x;
    const float *base = in + blockIdx.x * tiles * 128;
    float acc = 0;
    copy16(&stage[0][t * 4], base + t * 4);
    asm volatile("cp.async.commit_group;");
    for (int k = 0; k < tiles; ++k) {
        if (k + 1 < tiles) copy16(&stage[(k + 1) & 1][t * 4], base + (k + 1) * 128 + t * 4);
        asm volatile("cp.async.commit_group;");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        for (int j = 0; j < 4; ++j) acc += stage[k & 1][(t + 32 * j) & 127];
        __syncthreads();
    }
    out[blockIdx.x * 32 + t] = acc;
}
