// Softmax of each row by one block: maximum, exponentials, sum, division.
extern "C" __global__ void row_softmax(const float *in, float *out, int columns) {
    __shared__ float red[32];
    const float *row = in + (long long)blockIdx.x * columns;
    float *res = out + (long long)blockIdx.x * columns;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    float m = -INFINITY;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) m = fmaxf(m, row[i]);
    for (int d = 16; d; d >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, d));
    if (lane == 0) red[warp] = m;
    __syncthreads();
    m = red[0];
    for (int i = 1; i < warps; ++i) m = fmaxf(m, red[i]);
    __syncthreads();
    float s = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) { float e = __expf(row[i] - m); res[i] = e; s += e; }
    for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (lane == 0) red[warp] = s;
    __syncthreads();
    s = 0;
    for (int i = 0; i < warps; ++i) s += red[i];
    for (int i = threadIdx.x; i < columns; i += blockDim.x) res[i] = res[i] / s;
}
