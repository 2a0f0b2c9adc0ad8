// Code points of UTF-8 sequences given by their starts; malformed ones give U+FFFD.
extern "C" __global__ void utf8_decode(const unsigned char *s, const int *start, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned char *p = s + start[i];
    unsigned c = p[0], code, more;
    if (c < 0x80) { code = c; more = 0; }
    else if (c >> 5 == 6) { code = c & 31; more = 1; }
    else if (c >> 4 == 14) { code = c & 15; more = 2; }
    else if (c >> 3 == 30) { code = c & 7; more = 3; }
    else { out[i] = 0xFFFD; return; }
    for (unsigned k = 1; k <= more; ++k) {
        if (p[k] >> 6 != 2) { out[i] = 0xFFFD; return; }
        code = code << 6 | (p[k] & 63);
    }
    out[i] = code;
}
