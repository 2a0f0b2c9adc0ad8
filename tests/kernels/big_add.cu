// 256-bit sums and 64 x 64 -> 128 bit products: carries.
extern "C" __global__ void big_add(const unsigned *a, const unsigned *b, unsigned *sum, unsigned long long *product, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned r[8], x[8], y[8];
    for (int k = 0; k < 8; ++k) { x[k] = a[i * 8 + k]; y[k] = b[i * 8 + k]; }
    asm("add.cc.u32 %0, %8, %16; addc.cc.u32 %1, %9, %17; addc.cc.u32 %2, %10, %18; addc.cc.u32 %3, %11, %19;"
        "addc.cc.u32 %4, %12, %20; addc.cc.u32 %5, %13, %21; addc.cc.u32 %6, %14, %22; addc.u32 %7, %15, %23;"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]), "r"(x[6]), "r"(x[7]),
          "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(y[4]), "r"(y[5]), "r"(y[6]), "r"(y[7]));
    for (int k = 0; k < 8; ++k) sum[i * 8 + k] = r[k];
    unsigned long long p = ((unsigned long long)x[1] << 32) | x[0], q = ((unsigned long long)y[1] << 32) | y[0];
    product[i * 2] = p * q; product[i * 2 + 1] = __umul64hi(p, q);
}
