// 64-bit division and remainder, signed and unsigned.
extern "C" __global__ void int_div64(const long long *a, const long long *b, long long *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long x = a[i], y = b[i];
    out[i] = x / y; out[n + i] = x % y;
    out[2 * n + i] = (unsigned long long)x / (unsigned long long)y; out[3 * n + i] = (unsigned long long)x % (unsigned long long)y;
}
