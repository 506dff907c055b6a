// Transactions over cells of 8 bytes, in each form of log: what crash tests run.
//
// A batch gives each cell a value of its own; undo gives it back what it was.
#include "nearpm_gpm.cuh"

static __device__ __forceinline__ gpm_u64 value_of(gpm_u32 cell, gpm_u32 seed) {
    gpm_u32 h = (cell ^ seed) * 0x85ebca6bu;
    return (gpm_u64)(h ^ h >> 13) << 32 | (cell + seed);
}

template <gpm_u32 KIND>
static __device__ __forceinline__ void update(const gpmlog *described, gpm_u64 *cells, gpm_u32 rounds, gpm_u32 seed) {
    gpmlog log = *described;
    log.kind = KIND;  // the host knows: no other kind's code
    log.flags = 0;
    gpm_u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
    for (gpm_u32 round = 0; round < rounds; round++) {
        gpm_u32 cell = thread * rounds + round;
        gpm_u64 old = cells[cell];
        gpm_u32 entry[3] = {cell, (gpm_u32)old, (gpm_u32)(old >> 32)};
        // What could not be logged must not be stored.
        if (gpmlog_insert(&log, entry, sizeof entry)) return;
        cells[cell] = value_of(cell, seed);
    }
    gpm_persist();
}

extern "C" __global__ void update_sealed(const gpmlog *log, gpm_u64 *cells, gpm_u32 rounds, gpm_u32 seed) {
    update<GPM_LOG_SEALED>(log, cells, rounds, seed);
}
extern "C" __global__ void update_tail(const gpmlog *log, gpm_u64 *cells, gpm_u32 rounds, gpm_u32 seed) {
    update<GPM_LOG_TAIL>(log, cells, rounds, seed);
}
extern "C" __global__ void update_conv(const gpmlog *log, gpm_u64 *cells, gpm_u32 rounds, gpm_u32 seed) {
    update<GPM_LOG_CONV>(log, cells, rounds, seed);
}

// Undo as in the paper's figure 6(b): the newest entry is removed when what it restores is durable.
template <gpm_u32 KIND>
static __device__ __forceinline__ void undo(const gpmlog *described, gpm_u64 *cells, int partition) {
    gpmlog log = *described;
    log.kind = KIND;
    log.flags = 0;
    gpm_u32 entry[3];
#pragma unroll 1
    while (gpmlog_read(&log, entry, sizeof entry, partition) == GPM_OK) {
        cells[entry[0]] = (gpm_u64)entry[2] << 32 | entry[1];
        gpm_persist();
        gpmlog_remove(&log, sizeof entry, partition);
    }
}

extern "C" __global__ void undo_sealed(const gpmlog *log, gpm_u64 *cells) { undo<GPM_LOG_SEALED>(log, cells, -1); }
extern "C" __global__ void undo_tail(const gpmlog *log, gpm_u64 *cells) { undo<GPM_LOG_TAIL>(log, cells, -1); }
// A thread a partition.
extern "C" __global__ void undo_conv(const gpmlog *log, gpm_u64 *cells) {
    gpm_u32 partition = blockIdx.x * blockDim.x + threadIdx.x;
    if (partition < log->blocks) undo<GPM_LOG_CONV>(log, cells, (int)partition);
}

// Threads that change the same cells: `threads / sharing` cells, each by `sharing` threads, under a
// lock in the GPU's memory. An entry has a stamp, drawn under the lock, so that undo finds the
// oldest.
extern "C" __global__ void update_shared(const gpmlog *described, gpm_u64 *cells, gpm_u32 sharing, gpm_u32 seed, gpm_u32 *locks,
                                         gpm_u32 *stamps) {
    gpmlog log = *described;
    log.kind = GPM_LOG_SEALED;
    log.flags = 0;
    gpm_u32 thread = blockIdx.x * blockDim.x + threadIdx.x, cell = thread / sharing;
    for (bool done = false; !done;) {
        if (atomicCAS(&locks[cell], 0u, 1u) == 0u) {
            __threadfence();
            gpm_u64 old = *(volatile gpm_u64 *)&cells[cell];
            gpm_u32 stamp = ((volatile gpm_u32 *)stamps)[cell];
            ((volatile gpm_u32 *)stamps)[cell] = stamp + 1;
            gpm_u32 entry[4] = {cell, (gpm_u32)old, (gpm_u32)(old >> 32), stamp};
            if (gpmlog_insert(&log, entry, sizeof entry) == GPM_OK)
                *(volatile gpm_u64 *)&cells[cell] = value_of(thread, seed);
            __threadfence();
            atomicExch(&locks[cell], 0u);
            done = true;
        }
    }
    gpm_persist();
}
