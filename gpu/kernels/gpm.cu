// Kernels of the library itself: opening logs, and checkpoints.
#include "nearpm_gpm.cuh"

// Tells each thread of a hierarchical log, or each partition of a conventional one, how much it has in PM.
extern "C" __global__ void log_mount(const gpmlog *described, gpm_u32 count) {
    const gpmlog log = *described;
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    log.counts[i] = log.kind == GPM_LOG_CONV ? gpmconv_stored(&log, i) : gpmlog_stored(&log, i);
}

// What 8 bytes at a place add to a digest. A sum, so that threads may add in any order. Host: `nearpm-gpm`, `digest_of`.
static __device__ __forceinline__ gpm_u64 digest_step(gpm_u64 word, gpm_u64 place) {
    gpm_u64 h = (word ^ place * 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;
    h ^= h >> 29;
    return h * 0x94d049bb133111ebull;
}

static __device__ __forceinline__ gpm_u64 digest_of(uint4 value, gpm_u64 place) {
    gpm_u64 low = (gpm_u64)value.y << 32 | value.x, high = (gpm_u64)value.w << 32 | value.z;
    return digest_step(low, place) + digest_step(high, place + 1);
}

// Adds up what the lanes of a warp have, and adds that to the digest.
static __device__ __forceinline__ void digest_add(gpm_u64 *digest, gpm_u64 sum) {
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    if (threadIdx.x % GPM_WARP == 0) atomicAdd(digest, sum);
}

// Copies `units` units of 16 bytes to PM and persists them; adds to their digest, in which `place` is the number of the first
// 8 bytes. Blocks have whole warps.
extern "C" __global__ void checkpoint_copy(uint4 *to, const uint4 *from, gpm_u64 units, gpm_u64 place, gpm_u64 *digest) {
    gpm_u64 step = (gpm_u64)gridDim.x * blockDim.x, sum = 0;
    for (gpm_u64 at = (gpm_u64)blockIdx.x * blockDim.x + threadIdx.x; at < units; at += step) {
        uint4 value = from[at];
        to[at] = value;
        sum += digest_of(value, place + 2 * at);
    }
    gpm_persist();
    digest_add(digest, sum);
}

// Copies units from PM, and adds to the digest of what was there.
extern "C" __global__ void checkpoint_restore(uint4 *to, const uint4 *from, gpm_u64 units, gpm_u64 place,
                                              gpm_u64 *digest) {
    gpm_u64 step = (gpm_u64)gridDim.x * blockDim.x, sum = 0;
    for (gpm_u64 at = (gpm_u64)blockIdx.x * blockDim.x + threadIdx.x; at < units; at += step) {
        uint4 value = from[at];
        to[at] = value;
        sum += digest_of(value, place + 2 * at);
    }
    digest_add(digest, sum);
}
