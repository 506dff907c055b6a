// Device side of the persistent hash tables of `nearpm-gphash`: what designs P and N share.
//
// A table is described to kernels by a `gphash` in the GPU's own memory, which the host makes anew
// whenever it opens the table: pointers are there and nowhere in persistent memory (PM). `gph_run`
// is the tables' one operation: all 32 lanes of a warp call it together, each with an operation of
// its own or none. A design's file defines it, then includes `gphash_calls.cuh` and
// `gphash_kernels.cuh`.
//
// An epoch is a launch. What an operation gives up (a slot, a cell) is not used again in the same
// epoch, so that nobody who still reads it finds something else there.
#pragma once
#include "nearpm_gpm.cuh"

#define GPH_ALL 0xffffffffu
#define GPH_NONE 0xffffffffu

// Operations. Host: `nearpm-gphash`, `Op`.
#define GPH_GET 0u
#define GPH_INSERT 1u  // only if the key is not there
#define GPH_UPDATE 2u  // only if it is
#define GPH_PUT 3u     // either
#define GPH_DELETE 4u
#define GPH_RMW 5u  // get, then update: two operations, as YCSB's F has them

// Outcomes. Host: `Outcome`.
#define GPH_WAITING 0u  // not done: an operation that a crash cut off
#define GPH_DONE 1u
#define GPH_ABSENT 2u
#define GPH_EXISTS 3u
#define GPH_FULL 4u     // no free slot for the key in this epoch
#define GPH_NO_CELL 5u   // no spare cell in this epoch
#define GPH_RESERVED 6u  // a key that stands for something else
#define GPH_COLLIDES 7u  // wide keys: another key has the same 64 bits

// Words of `counts`; the first two are of 8 bytes.
#define GPH_TAKEN 0u    // cells taken from the ring, ever
#define GPH_GIVEN 2u    // cells given to it, ever
#define GPH_STASHED 4u  // whether the stash is in use (design N)
// Counted by recovery.
#define GPH_BROKEN 5u  // slots whose pointer does not hold
#define GPH_SHARED 6u   // slots whose cell another slot has, too
#define GPH_STRAY 7u    // keys in a bucket that is none of theirs
#define GPH_MARKED 8u   // slots that an operation had claimed
#define GPH_TWICE 9u    // keys that are there twice
#define GPH_LIVE 10u    // pairs
// Counted while the table grows.
#define GPH_UNMOVED 11u  // pairs that found no slot in what it grows by
#define GPH_LEFT 12u     // pairs that stay in the stash
// Counted by a check, as are keys that are there twice.
#define GPH_UNLIKE 13u  // wide keys: slots whose word is not of the key in the cell
#define GPH_COUNTS 16u

// A cache of a table in the GPU's memory. Its contents do not change while kernels run, but that
// who is about to change what is cached takes it out first; what is put in counts from the next
// turn on, which is between launches. Host: `CacheDescriptor`.
struct gph_cache {
    gpm_u64 *keys;      // design N: a set is 4 keys, 0 is none, and 4 that are being put in
    gpm_u64 *wanted;    // design N: best pair for an entry, estimate of its popularity << 32 | slot
    gpm_u32 *map;       // design P: a word a bucket, its entry, CACHE_FILLING with an entry, or GPH_NONE; design N: slot for each entry being put in
    gpm_u32 *of;        // design P: bucket of each entry; design N: popularity of each entry
    gpm_u32 *scores;    // design P: a word a bucket, uses or newest epoch; design N: sketch of popularity (count-min, Cormode 2005)
    gpm_u32 *free;      // design P: entries to be given away
    gpm_u32 *bins;      // design P: buckets by popularity: 256 bins; then the bin from which on they are cached, entries free, entries given
    char *copies;       // values (design N) or buckets (design P)
    gpm_u32 entries;
    gpm_u32 mask;       // design N: of the sketch's words
    gpm_u32 policy;     // design P: GPH_LFU and its like
    gpm_u32 sampled;    // of 2^sampled uses one is counted
};
#define CACHE_FILLING 0x80000000u
#define GPH_LFU 0u
#define GPH_LRU 1u
#define GPH_RANDOM 2u

// A table as kernels see it. Host: `Descriptor`.
struct gphash {
    char *slots;         // PM: keys and pointers
    char *cells;         // PM: values
    gpm_u32 *tags;       // GPU memory, design N: 2 bytes a slot
    gpm_u32 *spares;     // GPU memory: cells that no slot has. Design P: a ring; design N: `window_spares` a window
    gpm_u32 *taken;      // GPU memory, design N: spares taken in this epoch, a word a window; twice, for even and odd epochs
    gpm_u32 *counts;     // GPU memory: GPH_COUNTS words
    gpm_u32 *owned;      // GPU memory, while recovering: a bit a cell
    gpm_u64 seed;        // of the hash functions
    gpm_u32 buckets;     // of the top level; design N: of all windows that there is room for
    gpm_u32 windows;     // design N: a key's buckets and its cell lie in one window, so that a batch can go through the table window by window
    gpm_u32 window_spares;
    gpm_u32 stash;       // design N: buckets of the stash, a window of its own behind the others
    gpm_u32 width;       // slots a bucket
    gpm_u32 hashes;      // buckets a key has in a level
    gpm_u32 levels;      // design P: each has half as many buckets as the one above
    gpm_u32 units;       // 16-byte units of a value
    gpm_u32 ring;        // design P: cells that the ring has room for
    gpm_u32 slot_count;  // of all levels
    gpm_u32 cell_count;
    gpm_u32 holes;  // faults planted in kernels that were compiled with GPH_HOLES; 0 is none
    gpm_u32 epoch;  // of this launch: an argument of it
    gpm_u32 base;   // design N: windows that it began with
    gpm_u32 used;   // design N: windows in use
    gpm_u32 key_units;   // wide keys: 16-byte units of a key, which lies behind the value in the cell
    gpm_u32 starts[4];   // design P: first bucket of each level
    gph_cache *cache;    // kernels with a cache: none if null
};

// The holes of the paper's table, and mistakes that design N could have: planted to be found.
#ifdef GPH_HOLES
#define GPH_HOLE(hole) ((t.holes & (hole)) != 0)
#else
#define GPH_HOLE(hole) false
#endif
#define GPH_HOLE_FENCE 1u      // no fence between pointer and key
#define GPH_HOLE_READERS 2u    // answers before what they depend on has persisted
#define GPH_HOLE_TWICE 4u      // inserts of one key do not look for each other
#define GPH_HOLE_REUSE 8u      // slots and cells are used again in the same epoch
#define GPH_HOLE_OVERWRITE 16u // updates give way to an operation in progress that may not be an update of the same key
#define GPH_HOLE_RESERVED 32u  // reserved keys are not refused
#define GPH_HOLE_LOST 64u      // growing: pairs that find no slot above are dropped; a pair leaves the stash before its copy has persisted
#define GPH_HOLE_STALE 128u    // the cache is written behind PM, and not what is being put into it

static __device__ __forceinline__ gpm_u64 gph_mix(gpm_u64 key) {
    key = (key ^ key >> 33) * 0xff51afd7ed558ccdull;
    key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53ull;
    return key ^ key >> 33;
}

// Two words of 64 bits that depend on the key: enough for three buckets and a print.
struct gph_hash {
    gpm_u64 first, second;
};

static __device__ __forceinline__ gph_hash gph_hash_of(const gphash &t, gpm_u64 key) {
    gph_hash h;
    h.first = gph_mix(key ^ t.seed);
    h.second = gph_mix(h.first + 0x9e3779b97f4a7c15ull);
    return h;
}

// A number below `range` from 32 bits.
static __device__ __forceinline__ gpm_u32 gph_below(gpm_u32 bits, gpm_u32 range) {
    return (gpm_u32)((gpm_u64)bits * range >> 32);
}

static __device__ __forceinline__ gpm_u32 gph_choice(const gph_hash &h, gpm_u32 i) {
    return i == 0 ? (gpm_u32)(h.first >> 32) : i == 1 ? (gpm_u32)h.first : (gpm_u32)(h.second >> 32);
}

// ---- Strong accesses: neither the compiler nor the first-level cache keeps what they read -------

static __device__ __forceinline__ uint4 gph_load_tags(const uint4 *at) {
    uint4 v;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at) : "memory");
    return v;
}

static __device__ __forceinline__ gpm_u32 gph_load_word(const gpm_u32 *at) {
    gpm_u32 v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
    return v;
}

// Words of 8 bytes of PM.
static __device__ __forceinline__ gpm_u64 gph_load(const gpm_u64 *at) {
    gpm_u64 v;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(at) : "memory");
    return v;
}

static __device__ __forceinline__ ulonglong2 gph_load_pair(const void *at) {
    ulonglong2 v;
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(v.x), "=l"(v.y) : "l"(at) : "memory");
    return v;
}

static __device__ __forceinline__ void gph_store(gpm_u64 *at, gpm_u64 v) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at), "l"(v) : "memory");
}

// ---- Pointers -----------------------------------------------------------------------------------

// A pointer names a cell, and carries 24 bits that tell whether it is a pointer of that slot at
// all.
static __device__ __forceinline__ gpm_u64 gph_pointer(gpm_u32 slot, gpm_u32 cell) {
    gpm_u64 body = (gpm_u64)cell + 1;
    return body | gph_mix((gpm_u64)slot << 32 ^ body ^ 0x6e6561722d676870ull) >> 40 << 40;
}

static __device__ __forceinline__ gpm_u32 gph_cell_of(gpm_u64 pointer) { return (gpm_u32)pointer - 1; }

static __device__ __forceinline__ bool gph_pointer_holds(const gphash &t, gpm_u32 slot, gpm_u64 pointer) {
    gpm_u32 cell = gph_cell_of(pointer);
    return cell < t.cell_count && gph_pointer(slot, cell) == pointer;
}

// Wide keys are compiled in, as is the cache, so that others do not pay for them.
#ifdef GPH_WIDE
#define GPH_KEY_UNITS(t) ((t).key_units)
#else
#define GPH_KEY_UNITS(t) 0u
#endif

// A cell: a value, then the key if it is wide.
static __device__ __forceinline__ uint4 *gph_cell(const gphash &t, gpm_u32 cell) {
    return (uint4 *)t.cells + (gpm_u64)cell * (t.units + GPH_KEY_UNITS(t));
}

// ---- Wide keys ----------------------------------------------------------------------------------
//
// A key of more than 8 bytes is `key_units` units, whatever they hold; the word in its slot is 64
// bits that depend on them. Who finds that word compares the key in the cell: one with another key
// is refused where it would be put in (GPH_COLLIDES), and not found elsewhere.

// The word for a key: none that any design reserves.
static __device__ __forceinline__ gpm_u64 gph_word_of(const gphash &t, const uint4 *full) {
    gpm_u64 word = t.seed;
    for (gpm_u32 u = 0; u < GPH_KEY_UNITS(t); u++) {
        uint4 v = full[u];
        word = gph_mix(word ^ ((gpm_u64)v.y << 32 | v.x));
        word = gph_mix(word ^ ((gpm_u64)v.w << 32 | v.z));
    }
    return word == 0 || word >> 32 >= 0xfffffffdu ? word >> 1 | 1 : word;
}

static __device__ __forceinline__ bool gph_units_same(const uint4 *a, const uint4 *b, gpm_u32 units) {
    bool same = true;
    for (gpm_u32 u = 0; u < units; u++) {
        uint4 x = a[u], y = b[u];
        same = same && x.x == y.x && x.y == y.y && x.z == y.z && x.w == y.w;
    }
    return same;
}

// Whether a cell has this key, whose word its slot has.
static __device__ __forceinline__ bool gph_same(const gphash &t, gpm_u32 cell, const uint4 *full) {
#ifdef GPH_WIDE
    // The key in the cell has persisted before its word was there.
    __threadfence();
    return gph_units_same(gph_cell(t, cell) + t.units, full, t.key_units);
#else
    return true;
#endif
}

// Whether another lane's key, whose word is the same, is this one.
static __device__ __forceinline__ bool gph_same_as_of(const gphash &t, const uint4 *full, gpm_u32 lane) {
#ifdef GPH_WIDE
    const uint4 *other = (const uint4 *)__shfl_sync(GPH_ALL, (gpm_u64)full, lane);
    return !full || !other ? full == other : gph_units_same(full, other, t.key_units);
#else
    return true;
#endif
}

// ---- Copies by a warp ---------------------------------------------------------------------------

// For each lane of `lanes` copies a value from `from` to `to` of that lane: the warp's lanes join,
// so that a value of 128 bytes is one line.
template <unsigned UNITS>
static __device__ __forceinline__ void gph_copy_units(gpm_u32 lanes, const uint4 *from, uint4 *to, gpm_u32 units) {
    const gpm_u32 lane = threadIdx.x % GPM_WARP;
    const gpm_u32 u = UNITS ? UNITS : units;
#pragma unroll 4
    for (gpm_u32 at = lane; at < GPM_WARP * u; at += GPM_WARP) {
        gpm_u32 of = at / u, unit = at % u;
        const uint4 *source = (const uint4 *)__shfl_sync(GPH_ALL, (gpm_u64)from, of);
        uint4 *target = (uint4 *)__shfl_sync(GPH_ALL, (gpm_u64)to, of);
        if (lanes >> of & 1) target[unit] = source[unit];
    }
}

// The same for wide keys, behind the values.
static __device__ __forceinline__ void gph_copy_key(const gphash &t, gpm_u32 lanes, const uint4 *full, uint4 *cell) {
#ifdef GPH_WIDE
    gph_copy_units<0>(lanes, full, cell + t.units, t.key_units);
#endif
}

static __device__ __forceinline__ void gph_copy(const gphash &t, gpm_u32 lanes, const uint4 *from, uint4 *to) {
    if (t.units == 8)
        gph_copy_units<8>(lanes, from, to, 8);
    else
        gph_copy_units<0>(lanes, from, to, t.units);
}
