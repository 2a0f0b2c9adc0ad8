// Atomics with results used, all scopes, both memories: what each thread got, sorted out by the host.
extern "C" __global__ void atomics_all(const unsigned *in, unsigned *w, unsigned long long *x, float *f, double *d, unsigned *order, long long *low) {
    __shared__ unsigned sw[6]; __shared__ unsigned long long sx[4]; __shared__ float sf; __shared__ double sd; __shared__ int ss[2];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) {
        for (int k = 0; k < 6; ++k) sw[k] = k == 1 ? ~0u : 0;
        for (int k = 0; k < 4; ++k) sx[k] = k == 2 ? ~0ull : 0;
        sf = 0; sd = 0; ss[0] = 0; ss[1] = 0;
    }
    __syncthreads();
    unsigned v = in[i];
    unsigned long long wide = (unsigned long long)v * v;
    order[i] = atomicInc(&w[0], 1000000); order[256 + i] = atomicAdd(&sw[0], 1);
    atomicAnd(&w[1], v | 1); atomicOr_system(&w[2], v); atomicXor_block(&w[3], v); atomicMax(&w[4], v); atomicMin(&w[5], v);
    atomicAdd(&x[0], wide); atomicMax(&x[1], wide); atomicMin(&x[2], wide); atomicXor(&x[3], wide); atomicAnd(&x[4], ~wide); atomicOr(&x[5], wide);
    atomicMin(low, (long long)(int)v); atomicMax(low + 1, (long long)(int)v);
    atomicAdd(f, (float)(v & 1023)); atomicAdd(d, (double)(v & 0xffff) * 0.5);
    atomicAnd(&sw[1], ~v); atomicOr(&sw[2], v); atomicXor(&sw[3], v); atomicMax(&sw[4], v); atomicDec(&sw[5], 99);
    atomicAdd(&sx[0], wide); atomicMax(&sx[1], wide); atomicMin(&sx[2], wide); atomicXor(&sx[3], wide);
    atomicAdd(&sf, (float)(v & 1023)); atomicAdd(&sd, (double)(v & 0xffff) * 0.5); atomicMin(&ss[0], (int)v); atomicMax(&ss[1], (int)v);
    __syncthreads();
    if (threadIdx.x < 6) w[8 + blockIdx.x * 8 + threadIdx.x] = sw[threadIdx.x];
    if (threadIdx.x < 2) w[8 + blockIdx.x * 8 + 6 + threadIdx.x] = ss[threadIdx.x];
    if (threadIdx.x < 4) x[6 + blockIdx.x * 4 + threadIdx.x] = sx[threadIdx.x];
    if (threadIdx.x == 0) { f[1 + blockIdx.x] = sf; d[1 + blockIdx.x] = sd; }
}
