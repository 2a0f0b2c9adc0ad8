// 64 x 64 tile by four warps: cp.async in two stages, ldmatrix, mma.sync m16n8k16 with float sums.
typedef unsigned short half_bits;
__device__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void copy16(void *to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(__cvta_generic_to_global(from)));
}
extern "C" __global__ void gemm_f16_pipeline(const half_bits *a, const half_bits *b, float *c, int k_size, int n_size) {
    __shared__ __align__(16) half_bits sa[2][64][40], sb[2][32][72];
    int t = threadIdx.x, lane = t & 31, warp = t >> 5, row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
    float d[8][4] = {};
    auto fetch = [&](int stage, int k) {
        for (int i = t; i < 256; i += 128) {
            copy16(&sa[stage][i >> 2][(i & 3) * 8], a + (row0 + (i >> 2)) * k_size + k + (i & 3) * 8);
            copy16(&sb[stage][i >> 3][(i & 7) * 8], b + (k + (i >> 3)) * n_size + col0 + (i & 7) * 8);
        }
        asm volatile("cp.async.commit_group;");
    };
    fetch(0, 0);
    for (int k = 0, stage = 0; k < k_size; k += 32, stage ^= 1) {
        if (k + 32 < k_size) { fetch(stage ^ 1, k + 32); asm volatile("cp.async.wait_group 1;" ::: "memory"); }
        else asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();
        for (int step = 0; step < 32; step += 16) {
            unsigned ra[4];
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                         : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(shared_address(&sa[stage][warp * 16 + (lane & 15)][step + (lane >> 4) * 8])) : "memory");
            for (int j = 0; j < 4; ++j) {
                unsigned rb[4];
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                             : "=r"(rb[0]), "=r"(rb[1]), "=r"(rb[2]), "=r"(rb[3]) : "r"(shared_address(&sb[stage][step + (lane & 15)][j * 16 + (lane >> 4) * 8])) : "memory");
                for (int h = 0; h < 2; ++h)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                                 : "+f"(d[2 * j + h][0]), "+f"(d[2 * j + h][1]), "+f"(d[2 * j + h][2]), "+f"(d[2 * j + h][3])
                                 : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[2 * h]), "r"(rb[2 * h + 1]));
            }
        }
        __syncthreads();
    }
    for (int j = 0; j < 8; ++j) {
        int row = row0 + warp * 16 + lane / 4, column = col0 + j * 8 + (lane & 3) * 2;
        *(float2 *)&c[row * n_size + column] = make_float2(d[j][0], d[j][1]);
        *(float2 *)&c[(row + 8) * n_size + column] = make_float2(d[j][2], d[j][3]);
    }
}
