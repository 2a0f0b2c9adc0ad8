// Connected components by hooking to the smaller label until nothing changes.
extern "C" __global__ void components(const int *from, const int *to, int *label, int nodes, int edges) {
    __shared__ int changed;
    int t = threadIdx.x;
    for (int i = t; i < nodes; i += blockDim.x) label[i] = i;
    __syncthreads();
    do {
        __syncthreads();
        if (t == 0) changed = 0;
        __syncthreads();
        for (int e = t; e < edges; e += blockDim.x) {
            int a = atomicAdd(&label[from[e]], 0), b = atomicAdd(&label[to[e]], 0);
            if (a < b) { if (atomicMin(&label[to[e]], a) > a) atomicOr(&changed, 1); }
            else if (b < a) { if (atomicMin(&label[from[e]], b) > b) atomicOr(&changed, 1); }
        }
        __syncthreads();
    } while (changed);
}
