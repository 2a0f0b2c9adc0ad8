// 32-bit division and remainder, signed and unsigned, by variables and by constants.
extern "C" __global__ void int_div(const int *a, const int *b, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = a[i], y = b[i];
    out[i] = x / y; out[n + i] = x % y;
    out[2 * n + i] = (unsigned)x / (unsigned)y; out[3 * n + i] = (unsigned)x % (unsigned)y;
    out[4 * n + i] = x / 7 + (int)((unsigned)x / 641u); out[5 * n + i] = x % 10 + (int)((unsigned)x % 1000u);
}
