// Radix-2 transform of 256 complex numbers in shared memory: bit reversal, twiddles from sincospi.
extern "C" __global__ void fft(const float2 *in, float2 *out) {
    __shared__ float2 v[256];
    int t = threadIdx.x;
    for (int i = t; i < 256; i += 128) v[__brev(i) >> 24] = in[blockIdx.x * 256 + i];
    __syncthreads();
    for (int half = 1; half < 256; half *= 2) {
        int k = t & (half - 1), at = ((t - k) << 1) + k;
        float s, c;
        sincospif(-(float)k / half, &s, &c);
        float2 a = v[at], b = v[at + half], w = make_float2(b.x * c - b.y * s, b.x * s + b.y * c);
        v[at] = make_float2(a.x + w.x, a.y + w.y); v[at + half] = make_float2(a.x - w.x, a.y - w.y);
        __syncthreads();
    }
    for (int i = t; i < 256; i += 128) out[blockIdx.x * 256 + i] = v[i];
}
