// Calls for kernels of programs. All 32 lanes of a warp make a call together, each with a key of
// its own or none (`wanted`); what a call answers is durable when it returns. The host begins an
// epoch for the launch (`Table::begin_epoch`), and the kernel begins so:
//
//     gphash t = *described;  // `Table::address`
//     t.epoch = epoch;        // what `begin_epoch` gave
//
// Values are `t.units` units of 16 bytes in the GPU's memory. Answers are GPH_DONE and its like
// (nearpm_gphash.cuh). Keys are words of 8 bytes.
#pragma once

// The value of a key to `found`, which may be null: GPH_DONE or GPH_ABSENT.
static __device__ __forceinline__ gpm_u32 gph_find(const gphash &t, bool wanted, gpm_u64 key, uint4 *found) {
    return gph_run<false>(t, wanted, GPH_GET, key, nullptr, nullptr, found);
}

// Puts a pair in that is not there: GPH_DONE, GPH_EXISTS or GPH_FULL.
static __device__ __forceinline__ gpm_u32 gph_insert(const gphash &t, bool wanted, gpm_u64 key, const uint4 *value) {
    return gph_run<false>(t, wanted, GPH_INSERT, key, nullptr, value, nullptr);
}

// Gives a key that is there another value: GPH_DONE, GPH_ABSENT or GPH_NO_CELL.
static __device__ __forceinline__ gpm_u32 gph_update(const gphash &t, bool wanted, gpm_u64 key, const uint4 *value) {
    return gph_run<false>(t, wanted, GPH_UPDATE, key, nullptr, value, nullptr);
}

// Either of these: GPH_DONE, GPH_FULL or GPH_NO_CELL.
static __device__ __forceinline__ gpm_u32 gph_put(const gphash &t, bool wanted, gpm_u64 key, const uint4 *value) {
    return gph_run<false>(t, wanted, GPH_PUT, key, nullptr, value, nullptr);
}

// Removes a pair: GPH_DONE or GPH_ABSENT.
static __device__ __forceinline__ gpm_u32 gph_delete(const gphash &t, bool wanted, gpm_u64 key) {
    return gph_run<false>(t, wanted, GPH_DELETE, key, nullptr, nullptr, nullptr);
}
