// Warp-wide votes, matches and reductions.
extern "C" __global__ void warp_votes(const int *in, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = in[i];
    out[i] = __ballot_sync(0xffffffffu, v > 0);
    out[n + i] = __any_sync(0xffffffffu, v == 7) | __all_sync(0xffffffffu, v < 100) << 1;
    out[2 * n + i] = __match_any_sync(0xffffffffu, v & 7);
    int same; unsigned all = __match_all_sync(0xffffffffu, v >> 8, &same);
    out[3 * n + i] = all + same;
    out[4 * n + i] = __reduce_add_sync(0xffffffffu, v); out[5 * n + i] = __reduce_max_sync(0xffffffffu, v);
    out[6 * n + i] = __reduce_xor_sync(0xffffffffu, (unsigned)v);
    if (v & 1) out[7 * n + i] = __activemask();
    else out[7 * n + i] = __popc(__activemask());
}
