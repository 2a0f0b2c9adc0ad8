// Merges two sorted arrays: each thread finds its diagonal by binary search and merges its piece.
extern "C" __global__ void merge_path(const int *a, const int *b, int *out, int na, int nb, int each) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, diagonal = min(i * each, na + nb), stop = min(diagonal + each, na + nb);
    int low = max(0, diagonal - nb), high = min(diagonal, na);
    while (low < high) {
        int middle = (low + high) >> 1;
        if (a[middle] <= b[diagonal - 1 - middle]) low = middle + 1; else high = middle;
    }
    int x = low, y = diagonal - low;
    for (int k = diagonal; k < stop; ++k) {
        bool left = y >= nb || (x < na && a[x] <= b[y]);
        out[k] = left ? a[x++] : b[y++];
    }
}
