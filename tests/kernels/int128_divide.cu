// Quotients and remainders of 128-bit numbers, signed and unsigned, and shifts by variable amounts.
extern "C" __global__ void int128_divide(const ulonglong2 *a, const ulonglong2 *b, ulonglong2 *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned __int128 x = (unsigned __int128)a[i].y << 64 | a[i].x, y = (unsigned __int128)b[i].y << 64 | b[i].x;
    unsigned __int128 r[5] = {x / y, x % y, (unsigned __int128)((__int128)x / (__int128)y), x >> (b[i].x & 127), (unsigned __int128)((__int128)x >> (b[i].y & 127)) };
    for (int k = 0; k < 5; ++k) out[k * n + i] = make_ulonglong2((unsigned long long)r[k], (unsigned long long)(r[k] >> 64));
}
