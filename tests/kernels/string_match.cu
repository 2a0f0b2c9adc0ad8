// Counts and marks where a pattern with wildcards '?' occurs in bytes.
extern "C" __global__ void string_match(const unsigned char *text, const unsigned char *pattern, unsigned char *hits, unsigned *count, int n, int m) {
    __shared__ unsigned char p[64];
    if (threadIdx.x < m) p[threadIdx.x] = pattern[threadIdx.x];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool hit = i + m <= n;
    for (int k = 0; hit && k < m; ++k) hit = p[k] == '?' || p[k] == text[i + k];
    if (i < n) hits[i] = hit;
    unsigned total = __syncthreads_count(hit);
    if (threadIdx.x == 0) atomicAdd(count, total);
}
