// Two warps produce, two consume, over two buffers with named barriers: arrive on one side, wait on the other.
extern "C" __global__ void named_barriers(const int *in, int *out, int rounds) {
    __shared__ int buffer[2][64];
    int t = threadIdx.x & 63;
    if (threadIdx.x < 64) {
        for (int k = 0; k < rounds; ++k) {
            int b = k & 1;
            asm volatile("bar.sync %0, 128;" ::"r"(3 + b) : "memory");
            buffer[b][t] = in[k * 64 + t] * 3;
            asm volatile("bar.arrive %0, 128;" ::"r"(1 + b) : "memory");
        }
    } else {
        asm volatile("bar.arrive 3, 128; bar.arrive 4, 128;" ::: "memory");
        int sum = 0;
        for (int k = 0; k < rounds; ++k) {
            int b = k & 1;
            asm volatile("bar.sync %0, 128;" ::"r"(1 + b) : "memory");
            sum = sum * 5 + buffer[b][63 - t];
            if (k + 2 < rounds) asm volatile("bar.arrive %0, 128;" ::"r"(3 + b) : "memory");
        }
        out[t] = sum;
    }
}
