// Option prices: logarithm, root, exponential and a polynomial for the normal distribution, with fast functions.
__device__ float normal(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float tail = 0.39894228f * expf(-0.5f * d * d) * (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
    return d > 0 ? 1.0f - tail : tail;
}
extern "C" __global__ void black_scholes(const float *price, const float *strike, const float *years, float *call, float *put, float rate, float volatility, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float root = sqrtf(years[i]), d1 = (logf(price[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / (volatility * root), d2 = d1 - volatility * root;
    float later = strike[i] * expf(-rate * years[i]);
    call[i] = price[i] * normal(d1) - later * normal(d2);
    put[i] = later * normal(-d2) - price[i] * normal(-d1);
}
