// Game of life on rows of 32 bits: neighbours counted with full adders over whole words, several generations in shared memory.
extern "C" __global__ void life_bits(const unsigned *in, unsigned *out, int rows, int generations) {
    extern __shared__ unsigned grid[];
    unsigned *now = grid, *next = grid + rows;
    int r = threadIdx.x;
    now[r] = in[blockIdx.x * rows + r];
    __syncthreads();
    for (int g = 0; g < generations; ++g) {
        unsigned ones = 0, twos = 0, fours = 0;
        for (int dy = -1; dy <= 1; ++dy) {
            unsigned row = now[(r + dy + rows) % rows], left = __funnelshift_l(row, row, 1), right = __funnelshift_r(row, row, 1);
            unsigned parts[3] = {left, right, dy ? row : 0};
            for (int k = 0; k < 3; ++k) {
                unsigned carry = ones & parts[k];
                ones ^= parts[k];
                fours |= twos & carry;
                twos ^= carry;
            }
        }
        next[r] = ~fours & twos & (ones | now[r]);
        __syncthreads();
        unsigned *swap = now; now = next; next = swap;
    }
    out[blockIdx.x * rows + r] = now[r];
}
