// Grid-stride loop with a fused multiply-add.
extern "C" __global__ void saxpy(float alpha, const float *x, float *y, unsigned n) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = fmaf(alpha, x[i], y[i]);
}
