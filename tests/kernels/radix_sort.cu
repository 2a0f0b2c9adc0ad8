// LSD radix sort of 256 keys a block, one bit group of 2 at a time: per-digit ballots, counts by warp, prefix sums in shared memory.
extern "C" __global__ void radix_sort(unsigned *keys, unsigned *values) {
    __shared__ unsigned key[256], value[256], count[4][8], base[4][8];
    int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    key[t] = keys[blockIdx.x * 256 + t]; value[t] = values[blockIdx.x * 256 + t];
    __syncthreads();
    for (int shift = 0; shift < 32; shift += 2) {
        unsigned k = key[t], v = value[t], digit = (k >> shift) & 3, mine = 0;
        for (unsigned d = 0; d < 4; ++d) {
            unsigned votes = __ballot_sync(~0u, digit == d);
            if (d == digit) mine = votes;
            if (lane == 0) count[d][warp] = __popc(votes);
        }
        __syncthreads();
        if (warp == 0) {
            unsigned c = count[lane >> 3][lane & 7], sum = c;
            for (int step = 1; step < 32; step <<= 1) {
                unsigned other = __shfl_up_sync(~0u, sum, step);
                if (lane >= step) sum += other;
            }
            base[lane >> 3][lane & 7] = sum - c;
        }
        __syncthreads();
        unsigned to = base[digit][warp] + __popc(mine & ((1u << lane) - 1));
        key[to] = k; value[to] = v;
        __syncthreads();
    }
    keys[blockIdx.x * 256 + t] = key[t]; values[blockIdx.x * 256 + t] = value[t];
}
