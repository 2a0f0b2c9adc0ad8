// mma.sync on signed bytes with s32 sums, on doubles, and on bf16.
extern "C" __global__ void mma_kinds(const unsigned *a, const unsigned *b, int *c, const double *x, const double *y, double *z, const unsigned *h, const unsigned *g, float *f) {
    int t = threadIdx.x, d[4] = {1, 2, 3, 4};
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[t * 4]), "r"(a[t * 4 + 1]), "r"(a[t * 4 + 2]), "r"(a[t * 4 + 3]), "r"(b[t * 2]), "r"(b[t * 2 + 1]));
    for (int i = 0; i < 4; ++i) c[t * 4 + i] = d[i];
    double e[2] = {0.5, -0.5};
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(e[0]), "+d"(e[1]) : "d"(x[t]), "d"(y[t]));
    z[t * 2] = e[0]; z[t * 2 + 1] = e[1];
    float s[4] = {0, 0, 0, 0};
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
        : "r"(h[t * 4]), "r"(h[t * 4 + 1]), "r"(h[t * 4 + 2]), "r"(h[t * 4 + 3]), "r"(g[t * 2]), "r"(g[t * 2 + 1]));
    for (int i = 0; i < 4; ++i) f[t * 4 + i] = s[i];
}
