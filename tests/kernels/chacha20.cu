// ChaCha20 key stream: one 64-byte block a thread.
#define QUARTER(a, b, c, d) \
    a += b; d = __funnelshift_l(d ^ a, d ^ a, 16); c += d; b = __funnelshift_l(b ^ c, b ^ c, 12); \
    a += b; d = __funnelshift_l(d ^ a, d ^ a, 8); c += d; b = __funnelshift_l(b ^ c, b ^ c, 7);
extern "C" __global__ void chacha20(const unsigned *key, const unsigned *nonce, uint4 *out, unsigned counter, int blocks) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= blocks) return;
    unsigned s[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}, x[16];
    for (int k = 0; k < 8; ++k) s[4 + k] = key[k];
    s[12] = counter + t;
    for (int k = 0; k < 3; ++k) s[13 + k] = nonce[k];
    for (int k = 0; k < 16; ++k) x[k] = s[k];
    for (int r = 0; r < 10; ++r) {
        QUARTER(x[0], x[4], x[8], x[12]) QUARTER(x[1], x[5], x[9], x[13]) QUARTER(x[2], x[6], x[10], x[14]) QUARTER(x[3], x[7], x[11], x[15])
        QUARTER(x[0], x[5], x[10], x[15]) QUARTER(x[1], x[6], x[11], x[12]) QUARTER(x[2], x[7], x[8], x[13]) QUARTER(x[3], x[4], x[9], x[14])
    }
    for (int k = 0; k < 4; ++k) out[4 * t + k] = make_uint4(x[4 * k] + s[4 * k], x[4 * k + 1] + s[4 * k + 1], x[4 * k + 2] + s[4 * k + 2], x[4 * k + 3] + s[4 * k + 3]);
}
