// Accelerations of bodies by tiles in shared memory, reciprocal square roots.
extern "C" __global__ void nbody(const float4 *body, float3 *acceleration, int n, float softening) {
    __shared__ float4 tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = body[min(i, n - 1)];
    float ax = 0, ay = 0, az = 0;
    for (int start = 0; start < n; start += 64) {
        tile[threadIdx.x] = start + threadIdx.x < n ? body[start + threadIdx.x] : make_float4(0, 0, 0, 0);
        __syncthreads();
        for (int k = 0; k < 64; ++k) {
            float4 o = tile[k];
            float dx = o.x - me.x, dy = o.y - me.y, dz = o.z - me.z, r = rsqrtf(dx * dx + dy * dy + dz * dz + softening), f = o.w * r * r * r;
            ax += f * dx; ay += f * dy; az += f * dz;
        }
        __syncthreads();
    }
    if (i < n) acceleration[i] = make_float3(ax, ay, az);
}
