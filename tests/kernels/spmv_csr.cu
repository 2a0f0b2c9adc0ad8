// Sparse matrix times vector, a warp a row, and the same by coordinates with atomics.
extern "C" __global__ void spmv_csr(const int *start, const int *column, const int *row, const float *value, const float *x, float *y, float *z, int rows) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
    if (warp >= rows) return;
    float sum = 0;
    for (int e = start[warp] + lane; e < start[warp + 1]; e += 32) {
        float p = value[e] * x[column[e]];
        sum += p;
        atomicAdd(&z[row[e]], p);
    }
    for (int step = 16; step; step >>= 1) sum += __shfl_down_sync(~0u, sum, step);
    if (lane == 0) y[warp] = sum;
}
