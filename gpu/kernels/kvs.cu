// gpKVS: a set-associative key-value store in PM, 8 ways a set, with batches of SETs that are undone from a hierarchical log.
//
// The batch comes sorted by set, stably: what goes to one set lies together, in the batch's order, and one thread does it. So the later of two SETs of a
// key wins, and positions in the batch's order are the stamps by which undo finds the oldest entry of a place.
#include "nearpm_gpm.cuh"

#define WAYS 8u
// Words of a log entry: number of the pair, its old key and value.
#define ENTRY 5u

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

// The way of a set for a key: its own, else the first free one, else the one that the key's hash names.
static __device__ __forceinline__ gpm_u32 way_of(const pair *set, gpm_u64 key, pair *old) {
    gpm_u32 free = WAYS, own = WAYS;
    pair ways[WAYS];
#pragma unroll
    for (gpm_u32 w = 0; w < WAYS; w++) ways[w] = set[w];
#pragma unroll
    for (gpm_u32 w = WAYS; w-- > 0;) {
        if (ways[w].x == 0) free = w;
        if (ways[w].x == key) own = w;
    }
    gpm_u32 way = own < WAYS ? own : free < WAYS ? free : (gpm_u32)mix(key) % WAYS;
#pragma unroll
    for (gpm_u32 w = 0; w < WAYS; w++)
        if (w == way) *old = ways[w];
    return way;
}

// SETs of a sorted batch into `table`; `mirror` is the table that is read: in the GPU's memory, or the same.
template <bool LOGGED>
static __device__ __forceinline__ void set_all(const gpmlog *log, const gpm_u32 *sets, const gpm_u32 *numbers, gpm_u32 n,
                                               const gpm_u64 *keys, const gpm_u64 *values, pair *table, pair *mirror) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    gpm_u32 set = sets[i];
    if (i > 0 && sets[i - 1] == set) return;
    for (gpm_u32 j = i; j < n && sets[j] == set; j++) {
        pair fresh, old;
        fresh.x = keys[numbers[j]];
        fresh.y = values[numbers[j]];
        gpm_u64 place = (gpm_u64)set * WAYS + way_of(mirror + (gpm_u64)set * WAYS, fresh.x, &old);
        if (LOGGED) {
            gpm_u32 entry[ENTRY] = {(gpm_u32)place, (gpm_u32)old.x, (gpm_u32)(old.x >> 32), (gpm_u32)old.y,
                                    (gpm_u32)(old.y >> 32)};
            // Its fence lies between the entry and the pair.
            gpmlog_put(log, j, 0, entry, ENTRY);
        }
        table[place] = fresh;
        if (mirror != table) mirror[place] = fresh;
    }
    if (LOGGED) gpm_persist();
}

// SETs that are logged and persisted.
extern "C" __global__ void kvs_set(const gpmlog *described, const gpm_u32 *sets, const gpm_u32 *numbers, gpm_u32 n,
                                   const gpm_u64 *keys, const gpm_u64 *values, pair *table, pair *mirror) {
    gpmlog log = *described;
    log.kind = GPM_LOG_SEALED;
    log.flags = 0;
    set_all<true>(&log, sets, numbers, n, keys, values, table, mirror);
}

// SETs of CPU-assisted persistence: in the GPU's memory alone.
extern "C" __global__ void kvs_set_volatile(const gpm_u32 *sets, const gpm_u32 *numbers, gpm_u32 n, const gpm_u64 *keys,
                                            const gpm_u64 *values, pair *table) {
    set_all<false>(0, sets, numbers, n, keys, values, table, table);
}

// Undoes a batch: gives each pair what it had before the first SET that changed it.
extern "C" __global__ void kvs_undo(const gpmlog *described, gpm_u32 n, pair *table) {
    gpmlog log = *described;
    log.kind = GPM_LOG_SEALED;
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    gpm_u32 entry[ENTRY], earlier[ENTRY];
    if (i >= n || !gpmlog_get(&log, i, 0, entry, ENTRY)) return;
    // One thread made the entries of a set, one behind the other.
    for (gpm_u32 j = i; j-- > 0;) {
        if (!gpmlog_get(&log, j, 0, earlier, ENTRY) || earlier[0] / WAYS != entry[0] / WAYS) break;
        if (earlier[0] == entry[0]) return;
    }
    pair old;
    old.x = (gpm_u64)entry[2] << 32 | entry[1];
    old.y = (gpm_u64)entry[4] << 32 | entry[3];
    table[entry[0]] = old;
    gpm_persist();
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
