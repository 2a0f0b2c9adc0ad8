// Gaussian elimination with pivoting of 6 x 6 systems, one thread each: arrays indexed at run time.
extern "C" __global__ void gauss_solve(const float *a, float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float m[6][7];
    for (int r = 0; r < 6; ++r) for (int c = 0; c < 7; ++c) m[r][c] = a[i * 42 + r * 7 + c];
#pragma unroll 1
    for (int k = 0; k < 6; ++k) {
        int pivot = k;
        for (int r = k + 1; r < 6; ++r) if (fabsf(m[r][k]) > fabsf(m[pivot][k])) pivot = r;
        for (int c = 0; c < 7; ++c) { float t = m[k][c]; m[k][c] = m[pivot][c]; m[pivot][c] = t; }
        for (int r = 0; r < 6; ++r) {
            if (r == k) continue;
            float f = m[r][k] / m[k][k];
            for (int c = k; c < 7; ++c) m[r][c] -= f * m[k][c];
        }
    }
    for (int r = 0; r < 6; ++r) x[i * 6 + r] = m[r][6] / m[r][r];
}
