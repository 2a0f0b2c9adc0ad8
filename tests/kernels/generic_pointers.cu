// Loads, stores and atomics through generic pointers to global, shared and local memory, chosen by lane.
__device__ __noinline__ int bump(int *p, int by) { int old = *p; *p = old + by; return old; }
extern "C" __global__ void generic_pointers(int *data, int *out, int n) {
    __shared__ int s[64];
    int own[4] = {1, 2, 3, 4};
    int t = threadIdx.x;
    s[t] = t * 10;
    __syncthreads();
    int *p = t % 3 == 0 ? &data[t] : t % 3 == 1 ? &s[t] : &own[(t + n) & 3];
    int r = bump(p, t);
    if (t % 3 != 2) atomicAdd(t % 3 == 0 ? &data[t] : &s[t], 100);
    out[t] = r * 1000 + *p + own[t & 3] + (__isShared(p) ? 1000000 : 0) + (__isGlobal(p) ? 2000000 : 0);
}
