// Philox 4x32-10 counters to uniform floats, and how many pairs fall into the unit circle.
extern "C" __global__ void philox(uint4 *raw, float4 *uniform, unsigned *inside, uint2 key) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    uint4 c = make_uint4(i, 0, 0x1234u, ~i);
    uint2 k = key;
    for (int r = 0; r < 10; ++r) {
        unsigned h0 = __umulhi(0xD2511F53u, c.x), l0 = 0xD2511F53u * c.x, h1 = __umulhi(0xCD9E8D57u, c.z), l1 = 0xCD9E8D57u * c.z;
        c = make_uint4(h1 ^ c.y ^ k.x, l1, h0 ^ c.w ^ k.y, l0);
        k.x += 0x9E3779B9u; k.y += 0xBB67AE85u;
    }
    raw[i] = c;
    float4 u = make_float4((c.x >> 8) * 0x1p-24f, (c.y >> 8) * 0x1p-24f, (c.z >> 8) * 0x1p-24f, (c.w >> 8) * 0x1p-24f);
    uniform[i] = u;
    int hits = (__fmaf_rn(u.x, u.x, __fmul_rn(u.y, u.y)) <= 1.0f) + (__fmaf_rn(u.z, u.z, __fmul_rn(u.w, u.w)) <= 1.0f);
    hits = __reduce_add_sync(~0u, hits);
    if ((i & 31) == 0) atomicAdd(inside, hits);
}
