// Edges of 8-bit images with clamped borders, integer square root by conversion.
extern "C" __global__ void sobel(const unsigned char *in, unsigned char *out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int p[3][3];
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) p[dy + 1][dx + 1] = in[min(max(y + dy, 0), h - 1) * w + min(max(x + dx, 0), w - 1)];
    int gx = p[0][2] + 2 * p[1][2] + p[2][2] - p[0][0] - 2 * p[1][0] - p[2][0], gy = p[2][0] + 2 * p[2][1] + p[2][2] - p[0][0] - 2 * p[0][1] - p[0][2];
    int g = (int)__fsqrt_rz((float)(gx * gx + gy * gy));
    out[y * w + x] = (unsigned char)min(g, 255);
}
