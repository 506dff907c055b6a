// Kernels of both designs: batches, and operations whose answers a crash test can hold them to.
#pragma once

// The key of an operation: 8 bytes, or units of which the word in the slot depends.
static __device__ __forceinline__ gpm_u64 key_at(const gphash &t, const void *keys, gpm_u32 i, const uint4 *&full) {
#ifdef GPH_WIDE
    full = (const uint4 *)keys + (gpm_u64)i * t.key_units;
    return gph_word_of(t, full);
#else
    full = nullptr;
    return ((const gpm_u64 *)keys)[i];
#endif
}

// Zeroes what the next epoch counts in.
static __device__ __forceinline__ void prepare_next(const gphash &t) {
    gpm_u32 *next = t.taken + (~t.epoch & 1) * (t.windows + 1);
    for (gpm_u32 w = blockIdx.x * blockDim.x + threadIdx.x; w <= t.windows; w += gridDim.x * blockDim.x) next[w] = 0;
}

// Runs a batch: operation i, `ops[i]`, or `op` where there are no `ops`, is on key i, with `units`
// of `values` and of `found`, which may be null. They are taken in the order of `order`, if there
// is one. Answers count when the launch has ended, and everything that they depend on has persisted
// then.
extern "C" __global__ void gph_run_batch(const gphash *described, gpm_u32 epoch, gpm_u32 n, gpm_u32 op, const gpm_u32 *order, const gpm_u32 *ops,
                                         const void *keys, const uint4 *values, uint4 *found, gpm_u32 *outcomes) {
    gphash t = *described;
    t.epoch = epoch;
    prepare_next(t);
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    bool wanted = i < n;
    if (wanted && order) i = order[i];
    const uint4 *full = nullptr;
    gpm_u64 at = wanted ? (gpm_u64)i * t.units : 0, key = wanted ? key_at(t, keys, i, full) : 0;
    if (wanted && ops) op = ops[i];
    bool refused = wanted && gph_is_reserved(key) && !GPH_HOLE(GPH_HOLE_RESERVED);
    gpm_u32 outcome = gph_run<true>(t, wanted && !refused, op, key, full, values + at, found ? found + at : nullptr);
    if (wanted) outcomes[i] = refused ? GPH_RESERVED : outcome;
}

// The value that a test gives an operation, of one unit: a reader can tell it from a part of it.
static __device__ __forceinline__ bool gph_value_whole(uint4 v) { return v.y == ~v.x && v.z == v.x * 0x9e3779b1u && v.w == 0x6870676eu; }

// Runs operations as a program would that uses the table inside of its kernels: each answer is out
// as soon as its operation is done, and is stored to PM, so that a crash leaves either an answer
// that holds or none. Actor a (the first `lanes` lanes of each warp) does `rounds` operations one
// after the other. The clock says what was done before what. Warps behind those fill the cache
// meanwhile, if there is one, as another stream would.
extern "C" __global__ void gph_run_audited(const gphash *described, gpm_u32 epoch, gpm_u32 n, gpm_u32 lanes, gpm_u32 rounds, const gpm_u32 *ops,
                                           const void *keys, const uint4 *values, uint4 *found, gpm_u32 *clock, gpm_u64 *begun,
                                           gpm_u64 *answers) {
    gphash t = *described;
    t.epoch = epoch;
    gpm_u32 warp = (blockIdx.x * blockDim.x + threadIdx.x) / GPM_WARP, lane = threadIdx.x % GPM_WARP;
    gpm_u32 actors = (n + lanes * rounds - 1) / (lanes * rounds);
    if (warp >= actors) {
        cache_fill(t, warp - actors, gridDim.x * blockDim.x / GPM_WARP - actors);
        return;
    }
    for (gpm_u32 round = 0; round < rounds; round++) {
        gpm_u32 i = (warp * lanes + lane) * rounds + round;
        bool wanted = lane < lanes && i < n;
        gpm_u64 at = wanted ? (gpm_u64)i * t.units : 0;
        if (wanted) gph_store(&begun[i], atomicAdd(clock, 1u) + 1);
        const uint4 *full = nullptr;
        gpm_u64 key = wanted ? key_at(t, keys, i, full) : 0;
        gpm_u32 outcome = gph_run<false>(t, wanted, wanted ? ops[i] : GPH_GET, key, full, values + at, found + at);
        if (!wanted) continue;
        gpm_u32 value = 0;
        if (ops[i] == GPH_GET && outcome == GPH_DONE) {
            uint4 read = found[at];
            value = gph_value_whole(read) ? read.x : GPH_NONE;
        }
        gpm_u64 stamp = atomicAdd(clock, 1u) + 1;
        gph_store(&answers[i], stamp << 40 | (gpm_u64)outcome << 32 | value);
    }
}
