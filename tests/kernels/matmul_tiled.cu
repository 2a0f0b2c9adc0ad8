// C = A B by 16 x 16 tiles in shared memory; sizes are multiples of 16.
extern "C" __global__ void matmul_tiled(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float ta[16][16], tb[16][17];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float acc = 0;
    for (int t = 0; t < k; t += 16) {
        ta[threadIdx.y][threadIdx.x] = a[row * k + t + threadIdx.x];
        tb[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + column];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; ++i) acc = fmaf(ta[threadIdx.y][i], tb[i][threadIdx.x], acc);
        __syncthreads();
    }
    c[row * n + column] = acc;
}
