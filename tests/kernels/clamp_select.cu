// Selects, minimum and maximum, predicated arithmetic.
extern "C" __global__ void clamp_select(const float *x, const int *k, float *out, int *iout, float lo, float hi, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    int q = k[i];
    float c = fminf(fmaxf(v, lo), hi);
    out[i] = q > 10 ? c : (q < -10 ? -c : v * 0.5f);
    int m = min(max(q, -20), 20);
    iout[i] = (v != v) ? -1 : (v > c ? m : (v == c ? q : abs(q)));
}
