// f64 dot product: per thread by grid stride, then a tree in shared memory; one partial sum a block.
extern "C" __global__ void dot_f64(const double *x, const double *y, double *partial, int n) {
    extern __shared__ double tree[];
    double s = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s = fma(x[i], y[i], s);
    tree[threadIdx.x] = s;
    __syncthreads();
    for (int d = blockDim.x / 2; d; d >>= 1) {
        if (threadIdx.x < d) tree[threadIdx.x] += tree[threadIdx.x + d];
        __syncthreads();
    }
    if (threadIdx.x == 0) partial[blockIdx.x] = tree[0];
}
