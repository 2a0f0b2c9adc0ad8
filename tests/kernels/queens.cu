// Counts placements of queens by bit masks and backtracking; each thread starts from its own first two columns.
extern "C" __global__ void queens(int *count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * n) return;
    unsigned all = (1u << n) - 1, a = 1u << (i / n), b = 1u << (i % n);
    int found = 0;
    if (a != b && a != b << 1 && a << 1 != b) {
        unsigned columns[16], left[16], right[16], open[16];
        int depth = 0;
        columns[0] = a | b; left[0] = ((a << 1) | b) << 1 & all; right[0] = ((a >> 1) | b) >> 1;
        open[0] = all & ~(columns[0] | left[0] | right[0]);
        while (depth >= 0) {
            if (columns[depth] == all) { ++found; --depth; continue; }
            unsigned free = open[depth];
            if (!free) { --depth; continue; }
            unsigned bit = free & -free;
            open[depth] = free ^ bit;
            columns[depth + 1] = columns[depth] | bit;
            left[depth + 1] = ((left[depth] | bit) << 1) & all;
            right[depth + 1] = (right[depth] | bit) >> 1;
            ++depth;
            open[depth] = all & ~(columns[depth] | left[depth] | right[depth]);
        }
    }
    count[i] = found;
}
