// Loads and stores of every vector width, read-only and streaming hints.
extern "C" __global__ void vector_types(const char4 *a, const short4 *b, const int2 *c, const float4 *d, const double2 *e, const uchar2 *f, short2 *o16, int4 *o32,
                                        longlong2 *o64, float2 *of) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    char4 p = __ldg(&a[i]); short4 q = __ldcs(&b[i]); int2 r = __ldcg(&c[i]); float4 s = __ldg(&d[i]); double2 t = __ldca(&e[i]); uchar2 u = f[i];
    o16[i] = make_short2(p.x + q.y, p.w - q.z);
    __stcs(&o32[i], make_int4(r.x + p.y, r.y - p.z, q.x * u.x, q.w * u.y));
    o64[i] = make_longlong2((long long)t.x * r.x, (long long)t.y - r.y);
    __stwt(&of[i], make_float2(s.x + s.w, s.y - s.z));
}
