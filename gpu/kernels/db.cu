// gpDB: a table of rows in PM, with transactions that insert rows at its end or update those that a
// condition selects. An insertion logs how many rows there were, in a conventional log; an update
// logs what it changes, in a hierarchical one.
#include "nearpm_gpm.cuh"

// Words of a row, and the columns that the program looks at: an update changes the word of 8 bytes
// that begins with BALANCE.
#define ROW 16u
#define GROUP 1u
#define BALANCE 2u
// Words of a log entry of an update: number of the row, old balance.
#define ENTRY 3u

// A row's word before any update. Host: `value_of`.
static __device__ __forceinline__ gpm_u32 value_of(gpm_u64 row, gpm_u32 column, gpm_u32 groups) {
    if (column == 0) return (gpm_u32)row;
    gpm_u32 h = ((gpm_u32)row * ROW + column) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    h ^= h >> 16;
    return column == GROUP ? h % groups : h;
}

// Rows as they come to be inserted: `first` is the number of the first.
extern "C" __global__ void db_rows(gpm_u32 *rows, gpm_u64 first, gpm_u64 n, gpm_u32 groups) {
    gpm_u64 step = (gpm_u64)gridDim.x * blockDim.x;
    for (gpm_u64 i = (gpm_u64)blockIdx.x * blockDim.x + threadIdx.x; i < n * ROW; i += step)
        rows[i] = value_of(first + i / ROW, (gpm_u32)(i % ROW), groups);
}

// Before an insertion: how many rows there are, logged and persisted.
extern "C" __global__ void db_log_count(const gpmlog *described, const gpm_u64 *count) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        gpmlog log = *described;
        log.kind = GPM_LOG_CONV;
        log.flags = 0;
        gpm_u64 old = *(const volatile gpm_u64 *)count;
        gpm_u32 entry[2] = {(gpm_u32)old, (gpm_u32)(old >> 32)};
        gpmlog_insert(&log, entry, sizeof entry, 0);
    }
}

// Rows of an insertion, 16 bytes a thread and step; the columns that are looked at are kept in the
// GPU's memory, too.
extern "C" __global__ void db_insert(uint4 *table, const uint4 *rows, gpm_u64 first, gpm_u64 n, gpm_u32 *groups, gpm_u64 *balances) {
    gpm_u64 step = (gpm_u64)gridDim.x * blockDim.x, quarters = ROW / 4;
    for (gpm_u64 i = (gpm_u64)blockIdx.x * blockDim.x + threadIdx.x; i < n * quarters; i += step) {
        uint4 words = rows[i];
        table[first * quarters + i] = words;
        if (i % quarters == 0) {
            groups[first + i / quarters] = words.y;
            balances[first + i / quarters] = (gpm_u64)words.w << 32 | words.z;
        }
    }
    gpm_persist();
}

// Behind its rows: the table has them.
extern "C" __global__ void db_set_count(gpm_u64 *count, gpm_u64 value) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *count = value;
        gpm_persist();
    }
}

// Numbers of the rows of a group, a block's together: SELECT. Additions to one word take the GPU's
// memory a nanosecond each.
extern "C" __global__ void db_select(const gpm_u32 *groups, gpm_u64 n, gpm_u32 group, gpm_u32 *found, gpm_u32 room, gpm_u32 *count) {
    __shared__ gpm_u32 starts[GPM_WARP];
    gpm_u64 i = (gpm_u64)blockIdx.x * blockDim.x + threadIdx.x;
    bool selected = i < n && groups[i] == group;
    gpm_u32 lanes = __ballot_sync(0xffffffffu, selected), lane = threadIdx.x % GPM_WARP, warp = threadIdx.x / GPM_WARP;
    if (lane == 0) starts[warp] = (gpm_u32)__popc(lanes);
    __syncthreads();
    if (threadIdx.x == 0) {
        gpm_u32 all = 0, warps = (blockDim.x + GPM_WARP - 1) / GPM_WARP;
        for (gpm_u32 w = 0; w < warps; w++) all += starts[w];
        gpm_u32 start = all ? atomicAdd(count, all) : 0;
        for (gpm_u32 w = 0; w < warps; w++) {
            gpm_u32 here = starts[w];
            starts[w] = start;
            start += here;
        }
    }
    __syncthreads();
    gpm_u32 at = starts[warp] + __popc(lanes & ((1u << lane) - 1));
    if (selected && at < room) found[at] = (gpm_u32)i;
}

// What an update makes of a balance. Host: `updated`.
static __device__ __forceinline__ gpm_u64 updated(gpm_u64 balance, gpm_u32 by) {
    return (balance ^ by) * 0x9e3779b97f4a7c15ull + by;
}

// Rows that were selected: old balance logged and persisted, new one stored and persisted.
extern "C" __global__ void db_update(const gpmlog *described, const gpm_u32 *found, gpm_u32 n, gpm_u32 by, gpm_u32 *table,
                                     const gpm_u64 *balances) {
    gpmlog log = *described;
    log.kind = GPM_LOG_SEALED;
    log.flags = 0;
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    gpm_u32 row = found[i];
    gpm_u64 old = balances[row];
    gpm_u32 entry[ENTRY] = {row, (gpm_u32)old, (gpm_u32)(old >> 32)};
    // Its fence lies between the entry and the row.
    gpmlog_put(&log, i, 0, entry, ENTRY);
    *(gpm_u64 *)(table + (gpm_u64)row * ROW + BALANCE) = updated(old, by);
    gpm_persist();
}

// The same with a conventional log, for comparison.
extern "C" __global__ void db_update_conv(const gpmlog *described, const gpm_u32 *found, gpm_u32 n, gpm_u32 by, gpm_u32 *table,
                                          const gpm_u64 *balances) {
    gpmlog log = *described;
    log.kind = GPM_LOG_CONV;
    log.flags = 0;
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    gpm_u32 row = found[i];
    gpm_u64 old = balances[row];
    gpm_u32 entry[ENTRY] = {row, (gpm_u32)old, (gpm_u32)(old >> 32)};
    // What could not be logged must not be stored.
    if (gpmlog_insert(&log, entry, sizeof entry)) return;
    *(gpm_u64 *)(table + (gpm_u64)row * ROW + BALANCE) = updated(old, by);
    gpm_persist();
}

// The same in the GPU's memory: behind an update, and for CPU-assisted persistence.
extern "C" __global__ void db_mirror(const gpm_u32 *found, gpm_u32 n, gpm_u32 by, gpm_u64 *balances) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) balances[found[i]] = updated(balances[found[i]], by);
}

// Undo of an update: each row has its old balance again.
extern "C" __global__ void db_undo(const gpmlog *described, gpm_u32 n, gpm_u32 *table) {
    gpmlog log = *described;
    log.kind = GPM_LOG_SEALED;
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    gpm_u32 entry[ENTRY];
    if (i >= n || !gpmlog_get(&log, i, 0, entry, ENTRY)) return;
    *(gpm_u64 *)(table + (gpm_u64)entry[0] * ROW + BALANCE) = (gpm_u64)entry[2] << 32 | entry[1];
    gpm_persist();
}

// The same with a conventional log, a thread a partition: an entry is removed when what it restores
// is durable.
extern "C" __global__ void db_undo_conv(const gpmlog *described, gpm_u32 *table) {
    gpmlog log = *described;
    log.kind = GPM_LOG_CONV;
    log.flags = 0;
    gpm_u32 partition = blockIdx.x * blockDim.x + threadIdx.x, entry[ENTRY];
    if (partition >= log.blocks) return;
#pragma unroll 1
    while (gpmlog_read(&log, entry, sizeof entry, (int)partition) == GPM_OK) {
        *(gpm_u64 *)(table + (gpm_u64)entry[0] * ROW + BALANCE) = (gpm_u64)entry[2] << 32 | entry[1];
        gpm_persist();
        gpmlog_remove(&log, sizeof entry, (int)partition);
    }
}

// Undo of an insertion: the table has as many rows as were logged.
extern "C" __global__ void db_undo_count(const gpmlog *described, gpm_u64 *count) {
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    gpmlog log = *described;
    log.kind = GPM_LOG_CONV;
    gpm_u32 entry[2];
    if (gpmlog_read(&log, entry, sizeof entry, 0) != GPM_OK) return;
    *count = (gpm_u64)entry[1] << 32 | entry[0];
    gpm_persist();
}

// The columns that are looked at, of rows in PM: when a table is opened.
extern "C" __global__ void db_load(const gpm_u32 *table, gpm_u64 n, gpm_u32 *groups, gpm_u64 *balances) {
    gpm_u64 step = (gpm_u64)gridDim.x * blockDim.x;
    for (gpm_u64 row = (gpm_u64)blockIdx.x * blockDim.x + threadIdx.x; row < n; row += step) {
        uint4 words = *(const uint4 *)(table + row * ROW);
        groups[row] = words.y;
        balances[row] = (gpm_u64)words.w << 32 | words.z;
    }
}
