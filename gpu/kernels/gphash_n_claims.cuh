// Design N (gphash_n.cuh): one try of finding, holding or claiming the slot of a key.
#pragma once
#include "gphash_n_tags.cuh"

// ---- Reading ------------------------------------------------------------------------------------

// The key's slot as PM has it. What is claimed and not yet there has no key.
static __device__ __forceinline__ gpm_u32 try_find(const gphash &t, const gph_hash &h, gpm_u64 key, const uint4 *full, gpm_u32 &found,
                                                   gpm_u32 &cell) {
    bool there = key_look(t, h, buckets_of(t), [&](gpm_u32 slot) {
        ulonglong2 pair = slot_load(t, slot);
        if (pair.x != key) return false;
        found = slot;
        cell = slot_cell(t, slot, pair.y);
        // Of a damaged table that is open to be repaired, a pointer may lead nowhere.
        return cell < t.cell_count;
    });
    if (!there) return TRY_ABSENT;
    // The value is read behind the key.
    __threadfence();
    return gph_same(t, cell, full) ? TRY_GOT : TRY_ABSENT;
}

// ---- Holding a slot to change it ----------------------------------------------------------------

// Brings the key's slot from THERE to `state`, HELD or beyond, so that nobody else changes it. With
// `gives_way` an update finds another one of the same key in progress, and is overwritten by it:
// for batches, of which all operations are at the same time.
static __device__ __forceinline__ gpm_u32 try_hold(const gphash &t, const gph_hash &h, gpm_u64 key, const uint4 *full, gpm_u32 state,
                                                   bool gives_way, gpm_u32 &held, gpm_u32 &moved, gpm_u32 &cell) {
    gpm_u32 outcome = TRY_ABSENT;
    key_look_tags(t, h, buckets_of(t), [&](gpm_u32 slot, gpm_u32 tag) {
        if (tag_state(tag) == TAG_CLAIMED) return false;
        if (tag_state(tag) != TAG_THERE) {
            bool overwrites = tag_state(tag) == TAG_UPDATING || (GPH_HOLE(GPH_HOLE_OVERWRITE) && tag_state(tag) == TAG_HELD);
            ulonglong2 pair = slot_load(t, slot);
            if (pair.x != key || !gph_same(t, slot_cell(t, slot, pair.y), full)) return false;
            outcome = gives_way && overwrites ? TRY_OVERWRITTEN : TRY_AGAIN;
            return true;
        }
        gpm_u32 holding = tag_make(TAG_HELD, tag & TAG_PRINT, tag & TAG_MOVED);
        if (!tag_swap(t, slot, tag, holding)) {
            outcome = TRY_AGAIN;
            return true;
        }
        ulonglong2 pair = slot_load(t, slot);
        if (pair.x != key || !gph_same(t, slot_cell(t, slot, pair.y), full)) {
            tag_change(t, slot, holding, tag);
            return false;
        }
        if (state != TAG_HELD) tag_change(t, slot, holding, tag_make(state, tag & TAG_PRINT, tag & TAG_MOVED));
        held = slot;
        moved = tag & TAG_MOVED;
        cell = slot_cell(t, slot, pair.y);
        outcome = TRY_GOT;
        return true;
    });
    return outcome;
}

// ---- Claiming a slot for a new key --------------------------------------------------------------

// What another slot with the key's fingerprint means for an insert.
static __device__ __forceinline__ gpm_u32 try_other(const gphash &t, gpm_u64 key, const uint4 *full, gpm_u32 slot, gpm_u32 state) {
    if (state == TAG_PENDING) return TRY_AGAIN;
    ulonglong2 there = slot_load(t, slot);
    // Without a key it is being deleted, and the key may have been this one.
    if (there.x == 0) return TRY_AGAIN;
    if (there.x != key) return TRY_GOT;
    return gph_same(t, slot_cell(t, slot, there.y), full) ? TRY_EXISTS : TRY_COLLIDES;
}

// Free slots of a bucket.
static __device__ __forceinline__ gpm_u64 bucket_free(const gphash &t, gpm_u32 first) {
    gpm_u32 given_up = TAG_GIVEN_UP(t.epoch) << 16 | TAG_GIVEN_UP(t.epoch);
    return bucket_bits(t, first, [&](gpm_u32 word) {
        return ~states_in_use(word) & (GPH_HOLE(GPH_HOLE_REUSE) ? 0x00010001u : prints_differ(word, given_up));
    });
}

// A free slot in the emptiest bucket of the key; GPH_NONE when there is none.
static __device__ __forceinline__ gpm_u32 free_slot(const gphash &t, const gph_hash &h, gpm_u32 buckets, gpm_u32 &tag) {
    gpm_u64 best = 0;
    gpm_u32 first = 0;
    for (gpm_u32 i = 0; i < buckets; i++) {
        // The stash is for what has no other place.
        if (i == t.hashes && best) break;
        gpm_u32 bucket = bucket_of(t, h, i);
        gpm_u64 free = bucket_free(t, bucket);
        if (__popcll(free) > __popcll(best)) {
            best = free;
            first = bucket;
        }
    }
    if (!best) return GPH_NONE;
    // Those who look at the same time begin at different places.
    gpm_u64 behind = best & ~0ull << (gpm_u32)(h.second >> 12) % t.width;
    gpm_u32 slot = first + (gpm_u32)__ffsll((long long)(behind ? behind : best)) - 1;
    tag = tag_load(t, slot);
    return tag_is_free(t, tag) ? slot : GPH_TAKEN_NOW;
}

// Whether nobody else has the key or is about to have it, looked at behind the claim of `mine`.
static __device__ __forceinline__ gpm_u32 try_alone(const gphash &t, const gph_hash &h, gpm_u64 key, const uint4 *full, gpm_u32 mine) {
    gpm_u32 outcome = TRY_GOT;
    key_look_tags(t, h, buckets_of(t), [&](gpm_u32 slot, gpm_u32 tag) {
        if (slot == mine) return false;
        if (tag_state(tag) == TAG_CLAIMED) {
            if (slot < mine) {
                outcome = TRY_AGAIN;
                return true;
            }
            while (tag_state(tag) == TAG_CLAIMED && (tag & TAG_PRINT) == print_of(h)) tag = tag_load(t, slot);
            if (tag_state(tag) == 0 || (tag & TAG_PRINT) != print_of(h)) return false;
        }
        outcome = try_other(t, key, full, slot, tag_state(tag));
        return outcome != TRY_GOT;
    });
    return outcome;
}

static __device__ __forceinline__ gpm_u32 try_claim(const gphash &t, const gph_hash &h, gpm_u64 key, const uint4 *full, gpm_u32 &claimed,
                                                    gpm_u32 &moved) {
    gpm_u32 outcome = TRY_GOT, buckets = buckets_of(t);
    key_look_tags(t, h, buckets, [&](gpm_u32 slot, gpm_u32 tag) {
        outcome = GPH_HOLE(GPH_HOLE_TWICE) && tag_state(tag) < TAG_THERE ? TRY_GOT
                  : tag_state(tag) == TAG_CLAIMED                        ? TRY_AGAIN
                                                                         : try_other(t, key, full, slot, tag_state(tag));
        return outcome != TRY_GOT;
    });
    if (outcome != TRY_GOT) return outcome;
    gpm_u32 tag = 0, slot = free_slot(t, h, buckets, tag);
    if (slot == GPH_TAKEN_NOW) return TRY_AGAIN;
    if (slot == GPH_NONE) {
        if (buckets > t.hashes || !t.stash) return TRY_FULL;
        // From now on everybody looks there, too. Who has not seen it yet will see it behind a
        // claim.
        atomicExch(&t.counts[GPH_STASHED], 1u);
        __threadfence();
        return TRY_AGAIN;
    }
    gpm_u32 claim = tag_make(TAG_CLAIMED, print_of(h), tag & TAG_MOVED);
    if (!tag_swap(t, slot, tag, claim)) return TRY_AGAIN;
    // The claim before the look: of two who do both, one sees the other.
    __threadfence();
    if (!GPH_HOLE(GPH_HOLE_TWICE)) outcome = try_alone(t, h, key, full, slot);
    if (outcome != TRY_GOT) {
        tag_change(t, slot, claim, tag);
        return outcome;
    }
    tag_change(t, slot, claim, tag_make(TAG_PENDING, print_of(h), tag & TAG_MOVED));
    claimed = slot;
    moved = tag & TAG_MOVED;
    return TRY_GOT;
}
