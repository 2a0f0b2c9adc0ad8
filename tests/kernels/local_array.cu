// A per-thread array with computed indices: local memory.
extern "C" __global__ void local_array(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int digits[16];
    for (int k = 0; k < 16; ++k) digits[k] = 0;
    unsigned v = in[i];
    for (int k = 0; k < 8; ++k) { digits[v & 15] += k + 1; v >>= 4; }
    int s = 0;
    for (int k = 0; k < 16; ++k) s = s * 5 + digits[(k * 7 + in[i]) & 15];
    out[i] = s;
}
