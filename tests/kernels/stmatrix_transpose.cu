// Transposes 16 x 16 halves through shared memory by stmatrix and ldmatrix.
extern "C" __global__ void stmatrix_transpose(const unsigned *in, unsigned *out) {
    __shared__ __align__(16) unsigned tile[16][8];
    int t = threadIdx.x;
    unsigned r[4], at = (unsigned)__cvta_generic_to_shared(&tile[t & 15][(t >> 4) * 4]);
    for (int k = 0; k < 4; ++k) r[k] = in[((k & 1) * 8 + t / 4) * 8 + (k >> 1) * 4 + (t & 3)];
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    __syncwarp();
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
    for (int k = 0; k < 4; ++k) out[((k >> 1) * 8 + t / 4) * 8 + (k & 1) * 4 + (t & 3)] = r[k];
}
