// Kernels that measure: streams, logs, and random persists.
#include "nearpm_gpm.cuh"

// What the measurements store: a function of place and seed that the host computes again. Host:
// `pattern`.
static __device__ __forceinline__ gpm_u32 pattern(gpm_u32 place, gpm_u32 seed) {
    gpm_u32 h = (place ^ seed) * 0x85ebca6bu;
    return (h ^ h >> 13) * 0xc2b2ae35u;
}

// Stores `bytes` bytes, 16 a thread and step, and persists them.
extern "C" __global__ void stream_persist(uint4 *to, gpm_u64 bytes, gpm_u32 seed) {
    gpm_u64 step = (gpm_u64)gridDim.x * blockDim.x;
    for (gpm_u64 at = (gpm_u64)blockIdx.x * blockDim.x + threadIdx.x; at < bytes / 16; at += step) {
        gpm_u32 place = (gpm_u32)at * 4;
        to[at] = make_uint4(pattern(place, seed), pattern(place + 1, seed), pattern(place + 2, seed),
                            pattern(place + 3, seed));
    }
    gpm_persist();
}

// A word of each part of `every` bytes: memory of which some pages change.
extern "C" __global__ void touch_parts(char *memory, gpm_u64 every, gpm_u32 parts, gpm_u32 seed) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < parts) *(gpm_u32 *)(memory + i * every) = pattern(i, seed);
}

// Copies to PM by stores, without a fence: for the processor to write back.
extern "C" __global__ void copy_stores(void *to, const void *from, gpm_u64 bytes) {
    gpm_memcpy_nodrain(to, from, bytes);
    if (blockIdx.x == 0 && threadIdx.x == 0)
        for (gpm_u64 at = bytes / 16 * 16; at < bytes; at++) ((char *)to)[at] = ((const char *)from)[at];
}

// Figure 3: each thread persists 8 bytes at a time, with a fence behind each.
extern "C" __global__ void persist_words(uint2 *to, gpm_u64 bytes, gpm_u32 seed) {
    gpm_u64 step = (gpm_u64)gridDim.x * blockDim.x;
    for (gpm_u64 at = (gpm_u64)blockIdx.x * blockDim.x + threadIdx.x; at < bytes / 8; at += step) {
        gpm_u32 place = (gpm_u32)at * 2;
        to[at] = make_uint2(pattern(place, seed), pattern(place + 1, seed));
        gpm_persist();
    }
}

// `rounds` entries a thread into a hierarchical log with a seal: 12 bytes and the seal.
extern "C" __global__ void hcl_sealed(const gpmlog *described, gpm_u32 rounds, gpm_u32 seed) {
    gpmlog log = *described;
    log.kind = GPM_LOG_SEALED;  // the host knows: no other kind's code
    log.flags = 0;
    gpm_u32 thread = gpmlog_thread(&log);
    for (gpm_u32 round = 0; round < rounds; round++) {
        gpm_u32 place = (thread * rounds + round) * 3;
        gpm_u32 entry[3] = {pattern(place, seed), pattern(place + 1, seed), pattern(place + 2, seed)};
        gpmlog_put(&log, thread, round, entry, 3);
    }
    log.counts[thread] = rounds;
}

// `rounds` entries a thread into a hierarchical log with tails: 16 bytes, and the tail's 4.
extern "C" __global__ void hcl_tail(const gpmlog *described, gpm_u32 rounds, gpm_u32 seed) {
    gpmlog log = *described;
    log.kind = GPM_LOG_TAIL;  // the host knows: no other kind's code
    log.flags = 0;
    gpm_u32 thread = gpmlog_thread(&log);
    for (gpm_u32 round = 0; round < rounds; round++) {
        gpm_u32 place = (thread * rounds + round) * 4;
        gpm_u32 entry[4] = {pattern(place, seed), pattern(place + 1, seed), pattern(place + 2, seed),
                            pattern(place + 3, seed)};
        gpmlog_put(&log, thread, round, entry, 4);
    }
    log.counts[thread] = rounds;
}

// `rounds` entries of 16 bytes a thread into a conventional log.
extern "C" __global__ void conv_insert(const gpmlog *described, gpm_u32 rounds, gpm_u32 seed) {
    gpmlog log = *described;
    log.kind = GPM_LOG_CONV;  // the host knows: no other kind's code
    log.flags &= ~GPM_UNSTRICT;
    gpm_u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (gpm_u32 round = 0; round < rounds; round++) {
        gpm_u32 place = thread * rounds + round;
        gpm_u32 entry[4] = {place, pattern(place, seed), pattern(place + 1, seed), pattern(place + 2, seed)};
        gpmlog_insert(&log, entry, sizeof entry);
    }
}

// Persists 32 bytes at each of `count` places, which are numbers of 32-byte slots: two threads a
// place, so that it is one write on the link.
extern "C" __global__ void scatter(char *to, const gpm_u32 *places, gpm_u32 count, gpm_u32 seed) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i / 2 >= count) return;
    gpm_u32 slot = places[i / 2];
    gpm_u32 word = pattern(slot, seed);
    ((uint4 *)(to + (gpm_u64)slot * 32))[i % 2] = make_uint4(slot, word, ~slot, ~word);
    gpm_persist();
}

// Fills places with pseudo-random numbers below 2^bits.
extern "C" __global__ void random_places(gpm_u32 *places, gpm_u32 count, gpm_u32 bits, gpm_u32 seed) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) places[i] = pattern(i * 2654435761u + 1, seed) * 0x9e3779b1u >> (32 - bits);
}

// One thread: latency of a store and a persist, `rounds` times, and with a read-back.
extern "C" __global__ void latency(gpm_u32 *to, gpm_u32 rounds, gpm_u32 arrived, gpm_u32 *sink) {
    gpm_u32 sum = 0;
    for (gpm_u32 round = 0; round < rounds; round++) {
        volatile gpm_u32 *place = to + (round % 1024) * 32;
        *place = round;
        if (arrived) sum += gpm_persist_arrived((const void *)place);
        else gpm_persist();
    }
    *sink = sum;
}
