// CRC-32 of lines of bytes: the table is built in shared memory by the block.
extern "C" __global__ void crc32(const unsigned char *data, const int *start, unsigned *out, int lines) {
    __shared__ unsigned table[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) {
        unsigned c = i;
        for (int k = 0; k < 8; ++k) c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
        table[i] = c;
    }
    __syncthreads();
    int line = blockIdx.x * blockDim.x + threadIdx.x;
    if (line >= lines) return;
    unsigned c = ~0u;
    for (int at = start[line]; at < start[line + 1]; ++at) c = table[(c ^ data[at]) & 255] ^ (c >> 8);
    out[line] = ~c;
}
