// A baton handed from warp to warp of a block and from block to block, by volatile and by acquire and release.
extern "C" __global__ void flag_passing(unsigned *baton, unsigned *trace, unsigned *sum) {
    __shared__ volatile unsigned turn;
    unsigned warp = threadIdx.x >> 5, lane = threadIdx.x & 31, warps = blockDim.x >> 5;
    if (threadIdx.x == 0) turn = 0;
    __syncthreads();
    if (lane == 0) {
        while (turn != warp) ;
        if (warp == 0) {
            unsigned v;
            do { asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(baton) : "memory"); } while (v != blockIdx.x);
        }
        unsigned k = blockIdx.x * warps + warp;
        trace[k] = *(volatile unsigned *)sum;
        *(volatile unsigned *)sum = trace[k] + k + 1;
        __threadfence();
        if (warp == warps - 1) asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(baton), "r"(blockIdx.x + 1) : "memory");
        turn = warp + 1;
    }
}
