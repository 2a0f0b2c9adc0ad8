// Relaxation until the residual of the block is small: barrier votes in a loop.
extern "C" __global__ void jacobi(float *grid, int *rounds, float tolerance, int limit) {
    __shared__ float v[2][18][18];
    int x = threadIdx.x + 1, y = threadIdx.y + 1, t = threadIdx.y * 16 + threadIdx.x;
    float *own = grid + blockIdx.x * 324;
    for (int i = t; i < 324; i += 256) v[0][i / 18][i % 18] = v[1][i / 18][i % 18] = own[i];
    __syncthreads();
    int k = 0, now = 0;
    for (; k < limit; ++k) {
        float old = v[now][y][x], next = 0.25f * ((v[now][y - 1][x] + v[now][y + 1][x]) + (v[now][y][x - 1] + v[now][y][x + 1]));
        v[now ^ 1][y][x] = next;
        now ^= 1;
        if (__syncthreads_and(fabsf(next - old) < tolerance)) break;
    }
    own[y * 18 + x] = v[now][y][x];
    if (t == 0) rounds[blockIdx.x] = k;
}
