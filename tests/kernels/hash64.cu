// 64-bit integer hashing: multiplies, rotates, xors and shifts.
__device__ unsigned long long rotl(unsigned long long x, int r) { return (x << r) | (x >> (64 - r)); }
extern "C" __global__ void hash64(const unsigned long long *in, unsigned long long *out, unsigned long long seed, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long k = in[i], h = seed;
    for (int r = 0; r < 3; ++r) {
        k *= 0x87c37b91114253d5ull; k = rotl(k, 31); k *= 0x4cf5ad432745937full;
        h ^= k; h = rotl(h, 27) * 5 + 0x52dce729;
        k += h;
    }
    h ^= h >> 33; h *= 0xff51afd7ed558ccdull; h ^= h >> 29; h *= 0xc4ceb9fe1a85ec53ull; h ^= h >> 32;
    out[i] = h;
}
