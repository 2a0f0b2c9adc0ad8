// Escape times; every product and sum is written out, so that the rounding is known.
extern "C" __global__ void mandelbrot(int *out, int width, int height, float x0, float y0, float step, int limit) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    float cx = __fmaf_rn((float)px, step, x0), cy = __fmaf_rn((float)py, step, y0), x = 0, y = 0;
    int n = 0;
    while (n < limit) {
        float xx = __fmul_rn(x, x), yy = __fmul_rn(y, y);
        if (__fadd_rn(xx, yy) > 4.0f) break;
        y = __fmaf_rn(__fadd_rn(x, x), y, cy);
        x = __fadd_rn(__fsub_rn(xx, yy), cx);
        ++n;
    }
    out[py * width + px] = n;
}
