// Stein's greatest common divisors in 64 bits, and Jacobi symbols: shifts by counted zeros, diverging loops.
extern "C" __global__ void binary_gcd(const unsigned long long *a, const unsigned long long *b, unsigned long long *gcd, int *jacobi, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long x = a[i], y = b[i];
    if (x == 0 || y == 0) gcd[i] = x | y;
    else {
        int twos = __ffsll(x | y) - 1;
        x >>= __ffsll(x) - 1;
        do {
            y >>= __ffsll(y) - 1;
            if (x > y) { unsigned long long t = x; x = y; y = t; }
            y -= x;
        } while (y);
        gcd[i] = x << twos;
    }
    unsigned long long p = a[i], q = b[i] | 1;
    int sign = 1;
    p %= q;
    while (p) {
        while (!(p & 1)) { p >>= 1; if ((q & 7) == 3 || (q & 7) == 5) sign = -sign; }
        unsigned long long t = p; p = q; q = t;
        if ((p & 3) == 3 && (q & 3) == 3) sign = -sign;
        p %= q;
    }
    jacobi[i] = q == 1 ? sign : 0;
}
