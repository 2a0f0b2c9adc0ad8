// Keeps what is positive, in order within a block: ballots, counts by warp, one atomic a block for space.
extern "C" __global__ void compaction(const int *in, int *out, int *blocks, int *top, int n) {
    __shared__ int counts[4], base;
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    bool keep = i < n && in[i] > 0;
    unsigned votes = __ballot_sync(~0u, keep);
    if (lane == 0) counts[warp] = __popc(votes);
    __syncthreads();
    int before = 0, total = 0;
    for (int w = 0; w < 4; ++w) { if (w < warp) before += counts[w]; total += counts[w]; }
    if (threadIdx.x == 0) { base = atomicAdd(top, total); blocks[2 * blockIdx.x] = base; blocks[2 * blockIdx.x + 1] = total; }
    __syncthreads();
    if (keep) out[base + before + __popc(votes & ((1u << lane) - 1))] = in[i];
}
