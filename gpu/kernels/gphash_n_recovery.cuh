// Design N (gphash_n.cuh): what recovery and checks do.
#pragma once
#include "gphash_n_growth.cuh"

// Recovery, first part: tags from slots.
extern "C" __global__ void gph_recover(const gphash *described) {
    const gphash t = *described;
    gpm_u32 pairs = blockIdx.x * blockDim.x + threadIdx.x;
    if (pairs >= t.slot_count / 2) return;
    gpm_u32 word = 0, live = 0;
#pragma unroll
    for (gpm_u32 half = 0; half < 2; half++) {
        gpm_u32 slot = pairs * 2 + half;
        ulonglong2 pair = slot_load(t, slot);
        if (pair.y && !gph_pointer_holds(t, slot, pair.y)) {
            atomicAdd(&t.counts[GPH_BROKEN], 1u);
            // Nobody may get a value through it.
            word |= tag_make(TAG_LOST, 0, 0) << half * 16;
            continue;
        }
        gpm_u32 cell = slot_cell(t, slot, pair.y);
        if (atomicOr(&t.owned[cell / 32], 1u << cell % 32) >> cell % 32 & 1) atomicAdd(&t.counts[GPH_SHARED], 1u);
        gpm_u32 tag = pair.y ? TAG_MOVED : 0;
        if (pair.x) {
            gph_hash h = gph_hash_of(t, pair.x);
            bool at_home = false;
            for (gpm_u32 i = 0; i < t.hashes + (t.stash ? 1u : 0u); i++) at_home |= bucket_of(t, h, i) / t.width == slot / t.width;
            if (!at_home) atomicAdd(&t.counts[GPH_STRAY], 1u);
            if (slot / t.width >= t.buckets) t.counts[GPH_STASHED] = 1;
            tag = tag_make(TAG_THERE, print_of(h), tag);
            live++;
        }
        word |= tag << half * 16;
    }
    t.tags[pairs] = word;
    // Lanes that have come here together, which need not be all of the warp.
    gpm_u32 together = __activemask();
    live = __reduce_add_sync(together, live);
    if (live && threadIdx.x % GPM_WARP == (gpm_u32)__ffs(together) - 1) atomicAdd(&t.counts[GPH_LIVE], live);
}

// Check: keys that are in two slots.
extern "C" __global__ void gph_find_twice(const gphash *described) {
    const gphash t = *described;
    gpm_u32 slot = blockIdx.x * blockDim.x + threadIdx.x;
    if (slot >= t.slot_count) return;
    ulonglong2 pair = slot_load(t, slot);
    gpm_u64 key = pair.x;
    if (!key) return;
    gpm_u32 cell = slot_cell(t, slot, pair.y);
    if (GPH_KEY_UNITS(t) && cell < t.cell_count && gph_word_of(t, gph_cell(t, cell) + t.units) != key) atomicAdd(&t.counts[GPH_UNLIKE], 1u);
    gph_hash h = gph_hash_of(t, key);
    bool twice = key_look(t, h, t.hashes + (t.stash ? 1u : 0u), [&](gpm_u32 other) { return other != slot && gph_load(slot_key(t, other)) == key; });
    if (twice) atomicAdd(&t.counts[GPH_TWICE], 1u);
}

// Recovery, second part: cells that no slot has are spare.
extern "C" __global__ void gph_find_spares(const gphash *described) {
    const gphash t = *described;
    gpm_u32 cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= t.cell_count || t.owned[cell / 32] >> cell % 32 & 1) return;
    gpm_u32 window = min(cell / (window_slots(t) + t.window_spares), t.windows);
    gpm_u32 at = atomicAdd(taken_at(t, window), 1u);
    if (at < t.window_spares) t.spares[window * t.window_spares + at] = cell;
}

// Recovery, behind the first part: what a crash left in the stash and at home stays at home. Both
// copies are the same.
extern "C" __global__ void gph_settle(const gphash *described) {
    const gphash t = *described;
    gpm_u32 slot = t.buckets * t.width + blockIdx.x * blockDim.x + threadIdx.x;
    if (slot >= t.slot_count) return;
    gpm_u64 key = gph_load(slot_key(t, slot));
    if (!key) return;
    bool home = key_look(t, gph_hash_of(t, key), t.hashes, [&](gpm_u32 other) { return gph_load(slot_key(t, other)) == key; });
    if (!home) return;
    free_pair(t, slot);
    atomicSub(&t.counts[GPH_LIVE], 1u);
}
