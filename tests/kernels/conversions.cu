// Conversions between integers and floats with several roundings and saturation.
extern "C" __global__ void conversions(const float *f, const double *d, const int *k, const long long *l, int *oi, float *of, double *od, long long *ol, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    oi[i] = __float2int_rn(f[i]); oi[n + i] = __float2int_rz(f[i]); oi[2 * n + i] = __float2int_ru(f[i]); oi[3 * n + i] = __float2int_rd(f[i]);
    oi[4 * n + i] = (int)__float2uint_rz(f[i]); oi[5 * n + i] = __double2int_rz(d[i]); oi[6 * n + i] = (int)(signed char)__float2int_rz(f[i]);
    of[i] = (float)k[i]; of[n + i] = __uint2float_rz((unsigned)k[i]); of[2 * n + i] = (float)d[i]; of[3 * n + i] = (float)l[i];
    of[4 * n + i] = floorf(f[i]); of[5 * n + i] = rintf(f[i]); of[6 * n + i] = truncf(f[i]);
    od[i] = (double)f[i]; od[n + i] = (double)k[i]; od[2 * n + i] = (double)l[i]; od[3 * n + i] = ceil(d[i]);
    ol[i] = (long long)f[i]; ol[n + i] = (long long)d[i]; ol[2 * n + i] = (long long)__double2ull_rz(d[i]);
}
