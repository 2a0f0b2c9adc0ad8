// Matrix products of other types: tf32, half sums, unsigned by signed bytes with saturation, single bits, and a transposing move of a matrix.
extern "C" __global__ void mma_variants(const unsigned *a, const unsigned *b, float *tf, unsigned *halves, int *bytes, int *bits, unsigned *moved) {
    int t = threadIdx.x;
    unsigned ra[4], rb[2];
    for (int k = 0; k < 4; ++k) ra[k] = a[t * 4 + k];
    for (int k = 0; k < 2; ++k) rb[k] = b[t * 2 + k];
    float f[4] = {0, 0, 0, 0};
    unsigned fa[4], fb[2];
    for (int k = 0; k < 4; ++k) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(fa[k]) : "f"((float)(int)(ra[k] % 64) - 32.0f));
    for (int k = 0; k < 2; ++k) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(fb[k]) : "f"((float)(int)(rb[k] % 64) * 0.25f));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]) : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
    unsigned h[2] = {0, 0}, ha[2], hb;
    for (int k = 0; k < 2; ++k) ha[k] = 0x3c003c00u + (ra[k] & 0x03000300u);
    hb = 0x40004000u + (rb[0] & 0x01000200u);
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};" : "+r"(h[0]), "+r"(h[1]) : "r"(ha[0]), "r"(ha[1]), "r"(hb));
    int s[4] = {0x7fffff00, -5, 7, (int)0x80000100};
    asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3]) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
    int x[4] = {0, 0, 0, 1};
    asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3]) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
    unsigned m;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(m) : "r"(ra[0]));
    for (int k = 0; k < 4; ++k) { tf[t * 4 + k] = f[k]; bytes[t * 4 + k] = s[k]; bits[t * 4 + k] = x[k]; }
    halves[t * 2] = h[0]; halves[t * 2 + 1] = h[1]; moved[t] = m;
}
