// All shortest paths of a graph of 24 nodes in one block, with saturated sums.
extern "C" __global__ void floyd_warshall(unsigned short *distance) {
    __shared__ unsigned short d[24][24];
    int x = threadIdx.x, y = threadIdx.y;
    d[y][x] = distance[y * 24 + x];
    __syncthreads();
    for (int k = 0; k < 24; ++k) {
        unsigned via = (unsigned)d[y][k] + d[k][x];
        unsigned short mine = d[y][x];
        __syncthreads();
        if (via < mine) d[y][x] = (unsigned short)via;
        __syncthreads();
    }
    distance[y * 24 + x] = d[y][x];
}
