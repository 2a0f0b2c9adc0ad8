// Steps to reach 1: the loop's exit depends on each thread's data.
extern "C" __global__ void collatz(const unsigned *in, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long x = in[i];
    unsigned steps = 0;
    while (x > 1) { x = (x & 1) ? 3 * x + 1 : x >> 1; ++steps; }
    out[i] = steps;
}
