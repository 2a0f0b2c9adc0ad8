// Walsh-Hadamard transform of 1024 integers: shuffles within warps, shared memory across them.
extern "C" __global__ void walsh_shuffle(int *data) {
    __shared__ int v[1024];
    int t = threadIdx.x, x = data[blockIdx.x * 1024 + t];
    for (int step = 1; step < 32; step *= 2) {
        int other = __shfl_xor_sync(~0u, x, step);
        x = t & step ? other - x : x + other;
    }
    for (int step = 32; step < 1024; step *= 2) {
        v[t] = x;
        __syncthreads();
        int other = v[t ^ step];
        x = t & step ? other - x : x + other;
        __syncthreads();
    }
    data[blockIdx.x * 1024 + t] = x;
}
