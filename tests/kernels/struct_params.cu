// Structures by value with arrays indexed at run time, 16-bit and 8-bit fields, and a structure returned from a call.
struct Item { short weight; unsigned char flags; signed char shift; int values[5]; long long wide; };
struct Result { int a; long long b; float c; };
__device__ __noinline__ Result combine(Item item, int k) {
    Result r;
    r.a = item.values[k % 5] * item.weight;
    r.b = item.wide + (long long)item.values[(k + 1) % 5] * item.flags;
    r.c = item.shift * 0.5f + k;
    return r;
}
extern "C" __global__ void struct_params(Item item, int *a, long long *b, float *c, unsigned char small) {
    int i = threadIdx.x;
    Result r = combine(item, i + small);
    a[i] = r.a; b[i] = r.b; c[i] = r.c;
}
