// Design P (gphash_p.cuh): growing, the paper's resize (3.2).
#pragma once

// While no batch runs, the lowest level's pairs are copied to a new level above, of buckets from
// `to` on, twice as many as the top has. Nothing is moved (the paper empties the lowest level as it
// goes): when all have found a place, the host stores durably which levels are in use. A crash
// before that, or a pair without a place, leaves what was there; the copies are cleared.

extern "C" __global__ void gph_grow_copy(const gphash *described, gpm_u32 to) {
    const gphash t = *described;
    gpm_u32 slot = blockIdx.x * blockDim.x + threadIdx.x, lowest_level = t.levels - 1;
    if (slot >= (t.buckets >> lowest_level) * t.width) return;
    place p = place_number(t, level_start(t, lowest_level) * t.width + slot), up;
    gpm_u64 word = gph_load(p.key), pointer = gph_load(p.pointer);
    if (word == 0 || is_mark(word)) return;
    gph_hash h = gph_hash_of(t, word);
    while (true) {
        gpm_u32 most = 0, best = 0, way = 0;
        for (gpm_u32 choice = 0; choice < t.hashes; choice++) {
            gpm_u32 bucket = to + gph_below(gph_choice(h, choice), t.buckets * 2), count = 0, first = 0;
            for (gpm_u32 at = t.width; at-- > 0;) {
                place_at(t, bucket, at, up);
                if (gph_load(up.key) == 0) count++, first = at;
            }
            if (count > most) most = count, best = bucket, way = first;
        }
        if (!most) break;
        place_at(t, best, way, up);
        if (atomicCAS(up.key, 0ull, word) != 0) continue;
        gph_store(up.pointer, gph_pointer(up.slot, gph_cell_of(pointer)));
        return;
    }
    // The paper's table drops it.
    if (!GPH_HOLE(GPH_HOLE_LOST)) atomicAdd(&t.counts[GPH_UNMOVED], 1u);
}

extern "C" __global__ void gph_grow_clear(const gphash *described, gpm_u32 first, gpm_u32 buckets) {
    const gphash t = *described;
    gpm_u32 slot = blockIdx.x * blockDim.x + threadIdx.x;
    if (slot >= buckets * t.width) return;
    gph_store(place_number(t, first * t.width + slot).key, 0);
    gpm_persist();
}
