// 512-bit products by columns of 64-bit sums, one product a warp: limbs travel through shuffles, carries through shared memory.
extern "C" __global__ void big_multiply(const unsigned *a, const unsigned *b, unsigned *out) {
    __shared__ unsigned long long low[32]; __shared__ unsigned high[32];
    int lane = threadIdx.x, at = blockIdx.x * 16;
    unsigned x = lane < 16 ? a[at + lane] : 0, y = lane < 16 ? b[at + lane] : 0;
    unsigned long long sum = 0; unsigned over = 0;
    for (int k = 0; k < 16; ++k) {
        unsigned xi = __shfl_sync(~0u, x, k), yj = __shfl_sync(~0u, y, (lane - k) & 31);
        unsigned long long product = lane >= k && lane - k < 16 ? (unsigned long long)xi * yj : 0, before = sum;
        sum += product;
        over += sum < before;
    }
    low[lane] = sum; high[lane] = over;
    __syncwarp();
    if (lane == 0) {
        unsigned __int128 carry = 0;
        for (int k = 0; k < 32; ++k) {
            carry += ((unsigned __int128)high[k] << 64) + low[k];
            out[blockIdx.x * 32 + k] = (unsigned)carry;
            carry >>= 32;
        }
    }
}
