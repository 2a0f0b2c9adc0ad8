// Bit operations: population count, leading zeros, reversal, field extract and insert, byte permute, three-input logic.
extern "C" __global__ void bit_twiddle(const unsigned *a, const unsigned *b, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = b[i], r, t;
    out[i] = __popc(x) | __clz(y) << 8 | __ffs(x) << 16;
    out[n + i] = __brev(x) ^ __byte_perm(x, y, 0x6240 + (y & 7));
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y & 31), "r"((y >> 5) & 31));
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(t) : "r"(x), "r"(y & 31), "r"((y >> 5) & 31));
    out[2 * n + i] = r + 3 * t;
    asm("bfi.b32 %0, %1, %2, 5, 11;" : "=r"(r) : "r"(x), "r"(y));
    asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(t) : "r"(x), "r"(y), "r"(r));
    out[3 * n + i] = t;
    out[4 * n + i] = __funnelshift_l(x, y, y & 31) ^ __funnelshift_rc(x, y, y & 63);
    out[5 * n + i] = __popcll(((unsigned long long)x << 32) | y) + __clzll(((unsigned long long)(x & 0xff) << 16) | (y & 0xff)) * 100;
}
