// Single-pass prefix sums over blocks: each waits for its predecessors' flags (release, acquire).
extern "C" __global__ void lookback_scan(const unsigned *in, unsigned *out, unsigned long long *state, unsigned *next) {
    __shared__ unsigned sums[4], number, prefix;
    int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    if (t == 0) number = atomicAdd(next, 1);
    __syncthreads();
    unsigned block = number, x = in[block * 128 + t], sum = x;
    for (int step = 1; step < 32; step *= 2) { unsigned v = __shfl_up_sync(~0u, sum, step); if (lane >= step) sum += v; }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    unsigned total = 0;
    for (int w = 0; w < 4; ++w) { if (w == warp) sum += total; total += sums[w]; }
    if (t == 0) {
        unsigned before = 0;
        unsigned long long word = (block ? 1ull : 2ull) << 32 | total;
        asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(state + block), "l"(word) : "memory");
        for (int k = (int)block - 1; k >= 0;) {
            asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(state + k) : "memory");
            if (word >> 32 == 0) { __nanosleep(20); continue; }
            before += (unsigned)word;
            if (word >> 32 == 2) break;
            --k;
        }
        word = 2ull << 32 | (before + total);
        if (block) asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(state + block), "l"(word) : "memory");
        prefix = before;
    }
    __syncthreads();
    out[block * 128 + t] = sum + prefix;
}
