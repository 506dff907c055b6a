// Design N (gphash_n.cuh): tags, slots, buckets, and looking at the slots of a key by their tags.
#pragma once
#include "nearpm_gphash.cuh"

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
// None that a free slot's tag has: a key that had it would look at each free slot of its buckets in
// PM, one after the other.
static __device__ __forceinline__ gpm_u32 print_of(const gph_hash &h) { return max((gpm_u32)h.second & TAG_PRINT, TAG_GIVEN_UP(1u) + 1u); }

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
// Spares of a window that were taken in this epoch. The words of the next epoch are zeroed in this
// one.
static __device__ __forceinline__ gpm_u32 *taken_at(const gphash &t, gpm_u32 window) { return &t.taken[(t.epoch & 1) * (t.windows + 1) + window]; }
static __device__ __forceinline__ gpm_u32 window_slots(const gphash &t) { return t.buckets / t.windows * t.width; }
// The cell that a slot has: by its pointer, or its own, which lies among those of its window.
static __device__ __forceinline__ gpm_u32 slot_cell(const gphash &t, gpm_u32 slot, gpm_u64 pointer) {
    return pointer ? gph_cell_of(pointer) : slot + slot / window_slots(t) * t.window_spares;
}

// A table grows by a window at a time (linear hashing, Litwin 1980): window `base * 2^k + w` takes
// half of the keys of window w, by another bit of the hash. Windows from `used` on are not in use
// yet.
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

// Two tags at once. Bits 0 and 16 say whether their fingerprints differ from those of `both`:
// twelve bits and 0xfff carry unless they are 0.
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

// Slots of a bucket whose tag has the fingerprint.
static __device__ __forceinline__ gpm_u64 bucket_matches(const gphash &t, gpm_u32 first, gpm_u32 print) {
    return bucket_bits(t, first, [&](gpm_u32 word) { return prints_differ(word, print << 16 | print) ^ 0x00010001u; });
}

// Looks at each slot of a key's first `buckets` buckets whose tag has its fingerprint, until
// `look(slot)` says that it has seen enough. Whether it has. Tags are gone through before a slot of
// PM is looked at, so that lanes of a warp that find one wait for PM together, and not one after
// the other.
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

// The same with the tag as it is then: `look(slot, tag)`. One that has changed to another
// fingerprint meanwhile is passed by.
template <class Look>
static __device__ __forceinline__ bool key_look_tags(const gphash &t, const gph_hash &h, gpm_u32 buckets, Look look) {
    return key_look(t, h, buckets, [&](gpm_u32 slot) {
        gpm_u32 tag = tag_load(t, slot);
        return (tag & TAG_PRINT) == print_of(h) && tag_state(tag) % TAG_LOST && look(slot, tag);
    });
}
