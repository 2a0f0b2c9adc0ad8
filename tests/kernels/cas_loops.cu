// Loops around compare-and-swap: 64-bit, 32-bit float maximum, 16-bit addition, exchange of locks.
extern "C" __global__ void cas_loops(const float *in, float *top, double *product, unsigned short *narrow, unsigned *ticket, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = in[i];
    int *p = (int *)top, old = *p, seen;
    do { seen = old; if (__int_as_float(seen) >= v) break; old = atomicCAS(p, seen, __float_as_int(v)); } while (old != seen);
    unsigned long long *q = (unsigned long long *)product, was = *q, is;
    do { is = was; was = atomicCAS(q, is, (unsigned long long)__double_as_longlong(__longlong_as_double((long long)is) + (i & 7))); } while (was != is);
    unsigned short *s = narrow + (i & 1), before = *(volatile unsigned short *)s, now;
    do { now = before; before = atomicCAS(s, now, (unsigned short)(now + 3)); } while (before != now);
    atomicAdd(ticket, atomicExch(ticket + 1 + i, i));
}
