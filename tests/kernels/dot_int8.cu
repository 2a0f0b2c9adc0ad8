// Packed byte dot products (dp4a) and absolute differences.
extern "C" __global__ void dot_int8(const int *a, const int *b, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = __dp4a(a[i], b[i], i); out[n + i] = (int)__dp4a((unsigned)a[i], (unsigned)b[i], 5u);
    out[2 * n + i] = __sad(a[i], b[i], 9u); out[3 * n + i] = __mulhi(a[i], b[i]); out[4 * n + i] = (int)__umulhi((unsigned)a[i], (unsigned)b[i]);
}
