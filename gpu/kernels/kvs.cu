// gpKVS: a set-associative key-value store in PM, 8 ways a set, with batches of SETs that are
// undone from a hierarchical log.
//
// The batch comes sorted by set, stably: what goes to one set lies together, in the batch's order:
// a run. The first threads of a run each work out what all of it makes of the set, and take one of
// the ways that change: they log the pair that was there before the batch, persist, store the pair
// that the batch leaves there. So every place has one entry and one store a batch, and undo needs
// no order, whatever keys come twice.
#include "nearpm_gpm.cuh"

#define WAYS 8u
// Words of a log entry: number of the pair, its old key and value.
#define ENTRY 5u
// No pair.
#define NONE 0xffffffffu

typedef ulonglong2 pair;  // key, value; key 0 is none

static __device__ __forceinline__ gpm_u64 mix(gpm_u64 key) {
    key = (key ^ key >> 33) * 0xff51afd7ed558ccdull;
    key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53ull;
    return key ^ key >> 33;
}

// Sets of a batch's keys, and their numbers in the batch, to be sorted.
extern "C" __global__ void kvs_sets(const gpm_u64 *keys, gpm_u32 n, gpm_u32 set_bits, gpm_u32 *sets, gpm_u32 *numbers) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    sets[i] = set_bits ? (gpm_u32)(mix(keys[i]) >> (64 - set_bits)) : 0;
    numbers[i] = i;
}

// The way of a set for a key: its own, else the first free one, else the one that the key's hash
// names.
static __device__ __forceinline__ gpm_u32 way_of(const pair *ways, gpm_u64 key) {
    gpm_u32 free = WAYS, own = WAYS;
#pragma unroll
    for (gpm_u32 w = WAYS; w-- > 0;) {
        if (ways[w].x == 0) free = w;
        if (ways[w].x == key) own = w;
    }
    return own < WAYS ? own : free < WAYS ? free : (gpm_u32)mix(key) % WAYS;
}

// What thread i does of its run: the number of the pair, NONE for nothing, and what the batch
// leaves there. `mirror` is as it was before the batch.
static __device__ __forceinline__ gpm_u32 change_of(gpm_u32 i, const gpm_u32 *sets, const gpm_u32 *numbers, gpm_u32 n,
                                                    const gpm_u64 *keys, const gpm_u64 *values, const pair *mirror,
                                                    pair *fresh) {
    gpm_u32 set = sets[i], rank = 0;
    while (rank < WAYS && rank < i && sets[i - rank - 1] == set) rank++;
    // A run changes as many places as a set has ways at most.
    if (rank == WAYS) return NONE;
    pair ways[WAYS];
#pragma unroll
    for (gpm_u32 w = 0; w < WAYS; w++) ways[w] = mirror[(gpm_u64)set * WAYS + w];
    gpm_u32 changed = 0;
    for (gpm_u32 j = i - rank; j < n && sets[j] == set; j++) {
        pair next;
        next.x = keys[numbers[j]];
        next.y = values[numbers[j]];
        gpm_u32 way = way_of(ways, next.x);
#pragma unroll
        for (gpm_u32 w = 0; w < WAYS; w++)
            if (w == way) ways[w] = next;
        changed |= 1u << way;
    }
    // The rank-th way that changes.
    for (gpm_u32 skip = rank; skip > 0; skip--) changed &= changed - 1;
    if (changed == 0) return NONE;
    gpm_u32 way = __ffs(changed) - 1;
#pragma unroll
    for (gpm_u32 w = 0; w < WAYS; w++)
        if (w == way) *fresh = ways[w];
    return set * WAYS + way;
}

// SETs of a sorted batch, logged and persisted. What changed is left in `places` and `pairs`, for
// the mirror.
extern "C" __global__ void kvs_set(const gpmlog *described, const gpm_u32 *sets, const gpm_u32 *numbers, gpm_u32 n,
                                   const gpm_u64 *keys, const gpm_u64 *values, pair *table, const pair *mirror,
                                   gpm_u32 *places, pair *pairs) {
    gpmlog log = *described;
    log.kind = GPM_LOG_SEALED;
    log.flags = 0;
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    pair fresh;
    gpm_u32 place = change_of(i, sets, numbers, n, keys, values, mirror, &fresh);
    places[i] = place;
    if (place == NONE) return;
    pair old = mirror[place];
    gpm_u32 entry[ENTRY] = {place, (gpm_u32)old.x, (gpm_u32)(old.x >> 32), (gpm_u32)old.y, (gpm_u32)(old.y >> 32)};
    // Its fence lies between the entry and the pair.
    gpmlog_put(&log, i, 0, entry, ENTRY);
    table[place] = fresh;
    pairs[i] = fresh;
    gpm_persist();
}

// The same for CPU-assisted persistence: nothing is stored to PM.
extern "C" __global__ void kvs_set_volatile(const gpm_u32 *sets, const gpm_u32 *numbers, gpm_u32 n, const gpm_u64 *keys,
                                            const gpm_u64 *values, const pair *mirror, gpm_u32 *places, pair *pairs) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    pair fresh;
    gpm_u32 place = change_of(i, sets, numbers, n, keys, values, mirror, &fresh);
    places[i] = place;
    if (place != NONE) pairs[i] = fresh;
}

// Brings the table in the GPU's memory up to date.
extern "C" __global__ void kvs_mirror(const gpm_u32 *places, const pair *pairs, gpm_u32 n, pair *mirror) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && places[i] != NONE) mirror[places[i]] = pairs[i];
}

// Undoes a batch: gives each pair what it had before.
extern "C" __global__ void kvs_undo(const gpmlog *described, gpm_u32 n, pair *table) {
    gpmlog log = *described;
    log.kind = GPM_LOG_SEALED;
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    gpm_u32 entry[ENTRY];
    if (i >= n || !gpmlog_get(&log, i, 0, entry, ENTRY)) return;
    pair old;
    old.x = (gpm_u64)entry[2] << 32 | entry[1];
    old.y = (gpm_u64)entry[4] << 32 | entry[3];
    table[entry[0]] = old;
    gpm_persist();
}

// CPU-assisted persistence of what changed: a warp a SET brings the piece of `bytes` bytes that it
// changed to a place of its own in `staging`, once a piece, and notes its number.
extern "C" __global__ void kvs_gather(const gpm_u32 *places, gpm_u32 n, gpm_u32 bytes, const uint4 *mirror, uint4 *staging,
                                      gpm_u32 *pieces, gpm_u32 *count) {
    gpm_u32 i = (blockIdx.x * blockDim.x + threadIdx.x) / GPM_WARP, lane = threadIdx.x % GPM_WARP;
    if (i >= n || places[i] == NONE) return;
    gpm_u32 piece = (gpm_u32)((gpm_u64)places[i] * sizeof(pair) / bytes);
    // Places rise: the piece was met before where the last one that changed is in it.
    for (gpm_u32 j = i; j-- > 0;) {
        if (places[j] == NONE) continue;
        if ((gpm_u32)((gpm_u64)places[j] * sizeof(pair) / bytes) == piece) return;
        break;
    }
    gpm_u32 slot = 0;
    if (lane == 0) {
        slot = atomicAdd(count, 1u);
        pieces[slot] = piece;
    }
    slot = __shfl_sync(0xffffffffu, slot, 0);
    gpm_u64 units = bytes / 16;
    for (gpm_u64 at = lane; at < units; at += GPM_WARP) staging[slot * units + at] = mirror[piece * units + at];
}

// GETs: the value of each key, 0 for none.
extern "C" __global__ void kvs_get(const gpm_u64 *keys, gpm_u32 n, gpm_u32 set_bits, const pair *table, gpm_u64 *values) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    gpm_u64 key = keys[i], found = 0;
    const pair *set = table + (set_bits ? mix(key) >> (64 - set_bits) : 0) * WAYS;
#pragma unroll
    for (gpm_u32 w = 0; w < WAYS; w++) {
        pair way = set[w];
        if (way.x == key) found = way.y;
    }
    values[i] = found;
}
