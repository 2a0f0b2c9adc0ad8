// 0/1 knapsack over capacities in shared memory, two rows.
extern "C" __global__ void knapsack(const int *weight, const int *value, unsigned *best, int items, int capacity) {
    extern __shared__ unsigned row[];
    unsigned *now = row, *next = row + capacity + 1;
    for (int c = threadIdx.x; c <= capacity; c += blockDim.x) now[c] = 0;
    __syncthreads();
    for (int i = 0; i < items; ++i) {
        int w = weight[i]; unsigned v = value[i];
        for (int c = threadIdx.x; c <= capacity; c += blockDim.x) {
            unsigned keep = now[c];
            next[c] = c >= w ? max(keep, now[c - w] + v) : keep;
        }
        __syncthreads();
        unsigned *swap = now; now = next; next = swap;
    }
    for (int c = threadIdx.x; c <= capacity; c += blockDim.x) best[c] = now[c];
}
