// Layer norm of each row by one warp, with scale and shift.
extern "C" __global__ void layer_norm(const float *in, const float *gamma, const float *beta, float *out, int columns, float eps) {
    const float *row = in + (long long)blockIdx.x * columns;
    float sum = 0, sq = 0;
    for (int i = threadIdx.x; i < columns; i += 32) { float v = row[i]; sum += v; sq = fmaf(v, v, sq); }
    for (int d = 16; d; d >>= 1) { sum += __shfl_xor_sync(0xffffffffu, sum, d); sq += __shfl_xor_sync(0xffffffffu, sq, d); }
    float mean = sum / columns, rstd = rsqrtf(sq / columns - mean * mean + eps);
    for (int i = threadIdx.x; i < columns; i += 32) out[(long long)blockIdx.x * columns + i] = (row[i] - mean) * rstd * gamma[i] + beta[i];
}
