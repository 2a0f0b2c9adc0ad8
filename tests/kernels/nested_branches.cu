// Nested divergent branches with work that the compiler cannot turn into selects.
extern "C" __global__ void nested_branches(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = in[i], r = 0;
    if (v & 1) {
        if (v & 2) { for (int k = 0; k < (v & 15); ++k) r = r * 3 + k + in[(i + k) % n]; }
        else { r = v - 7; if (v & 4) { r *= in[(i * 7) % n]; out[n + i] = r; } else out[n + i] = -r; }
    } else {
        if (v % 3 == 0) { int k = v & 63; do { r += k * k; k -= 5; if (r > 3000) break; } while (k > 0); }
        else if (v % 3 == 1) { r = in[n - 1 - i] ^ v; if (r < 0) out[n + i] = 1; }
        else r = 12345;
    }
    out[i] = r;
}
