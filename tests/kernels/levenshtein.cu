// Edit distance by antidiagonals: one block a pair of strings, three diagonals in shared memory.
extern "C" __global__ void levenshtein(const char *a, const char *b, const int *la, const int *lb, int *out, int pitch) {
    __shared__ int d[3][65];
    int t = threadIdx.x, pair = blockIdx.x, n = la[pair], m = lb[pair];
    const char *x = a + pair * pitch, *y = b + pair * pitch;
    for (int s = 0; s <= n + m; ++s) {
        int *now = d[s % 3], *one = d[(s + 2) % 3], *two = d[(s + 1) % 3];
        for (int i = t; i <= n; i += blockDim.x) {
            int j = s - i;
            if (j < 0 || j > m) continue;
            int v;
            if (i == 0) v = j;
            else if (j == 0) v = i;
            else v = min(min(one[i - 1], one[i]) + 1, two[i - 1] + (x[i - 1] != y[j - 1]));
            now[i] = v;
            if (i == n && j == m) out[pair] = v;
        }
        __syncthreads();
    }
}
