// HM: a hash map of buckets, each built by one block as a cuckoo table of three parts, with an undo
// log.
#pragma once

#define SBRP_PART 192u
#define SBRP_BUCKET (3 * SBRP_PART)

__device__ __forceinline__ sbrp_u32 sbrp_cuckoo(sbrp_u32 key, sbrp_u32 part) {
    return part * SBRP_PART + sbrp_mix(key + part * 0x9e3779b9u) % SBRP_PART;
}

// Puts the pairs offsets[block] .. offsets[block + 1] of a bucket, at most one a thread. A thread
// that puts a pair where another lies goes on with that one. Log entry `it` of a thread is
// log[(block * iterations + it) * threads + tid]: (slot, key, value, seal), of the first pair of
// the batch that goes to a slot: what the slot holds later is of the batch itself, and later pairs
// are behind the first by its place. `left`: pairs that found no place.
extern "C" __global__ void sbrp_hm_put(const uint2 *pairs, const sbrp_u32 *offsets, uint2 *table, uint4 *log, sbrp_u32 iterations, sbrp_u32 batch,
                                       sbrp_u32 *left) {
    __shared__ sbrp_u32 claim[SBRP_BUCKET], logged[SBRP_BUCKET];
    sbrp_u32 tid = threadIdx.x, mine = offsets[blockIdx.x] + tid;
    bool homeless = mine < offsets[blockIdx.x + 1];
    uint2 pair = homeless ? pairs[mine] : make_uint2(0, 0);
    sbrp_u32 part = 0, rest = 1;
    uint2 *bucket = table + blockIdx.x * SBRP_BUCKET;
    for (sbrp_u32 i = tid; i < SBRP_BUCKET; i += blockDim.x) logged[i] = 0;
    for (sbrp_u32 it = 0; it < iterations && rest > 0; it++) {
        for (sbrp_u32 i = tid; i < SBRP_BUCKET; i += blockDim.x) claim[i] = 0;
        __syncthreads();
        sbrp_u32 slot = sbrp_cuckoo(pair.x, part);
        if (homeless) atomicMax(&claim[slot], tid + 1);
        __syncthreads();
        if (homeless && claim[slot] == tid + 1) {
            uint2 old = bucket[slot];
            if (!logged[slot]) {
                log[(blockIdx.x * iterations + it) * blockDim.x + tid] = make_uint4(slot, old.x, old.y, sbrp_seal(batch, slot, old.x, old.y));
                oFence();
                logged[slot] = 1;
            }
            bucket[slot] = pair;
            homeless = old.x != 0 && old.x != pair.x;
            if (homeless) pair = old;
        }
        part = (part + 1) % 3;
        rest = __syncthreads_count(homeless);
    }
    if (homeless) atomicAdd(left, 1);
}

// Gives each slot what the oldest entry of the batch says it held. `undone`: a word a block, the
// last batch that was taken back there.
extern "C" __global__ void sbrp_hm_recover(uint2 *table, const uint4 *log, sbrp_u32 iterations, sbrp_u32 batch, sbrp_u32 *undone) {
    __shared__ sbrp_u32 oldest[SBRP_BUCKET];
    sbrp_u32 tid = threadIdx.x;
    if (undone[blockIdx.x] == batch) return;
    for (sbrp_u32 i = tid; i < SBRP_BUCKET; i += blockDim.x) oldest[i] = 0xffffffffu;
    __syncthreads();
    const uint4 *entries = log + blockIdx.x * iterations * blockDim.x + tid;
    for (sbrp_u32 it = 0; it < iterations; it++) {
        uint4 entry = entries[it * blockDim.x];
        if (entry.x < SBRP_BUCKET && entry.w == sbrp_seal(batch, entry.x, entry.y, entry.z)) atomicMin(&oldest[entry.x], it);
    }
    __syncthreads();
    for (sbrp_u32 it = 0; it < iterations; it++) {
        uint4 entry = entries[it * blockDim.x];
        if (entry.x < SBRP_BUCKET && entry.w == sbrp_seal(batch, entry.x, entry.y, entry.z) && oldest[entry.x] == it)
            table[blockIdx.x * SBRP_BUCKET + entry.x] = make_uint2(entry.y, entry.z);
    }
    dFence();
    __syncthreads();
    if (tid == 0) undone[blockIdx.x] = batch;
}
