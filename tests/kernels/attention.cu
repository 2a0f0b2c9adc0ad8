// Attention of one query a warp with a running maximum (online softmax), 32 keys at a time.
extern "C" __global__ void attention(const float *q, const float *k, const float *v, float *out, int keys) {
    int query = blockIdx.x, lane = threadIdx.x;
    const float *qr = q + query * 32;
    float top = -INFINITY, total = 0, acc = 0;
    for (int start = 0; start < keys; start += 32) {
        float score = -INFINITY;
        if (start + lane < keys) {
            score = 0;
            for (int d = 0; d < 32; ++d) score += qr[d] * k[(start + lane) * 32 + d];
            score *= 0.17677669f;
        }
        float m = score;
        for (int step = 16; step; step >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, step));
        m = fmaxf(m, top);
        float scale = __expf(top - m), p = __expf(score - m), sum = p;
        for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(~0u, sum, step);
        total = total * scale + sum;
        acc *= scale;
        for (int j = 0; j < 32 && start + j < keys; ++j) acc += __shfl_sync(~0u, p, j) * v[(start + j) * 32 + lane];
        top = m;
    }
    out[query * 32 + lane] = acc / total;
}
