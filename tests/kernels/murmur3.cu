// MurmurHash3 (32 bits) of byte strings with tails.
extern "C" __global__ void murmur3(const unsigned char *data, const int *start, unsigned *out, unsigned seed, int lines) {
    int line = blockIdx.x * blockDim.x + threadIdx.x;
    if (line >= lines) return;
    int at = start[line], n = start[line + 1] - at;
    const unsigned char *p = data + at;
    unsigned h = seed;
    for (; p + 4 <= data + at + n; p += 4) {
        unsigned k = p[0] | p[1] << 8 | p[2] << 16 | (unsigned)p[3] << 24;
        k *= 0xcc9e2d51u; k = k << 15 | k >> 17; k *= 0x1b873593u;
        h ^= k; h = h << 13 | h >> 19; h = h * 5 + 0xe6546b64u;
    }
    unsigned k = 0;
    switch (n & 3) {
        case 3: k ^= p[2] << 16;
        case 2: k ^= p[1] << 8;
        case 1: k ^= p[0]; k *= 0xcc9e2d51u; k = k << 15 | k >> 17; k *= 0x1b873593u; h ^= k;
    }
    h ^= n; h ^= h >> 16; h *= 0x85ebca6bu; h ^= h >> 13; h *= 0xc2b2ae35u; h ^= h >> 16;
    out[line] = h;
}
