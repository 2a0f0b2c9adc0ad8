// Four bytes at once: absolute differences, saturated sums, averages, comparisons, and grey of RGBA pixels.
extern "C" __global__ void simd_bytes(const unsigned *a, const unsigned *b, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = b[i];
    out[i] = __vabsdiffu4(x, y); out[n + i] = __vaddus4(x, y); out[2 * n + i] = __vsubss4(x, y); out[3 * n + i] = __vavgu4(x, y);
    out[4 * n + i] = __vcmpgtu4(x, y); out[5 * n + i] = __vmaxs4(x, y); out[6 * n + i] = __vsadu4(x, y); out[7 * n + i] = __vadd2(x, y);
    out[8 * n + i] = __vminu2(x, y); out[9 * n + i] = __viaddmax_s32_relu(x, y, 5); out[10 * n + i] = __vimax3_s32(x, y, 77);
    uchar4 p = *(const uchar4 *)&a[i];
    out[11 * n + i] = (p.x * 77 + p.y * 150 + p.z * 29 + 128) >> 8;
}
