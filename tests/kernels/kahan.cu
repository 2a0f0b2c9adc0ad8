// Compensated sums: the compiler must not reassociate.
extern "C" __global__ void kahan(const float *in, float *sum, float *plain, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0, c = 0, p = 0;
    for (int k = 0; k < columns; ++k) {
        float x = in[k * gridDim.x * blockDim.x + row], y = x - c, t = s + y;
        c = (t - s) - y;
        s = t;
        p += x;
    }
    sum[row] = s; plain[row] = p;
}
