// Design N: fingerprints and claims in the GPU's memory, keys, pointers and values in PM.
//
// A slot in PM is {key, pointer}; key 0 is none. Each slot has a cell of its own for a value until
// an update gives it another one and stores a pointer to it; what a slot's cell was before is spare
// then. So an insert stores a value and a key, nothing else, and a delete stores a key.
//
// The table is a row of windows. A key's buckets lie in one window, and so do the slots' cells and
// the spare ones that updates take: a batch that is sorted by window touches a small part of PM at
// a time, which a GPU needs (beyond 512 MiB at random, translation takes most of the time).
//
// A tag in the GPU's memory stands for each slot: state, whether the slot has a pointer,
// fingerprint of its key. Tags are claimed and held by compare-and-swap. Recovery makes them anew,
// so a crash frees all claims.
//
//     free --claim--> CLAIMED --nobody else has the key--> PENDING --key has persisted--> THERE
//     THERE --held--> HELD --the key, and a cell--> UPDATING --pointer has persisted--> THERE
//                      \----the key--> DELETING --key 0 has persisted--> free in the next epoch
//
// Two inserts of one key: each claims a slot, then looks for the other's claim. Of two that see
// each other the one in the higher slot gives up; the one in the lower slot waits until the other
// has decided, which is soon, as nobody who is CLAIMED waits for a lower slot, for PM to persist,
// or for other lanes. Everybody else who cannot go on gives up what is claimed and tries again:
// nobody waits at a barrier while holding what others spin on.
#pragma once
#include "gphash_n_claims.cuh"
#include "gphash_n_cache.cuh"

// ---- Operations ---------------------------------------------------------------------------------

#define ACT_NONE 0u
#define ACT_READ 1u
#define ACT_INSERT 2u
#define ACT_UPDATE 3u
#define ACT_DELETE 4u

// One operation a lane. With `BATCHED` answers are not looked at before the launch has ended;
// without, what an answer depends on has persisted when this returns.
template <bool BATCHED>
static __device__ __forceinline__ gpm_u32 gph_run(const gphash &t, bool wanted, gpm_u32 op, gpm_u64 key, const uint4 *full, const uint4 *value,
                                                  uint4 *found) {
    const gph_hash h = gph_hash_of(t, key);
    const gpm_u32 print = print_of(h);
    // Of a batch's operations that do the same with the same key, one lane does it for all of its
    // warp.
    gpm_u32 leader = threadIdx.x % GPM_WARP, own = leader;
    if (BATCHED) {
        gpm_u32 same = __match_any_sync(GPH_ALL, key) & __match_any_sync(GPH_ALL, wanted ? op : GPH_NONE);
        leader = (gpm_u32)__ffs(same) - 1;
        if (!gph_same_as_of(t, full, leader)) leader = own;
    }
    bool leads = leader == own;
    gpm_u32 outcome = wanted && leads ? GPH_WAITING : GPH_DONE;
    gpm_u32 place = GPH_NONE, fresh = GPH_NONE;  // among the spares, and the cell that lies there
    bool inserts = op == GPH_INSERT, reads = op == GPH_GET || op == GPH_RMW;
    if (outcome == GPH_WAITING && op != GPH_GET && !GPH_HOLE(GPH_HOLE_STALE)) cache_forget(t, h, key);
    while (__any_sync(GPH_ALL, outcome == GPH_WAITING)) {
        gpm_u32 act = ACT_NONE, slot = 0, cell = 0, moved = 0;
        const uint4 *cached = nullptr;
        if (outcome == GPH_WAITING) {
            gpm_u32 tried = TRY_GOT;
            if (reads) {
                act = ACT_READ;
                cached = cache_find(t, h, key);
                if (!cached) {
                    tried = try_find(t, h, key, full, slot, cell);
                    if (tried == TRY_GOT) cache_want(t, h, key, slot);
                }
            } else if (inserts)
                tried = try_claim(t, h, key, full, slot, moved), act = ACT_INSERT;
            else if (op == GPH_DELETE)
                tried = try_hold(t, h, key, full, TAG_DELETING, false, slot, moved, cell), act = ACT_DELETE;
            else
                tried = try_hold(t, h, key, full, TAG_HELD, BATCHED, slot, moved, cell), act = ACT_UPDATE;
            if (tried != TRY_GOT) act = ACT_NONE;
            if (tried == TRY_OVERWRITTEN) outcome = GPH_DONE;
            if (tried == TRY_FULL) outcome = GPH_FULL;
            if (tried == TRY_COLLIDES) outcome = GPH_COLLIDES;
            if (tried == TRY_EXISTS) {
                // A put that found nothing to update, and then something: it updates.
                if (op == GPH_PUT) inserts = false;
                else outcome = GPH_EXISTS;
            }
            if (tried == TRY_ABSENT) {
                if (op == GPH_PUT) inserts = true;
                else outcome = GPH_ABSENT;
            }
        }
        __syncwarp();
        gpm_u32 readers = __ballot_sync(GPH_ALL, act == ACT_READ);
        if (readers) gph_copy(t, found ? readers : 0, cached ? cached : gph_cell(t, cell), found);
        if (act == ACT_UPDATE) {
            // What it has now is left in its place: each place is taken once an epoch, so it is not
            // used before the next.
            gpm_u32 window = slot / window_slots(t), at = atomicAdd(taken_at(t, window), 1u);
            place = window * t.window_spares + at;
            fresh = at < t.window_spares ? t.spares[place] : GPH_NONE;
            // From UPDATING on it is certain to happen: others may be overwritten by it.
            gpm_u32 state = fresh == GPH_NONE ? TAG_THERE : TAG_UPDATING;
            tag_change(t, slot, tag_make(TAG_HELD, print, moved), tag_make(state, print, moved));
            if (fresh == GPH_NONE) {
                act = ACT_NONE;
                outcome = GPH_NO_CELL;
            }
        }
        gpm_u32 writers = __ballot_sync(GPH_ALL, act == ACT_INSERT || act == ACT_UPDATE);
        if (writers) {
            gpm_u32 to = fresh;
            if (act == ACT_INSERT) to = slot_cell(t, slot, moved ? gph_load(slot_key(t, slot) + 1) : 0);
            gph_copy(t, writers, value, gph_cell(t, to));
            gph_copy_key(t, writers, full, gph_cell(t, to));
            // All of the values' parts have persisted before a key or pointer says that they are
            // there.
            if (!GPH_HOLE(GPH_HOLE_FENCE)) gpm_persist();
            __syncwarp();
        }
        if (act == ACT_INSERT) {
            gph_store(slot_key(t, slot), key);
            gpm_persist();
            tag_change(t, slot, tag_make(TAG_PENDING, print, moved), tag_make(TAG_THERE, print, moved));
        } else if (act == ACT_UPDATE) {
            gph_store(slot_key(t, slot) + 1, gph_pointer(slot, fresh));
            gpm_persist();
            t.spares[place] = cell;
            tag_change(t, slot, tag_make(TAG_UPDATING, print, moved), tag_make(TAG_THERE, print, TAG_MOVED));
        } else if (act == ACT_DELETE) {
            gph_store(slot_key(t, slot), 0);
            gpm_persist();
            tag_change(t, slot, tag_make(TAG_DELETING, print, moved), tag_make(0, TAG_GIVEN_UP(t.epoch), moved));
        }
        if (act > ACT_INSERT && GPH_HOLE(GPH_HOLE_STALE)) cache_write(t, h, key, act == ACT_UPDATE ? value : nullptr);
        if (act == ACT_READ && op == GPH_RMW)
            reads = false;
        else if (act != ACT_NONE)
            outcome = GPH_DONE;
    }
    if (BATCHED && __any_sync(GPH_ALL, !leads)) {
        // The others happened right before it and were overwritten by it, or right behind it and
        // found what it left.
        gpm_u32 its = __shfl_sync(GPH_ALL, outcome, leader);
        const uint4 *read = (const uint4 *)__shfl_sync(GPH_ALL, (gpm_u64)found, leader);
        bool copies = wanted && !leads && its == GPH_DONE && (op == GPH_GET || op == GPH_RMW);
        __syncwarp();
        gph_copy(t, __ballot_sync(GPH_ALL, copies && found), read, found);
        if (!leads) outcome = its != GPH_DONE ? its : op == GPH_INSERT ? GPH_EXISTS : op == GPH_DELETE ? GPH_ABSENT : GPH_DONE;
    }
    // What the answers depend on: what others have stored and this thread has read.
    if (!BATCHED && !GPH_HOLE(GPH_HOLE_READERS)) gpm_persist();
    return outcome;
}

#include "gphash_calls.cuh"
#include "gphash_kernels.cuh"
#include "gphash_n_growth.cuh"
#include "gphash_n_recovery.cuh"
#include "gphash_n_batches.cuh"
