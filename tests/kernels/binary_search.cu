// First position not less than each needle, 64-bit keys.
extern "C" __global__ void binary_search(const long long *sorted, const long long *needles, unsigned *where, unsigned n, unsigned m) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m) return;
    long long key = needles[i];
    unsigned low = 0, count = n;
    while (count > 0) {
        unsigned half = count / 2;
        if (sorted[low + half] < key) { low += half + 1; count -= half + 1; } else count = half;
    }
    where[i] = low;
}
