// AES-128 of one block a thread: the S-box is made in shared memory from inverses in the field.
__device__ unsigned char times(unsigned char a, unsigned char b) {
    unsigned r = 0, x = a;
    for (int k = 0; k < 8; ++k) { if (b >> k & 1) r ^= x; x = x << 1 ^ (x & 0x80 ? 0x11b : 0); }
    return (unsigned char)r;
}
extern "C" __global__ void aes_block(const unsigned char *in, const unsigned char *round_keys, unsigned char *out, int n) {
    __shared__ unsigned char box[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) {
        unsigned char inverse = 1, power = (unsigned char)i;
        for (int e = 254; e; e >>= 1) { if (e & 1) inverse = times(inverse, power); power = times(power, power); }
        if (i == 0) inverse = 0;
        unsigned v = inverse * 0x101u;
        box[i] = (unsigned char)(v ^ v >> 4 ^ v >> 5 ^ v >> 6 ^ v >> 7 ^ 0x63);
    }
    __syncthreads();
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    unsigned char s[16], w[16];
    for (int k = 0; k < 16; ++k) s[k] = in[16 * t + k] ^ round_keys[k];
    for (int r = 1; r <= 10; ++r) {
        for (int k = 0; k < 16; ++k) w[k] = box[s[(k + 4 * (k & 3)) & 15]];
        for (int c = 0; c < 4; ++c)
            for (int k = 0; k < 4; ++k) {
                unsigned v = w[4 * c + k];
                if (r < 10) {
                    unsigned a = v, b = w[4 * c + ((k + 1) & 3)], d = w[4 * c + ((k + 2) & 3)], e = w[4 * c + ((k + 3) & 3)], m = a ^ b;
                    v = (m << 1 ^ (m & 0x80 ? 0x11b : 0)) ^ b ^ d ^ e;
                }
                s[4 * c + k] = (unsigned char)(v ^ round_keys[16 * r + 4 * c + k]);
            }
    }
    for (int k = 0; k < 16; ++k) out[16 * t + k] = s[k];
}
