// Kernels of the library itself: opening logs, and checkpoints.
#include "nearpm_gpm.cuh"

// Tells each thread of a hierarchical log, or each partition of a conventional one, how much it has
// in PM.
extern "C" __global__ void log_mount(const gpmlog *described, gpm_u32 count) {
    const gpmlog log = *described;
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    log.counts[i] = log.kind == GPM_LOG_CONV ? gpmconv_stored(&log, i) : gpmlog_stored(&log, i);
}

// What 8 bytes at a place add to a digest. A sum, so that threads may add in any order. Host:
// `nearpm-gpm`, `digest_of`.
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

// The last bytes of `bytes` that are no whole unit of 16, filled with zeros. They are copied one by
// one: none behind them is touched.
static __device__ __forceinline__ uint4 copy_rest(char *to, const char *from, gpm_u64 bytes) {
    gpm_u32 words[4] = {0, 0, 0, 0};
    gpm_u64 start = bytes / 16 * 16;
    for (gpm_u32 i = 0; i < (gpm_u32)(bytes % 16); i++) {
        gpm_u32 byte = (unsigned char)from[start + i];
        to[start + i] = (char)byte;
#pragma unroll
        for (gpm_u32 word = 0; word < 4; word++)
            if (i / 4 == word) words[word] |= byte << i % 4 * 8;
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

// Copies by all threads of the grid; gives what this thread adds to the digest.
static __device__ __forceinline__ gpm_u64 copy_digested(char *to, const char *from, gpm_u64 bytes, gpm_u64 place) {
    gpm_u64 first = (gpm_u64)blockIdx.x * blockDim.x + threadIdx.x;
    gpm_u64 step = (gpm_u64)gridDim.x * blockDim.x, sum = 0;
    for (gpm_u64 at = first; at < bytes / 16; at += step) {
        uint4 value = ((const uint4 *)from)[at];
        ((uint4 *)to)[at] = value;
        sum += digest_of(value, place + 2 * at);
    }
    if (first == 0 && bytes % 16) {
        uint4 rest = copy_rest(to, from, bytes);
        gpm_u64 low = (gpm_u64)rest.y << 32 | rest.x, high = (gpm_u64)rest.w << 32 | rest.z;
        sum += digest_step(low, place + bytes / 16 * 2);
        if (bytes % 16 > 8) sum += digest_step(high, place + bytes / 16 * 2 + 1);
    }
    return sum;
}

// Memory, and its place in a slot. Host: `nearpm-gpm`, `items_of`.
struct checkpoint_item {
    gpm_u64 memory;
    gpm_u64 offset;
    gpm_u64 bytes;
};

// Copies all items to a slot and persists them, or from it; adds to their digest, in which 8 bytes
// have their number in the slot. One launch for all: a launch takes as long as 200 KiB over the
// link. Blocks have whole warps; addresses and offsets are multiples of 16.
extern "C" __global__ void checkpoint_copy(const checkpoint_item *items, gpm_u32 count, char *slot, gpm_u32 to_slot, gpm_u64 *digest) {
    gpm_u64 sum = 0;
    for (gpm_u32 i = 0; i < count; i++) {
        const checkpoint_item item = items[i];
        char *memory = (char *)item.memory, *stored = slot + item.offset;
        sum += copy_digested(to_slot ? stored : memory, to_slot ? memory : stored, item.bytes, item.offset / 8);
    }
    if (to_slot) gpm_persist();
    digest_add(digest, sum);
}

// The digest of memory that the copy engine brings to PM.
extern "C" __global__ void checkpoint_digest(const char *from, gpm_u64 bytes, gpm_u64 place, gpm_u64 *digest) {
    gpm_u64 first = (gpm_u64)blockIdx.x * blockDim.x + threadIdx.x;
    gpm_u64 step = (gpm_u64)gridDim.x * blockDim.x, sum = 0;
    for (gpm_u64 at = first; at < bytes / 16; at += step) sum += digest_of(((const uint4 *)from)[at], place + 2 * at);
    if (first == 0)
        for (gpm_u64 at = bytes / 16 * 16; at < bytes; at += 8) {
            gpm_u64 word = 0;
            for (gpm_u32 i = 0; i < 8 && at + i < bytes; i++) word |= (gpm_u64)(unsigned char)from[at + i] << 8 * i;
            sum += digest_step(word, place + at / 8);
        }
    digest_add(digest, sum);
}

#define PAGE 4096ull
// Units of 16 bytes of a page, a lane.
#define UNITS 8u

// Copies the pages to PM that differ from those whose digests `pages` has (or `all` of them),
// persists them, and brings the digests up to date. Adds to the digest of everything, and to the
// number of bytes copied behind it. A warp a page.
extern "C" __global__ void checkpoint_changed(char *to, const char *from, gpm_u64 bytes, gpm_u64 place, gpm_u64 *pages, gpm_u32 all,
                                              gpm_u64 *digest) {
    gpm_u32 lane = threadIdx.x % GPM_WARP;
    gpm_u64 warp = ((gpm_u64)blockIdx.x * blockDim.x + threadIdx.x) / GPM_WARP, sum = 0, moved = 0;
    gpm_u64 count = (bytes + PAGE - 1) / PAGE, warps = (gpm_u64)gridDim.x * blockDim.x / GPM_WARP;
    for (gpm_u64 page = warp; page < count; page += warps) {
        uint4 values[UNITS];
        gpm_u64 first = page * (PAGE / 16) + lane, own = 0;
#pragma unroll
        for (gpm_u32 unit = 0; unit < UNITS; unit++) {
            gpm_u64 at = first + unit * GPM_WARP;
            if (at >= bytes / 16) continue;
            values[unit] = ((const uint4 *)from)[at];
            own += digest_of(values[unit], place + 2 * at);
        }
        // The last bytes that are no whole unit, of the last page.
        bool rest = lane == 0 && bytes % 16 && page == count - 1;
        if (rest)
            for (gpm_u64 at = bytes / 16 * 16; at < bytes; at += 8) {
                gpm_u64 word = 0;
                for (gpm_u32 i = 0; i < 8 && at + i < bytes; i++) word |= (gpm_u64)(unsigned char)from[at + i] << 8 * i;
                own += digest_step(word, place + at / 8);
            }
        for (int distance = 16; distance > 0; distance /= 2) own += __shfl_xor_sync(0xffffffffu, own, distance);
        bool changed = all || pages[page] != own;
        __syncwarp();
        if (changed) {
#pragma unroll
            for (gpm_u32 unit = 0; unit < UNITS; unit++)
                if (first + unit * GPM_WARP < bytes / 16) ((uint4 *)to)[first + unit * GPM_WARP] = values[unit];
            if (rest)
                for (gpm_u64 at = bytes / 16 * 16; at < bytes; at++) to[at] = from[at];
        }
        if (lane == 0) {
            sum += own;
            pages[page] = own;
            if (changed) moved += bytes - page * PAGE < PAGE ? bytes - page * PAGE : PAGE;
        }
    }
    gpm_persist();
    if (lane == 0 && sum) atomicAdd(digest, sum);
    if (lane == 0 && moved) atomicAdd(digest + 1, moved);
}
