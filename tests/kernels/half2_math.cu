// Packed half arithmetic: add, multiply, fused multiply-add, maximum, comparison, conversion. Written with asm: no header is needed.
#define BINARY(name, text) __device__ unsigned name(unsigned a, unsigned b) { unsigned r; asm(text " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
BINARY(add2, "add.rn.f16x2")
BINARY(mul2, "mul.rn.f16x2")
BINARY(max2, "max.f16x2")
BINARY(greater2, "set.gt.f16x2.f16x2")
__device__ unsigned fma2(unsigned a, unsigned b, unsigned c) { unsigned r; asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); return r; }
__device__ unsigned neg2(unsigned a) { unsigned r; asm("neg.f16x2 %0, %1;" : "=r"(r) : "r"(a)); return r; }
__device__ float low(unsigned a) { float f; asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l;}" : "=f"(f) : "r"(a)); return f; }
__device__ float high(unsigned a) { float f; asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, h;}" : "=f"(f) : "r"(a)); return f; }
extern "C" __global__ void half2_math(const unsigned *a, const unsigned *b, unsigned *out, float *fout, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = b[i], packed;
    out[i] = add2(x, y); out[n + i] = mul2(x, y); out[2 * n + i] = fma2(x, y, neg2(x));
    out[3 * n + i] = max2(x, y); out[4 * n + i] = greater2(x, y);
    float f = low(x) * high(y);
    fout[i] = f;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(low(y) + 1.5f), "f"(f));
    out[5 * n + i] = packed;
}
