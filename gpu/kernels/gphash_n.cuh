// Design N: fingerprints and claims in the GPU's memory, keys, pointers and values in PM.
//
// A slot in PM is {key, pointer}; key 0 is none. Each slot has a cell of its own for a value until an update gives it another one and stores a pointer
// to it; what a slot's cell was before is spare then. So an insert stores a value and a key, nothing else, and a delete stores a key.
//
// The table is a row of windows. A key's buckets lie in one window, and so do the slots' cells and the spare ones that updates take: a batch that is
// sorted by window touches a small part of PM at a time, which a GPU needs (beyond 512 MiB at random, translation takes most of the time).
//
// A tag in the GPU's memory stands for each slot: state, whether the slot has a pointer, fingerprint of its key. Tags are claimed and held by
// compare-and-swap. Recovery makes them anew, so a crash frees all claims.
//
//     free --claim--> CLAIMED --nobody else has the key--> PENDING --key has persisted--> THERE
//     THERE --held--> HELD --it is the key, there is a cell--> UPDATING --pointer has persisted--> THERE
//                      \----it is the key--> DELETING --key 0 has persisted--> free in the next epoch
//
// Two inserts of one key: each claims a slot, then looks for the other's claim. Of two that see each other the one in the higher slot gives up; the
// one in the lower slot waits until the other has decided, which is soon, as nobody who is CLAIMED waits for a lower slot, for PM to persist, or for
// other lanes. Everybody else who cannot go on gives up what is claimed and tries again: nobody waits at a barrier while holding what others spin on.
#pragma once
#include "nearpm_gphash.cuh"
#include "gphash_n_cache.cuh"

#define TAG_CLAIMED 1u
#define TAG_PENDING 2u
#define TAG_THERE 3u
#define TAG_HELD 4u
#define TAG_UPDATING 5u
#define TAG_DELETING 6u
#define TAG_LOST 7u       // recovery found a pointer that does not hold: the slot is not used
#define TAG_STATE 13u     // shift of the state; 0 is free
#define TAG_MOVED 0x1000u // the slot has a pointer
#define TAG_PRINT 0x0fffu
// Fingerprint field of a free slot: 0, or in which epochs (even, odd) it was given up.
#define TAG_GIVEN_UP(epoch) (1u + ((epoch) & 1u))

#define SLOT_BYTES 16u

// What one try of an operation came to.
#define TRY_AGAIN 0u
#define TRY_GOT 1u
#define TRY_ABSENT 2u
#define TRY_EXISTS 3u
#define TRY_FULL 4u
#define TRY_OVERWRITTEN 5u
#define TRY_COLLIDES 6u

// A free slot that was taken while it was chosen.
#define GPH_TAKEN_NOW 0xfffffffeu

static __device__ __forceinline__ gpm_u32 tag_state(gpm_u32 tag) { return tag >> TAG_STATE; }
static __device__ __forceinline__ gpm_u32 tag_make(gpm_u32 state, gpm_u32 print, gpm_u32 moved) { return state << TAG_STATE | moved | print; }
static __device__ __forceinline__ gpm_u32 print_of(const gph_hash &h) { return (gpm_u32)h.second & TAG_PRINT; }

static __device__ __forceinline__ gpm_u32 tag_in(gpm_u32 word, gpm_u32 slot) { return word >> (slot % 2 * 16) & 0xffffu; }
static __device__ __forceinline__ gpm_u32 tag_load(const gphash &t, gpm_u32 slot) { return tag_in(gph_load_word(&t.tags[slot / 2]), slot); }

// Whether the slot had this tag and has the other one now.
static __device__ __forceinline__ bool tag_swap(const gphash &t, gpm_u32 slot, gpm_u32 from, gpm_u32 to) {
    gpm_u32 *at = &t.tags[slot / 2];
    gpm_u32 shift = slot % 2 * 16, word = gph_load_word(at);
    while ((word >> shift & 0xffffu) == from) {
        gpm_u32 seen = atomicCAS(at, word, word ^ (from ^ to) << shift);
        if (seen == word) return true;
        word = seen;
    }
    return false;
}

// The same by who alone may change it.
static __device__ __forceinline__ void tag_change(const gphash &t, gpm_u32 slot, gpm_u32 from, gpm_u32 to) {
    atomicXor(&t.tags[slot / 2], (from ^ to) << (slot % 2 * 16));
}

static __device__ __forceinline__ bool tag_is_free(const gphash &t, gpm_u32 tag) {
    return tag_state(tag) == 0 && ((tag & TAG_PRINT) != TAG_GIVEN_UP(t.epoch) || GPH_HOLE(GPH_HOLE_REUSE));
}

static __device__ __forceinline__ gpm_u64 *slot_key(const gphash &t, gpm_u32 slot) { return (gpm_u64 *)(t.slots + (gpm_u64)slot * SLOT_BYTES); }
static __device__ __forceinline__ ulonglong2 slot_load(const gphash &t, gpm_u32 slot) { return gph_load_pair(slot_key(t, slot)); }
// Spares of a window that were taken in this epoch. The words of the next epoch are zeroed in this one.
static __device__ __forceinline__ gpm_u32 *taken_at(const gphash &t, gpm_u32 window) { return &t.taken[(t.epoch & 1) * (t.windows + 1) + window]; }
static __device__ __forceinline__ gpm_u32 window_slots(const gphash &t) { return t.buckets / t.windows * t.width; }
// The cell that a slot has: by its pointer, or its own, which lies among those of its window.
static __device__ __forceinline__ gpm_u32 slot_cell(const gphash &t, gpm_u32 slot, gpm_u64 pointer) {
    return pointer ? gph_cell_of(pointer) : slot + slot / window_slots(t) * t.window_spares;
}

// A table grows by a window at a time (linear hashing, Litwin 1980): window `base * 2^k + w` takes half of the keys of window w, by another bit of
// the hash. Windows from `used` on are not in use yet.
static __device__ __forceinline__ gpm_u32 window_of(const gphash &t, const gph_hash &h) {
    gpm_u32 window = gph_below((gpm_u32)h.second, t.base), more = (gpm_u32)(h.first >> 32);
    for (gpm_u32 size = t.base; size < t.used; size *= 2, more >>= 1)
        if (more & 1 && window + size < t.used) window += size;
    return window;
}

// First slot of the i-th bucket of a key; the last one is in the stash.
static __device__ __forceinline__ gpm_u32 bucket_of(const gphash &t, const gph_hash &h, gpm_u32 i) {
    if (i == t.hashes) return (t.buckets + gph_below((gpm_u32)(h.second >> 12), t.stash)) * t.width;
    gpm_u32 in_window = t.buckets / t.windows;
    return (window_of(t, h) * in_window + gph_below(gph_choice(h, i), in_window)) * t.width;
}

static __device__ __forceinline__ bool gph_is_reserved(gpm_u64 key) { return key == 0; }

static __device__ __forceinline__ gpm_u32 buckets_of(const gphash &t) {
    return t.hashes + (t.stash && gph_load_word(&t.counts[GPH_STASHED]) ? 1u : 0u);
}

// Two tags at once. Bits 0 and 16 say whether their fingerprints differ from those of `both`: twelve bits and 0xfff carry unless they are 0.
static __device__ __forceinline__ gpm_u32 prints_differ(gpm_u32 word, gpm_u32 both) {
    return (((word ^ both) & 0x0fff0fffu) + 0x0fff0fffu) >> 12 & 0x00010001u;
}

// The same for states that are not 0.
static __device__ __forceinline__ gpm_u32 states_in_use(gpm_u32 word) { return ((word >> TAG_STATE & 0x00070007u) + 0x00070007u) >> 3 & 0x00010001u; }

// Of the eight tags of a quad those that `of(word)` says in bits 0 and 16: a bit each.
template <class Of>
static __device__ __forceinline__ gpm_u32 quad_bits(uint4 quad, Of of) {
    gpm_u32 bits = of(quad.x) | of(quad.y) << 2 | of(quad.z) << 4 | of(quad.w) << 6;
    return (bits | bits >> 15) & 0xffu;
}

// The tags of a bucket, a bit each.
template <class Of>
static __device__ __forceinline__ gpm_u64 bucket_bits(const gphash &t, gpm_u32 first, Of of) {
    const uint4 *group = (const uint4 *)&t.tags[first / 2];
    gpm_u64 bits = 0;
#pragma unroll 4
    for (gpm_u32 at = 0; at < t.width / 8; at++) bits |= (gpm_u64)quad_bits(gph_load_tags(&group[at]), of) << at * 8;
    return bits;
}

// Slots of a bucket whose tag has the fingerprint; of free ones perhaps, too.
static __device__ __forceinline__ gpm_u64 bucket_matches(const gphash &t, gpm_u32 first, gpm_u32 print) {
    return bucket_bits(t, first, [&](gpm_u32 word) { return prints_differ(word, print << 16 | print) ^ 0x00010001u; });
}

// Looks at each slot of a key's first `buckets` buckets whose tag has its fingerprint, until `look(slot)` says that it has seen enough. Whether it has.
// Tags are gone through before a slot of PM is looked at, so that lanes of a warp that find one wait for PM together, and not one after the other.
template <class Look>
static __device__ __forceinline__ bool key_look(const gphash &t, const gph_hash &h, gpm_u32 buckets, Look look) {
    gpm_u64 matches = 0;
    gpm_u32 next = 0, first = 0;
    while (true) {
        while (!matches && next < buckets) {
            first = bucket_of(t, h, next++);
            matches = bucket_matches(t, first, print_of(h));
        }
        if (!matches) return false;
        gpm_u32 slot = first + (gpm_u32)__ffsll((long long)matches) - 1;
        matches &= matches - 1;
        if (look(slot)) return true;
    }
}

// The same with the tag as it is then: `look(slot, tag)`. One that has changed to another fingerprint meanwhile is passed by.
template <class Look>
static __device__ __forceinline__ bool key_look_tags(const gphash &t, const gph_hash &h, gpm_u32 buckets, Look look) {
    return key_look(t, h, buckets, [&](gpm_u32 slot) {
        gpm_u32 tag = tag_load(t, slot);
        return (tag & TAG_PRINT) == print_of(h) && tag_state(tag) % TAG_LOST && look(slot, tag);
    });
}

// ---- Reading ---------------------------------------------------------------------------------------------------------------------------------------------

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

// ---- Holding a slot to change it ---------------------------------------------------------------------------------------------------------------------------

// Brings the key's slot from THERE to `state`, HELD or beyond, so that nobody else changes it. With `gives_way` an update finds another one of the same key in progress,
// and is overwritten by it: for batches, of which all operations are at the same time.
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

// ---- Claiming a slot for a new key -------------------------------------------------------------------------------------------------------------------------

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
        // From now on everybody looks there, too. Who has not seen it yet will see it behind a claim.
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

// ---- Operations --------------------------------------------------------------------------------------------------------------------------------------------

#define ACT_NONE 0u
#define ACT_READ 1u
#define ACT_INSERT 2u
#define ACT_UPDATE 3u
#define ACT_DELETE 4u

// One operation a lane. With `BATCHED` answers are not looked at before the launch has ended; without, what an answer depends on has persisted
// when this returns.
template <bool BATCHED>
static __device__ __forceinline__ gpm_u32 gph_run(const gphash &t, bool wanted, gpm_u32 op, gpm_u64 key, const uint4 *full, const uint4 *value,
                                                  uint4 *found) {
    const gph_hash h = gph_hash_of(t, key);
    const gpm_u32 print = print_of(h);
    // Of a batch's operations that do the same with the same key, one lane does it for all of its warp.
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
                    if (tried == TRY_GOT) cache_want(t, h, slot);
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
            // What it has now is left in its place: each place is taken once an epoch, so it is not used before the next.
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
            // All of the values' parts have persisted before a key or pointer says that they are there.
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
        // The others happened right before it and were overwritten by it, or right behind it and found what it left.
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

// What a batch is sorted by: the window of each key, and `bits` more bits of its hash, which bring operations on one key together; and the number of
// each in the batch.
extern "C" __global__ void gph_windows(const gphash *described, gpm_u32 n, gpm_u32 bits, const void *keys, gpm_u32 *windows, gpm_u32 *numbers) {
    const gphash t = *described;
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const uint4 *full = nullptr;
    gph_hash h = gph_hash_of(t, key_at(t, keys, i, full));
    windows[i] = window_of(t, h) << bits | ((gpm_u32)(h.first >> 32) & ((1u << bits) - 1));
    numbers[i] = i;
}

// ---- Growing -----------------------------------------------------------------------------------------------------------------------------------------------
//
// A step takes window `to` into use, while no batch runs: pairs that belong there then are copied to it, the host stores durably that it is in use, and
// the copies that were left in window `from` are cleared. A crash before the store leaves copies in a window that is not in use, one behind it leaves
// copies where nobody looks for their keys: recovery clears both.

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

// Clears the keys of a window that belong to window `of`; of all that are there, if the window is that one and not in use.
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

// Recovery, behind the first part: what a crash left in the stash and at home stays at home. Both copies are the same.
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
