// Cholesky factors of 8 x 8 matrices in double precision, one block a matrix, and the solution by substitution.
extern "C" __global__ void cholesky(const double *a, const double *b, double *x) {
    __shared__ double m[8][9], v[8];
    int r = threadIdx.y, c = threadIdx.x, at = blockIdx.x;
    m[r][c] = a[at * 64 + r * 8 + c];
    if (r == 0) v[c] = b[at * 8 + c];
    __syncthreads();
    for (int k = 0; k < 8; ++k) {
        if (r == k && c == k) m[k][k] = sqrt(m[k][k]);
        __syncthreads();
        if (c == k && r > k) m[r][k] /= m[k][k];
        __syncthreads();
        if (c > k && r >= c) m[r][c] -= m[r][k] * m[c][k];
        __syncthreads();
    }
    if (r == 0 && c == 0) {
        for (int i = 0; i < 8; ++i) { double s = v[i]; for (int k = 0; k < i; ++k) s -= m[i][k] * v[k]; v[i] = s / m[i][i]; }
        for (int i = 7; i >= 0; --i) { double s = v[i]; for (int k = i + 1; k < 8; ++k) s -= m[k][i] * v[k]; v[i] = s / m[i][i]; }
    }
    __syncthreads();
    if (r == 0) x[at * 8 + c] = v[c];
}
