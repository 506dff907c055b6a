// BLK: prices of European options. Each iteration has another volatility, and adds its prices to
// sums. The host checkpoints.
#include "nearpm_gpm.cuh"
#include "same_bits.cuh"

// Cumulative normal distribution, by the polynomial of Abramowitz and Stegun 26.2.17.
static __device__ __forceinline__ float normal(float x) {
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(x));
    float tail = 0.39894228f * power_of_e(-0.5f * x * x) *
                 (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
    return x > 0.0f ? 1.0f - tail : tail;
}

extern "C" __global__ void blackscholes_step(float *calls, float *puts, const float *stock, const float *strike,
                                             const float *years, gpm_u32 n, float riskless, float volatility) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float root = sqrtf(years[i]), s = stock[i], x = strike[i];
    float d1 = (logarithm(s / x) + (riskless + 0.5f * volatility * volatility) * years[i]) / (volatility * root);
    float d2 = d1 - volatility * root;
    float discounted = x * power_of_e(-riskless * years[i]);
    float call = s * normal(d1) - discounted * normal(d2);
    calls[i] += call;
    puts[i] += call + discounted - s;
}
