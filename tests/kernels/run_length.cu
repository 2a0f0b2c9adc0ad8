// Run lengths of bytes: boundaries, their prefix sums by warps, and the lengths as differences.
extern "C" __global__ void run_length(const unsigned char *in, unsigned char *symbol, int *length, int *runs, int n) {
    __shared__ int sums[8], place[257];
    int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    int first = t < n && (t == 0 || in[t] != in[t - 1]), sum = first;
    for (int step = 1; step < 32; step *= 2) { int v = __shfl_up_sync(~0u, sum, step); if (lane >= step) sum += v; }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    int total = 0;
    for (int w = 0; w < 8; ++w) { if (w == warp) sum += total; total += sums[w]; }
    if (first) { place[sum - 1] = t; symbol[sum - 1] = in[t]; }
    if (t == 0) { place[total] = n; *runs = total; }
    __syncthreads();
    if (t < total) length[t] = place[t + 1] - place[t];
}
