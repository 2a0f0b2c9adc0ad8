// Atomics on shared memory: add, minimum, maximum, exchange, compare and swap, or.
extern "C" __global__ void shared_atomics(const int *in, int *out, int n) {
    __shared__ int bins[16];
    __shared__ int low, high, bits, lock_count;
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    if (threadIdx.x == 0) { low = 0x7fffffff; high = -0x7fffffff - 1; bits = 0; lock_count = 0; }
    __syncthreads();
    int v = in[blockIdx.x * blockDim.x + threadIdx.x];
    atomicAdd(&bins[v & 15], v >> 4);
    atomicMin(&low, v); atomicMax(&high, v); atomicOr(&bits, 1 << (v & 31));
    int seen = atomicOr(&lock_count, 0), old;
    do { old = seen; seen = atomicCAS(&lock_count, old, old + 2); } while (seen != old);
    __syncthreads();
    int *o = out + blockIdx.x * 20;
    if (threadIdx.x < 16) o[threadIdx.x] = bins[threadIdx.x];
    if (threadIdx.x == 0) { o[16] = low; o[17] = high; o[18] = bits; o[19] = atomicExch(&lock_count, 0); }
}
