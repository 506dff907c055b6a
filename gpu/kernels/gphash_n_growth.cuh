// Design N (gphash_n.cuh): growing.
#pragma once
#include "gphash_n_claims.cuh"

// A step takes window `to` into use, while no batch runs: pairs that belong there then are copied
// to it, the host stores durably that it is in use, and the copies that were left in window `from`
// are cleared. A crash before the store leaves copies in a window that is not in use, one behind it
// leaves copies where nobody looks for their keys: recovery clears both.

// A free slot of the key in its window, which its caller has then: GPH_NONE where there is none.
static __device__ __forceinline__ gpm_u32 take_slot(const gphash &t, const gph_hash &h, gpm_u32 &tag) {
    while (true) {
        gpm_u32 slot = free_slot(t, h, t.hashes, tag);
        if (slot == GPH_NONE) return slot;
        gpm_u32 there = tag_make(TAG_THERE, print_of(h), tag & TAG_MOVED);
        if (slot != GPH_TAKEN_NOW && tag_swap(t, slot, tag, there)) return slot;
    }
}

// Copies the pair of one slot to another, the key last.
static __device__ __forceinline__ void copy_pair(const gphash &t, gpm_u32 from, ulonglong2 pair, gpm_u32 to, gpm_u32 tag) {
    const uint4 *source = gph_cell(t, slot_cell(t, from, pair.y));
    uint4 *target = gph_cell(t, slot_cell(t, to, tag & TAG_MOVED ? gph_load(slot_key(t, to) + 1) : 0));
    for (gpm_u32 u = 0; u < t.units + GPH_KEY_UNITS(t); u++) target[u] = source[u];
    gpm_persist();
    gph_store(slot_key(t, to), pair.x);
}

static __device__ __forceinline__ void free_pair(const gphash &t, gpm_u32 slot) {
    gph_store(slot_key(t, slot), 0);
    gpm_persist();
    gpm_u32 tag = tag_load(t, slot);
    tag_change(t, slot, tag, tag & TAG_MOVED);
}

extern "C" __global__ void gph_grow_copy(const gphash *described, gpm_u32 epoch, gpm_u32 from, gpm_u32 to) {
    gphash t = *described;
    t.epoch = epoch;
    t.used = to + 1;
    gpm_u32 slot = blockIdx.x * blockDim.x + threadIdx.x;
    if (slot >= window_slots(t)) return;
    slot += from * window_slots(t);
    ulonglong2 pair = slot_load(t, slot);
    gph_hash h = gph_hash_of(t, pair.x);
    if (!pair.x || window_of(t, h) != to) return;
    gpm_u32 tag = 0, place = take_slot(t, h, tag);
    if (place != GPH_NONE)
        copy_pair(t, slot, pair, place, tag);
    else if (!GPH_HOLE(GPH_HOLE_LOST))
        atomicAdd(&t.counts[GPH_UNMOVED], 1u);
}

// Clears the keys of a window that belong to window `of`; of all that are there, if the window is
// that one and not in use.
extern "C" __global__ void gph_grow_clear(const gphash *described, gpm_u32 window, gpm_u32 of) {
    gphash t = *described;
    t.used = of + 1;
    gpm_u32 slot = blockIdx.x * blockDim.x + threadIdx.x;
    if (slot >= window_slots(t)) return;
    slot += window * window_slots(t);
    gpm_u64 key = gph_load(slot_key(t, slot));
    if (key && window_of(t, gph_hash_of(t, key)) == of) free_pair(t, slot);
}

// Brings pairs of the stash home where there is room for them now.
extern "C" __global__ void gph_unstash(const gphash *described, gpm_u32 epoch) {
    gphash t = *described;
    t.epoch = epoch;
    gpm_u32 slot = t.buckets * t.width + blockIdx.x * blockDim.x + threadIdx.x;
    if (slot >= t.slot_count) return;
    ulonglong2 pair = slot_load(t, slot);
    if (!pair.x) return;
    gpm_u32 tag = 0, place = take_slot(t, gph_hash_of(t, pair.x), tag);
    if (place == GPH_NONE) {
        atomicAdd(&t.counts[GPH_LEFT], 1u);
        return;
    }
    if (GPH_HOLE(GPH_HOLE_LOST)) gph_store(slot_key(t, slot), 0);
    copy_pair(t, slot, pair, place, tag);
    gpm_persist();
    free_pair(t, slot);
}
