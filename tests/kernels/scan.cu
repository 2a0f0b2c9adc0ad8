// Inclusive prefix sum of each block (Hillis and Steele, two buffers).
extern "C" __global__ void scan(const int *in, int *out) {
    __shared__ int buffer[2][256];
    int t = threadIdx.x, at = 0;
    buffer[0][t] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (int d = 1; d < blockDim.x; d <<= 1) {
        buffer[at ^ 1][t] = buffer[at][t] + (t >= d ? buffer[at][t - d] : 0);
        at ^= 1;
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + t] = buffer[at][t];
}
