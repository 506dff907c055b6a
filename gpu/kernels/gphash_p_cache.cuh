// Cache of buckets for design P (BktCache of GPHash, 3.3), repaired. Which buckets it has does not
// change between turns, which are between launches.
//
// The paper writes a cached bucket behind PM, in whatever order, and counts readers so that an
// entry is not given away under them. Here who is about to change a bucket in PM takes it out of
// the cache first, so that a reader who finds it there reads what PM has then, and entries are
// given away by turns alone. `gph_cache_fill` puts buckets in beside batches; one that a batch is
// about to change is taken out meanwhile, and does not count.
#pragma once
#include "nearpm_gphash.cuh"

#ifdef GPH_CACHE

// The bucket's copy, or null. Copies are a bucket's words: keys, then pointers.
static __device__ __forceinline__ gpm_u64 *cache_bucket(const gphash &t, gpm_u32 bucket) {
    if (!t.cache) return nullptr;
    gpm_u32 entry = gph_load_word(&t.cache->map[bucket]);
    return entry & CACHE_FILLING ? nullptr : (gpm_u64 *)t.cache->copies + (gpm_u64)entry * t.width * 2;
}

static __device__ __forceinline__ void cache_forget(const gphash &t, gpm_u32 bucket) {
    if (!t.cache || gph_load_word(&t.cache->map[bucket]) == GPH_NONE) return;
    atomicExch(&t.cache->map[bucket], GPH_NONE);
    // Before PM changes, nobody finds it here any more.
    __threadfence();
}

// Notes the use of a bucket.
static __device__ __forceinline__ void cache_use(const gphash &t, gpm_u32 bucket) {
    if (!t.cache || t.cache->policy == GPH_RANDOM) return;
    if (t.cache->policy == GPH_LRU)
        atomicExch(&t.cache->scores[bucket], t.epoch);
    else if (((blockIdx.x * 0x9e3779b1u ^ t.epoch * 0x85ebca6bu) >> 13 & ((1u << t.cache->sampled) - 1)) == 0)
        atomicAdd(&t.cache->scores[bucket], 1u);
}

// The paper's order, to be found: the cache is changed behind PM.
static __device__ __forceinline__ void cache_write(const gphash &t, gpm_u32 slot, gpm_u64 key, gpm_u64 pointer) {
    gpm_u64 *copy = cache_bucket(t, slot / t.width);
    if (!copy) return;
    gph_store(copy + t.width + slot % t.width, pointer);
    gph_store(copy + slot % t.width, key);
}

// Popularity of a bucket, 0 to 255; 0 is never cached.
static __device__ __forceinline__ gpm_u32 cache_bin(const gphash &t, gpm_u32 bucket, gpm_u32 epoch) {
    gpm_u32 score = t.cache->scores[bucket];
    if (t.cache->policy == GPH_RANDOM) return (gpm_u32)(gph_mix((gpm_u64)epoch << 32 | bucket) >> 40) % 255 + 1;
    if (t.cache->policy == GPH_LFU) return min(score, 255u);
    return score == 0 || epoch - score > 254 ? 0 : 255 - (epoch - score);
}

// Puts in what the last turn has chosen, by the `warps` warps of which this is number `warp`.
static __device__ __forceinline__ void cache_fill(const gphash &t, gpm_u32 warp, gpm_u32 warps) {
    if (!t.cache) return;
    for (gpm_u32 entry = warp * GPM_WARP + threadIdx.x % GPM_WARP; entry < t.cache->entries; entry += warps * GPM_WARP) {
        gpm_u32 bucket = t.cache->of[entry];
        if (bucket == GPH_NONE || gph_load_word(&t.cache->map[bucket]) != (entry | CACHE_FILLING)) continue;
        const gpm_u64 *words = (const gpm_u64 *)t.slots + (gpm_u64)bucket * t.width * 2;
        gpm_u64 *copy = (gpm_u64 *)t.cache->copies + (gpm_u64)entry * t.width * 2;
        for (gpm_u32 word = 0; word < t.width * 2; word++) copy[word] = gph_load(words + word);
    }
}

// Finds out how popular buckets are; beside batches.
extern "C" __global__ void gph_cache_rank(const gphash *described, gpm_u32 epoch, gpm_u32 buckets) {
    const gphash t = *described;
    for (gpm_u32 bucket = blockIdx.x * blockDim.x + threadIdx.x; bucket < buckets; bucket += gridDim.x * blockDim.x)
        atomicAdd(&t.cache->bins[cache_bin(t, bucket, epoch)], 1u);
}

// Chooses the least popularity of what is cached, so that no more are than there is room for. One
// thread.
extern "C" __global__ void gph_cache_choose(const gphash *described) {
    const gphash t = *described;
    gpm_u32 least = 256, sum = 0;
    while (least > 1 && sum + t.cache->bins[least - 1] <= t.cache->entries) sum += t.cache->bins[--least];
    // If the most popular are too many already, some of them.
    t.cache->bins[256] = min(least, 255u);
    t.cache->bins[257] = t.cache->bins[258] = 0;
}

// A turn, between launches: what was put in counts, what is not popular any more goes.
extern "C" __global__ void gph_cache_turn(const gphash *described, gpm_u32 epoch) {
    const gphash t = *described;
    gpm_u32 least = t.cache->bins[256];
    for (gpm_u32 entry = blockIdx.x * blockDim.x + threadIdx.x; entry < t.cache->entries; entry += gridDim.x * blockDim.x) {
        gpm_u32 bucket = t.cache->of[entry];
        if (bucket != GPH_NONE) {
            gpm_u32 has = t.cache->map[bucket];
            bool counts = has != GPH_NONE && (has & ~CACHE_FILLING) == entry;
            bool stays = counts && cache_bin(t, bucket, epoch) >= least;
            if (counts) t.cache->map[bucket] = stays ? entry : GPH_NONE;
            if (stays) continue;
            t.cache->of[entry] = GPH_NONE;
        }
        t.cache->free[atomicAdd(&t.cache->bins[257], 1u)] = entry;
    }
}

// Behind the turn: popular buckets get the entries that are free.
extern "C" __global__ void gph_cache_pick(const gphash *described, gpm_u32 epoch, gpm_u32 buckets) {
    const gphash t = *described;
    for (gpm_u32 bucket = blockIdx.x * blockDim.x + threadIdx.x; bucket < buckets; bucket += gridDim.x * blockDim.x) {
        bool popular = cache_bin(t, bucket, epoch) >= t.cache->bins[256];
        if (t.cache->policy == GPH_LFU) t.cache->scores[bucket] /= 2;
        if (!popular || t.cache->map[bucket] != GPH_NONE) continue;
        gpm_u32 at = atomicAdd(&t.cache->bins[258], 1u);
        if (at >= t.cache->bins[257]) continue;
        gpm_u32 entry = t.cache->free[at];
        t.cache->of[entry] = bucket;
        t.cache->map[bucket] = entry | CACHE_FILLING;
    }
}

extern "C" __global__ void gph_cache_fill(const gphash *described) {
    const gphash t = *described;
    cache_fill(t, (blockIdx.x * blockDim.x + threadIdx.x) / GPM_WARP, gridDim.x * blockDim.x / GPM_WARP);
}

#else

static __device__ __forceinline__ gpm_u64 *cache_bucket(const gphash &, gpm_u32) { return nullptr; }
static __device__ __forceinline__ void cache_forget(const gphash &, gpm_u32) {}
static __device__ __forceinline__ void cache_use(const gphash &, gpm_u32) {}
static __device__ __forceinline__ void cache_write(const gphash &, gpm_u32, gpm_u64, gpm_u64) {}
static __device__ __forceinline__ void cache_fill(const gphash &, gpm_u32, gpm_u32) {}

#endif
