// One step of k-means: nearest centre, sums in shared memory by integer atomics, means by division.
extern "C" __global__ void k_means(const int2 *point, const int2 *centre, int *label, int2 *mean, int n, int k) {
    __shared__ int sx[8], sy[8], count[8];
    int t = threadIdx.x;
    if (t < k) sx[t] = sy[t] = count[t] = 0;
    __syncthreads();
    for (int i = t; i < n; i += blockDim.x) {
        int2 p = point[i];
        long long best = 0x7fffffffffffffffll; int which = 0;
        for (int c = 0; c < k; ++c) {
            long long dx = p.x - centre[c].x, dy = p.y - centre[c].y, d = dx * dx + dy * dy;
            if (d < best) { best = d; which = c; }
        }
        label[i] = which;
        atomicAdd(&sx[which], p.x); atomicAdd(&sy[which], p.y); atomicAdd(&count[which], 1);
    }
    __syncthreads();
    if (t < k) mean[t] = count[t] ? make_int2(sx[t] / count[t], sy[t] / count[t]) : centre[t];
}
