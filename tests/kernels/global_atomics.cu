// Global atomics of many types.
extern "C" __global__ void global_atomics(const int *in, int *ints, unsigned long long *longs, float *floats, double *doubles) {
    int v = in[blockIdx.x * blockDim.x + threadIdx.x];
    atomicAdd(&ints[0], v); atomicMin(&ints[1], v); atomicMax(&ints[2], v); atomicAnd((unsigned *)&ints[3], (unsigned)v | 0xff);
    atomicXor(&ints[4], v); atomicInc((unsigned *)&ints[5], 100u); atomicDec((unsigned *)&ints[6], 77u); atomicSub(&ints[7], v);
    atomicAdd(&longs[0], (unsigned long long)(long long)v); atomicMax(&longs[1], (unsigned long long)(unsigned)v << 20);
    atomicAdd(&floats[0], (float)(v & 255)); atomicAdd(&doubles[0], (double)v * 0.5);
    unsigned long long old = longs[2], seen;
    do { seen = old; old = atomicCAS(&longs[2], seen, seen * 3 + 1); } while (old != seen);
}
