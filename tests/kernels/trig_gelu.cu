// Library maths: sine, cosine, tanh-based GELU, logarithm.
extern "C" __global__ void trig_gelu(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    out[i] = sinf(v); out[n + i] = cosf(v);
    out[2 * n + i] = 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
    out[3 * n + i] = logf(fabsf(v) + 1e-3f); out[4 * n + i] = expf(v * 0.25f);
}
