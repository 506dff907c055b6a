// Design P (gphash_p.cuh): what recovery and checks do.
#pragma once

// Where a slot is, counted over all levels.
static __device__ __forceinline__ place place_number(const gphash &t, gpm_u32 slot) {
    place p;
    place_at(t, slot / t.width, slot % t.width, p);
    return p;
}

// Recovery, first part: marks and keys without a pointer are freed, and cells that slots have are
// noted.
extern "C" __global__ void gph_recover(const gphash *described) {
    const gphash t = *described;
    gpm_u32 slot = blockIdx.x * blockDim.x + threadIdx.x;
    if (slot >= t.slot_count || !is_in_use(t, slot / t.width)) return;
    place p = place_number(t, slot);
    gpm_u64 word = gph_load(p.key);
    if (word == 0) return;
    gpm_u64 pointer = gph_load(p.pointer);
    if (is_mark(word) || pointer == 0) {
        atomicAdd(&t.counts[GPH_MARKED], 1u);
        gph_store(p.key, 0);
        gpm_persist();
        return;
    }
    atomicAdd(&t.counts[GPH_LIVE], 1u);
    if (!gph_pointer_holds(t, slot, pointer)) {
        atomicAdd(&t.counts[GPH_BROKEN], 1u);
        return;
    }
    gpm_u32 cell = gph_cell_of(pointer);
    if (atomicOr(&t.owned[cell / 32], 1u << cell % 32) >> cell % 32 & 1) atomicAdd(&t.counts[GPH_SHARED], 1u);
    gph_hash h = gph_hash_of(t, word);
    bool at_home = false;
    for (gpm_u32 lane = 0; lane < t.width * t.hashes * t.levels; lane++) at_home |= place_of(t, h, lane).slot == slot;
    if (!at_home) atomicAdd(&t.counts[GPH_STRAY], 1u);
}

// Check: keys that are in two slots.
extern "C" __global__ void gph_find_twice(const gphash *described) {
    const gphash t = *described;
    gpm_u32 slot = blockIdx.x * blockDim.x + threadIdx.x;
    if (slot >= t.slot_count || !is_in_use(t, slot / t.width)) return;
    gpm_u64 key = gph_load(place_number(t, slot).key);
    if (key == 0 || is_mark(key)) return;
    gpm_u32 cell = gph_cell_of(gph_load(place_number(t, slot).pointer));
    if (GPH_KEY_UNITS(t) && cell < t.cell_count && gph_word_of(t, gph_cell(t, cell) + t.units) != key) atomicAdd(&t.counts[GPH_UNLIKE], 1u);
    gph_hash h = gph_hash_of(t, key);
    bool twice = false;
    for (gpm_u32 lane = 0; lane < t.width * t.hashes * t.levels; lane++) {
        place p = place_of(t, h, lane);
        twice |= p.slot != slot && place_load(p) == key;
    }
    if (twice) atomicAdd(&t.counts[GPH_TWICE], 1u);
}

// Recovery, second part: cells that no slot has make up the ring.
extern "C" __global__ void gph_find_spares(const gphash *described) {
    const gphash t = *described;
    gpm_u32 cell = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % GPM_WARP;
    bool spare = cell < t.cell_count && !(t.owned[cell / 32] >> cell % 32 & 1);
    gpm_u32 lanes = __ballot_sync(GPH_ALL, spare), first = 0;
    if (lane == 0 && lanes) first = (gpm_u32)atomicAdd((gpm_u64 *)&t.counts[GPH_GIVEN], (gpm_u64)__popc(lanes));
    first = __shfl_sync(GPH_ALL, first, 0) + __popc(lanes & ((1u << lane) - 1));
    if (spare) t.spares[first] = cell;
}
