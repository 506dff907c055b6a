// What measurements of the hash tables need: keys, values, and a look at what was read.
#include "nearpm_gphash.cuh"

// Key of a record: 63 bits, so that no design reserves it.
static __device__ __forceinline__ gpm_u64 record_key(gpm_u64 record) { return gph_mix(record + 1) >> 1 | 1ull << 40; }

// A unit of the value that a record was given by `seed`.
static __device__ __forceinline__ uint4 record_unit(gpm_u64 key, gpm_u32 seed, gpm_u32 unit) {
    gpm_u64 a = gph_mix(key + seed * 0x9e3779b97f4a7c15ull + unit), b = a * 0xff51afd7ed558ccdull;
    return make_uint4((gpm_u32)a, (gpm_u32)(a >> 32), seed, (gpm_u32)(b >> 32));
}

// Keys of records `first` and on; with `bits` they come in another order, of 2^bits records.
extern "C" __global__ void bench_keys(gpm_u64 first, gpm_u32 n, gpm_u32 bits, gpm_u64 *keys) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    gpm_u64 record = bits ? ((gpm_u64)i * 0x9e3779b1ull + 0x5bd1e995ull) & ((1ull << bits) - 1) : i;
    keys[i] = record_key(first + record);
}

// Keys of records by number.
extern "C" __global__ void bench_keys_of(const gpm_u32 *records, gpm_u32 n, gpm_u64 *keys) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) keys[i] = record_key(records[i]);
}

extern "C" __global__ void bench_values(const gpm_u64 *keys, gpm_u64 units, gpm_u32 units_a_value, gpm_u32 seed, uint4 *values) {
    gpm_u64 step = (gpm_u64)gridDim.x * blockDim.x;
    for (gpm_u64 at = (gpm_u64)blockIdx.x * blockDim.x + threadIdx.x; at < units; at += step)
        values[at] = record_unit(keys[at / units_a_value], seed, (gpm_u32)(at % units_a_value));
}

// Counts operations with another outcome than `expected`, and values that are not those of `seed`
// or, each as a whole, of any seed from 1 up to it.
extern "C" __global__ void bench_look(const gpm_u64 *keys, gpm_u32 n, gpm_u32 units, gpm_u32 seed, gpm_u32 any, const gpm_u32 *ops,
                                      const uint4 *found, const gpm_u32 *outcomes, gpm_u32 expected, gpm_u32 *wrong) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    bool holds = outcomes[i] == expected;
    if (found && outcomes[i] == GPH_DONE && (!ops || ops[i] == GPH_GET || ops[i] == GPH_RMW)) {
        gpm_u32 of = any ? found[(gpm_u64)i * units].z : seed;
        holds = holds && of >= 1 && of <= seed;
        for (gpm_u32 u = 0; u < units; u++) {
            uint4 is = found[(gpm_u64)i * units + u], should = record_unit(keys[i], of, u);
            holds = holds && is.x == should.x && is.y == should.y && is.z == should.z && is.w == should.w;
        }
    }
    if (!holds) atomicAdd(wrong, 1u);
}
