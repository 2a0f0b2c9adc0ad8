// Counts by key with one atomic for all lanes of equal key: match, leader, rank, broadcast.
extern "C" __global__ void warp_aggregate(const unsigned long long *key, unsigned *count, unsigned *ticket, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    unsigned active = __ballot_sync(~0u, i < n);
    if (i >= n) return;
    unsigned peers = __match_any_sync(active, key[i]), leader = __ffs(peers) - 1, base = 0;
    if (lane == leader) base = atomicAdd(&count[key[i] % 61], __popc(peers));
    base = __shfl_sync(peers, base, leader);
    unsigned below;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    ticket[i] = base + __popc(peers & below);
}
