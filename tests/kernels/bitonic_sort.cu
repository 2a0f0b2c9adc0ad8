// Sorts each block's keys in shared memory.
extern "C" __global__ void bitonic_sort(unsigned *keys) {
    extern __shared__ unsigned s[];
    unsigned t = threadIdx.x;
    s[t] = keys[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (unsigned k = 2; k <= blockDim.x; k <<= 1)
        for (unsigned j = k >> 1; j; j >>= 1) {
            unsigned o = t ^ j;
            if (o > t) {
                unsigned a = s[t], b = s[o];
                if ((a > b) == ((t & k) == 0)) { s[t] = b; s[o] = a; }
            }
            __syncthreads();
        }
    keys[blockIdx.x * blockDim.x + t] = s[t];
}
