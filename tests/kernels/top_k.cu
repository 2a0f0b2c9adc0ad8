// The eight largest of each row with their columns: sorted lists in registers, joined through shuffles.
extern "C" __global__ void top_k(const float *in, float *best, int *where, int columns) {
    int lane = threadIdx.x, row = blockIdx.x;
    float v[8]; int c[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) { v[k] = -INFINITY; c[k] = -1; }
    for (int i = lane; i < columns; i += 32) {
        float x = in[row * columns + i]; int at = i;
#pragma unroll
        for (int k = 0; k < 8; ++k)
            if (x > v[k]) { float tv = v[k]; int tc = c[k]; v[k] = x; c[k] = at; x = tv; at = tc; }
    }
    for (int k = 0; k < 8; ++k) {
        float top = v[0]; int at = c[0];
        for (int step = 16; step; step >>= 1) {
            float ov = __shfl_xor_sync(~0u, top, step); int oc = __shfl_xor_sync(~0u, at, step);
            if (ov > top || (ov == top && (unsigned)oc < (unsigned)at)) { top = ov; at = oc; }
        }
        if (c[0] == at) {
#pragma unroll
            for (int j = 0; j < 7; ++j) { v[j] = v[j + 1]; c[j] = c[j + 1]; }
            v[7] = -INFINITY; c[7] = -1;
        }
        if (lane == 0) { best[row * 8 + k] = top; where[row * 8 + k] = at; }
    }
}
