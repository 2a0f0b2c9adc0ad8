// 16-byte vector copies of the body of a range, single words for the tail, through a row pitch.
extern "C" __global__ void strided_copy(const int *src, int *dst, int columns, int src_pitch, int dst_pitch) {
    const int *from = src + (long long)blockIdx.x * src_pitch;
    int *to = dst + (long long)blockIdx.x * dst_pitch;
    int body = columns & ~3;
    for (int i = threadIdx.x * 4; i < body; i += blockDim.x * 4) *(int4 *)(to + i) = *(const int4 *)(from + i);
    for (int i = body + threadIdx.x; i < columns; i += blockDim.x) to[i] = from[i];
}
