// A dense switch: an indirect branch through a table.
extern "C" __global__ void switch_table(const int *op, const int *a, const int *b, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = a[i], y = b[i], r;
    switch (op[i]) {
        case 0: r = x + y; break;
        case 1: r = x - y; out[n + i] = 1; break;
        case 2: r = x * y; break;
        case 3: r = x & y; out[n + i] = a[(i * 3) % n]; break;
        case 4: r = x | y; break;
        case 5: r = x ^ b[(i + 1) % n]; break;
        case 6: r = x << (y & 31); out[n + i] = 6; break;
        case 7: r = x >> (y & 31); break;
        case 8: r = __popc(x) + a[n - 1 - i]; break;
        case 9: r = max(x, y); out[n + i] = b[n - 1 - i]; break;
        default: r = -1;
    }
    out[i] = r;
}
