// One warp multiplies 16 x 16 by 16 x 8 halves into floats: ldmatrix and mma.sync.
typedef unsigned short half_bits;
extern "C" __global__ void mma_f16(const half_bits *a, const half_bits *b, float *c, int k_tiles) {
    __shared__ __align__(16) half_bits sa[16][16], sb[16][8];
    int t = threadIdx.x;
    float d[4] = {0, 0, 0, 0};
    for (int k = 0; k < k_tiles; ++k) {
        for (int i = t; i < 256; i += 32) sa[i / 16][i % 16] = a[(i / 16) * (16 * k_tiles) + k * 16 + i % 16];
        for (int i = t; i < 128; i += 32) sb[i / 8][i % 8] = b[(k * 16 + i / 8) * 8 + i % 8];
        __syncwarp();
        unsigned ra[4], rb[2];
        unsigned pa = (unsigned)__cvta_generic_to_shared(&sa[t % 16][(t / 16) * 8]), pb = (unsigned)__cvta_generic_to_shared(&sb[t % 16][0]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(pa));
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(rb[0]), "=r"(rb[1]) : "r"(pb));
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
        __syncwarp();
    }
    int row = t / 4, column = (t % 4) * 2;
    c[row * 8 + column] = d[0]; c[row * 8 + column + 1] = d[1];
    c[(row + 8) * 8 + column] = d[2]; c[(row + 8) * 8 + column + 1] = d[3];
}
