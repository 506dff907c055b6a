// The six programs of the SBRP paper (section 7.1) with their recovery. Own kernels of the same
// access patterns; sizes and orders are those of Table 2.
#pragma once
#include "nearpm_sbrp.cuh"

// What a word of PM holds that was not stored yet.
#define SBRP_EMPTY 0x80000000u

__device__ __forceinline__ sbrp_u32 sbrp_mix(sbrp_u32 x) {
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return x ^ (x >> 16);
}

#include "sbrp_kvs.cuh"
#include "sbrp_hm.cuh"
#include "sbrp_srad.cuh"
#include "sbrp_red.cuh"
#include "sbrp_mq.cuh"
#include "sbrp_scan.cuh"
