// Functions of basic operations alone, each of which IEEE 754 rounds: the same bits on every card,
// on the interpreter and on a processor, where those of CUDA (`__expf`, `logf`) are approximations
// that PTX leaves a card some freedom in, or are another library's elsewhere.
#pragma once

// e to the x, for x from -80 to 0; 0 below.
static __device__ __forceinline__ float power_of_e(float x) {
    if (x < -80.0f) return 0.0f;
    float halvings = floorf(-x * 1.44269504f + 0.5f), rest = x + halvings * 0.693147181f;
    float sum = 1.0f + rest * (1.0f + rest * (0.5f + rest * (0.166666667f + rest * (0.0416666667f + rest * 0.00833333333f))));
    return sum * __uint_as_float((127u - (gpm_u32)halvings) << 23);
}

// The natural logarithm of a positive, normal number: of its power of two, and of the rest, from
// the root of a half to the root of two, by the series of the inverse hyperbolic tangent.
static __device__ __forceinline__ float logarithm(float x) {
    gpm_u32 above = __float_as_uint(x) - 0x3f3504f3u;
    int power = (int)above >> 23;
    float rest = __uint_as_float((above & 0x7fffffu) + 0x3f3504f3u);
    float part = (rest - 1.0f) / (rest + 1.0f), square = part * part;
    float series = 1.0f + square * (0.333333333f + square * (0.2f + square * (0.142857143f + square * 0.111111111f)));
    return (float)power * 0.693147181f + 2.0f * part * series;
}
