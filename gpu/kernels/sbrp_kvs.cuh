// gpKVS: a batch of pairs is put into a store of sets of four slots, with an undo log a thread
// (Fig. 4).
#pragma once

#define SBRP_WAYS 4u

// An undo entry: which slot, and what it held. The seal tells an entry of this batch that is whole.
struct sbrp_undo {
    sbrp_u32 slot, key, value, seal;
};

__device__ __forceinline__ sbrp_u32 sbrp_seal(sbrp_u32 batch, sbrp_u32 slot, sbrp_u32 key, sbrp_u32 value) {
    return sbrp_mix(sbrp_mix(sbrp_mix(batch ^ 0x5eb9u) + slot) + key) + value;
}

// `table`: sets of SBRP_WAYS pairs (key, value), key 0 where a slot is free. `log`: entry i of
// thread t is log[i * threads + t]. `committed`: a word a thread, the last batch that it has put
// whole. `claimed`: volatile, a bit a slot, zero at each launch: a slot is changed by one thread of
// a batch at most. A pair for which each slot of its set is claimed is dropped and counted.
extern "C" __global__ void sbrp_kvs_put(const uint2 *pairs, sbrp_u32 each, uint2 *table, sbrp_u32 sets, uint4 *log, sbrp_u32 *committed, sbrp_u32 batch,
                                        sbrp_u32 *claimed, sbrp_u32 *dropped) {
    sbrp_u32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    for (sbrp_u32 i = 0; i < each; i++) {
        uint2 pair = pairs[i * threads + thread];
        sbrp_u32 first = (sbrp_mix(pair.x) & (sets - 1)) * SBRP_WAYS, slot = SBRP_EMPTY;
        for (sbrp_u32 step = 0; step < 2 * SBRP_WAYS && slot == SBRP_EMPTY; step++) {
            // First where the key or nothing is, then anywhere.
            sbrp_u32 candidate = first + (step + (step < SBRP_WAYS ? 0 : pair.x)) % SBRP_WAYS;
            sbrp_u32 held = table[candidate].x;
            if (step < SBRP_WAYS && held != 0 && held != pair.x) continue;
            sbrp_u32 bit = 1u << (candidate & 31);
            if ((atomicOr(&claimed[candidate >> 5], bit) & bit) == 0) slot = candidate;
        }
        if (slot == SBRP_EMPTY) {
            atomicAdd(dropped, 1);
            continue;
        }
        uint2 old = table[slot];
        log[i * threads + thread] = make_uint4(slot, old.x, old.y, sbrp_seal(batch, slot, old.x, old.y));
        oFence();
        table[slot] = pair;
    }
    oFence();
    committed[thread] = batch;
}

// Takes back what threads have put that had not committed, then removes their entries.
extern "C" __global__ void sbrp_kvs_recover(sbrp_u32 each, uint2 *table, sbrp_u32 slots, uint4 *log, const sbrp_u32 *committed, sbrp_u32 batch) {
    sbrp_u32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    if (committed[thread] == batch) return;
    for (sbrp_u32 i = 0; i < each; i++) {
        uint4 entry = log[i * threads + thread];
        if (entry.x < slots && entry.w == sbrp_seal(batch, entry.x, entry.y, entry.z)) table[entry.x] = make_uint2(entry.y, entry.z);
    }
    dFence();
    for (sbrp_u32 i = 0; i < each; i++) log[i * threads + thread].w = 0;
}
