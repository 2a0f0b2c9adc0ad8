// Breadth-first levels of a CSR graph in one block: frontier queues in shared memory, claimed by compare-and-swap.
extern "C" __global__ void bfs_levels(const int *start, const int *edge, int *level, int nodes, int source) {
    __shared__ int queue[2][256], size[2];
    int t = threadIdx.x;
    for (int i = t; i < nodes; i += blockDim.x) level[i] = i == source ? 0 : -1;
    if (t == 0) { queue[0][0] = source; size[0] = 1; size[1] = 0; }
    __syncthreads();
    for (int depth = 0, which = 0; size[which] > 0; ++depth, which ^= 1) {
        for (int i = t; i < size[which]; i += blockDim.x) {
            int node = queue[which][i];
            for (int e = start[node]; e < start[node + 1]; ++e)
                if (atomicCAS(&level[edge[e]], -1, depth + 1) == -1) queue[which ^ 1][atomicAdd(&size[which ^ 1], 1)] = edge[e];
        }
        __syncthreads();
        if (t == 0) size[which] = 0;
        __syncthreads();
    }
}
