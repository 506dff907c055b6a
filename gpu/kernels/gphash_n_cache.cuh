// Cache of values for design N: sets of four pairs in the GPU's memory. It takes in pairs that a
// sketch of what was read (count-min) calls more popular than the least popular pair of their set.
//
// A cached value does not change: who is about to change a pair in PM takes it out of the cache
// first, so that a reader who finds it there reads what PM has then. A turn, between launches,
// makes what was put in meanwhile count, and chooses what is to be put in next. `gph_cache_fill`
// does that beside batches; a pair that a batch is about to change is taken out of what is being
// put in, too, and does not count at the next turn.
#pragma once
#include "nearpm_gphash.cuh"

#define CACHE_WAYS 4u

#ifdef GPH_CACHE

// Sets lie in the order of the windows that a table began with, as both are chosen by the same
// bits: filling the cache goes through PM window by window.
static __device__ __forceinline__ gpm_u32 cache_set(const gphash &t, const gph_hash &h) {
    return gph_below((gpm_u32)h.second, t.cache->entries / CACHE_WAYS);
}

// Whether a hit is counted: one of 2^sampled is, for all of them.
static __device__ __forceinline__ bool cache_counts_this(const gphash &t) {
    gpm_u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    return ((thread * 0x9e3779b1u ^ t.epoch * 0x85ebca6bu) >> 13 & ((1u << t.cache->sampled) - 1)) == 0;
}

static __device__ __forceinline__ uint4 *cache_value(const gphash &t, gpm_u32 entry) { return (uint4 *)t.cache->copies + (gpm_u64)entry * t.units; }

// The key's value in the cache, or null.
static __device__ __forceinline__ const uint4 *cache_find(const gphash &t, const gph_hash &h, gpm_u64 key) {
    if (!t.cache) return nullptr;
    gpm_u32 set = cache_set(t, h);
    const gpm_u64 *line = t.cache->keys + (gpm_u64)set * CACHE_WAYS * 2;
    ulonglong2 low = gph_load_pair(line), high = gph_load_pair(line + 2);
    gpm_u32 way = low.x == key ? 0 : low.y == key ? 1 : high.x == key ? 2 : high.y == key ? 3 : CACHE_WAYS;
    if (way == CACHE_WAYS) return nullptr;
    gpm_u32 entry = set * CACHE_WAYS + way;
    if (cache_counts_this(t)) atomicAdd(&t.cache->of[entry], 1u << t.cache->sampled);
    return cache_value(t, entry);
}

// Takes a key out, before it changes in PM.
static __device__ __forceinline__ void cache_forget(const gphash &t, const gph_hash &h, gpm_u64 key) {
    if (!t.cache) return;
    gpm_u64 *line = t.cache->keys + (gpm_u64)cache_set(t, h) * CACHE_WAYS * 2;
    bool forgets = false;
    for (gpm_u32 way = 0; way < CACHE_WAYS * 2; way++) {
        if (gph_load(line + way) != key) continue;
        gph_store(line + way, 0);
        forgets = true;
    }
    // Before PM changes, nobody finds it here any more.
    if (forgets) __threadfence();
}

// Whether a key is being put in.
static __device__ __forceinline__ bool cache_is_filling(const gphash &t, const gph_hash &h, gpm_u64 key) {
    const gpm_u64 *filling = t.cache->keys + (gpm_u64)cache_set(t, h) * CACHE_WAYS * 2 + CACHE_WAYS;
    ulonglong2 low = gph_load_pair(filling), high = gph_load_pair(filling + 2);
    return low.x == key || low.y == key || high.x == key || high.y == key;
}

// Counts the use of a pair that is not cached, and asks for it to be.
static __device__ __forceinline__ void cache_want(const gphash &t, const gph_hash &h, gpm_u64 key, gpm_u32 slot) {
    if (!t.cache) return;
    gpm_u32 *sketch = t.cache->scores, mask = t.cache->mask;
    gpm_u32 one = atomicAdd(&sketch[(gpm_u32)h.first & mask], 1u), other = atomicAdd(&sketch[(gpm_u32)(h.second >> 20) & mask], 1u);
    gpm_u32 estimate = min(one, other) + 1, first = cache_set(t, h) * CACHE_WAYS;
    uint4 has = gph_load_tags((const uint4 *)&t.cache->of[first]);
    gpm_u32 least = min(min(has.x, has.y), min(has.z, has.w));
    gpm_u32 way = has.x == least ? 0 : has.y == least ? 1 : has.z == least ? 2 : 3;
    // What is being put in is not asked for again: it would take a second entry.
    if (estimate > least && !cache_is_filling(t, h, key)) atomicMax(&t.cache->wanted[first + way], (gpm_u64)estimate << 32 | slot);
}

// The paper's order, to be found: the cache is changed behind PM.
static __device__ __forceinline__ void cache_write(const gphash &t, const gph_hash &h, gpm_u64 key, const uint4 *value) {
    if (!t.cache) return;
    gpm_u32 set = cache_set(t, h);
    gpm_u64 *line = t.cache->keys + (gpm_u64)set * CACHE_WAYS * 2;
    for (gpm_u32 way = 0; way < CACHE_WAYS; way++) {
        if (gph_load(line + way) != key) continue;
        if (!value)
            gph_store(line + way, 0);
        else
            for (gpm_u32 u = 0; u < t.units; u++) cache_value(t, set * CACHE_WAYS + way)[u] = value[u];
    }
}

// The cell of a pair that is to be put in as an entry, or GPH_NONE: none is, or the pair is another
// by now.
static __device__ __forceinline__ gpm_u32 cache_source(const gphash &t, gpm_u32 entry) {
    gpm_u64 *filling = t.cache->keys + (gpm_u64)(entry / CACHE_WAYS) * CACHE_WAYS * 2 + CACHE_WAYS + entry % CACHE_WAYS;
    gpm_u64 key = gph_load(filling);
    if (!key) return GPH_NONE;
    gpm_u32 slot = t.cache->map[entry];
    ulonglong2 pair = gph_load_pair(t.slots + (gpm_u64)slot * 16);
    if (pair.x == key) return pair.y ? gph_cell_of(pair.y) : slot + slot / (t.buckets / t.windows * t.width) * t.window_spares;
    gph_store(filling, 0);
    return GPH_NONE;
}

// Puts in what the last turn has chosen, by the `warps` warps of which this is number `warp`: a
// value is copied by lanes together.
static __device__ __forceinline__ void cache_fill(const gphash &t, gpm_u32 warp, gpm_u32 warps) {
    if (!t.cache) return;
    for (gpm_u32 first = warp * GPM_WARP; first < t.cache->entries; first += warps * GPM_WARP) {
        gpm_u32 entry = first + threadIdx.x % GPM_WARP;
        gpm_u32 cell = entry < t.cache->entries ? cache_source(t, entry) : GPH_NONE;
        gpm_u32 filled = __ballot_sync(GPH_ALL, cell != GPH_NONE);
        // The value is read behind the key.
        __threadfence();
        if (filled) gph_copy(t, filled, gph_cell(t, cell == GPH_NONE ? 0 : cell), cache_value(t, entry));
    }
}

// A turn, between launches. With `ages` what was counted so far counts half from now on.
extern "C" __global__ void gph_cache_turn(const gphash *described, gpm_u32 ages) {
    const gphash t = *described;
    gpm_u32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    for (gpm_u32 word = thread; ages && word <= t.cache->mask; word += threads) t.cache->scores[word] /= 2;
    for (gpm_u32 entry = thread; entry < t.cache->entries; entry += threads) {
        gpm_u64 *counts = t.cache->keys + (gpm_u64)(entry / CACHE_WAYS) * CACHE_WAYS * 2 + entry % CACHE_WAYS;
        gpm_u64 *filling = counts + CACHE_WAYS, wanted = t.cache->wanted[entry];
        if (*filling) *counts = *filling;
        *filling = 0;
        // An entry that is in use has a popularity of 1 at least: a pair that was asked for once
        // does not take its place.
        t.cache->of[entry] = *counts ? max(t.cache->of[entry] >> (ages ? 1 : 0), 1u) : 0;
        t.cache->wanted[entry] = 0;
        if (!wanted) continue;
        gpm_u64 key = gph_load((const gpm_u64 *)(t.slots + (wanted & 0xffffffffu) * 16));
        if (!key) continue;
        *counts = 0;
        *filling = key;
        t.cache->map[entry] = (gpm_u32)wanted;
        t.cache->of[entry] = (gpm_u32)(wanted >> 32);
    }
}

extern "C" __global__ void gph_cache_fill(const gphash *described) {
    const gphash t = *described;
    cache_fill(t, (blockIdx.x * blockDim.x + threadIdx.x) / GPM_WARP, gridDim.x * blockDim.x / GPM_WARP);
}

#else

static __device__ __forceinline__ const uint4 *cache_find(const gphash &, const gph_hash &, gpm_u64) { return nullptr; }
static __device__ __forceinline__ void cache_forget(const gphash &, const gph_hash &, gpm_u64) {}
static __device__ __forceinline__ void cache_want(const gphash &, const gph_hash &, gpm_u64, gpm_u32) {}
static __device__ __forceinline__ void cache_write(const gphash &, const gph_hash &, gpm_u64, const uint4 *) {}
static __device__ __forceinline__ void cache_fill(const gphash &, gpm_u32, gpm_u32) {}

#endif
