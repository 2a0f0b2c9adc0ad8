// Products of 256-bit numbers modulo 2^255 - 19 in Montgomery form: carry chains of mad.
extern "C" __global__ void montgomery(const unsigned *a, const unsigned *b, const unsigned *modulus, unsigned *out, unsigned inverse, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x[8], y[8], p[8], t[10];
    for (int k = 0; k < 8; ++k) { x[k] = a[8 * i + k]; y[k] = b[8 * i + k]; p[k] = modulus[k]; }
    for (int k = 0; k < 10; ++k) t[k] = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        for (int pass = 0; pass < 2; ++pass) {
            unsigned m = pass ? t[0] * inverse : y[j];
            const unsigned *v = pass ? p : x;
            asm("mad.lo.cc.u32 %0, %10, %18, %0; madc.lo.cc.u32 %1, %11, %18, %1; madc.lo.cc.u32 %2, %12, %18, %2; madc.lo.cc.u32 %3, %13, %18, %3;"
                "madc.lo.cc.u32 %4, %14, %18, %4; madc.lo.cc.u32 %5, %15, %18, %5; madc.lo.cc.u32 %6, %16, %18, %6; madc.lo.cc.u32 %7, %17, %18, %7;"
                "addc.cc.u32 %8, %8, 0; addc.u32 %9, %9, 0;"
                "mad.hi.cc.u32 %1, %10, %18, %1; madc.hi.cc.u32 %2, %11, %18, %2; madc.hi.cc.u32 %3, %12, %18, %3; madc.hi.cc.u32 %4, %13, %18, %4;"
                "madc.hi.cc.u32 %5, %14, %18, %5; madc.hi.cc.u32 %6, %15, %18, %6; madc.hi.cc.u32 %7, %16, %18, %7; madc.hi.cc.u32 %8, %17, %18, %8;"
                "addc.u32 %9, %9, 0;"
                : "+r"(t[0]), "+r"(t[1]), "+r"(t[2]), "+r"(t[3]), "+r"(t[4]), "+r"(t[5]), "+r"(t[6]), "+r"(t[7]), "+r"(t[8]), "+r"(t[9])
                : "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]), "r"(v[4]), "r"(v[5]), "r"(v[6]), "r"(v[7]), "r"(m));
        }
        for (int k = 0; k < 9; ++k) t[k] = t[k + 1];
        t[9] = 0;
    }
    unsigned d[8], borrow;
    asm("sub.cc.u32 %0, %9, %17; subc.cc.u32 %1, %10, %18; subc.cc.u32 %2, %11, %19; subc.cc.u32 %3, %12, %20; subc.cc.u32 %4, %13, %21;"
        "subc.cc.u32 %5, %14, %22; subc.cc.u32 %6, %15, %23; subc.cc.u32 %7, %16, %24; subc.u32 %8, 0, 0;"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]), "=r"(d[4]), "=r"(d[5]), "=r"(d[6]), "=r"(d[7]), "=r"(borrow)
        : "r"(t[0]), "r"(t[1]), "r"(t[2]), "r"(t[3]), "r"(t[4]), "r"(t[5]), "r"(t[6]), "r"(t[7]),
          "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(p[4]), "r"(p[5]), "r"(p[6]), "r"(p[7]));
    for (int k = 0; k < 8; ++k) out[8 * i + k] = borrow && !t[8] ? t[k] : d[k];
}
