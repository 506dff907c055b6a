// Device side of the persistent hash tables of `nearpm-gphash`: what designs P and N share.
//
// A table is described to kernels by a `gphash` in the GPU's own memory, which the host makes anew whenever it opens the table: pointers are there
// and nowhere in persistent memory (PM). `gph_run` is the tables' one operation: all 32 lanes of a warp call it together, each with an operation of
// its own or none. A design's file defines it, then includes `gphash_kernels.cuh`.
//
// An epoch is a launch. What an operation gives up (a slot, a cell) is not used again in the same epoch, so that nobody who still reads it finds
// something else there.
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
#define GPH_COUNTS 16u

// A table as kernels see it. Host: `Descriptor`.
struct gphash {
    char *slots;         // PM: keys and pointers
    char *cells;         // PM: values
    gpm_u32 *tags;       // GPU memory, design N: 2 bytes a slot
    gpm_u32 *spares;     // GPU memory: cells that no slot has. Design P: a ring; design N: `window_spares` a window
    gpm_u32 *taken;      // GPU memory, design N: spares taken in this epoch, a word a window
    gpm_u32 *counts;     // GPU memory: GPH_COUNTS words
    gpm_u32 *owned;      // GPU memory, while recovering: a bit a cell
    gpm_u64 seed;        // of the hash functions
    gpm_u32 buckets;     // of the top level
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
    gpm_u32 reserved;
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

// ---- Strong accesses: neither the compiler nor the first-level cache keeps what they read ------------------------------------------------------------

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

// ---- Pointers ------------------------------------------------------------------------------------------------------------------------------------------

// A pointer names a cell, and carries 24 bits that tell whether it is a pointer of that slot at all.
static __device__ __forceinline__ gpm_u64 gph_pointer(gpm_u32 slot, gpm_u32 cell) {
    gpm_u64 body = (gpm_u64)cell + 1;
    return body | gph_mix((gpm_u64)slot << 32 ^ body ^ 0x6e6561722d676870ull) >> 40 << 40;
}

static __device__ __forceinline__ gpm_u32 gph_cell_of(gpm_u64 pointer) { return (gpm_u32)pointer - 1; }

static __device__ __forceinline__ bool gph_pointer_holds(const gphash &t, gpm_u32 slot, gpm_u64 pointer) {
    gpm_u32 cell = gph_cell_of(pointer);
    return cell < t.cell_count && gph_pointer(slot, cell) == pointer;
}

static __device__ __forceinline__ uint4 *gph_cell(const gphash &t, gpm_u32 cell) {
    return (uint4 *)t.cells + (gpm_u64)cell * t.units;
}

// ---- Copies by a warp -----------------------------------------------------------------------------------------------------------------------------------

// For each lane of `lanes` copies a value from `from` to `to` of that lane: the warp's lanes join, so that a value of 128 bytes is one line.
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

static __device__ __forceinline__ void gph_copy(const gphash &t, gpm_u32 lanes, const uint4 *from, uint4 *to) {
    if (t.units == 8)
        gph_copy_units<8>(lanes, from, to, 8);
    else
        gph_copy_units<0>(lanes, from, to, t.units);
}
