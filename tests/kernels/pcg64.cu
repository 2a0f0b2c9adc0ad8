// A 128-bit linear congruential generator with xor-shift-rotate output, and jumping ahead by squaring.
typedef unsigned __int128 u128;
extern "C" __global__ void pcg64(unsigned long long *out, const unsigned long long *jump, unsigned long long high, unsigned long long low, int n, int draws) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const u128 multiplier = ((u128)2549297995355413924ull << 64) | 4865540595714422341ull, increment = ((u128)6364136223846793005ull << 64) | 1442695040888963407ull;
    u128 state = ((u128)high << 64) | low, a = 1, c = 0, am = multiplier, ac = increment;
    for (unsigned long long d = jump[i]; d; d >>= 1) {
        if (d & 1) { a *= am; c = c * am + ac; }
        ac = (am + 1) * ac; am *= am;
    }
    state = a * state + c;
    for (int k = 0; k < draws; ++k) {
        state = state * multiplier + increment;
        unsigned long long folded = (unsigned long long)(state >> 64) ^ (unsigned long long)state;
        int turn = (int)(state >> 122);
        out[i * draws + k] = folded >> turn | folded << (-turn & 63);
    }
}
