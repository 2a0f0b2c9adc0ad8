// Three-dimensional grids and blocks: every index and size, and a volume's Laplacian.
extern "C" __global__ void grid3d(const int *in, int *out, int *where, int3 size) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= size.x || y >= size.y || z >= size.z) return;
    auto at = [&](int i, int j, int k) { return i < 0 || j < 0 || k < 0 || i >= size.x || j >= size.y || k >= size.z ? 0 : in[(k * size.y + j) * size.x + i]; };
    int i = (z * size.y + y) * size.x + x;
    out[i] = at(x - 1, y, z) + at(x + 1, y, z) + at(x, y - 1, z) + at(x, y + 1, z) + at(x, y, z - 1) + at(x, y, z + 1) - 6 * in[i];
    where[i] = ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * 1000 + (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
