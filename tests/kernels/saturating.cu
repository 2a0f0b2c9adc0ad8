// Saturating and carrying integer arithmetic in PTX's own forms: add.sat, mad24, sad, dp2a, min/max, high products.
extern "C" __global__ void saturating(const int *a, const int *b, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = a[i], y = b[i], r[8];
    asm("add.sat.s32 %0, %1, %2;" : "=r"(r[0]) : "r"(x), "r"(y));
    asm("sub.sat.s32 %0, %1, %2;" : "=r"(r[1]) : "r"(x), "r"(y));
    asm("mad.hi.sat.s32 %0, %1, %2, %3;" : "=r"(r[2]) : "r"(x), "r"(y), "r"(x));
    asm("mul24.lo.s32 %0, %1, %2;" : "=r"(r[3]) : "r"(x), "r"(y));
    asm("mad24.hi.u32 %0, %1, %2, %3;" : "=r"(r[4]) : "r"(x), "r"(y), "r"(y));
    asm("sad.s32 %0, %1, %2, %3;" : "=r"(r[5]) : "r"(x), "r"(y), "r"(7));
    asm("dp2a.hi.s32.u32 %0, %1, %2, %3;" : "=r"(r[6]) : "r"(x), "r"(y), "r"(11));
    asm("{.reg .u16 p, q, s; cvt.u16.u32 p, %1; cvt.u16.u32 q, %2; mul.hi.u16 s, p, q; cvt.u32.u16 %0, s;}" : "=r"(r[7]) : "r"(x), "r"(y));
    for (int k = 0; k < 8; ++k) out[k * n + i] = r[k];
}
