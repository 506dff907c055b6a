// Small kernels with and without mistakes in scopes: what the checker of `nearpm sbrp scopes` must
// find, and what it must not. A comment `finds: ...` names what is found at its line; launches are
// of two blocks.
#include "nearpm_sbrp.cuh"

// Block sums in PM, the result by the last block: Fig. 3 of the paper, with the device scope that
// it needs.
extern "C" __global__ void final_sum(sbrp_u32 *sums, sbrp_u32 *total) {
    if (threadIdx.x != 0) return;
    pRel_dev(&sums[blockIdx.x], blockIdx.x + 1);
    if (blockIdx.x != gridDim.x - 1) return;
    sbrp_u32 sum = 0;
    for (sbrp_u32 block = 0; block < gridDim.x; block++) {
        sbrp_u32 part;
        while ((part = pAcq_dev(&sums[block])) == 0) {}
        sum += part;
    }
    *total = sum;
}

// The same with the mistake of section 5.3: a release of the block.
extern "C" __global__ void final_sum_narrow_release(sbrp_u32 *sums, sbrp_u32 *total) {
    if (threadIdx.x != 0) return;
    pRel_block(&sums[blockIdx.x], blockIdx.x + 1);  // finds: narrow release
    if (blockIdx.x != gridDim.x - 1) return;
    sbrp_u32 sum = 0;
    for (sbrp_u32 block = 0; block < gridDim.x; block++) {
        sbrp_u32 part;
        while ((part = pAcq_dev(&sums[block])) == 0) {}
        sum += part;
    }
    *total = sum;  // finds: unordered
}

// An acquire of the block, of what another block releases.
extern "C" __global__ void narrow_acquire(sbrp_u32 *data, sbrp_u32 *flag, sbrp_u32 *copy) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
        *data = 7;
        pRel_dev(flag, 1);
    } else {
        while (pAcq_block(flag) == 0) {}  // finds: narrow acquire
        *copy = *data;                    // finds: unordered
    }
}

// A flag that is stored, not released.
extern "C" __global__ void missing_release(sbrp_u32 *data, sbrp_u32 *flag, sbrp_u32 *copy) {
    if (blockIdx.x != 0) return;
    if (threadIdx.x == 0) {
        *data = 7;
        *(volatile sbrp_u32 *)flag = 1;  // finds: missing release
    } else if (threadIdx.x == 32) {
        while (pAcq_block(flag) == 0) {}
        *copy = *data;  // finds: unordered
    }
}

// A flag that is loaded, not acquired.
extern "C" __global__ void missing_acquire(sbrp_u32 *data, sbrp_u32 *flag, sbrp_u32 *copy) {
    if (blockIdx.x != 0) return;
    if (threadIdx.x == 0) {
        *data = 7;
        pRel_block(flag, 1);
    } else if (threadIdx.x == 32) {
        while (*(volatile sbrp_u32 *)flag == 0) {}  // finds: missing acquire
        *copy = *data;                              // finds: unordered
    }
}

// Steps of a block with barriers alone: they make visible, and order no persists.
extern "C" __global__ void barrier_alone(sbrp_u32 *before, sbrp_u32 *after) {
    before[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
    __syncthreads();
    sbrp_u32 other = threadIdx.x ^ 32;
    after[blockIdx.x * blockDim.x + threadIdx.x] = before[blockIdx.x * blockDim.x + other];  // finds: unordered
}

// The same with a fence on each side.
extern "C" __global__ void barrier_between_fences(sbrp_u32 *before, sbrp_u32 *after) {
    before[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
    __threadfence_block();
    __syncthreads();
    __threadfence_block();
    sbrp_u32 other = threadIdx.x ^ 32;
    after[blockIdx.x * blockDim.x + threadIdx.x] = before[blockIdx.x * blockDim.x + other];
}

// A leader hands on to another block what its block did: the chain that Box 2 forgets.
extern "C" __global__ void leader(sbrp_u32 *data, sbrp_u32 *flags, sbrp_u32 *copy) {
    if (blockIdx.x == 0 && threadIdx.x == 32) {
        *data = 7;
        pRel_block(&flags[0], 1);
    } else if (blockIdx.x == 0 && threadIdx.x == 0) {
        while (pAcq_block(&flags[0]) == 0) {}
        pRel_dev(&flags[1], 1);
    } else if (blockIdx.x == 1 && threadIdx.x == 0) {
        while (pAcq_dev(&flags[1]) == 0) {}
        *copy = *data;
    }
}

// A dFence makes durable before a barrier what a store makes visible.
extern "C" __global__ void durable_first(sbrp_u32 *before, sbrp_u32 *after) {
    before[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
    dFence();
    __syncthreads();
    sbrp_u32 other = threadIdx.x ^ 32;
    after[blockIdx.x * blockDim.x + threadIdx.x] = before[blockIdx.x * blockDim.x + other];
}

// Two blocks store to one word without order: either may be what is left.
extern "C" __global__ void two_writers(sbrp_u32 *word) {
    if (threadIdx.x == 0) *word = blockIdx.x + 1;  // finds: two writers
}
