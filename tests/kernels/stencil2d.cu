// Five-point stencil with halo in shared memory and predicated edges.
extern "C" __global__ void stencil2d(const float *in, float *out, int w, int h) {
    __shared__ float tile[10][34];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    for (int j = threadIdx.y; j < 10; j += 8)
        for (int i = threadIdx.x; i < 34; i += 32) {
            int gx = blockIdx.x * 32 + i - 1, gy = blockIdx.y * 8 + j - 1;
            tile[j][i] = (gx >= 0 && gx < w && gy >= 0 && gy < h) ? in[gy * w + gx] : 0.0f;
        }
    __syncthreads();
    int j = threadIdx.y + 1, i = threadIdx.x + 1;
    if (x < w && y < h) out[y * w + x] = 0.5f * tile[j][i] + 0.125f * ((tile[j - 1][i] + tile[j + 1][i]) + (tile[j][i - 1] + tile[j][i + 1]));
}
