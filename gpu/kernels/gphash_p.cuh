// Design P: the table of GPHash (FAST 2025, 3.1 and 3.2), repaired. A warp does one operation at a
// time, a lane a slot: one look at all slots that the key may be in. (With GPH_ALONE a thread does
// it alone: gphash_p_alone.cuh.)
//
// Level 0 has `buckets` buckets, each level below half as many as the one above; a bucket of a
// level lies under two of the one above. A bucket has its keys, then its pointers. A key word is 0
// (free), a key, or a mark:
//
//     CLAIMED, PENDING   an insert is about to put a key with this hash here (the paper's INSERT,
//                        which does not tell of which key)
//     GIVEN_UP           deleted in this epoch: free in the next one
//
// What the paper leaves open is closed so: inserts of one key look for each other behind their
// claims, as in design N (see gphash_n.cuh); a fence lies between pointer and key; who answers
// persists first what the answer depends on; slots and cells are used again in a later epoch only.
#pragma once
#include "nearpm_gphash.cuh"
#include "gphash_p_cache.cuh"

#define MARK_GIVEN_UP 0xfffffffdull
#define MARK_CLAIMED 0xfffffffeull
#define MARK_PENDING 0xffffffffull

static __device__ __forceinline__ bool gph_is_reserved(gpm_u64 key) { return key == 0 || key >> 32 >= MARK_GIVEN_UP; }
static __device__ __forceinline__ bool is_mark(gpm_u64 word) { return word >> 32 >= MARK_GIVEN_UP; }

// What a lane looks at for a key.
struct place {
    gpm_u32 slot;  // GPH_NONE: nothing, or what another lane looks at already
    gpm_u64 *key, *pointer;
};

static __device__ __forceinline__ void place_at(const gphash &t, gpm_u32 bucket, gpm_u32 way, place &p) {
    p.slot = bucket * t.width + way;
    p.key = (gpm_u64 *)t.slots + (gpm_u64)bucket * t.width * 2 + way;
    p.pointer = p.key + t.width;
}

// First bucket of a level: levels that a table has grown by lie behind those that it began with.
static __device__ __forceinline__ gpm_u32 level_start(const gphash &t, gpm_u32 level) {
    return level == 0 ? t.starts[0] : level == 1 ? t.starts[1] : level == 2 ? t.starts[2] : t.starts[3];
}

// Whether a bucket is of a level in use.
static __device__ __forceinline__ bool is_in_use(const gphash &t, gpm_u32 bucket) {
    bool is = false;
    for (gpm_u32 level = 0; level < t.levels; level++) is = is || bucket - level_start(t, level) < t.buckets >> level;
    return is;
}

static __device__ __forceinline__ place place_of(const gphash &t, const gph_hash &h, gpm_u32 lane) {
    gpm_u32 choice = lane / t.width % t.hashes, level = lane / t.width / t.hashes;
    place p;
    p.slot = GPH_NONE;
    p.key = p.pointer = nullptr;
    if (level >= t.levels) return p;
    gpm_u32 bucket = gph_below(gph_choice(h, choice), t.buckets) >> level;
    for (gpm_u32 before = 0; before < choice; before++)
        if (gph_below(gph_choice(h, before), t.buckets) >> level == bucket) return p;
    place_at(t, level_start(t, level) + bucket, lane % t.width, p);
    return p;
}

static __device__ __forceinline__ gpm_u64 place_load(const place &p) {
    // Lanes without a place see what is neither a key nor free.
    return p.slot == GPH_NONE ? MARK_GIVEN_UP << 32 : gph_load(p.key);
}

// The place as a reader may look at it: in the cache, if its bucket is there.
static __device__ __forceinline__ place place_cached(const gphash &t, const place &p) {
    place c = p;
    gpm_u64 *copy = p.slot == GPH_NONE ? nullptr : cache_bucket(t, p.slot / t.width);
    if (copy) {
        c.key = copy + p.slot % t.width;
        c.pointer = c.key + t.width;
    }
    return c;
}

static __device__ __forceinline__ gpm_u32 lowest(gpm_u32 lanes) { return (gpm_u32)__ffs(lanes) - 1; }

// Appends a cell to the ring, to be taken in a later epoch.
static __device__ __forceinline__ void give_cell(const gphash &t, gpm_u32 cell) {
    t.spares[atomicAdd((gpm_u64 *)&t.counts[GPH_GIVEN], 1ull) % t.ring] = cell;
}

static __device__ __forceinline__ bool is_free(const gphash &t, const place &p, gpm_u64 word) {
    return p.slot != GPH_NONE && (word == 0 || (word >> 32 == MARK_GIVEN_UP && (gpm_u32)word != t.epoch));
}

// Lane of a free slot in the emptiest bucket. `lanes` are those that see a free slot, and not none.
static __device__ __forceinline__ gpm_u32 emptiest(const gphash &t, gpm_u32 lanes) {
    gpm_u32 all = t.width == 32 ? GPH_ALL : (1u << t.width) - 1, best = 0, most = 0;
    for (gpm_u32 first = 0; first < t.width * t.hashes * t.levels; first += t.width) {
        gpm_u32 count = __popc(lanes >> first & all);
        if (count > most) {
            most = count;
            best = lanes & all << first;
        }
    }
    return lowest(best);
}

#ifdef GPH_ALONE
#include "gphash_p_alone.cuh"
#else

// A value to or from a cell, by the whole warp.
static __device__ __forceinline__ void copy_value(const gphash &t, const uint4 *from, uint4 *to) {
    for (gpm_u32 u = threadIdx.x % GPM_WARP; u < t.units; u += GPM_WARP) to[u] = from[u];
}

// A value and its key, if that is wide, into a cell.
static __device__ __forceinline__ void fill_cell(const gphash &t, const uint4 *value, const uint4 *full, gpm_u32 cell) {
    copy_value(t, value, gph_cell(t, cell));
    for (gpm_u32 u = threadIdx.x % GPM_WARP; u < GPH_KEY_UNITS(t); u += GPM_WARP) gph_cell(t, cell)[t.units + u] = full[u];
}

// Takes a cell from the ring, for the warp. The host gives a launch no more operations that take
// one than the ring has.
static __device__ __forceinline__ gpm_u32 take_cell(const gphash &t) {
    gpm_u32 cell = 0;
    if (threadIdx.x % GPM_WARP == 0) cell = t.spares[atomicAdd((gpm_u64 *)&t.counts[GPH_TAKEN], 1ull) % t.ring];
    return __shfl_sync(GPH_ALL, cell, 0);
}

// Claims a slot for a key that is not there. GPH_DONE with the lane that has it, GPH_EXISTS,
// GPH_FULL, or GPH_WAITING: to be tried again.
static __device__ __forceinline__ gpm_u32 claim(const gphash &t, const gph_hash &h, gpm_u64 key, const place &p, gpm_u64 word, gpm_u32 &owner) {
    const gpm_u32 lane = threadIdx.x % GPM_WARP;
    const gpm_u64 claimed = MARK_CLAIMED << 32 | (gpm_u32)h.second, pending = MARK_PENDING << 32 | (gpm_u32)h.second;
    bool twice = GPH_HOLE(GPH_HOLE_TWICE);
    if (!twice && __any_sync(GPH_ALL, word == claimed || word == pending)) return GPH_WAITING;
    gpm_u32 free = __ballot_sync(GPH_ALL, is_free(t, p, word));
    if (!free) return GPH_FULL;
    owner = emptiest(t, free);
    if (lane == owner && !GPH_HOLE(GPH_HOLE_STALE)) cache_forget(t, p.slot / t.width);
    bool won = lane == owner && atomicCAS(p.key, word, claimed) == word;
    if (!__any_sync(GPH_ALL, won)) return GPH_WAITING;
    // The claim before the look: of two who do both, one sees the other.
    __threadfence();
    __syncwarp();
    gpm_u32 mine = __shfl_sync(GPH_ALL, p.slot, owner), outcome = GPH_DONE;
    while (!twice) {
        gpm_u64 now = place_load(p);
        bool other = now == claimed && p.slot != mine;
        if (__any_sync(GPH_ALL, now == key)) outcome = GPH_EXISTS;
        // Of two who see each other the higher one gives up; the lower one waits until the other
        // has decided.
        else if (__any_sync(GPH_ALL, now == pending || (other && p.slot < mine))) outcome = GPH_WAITING;
        else if (__any_sync(GPH_ALL, other)) continue;
        break;
    }
    if (lane == owner) gph_store(p.key, outcome == GPH_DONE ? pending : word);
    return outcome;
}

// One operation of one key by the whole warp.
static __device__ __forceinline__ gpm_u32 run_one(const gphash &t, gpm_u32 op, gpm_u64 key, const uint4 *full, const uint4 *value, uint4 *found) {
    const gpm_u32 lane = threadIdx.x % GPM_WARP;
    const gph_hash h = gph_hash_of(t, key);
    const place in_pm = place_of(t, h, lane);
    const gpm_u64 given_up = GPH_HOLE(GPH_HOLE_REUSE) ? 0 : MARK_GIVEN_UP << 32 | t.epoch;
    gpm_u32 fresh = GPH_NONE, outcome = GPH_WAITING;
    bool inserts = op == GPH_INSERT, reads = op == GPH_GET || op == GPH_RMW;
    while (outcome == GPH_WAITING) {
        const place p = reads ? place_cached(t, in_pm) : in_pm;
        gpm_u64 word = place_load(p);
        gpm_u32 hits = __ballot_sync(GPH_ALL, word == key && p.slot != GPH_NONE);
        if (!hits && op == GPH_PUT) inserts = true;
        if (GPH_KEY_UNITS(t) && hits) {
            gpm_u64 pointer = lane == lowest(hits) ? gph_load(p.pointer) : 0;
            pointer = __shfl_sync(GPH_ALL, pointer, lowest(hits));
            if (!pointer) continue;
            if (!gph_same(t, gph_cell_of(pointer), full)) {
                outcome = op == GPH_INSERT || op == GPH_PUT ? GPH_COLLIDES : GPH_ABSENT;
                continue;
            }
        }
        if (inserts && hits && op == GPH_INSERT) {
            outcome = GPH_EXISTS;
        } else if (inserts && !hits) {
            gpm_u32 owner = 0;
            outcome = claim(t, h, key, p, word, owner);
            if (outcome == GPH_EXISTS && (op == GPH_PUT || GPH_KEY_UNITS(t))) outcome = GPH_WAITING;
            if (outcome != GPH_DONE) continue;
            if (fresh == GPH_NONE) fresh = take_cell(t);
            fill_cell(t, value, full, fresh);
            if (lane == owner) gph_store(p.pointer, gph_pointer(p.slot, fresh));
            // Value and pointer have persisted before the key is there.
            if (!GPH_HOLE(GPH_HOLE_FENCE)) gpm_persist();
            __syncwarp();
            if (lane == owner) gph_store(p.key, key);
            gpm_persist();
            if (lane == owner && GPH_HOLE(GPH_HOLE_STALE)) cache_write(t, p.slot, key, gph_pointer(p.slot, fresh));
            fresh = GPH_NONE;
        } else if (!hits) {
            outcome = GPH_ABSENT;
        } else if (op == GPH_DELETE) {
            if (lane == lowest(hits) && !GPH_HOLE(GPH_HOLE_STALE)) cache_forget(t, p.slot / t.width);
            bool won = lane == lowest(hits) && atomicCAS(p.key, key, given_up) == key;
            if (won) {
                gpm_u64 pointer = atomicExch(p.pointer, 0ull);
                if (pointer) give_cell(t, gph_cell_of(pointer));
                if (GPH_HOLE(GPH_HOLE_STALE)) cache_write(t, p.slot, 0, 0);
            }
            if (!GPH_HOLE(GPH_HOLE_READERS)) gpm_persist();
            if (__any_sync(GPH_ALL, won)) outcome = GPH_DONE;
        } else {
            gpm_u32 owner = lowest(hits);
            gpm_u64 pointer = lane == owner ? gph_load(p.pointer) : 0;
            pointer = __shfl_sync(GPH_ALL, pointer, owner);
            // Deleted between key and pointer: the next look sees it.
            if (!pointer) continue;
            if (reads) {
                __threadfence();
                __syncwarp();
                if (found) copy_value(t, gph_cell(t, gph_cell_of(pointer)), found);
                if (lane == owner) cache_use(t, p.slot / t.width);
                reads = false;
                if (op == GPH_GET) outcome = GPH_DONE;
                continue;
            }
            if (fresh == GPH_NONE) {
                fresh = take_cell(t);
                fill_cell(t, value, full, fresh);
                if (!GPH_HOLE(GPH_HOLE_FENCE)) gpm_persist();
                __syncwarp();
            }
            if (lane == owner && !GPH_HOLE(GPH_HOLE_STALE)) cache_forget(t, p.slot / t.width);
            gpm_u64 seen = 0;
            if (lane == owner) seen = atomicCAS(p.pointer, pointer, gph_pointer(p.slot, fresh));
            seen = __shfl_sync(GPH_ALL, seen, owner);
            if (!seen) continue;
            if (lane == owner && seen == pointer && GPH_HOLE(GPH_HOLE_STALE)) cache_write(t, p.slot, key, gph_pointer(p.slot, fresh));
            // Another pointer: another update came between, and overwrote this one.
            if (seen == pointer) fresh = gph_cell_of(pointer);
            if (!GPH_HOLE(GPH_HOLE_READERS)) gpm_persist();
            outcome = GPH_DONE;
        }
    }
    // What was taken and not used, or what an update has replaced.
    if (fresh != GPH_NONE && lane == 0) give_cell(t, fresh);
    return outcome;
}

template <bool BATCHED>
static __device__ __forceinline__ gpm_u32 gph_run(const gphash &t, bool wanted, gpm_u32 op, gpm_u64 key, const uint4 *full, const uint4 *value,
                                                  uint4 *found) {
    gpm_u32 outcome = GPH_DONE;
    for (gpm_u32 lanes = __ballot_sync(GPH_ALL, wanted); lanes; lanes &= lanes - 1) {
        gpm_u32 of = lowest(lanes);
        gpm_u32 one = run_one(t, __shfl_sync(GPH_ALL, op, of), __shfl_sync(GPH_ALL, key, of), (const uint4 *)__shfl_sync(GPH_ALL, (gpm_u64)full, of),
                              (const uint4 *)__shfl_sync(GPH_ALL, (gpm_u64)value, of), (uint4 *)__shfl_sync(GPH_ALL, (gpm_u64)found, of));
        if (threadIdx.x % GPM_WARP == of) outcome = one;
    }
    // What the answers depend on: what others have stored and these lanes have read.
    if (!BATCHED && !GPH_HOLE(GPH_HOLE_READERS)) gpm_persist();
    __syncwarp();
    return outcome;
}

#endif  // GPH_ALONE

#include "gphash_calls.cuh"
#include "gphash_kernels.cuh"
#include "gphash_p_recovery.cuh"
#include "gphash_p_growth.cuh"
