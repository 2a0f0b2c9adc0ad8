// Powers modulo 64-bit odd numbers by 128-bit products and division, and the Miller-Rabin test on them.
typedef unsigned long long u64;
__device__ u64 times(u64 a, u64 b, u64 m) { return (u64)((unsigned __int128)a * b % m); }
extern "C" __global__ void modular_power(const u64 *numbers, u64 *power, int *prime, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u64 m = numbers[i], d = m - 1;
    int s = __ffsll(d) - 1;
    d >>= s;
    bool probably = true;
    u64 last = 0;
    for (u64 base = 2; base <= 7; base += base == 2 ? 1 : 2) {
        u64 r = 1, b = base % m;
        for (u64 e = d; e; e >>= 1) { if (e & 1) r = times(r, b, m); b = times(b, b, m); }
        last = r;
        bool ok = r == 1 || r == m - 1;
        for (int k = 1; k < s && !ok; ++k) { r = times(r, r, m); ok = r == m - 1; }
        if (!ok) { probably = false; break; }
    }
    power[i] = last; prime[i] = probably;
}
