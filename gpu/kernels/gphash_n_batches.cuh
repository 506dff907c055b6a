// Design N (gphash_n.cuh): in which order a batch is run, and what the cache answers before.
#pragma once
#include "gphash_n_tags.cuh"
#include "gphash_n_cache.cuh"

// What a batch is sorted by: the window of each key, and `bits` more bits of its hash, which bring
// operations on one key together; and the number of each in the batch.
extern "C" __global__ void gph_windows(const gphash *described, gpm_u32 n, gpm_u32 bits, const void *keys, gpm_u32 *windows, gpm_u32 *numbers) {
    const gphash t = *described;
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const uint4 *full = nullptr;
    gph_hash h = gph_hash_of(t, key_at(t, keys, i, full));
    windows[i] = window_of(t, h) << bits | ((gpm_u32)(h.first >> 32) & ((1u << bits) - 1));
    numbers[i] = i;
}

#ifdef GPH_CACHE
// Answers the look-ups of a batch that the cache has the answer of; all others go to `windows` and
// `numbers`, to be sorted and run, `*left` of them. What a batch changes changes behind this: its
// look-ups that are answered here happen first.
extern "C" __global__ void gph_serve(const gphash *described, gpm_u32 epoch, gpm_u32 n, gpm_u32 op, const gpm_u32 *ops, const gpm_u64 *keys, uint4 *found,
                                     gpm_u32 *outcomes, gpm_u32 bits, gpm_u32 *windows, gpm_u32 *numbers, gpm_u32 *left) {
    gphash t = *described;
    t.epoch = epoch;
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % GPM_WARP;
    bool wanted = i < n;
    gpm_u64 key = wanted ? keys[i] : 0;
    if (wanted && ops) op = ops[i];
    gph_hash h = gph_hash_of(t, key);
    const uint4 *cached = wanted && op == GPH_GET && key ? cache_find(t, h, key) : nullptr;
    gpm_u32 served = __ballot_sync(GPH_ALL, cached != nullptr), others = __ballot_sync(GPH_ALL, wanted && !cached);
    if (served) gph_copy(t, found ? served : 0, cached, found ? found + (gpm_u64)i * t.units : nullptr);
    if (cached) outcomes[i] = GPH_DONE;
    gpm_u32 first = 0;
    if (lane == 0 && others) first = atomicAdd(left, (gpm_u32)__popc(others));
    gpm_u32 place = __shfl_sync(GPH_ALL, first, 0) + (gpm_u32)__popc(others & ((1u << lane) - 1));
    if (!wanted || cached) return;
    windows[place] = window_of(t, h) << bits | ((gpm_u32)(h.first >> 32) & ((1u << bits) - 1));
    numbers[place] = i;
}
#endif
