// Barrier reductions, arrive and sync on a named barrier (producer and consumer warps).
extern "C" __global__ void barriers(const int *in, int *out) {
    __shared__ int box[64];
    int t = threadIdx.x, v = in[t];
    out[t] = __syncthreads_count(v > 0);
    out[128 + t] = __syncthreads_and(v > -1000) + 2 * __syncthreads_and(v > 0) + 4 * __syncthreads_or(v == in[5]) + 8 * __syncthreads_or(v > 5000);
    int r = 0;
    if (t < 64) { box[t] = v * 3; asm volatile("bar.arrive 3, 128;" ::: "memory"); r = v; }
    else { asm volatile("bar.sync 3, 128;" ::: "memory"); r = box[127 - t]; }
    out[256 + t] = r;
}
