// PS: inclusive prefix sums of arrays, with native persistence (the paper's figure 8): what a block has finished is not done again.
//
// The last thread's sum does not say that a block is done, as every number is a legal sum: a word a block does, the run's number.
#include "nearpm_gpm.cuh"

#define MOST_WARPS 32u

// Sum of `value` over this thread and those before it in the block. Blocks have whole warps.
static __device__ gpm_u32 scan(gpm_u32 value, gpm_u32 *sums) {
    gpm_u32 lane = threadIdx.x % GPM_WARP, warp = threadIdx.x / GPM_WARP;
    for (gpm_u32 distance = 1; distance < GPM_WARP; distance *= 2) {
        gpm_u32 other = __shfl_up_sync(0xffffffffu, value, distance);
        if (lane >= distance) value += other;
    }
    if (lane == GPM_WARP - 1) sums[warp] = value;
    __syncthreads();
    for (gpm_u32 w = 0; w < warp; w++) value += sums[w];
    __syncthreads();
    return value;
}

// Each block's own sums. A block is done when its word is the run's number, which it becomes behind all of its sums.
extern "C" __global__ void partial_sums(const gpm_u32 *input, gpm_u32 *partial, gpm_u32 *done, gpm_u32 run) {
    __shared__ gpm_u32 sums[MOST_WARPS];
    if (done[blockIdx.x] == run) return;
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    partial[i] = scan(input[i], sums);
    gpm_persist();
    __syncthreads();
    if (threadIdx.x == 0) {
        done[blockIdx.x] = run;
        gpm_persist();
    }
}

// The sums over whole arrays of `blocks` blocks: each block adds what the blocks before it in its array end with.
extern "C" __global__ void whole_sums(const gpm_u32 *partial, gpm_u32 *sums_of, gpm_u32 *done, gpm_u32 run, gpm_u32 blocks) {
    __shared__ gpm_u32 sums[MOST_WARPS];
    if (done[blockIdx.x] == run) return;
    gpm_u32 first = blockIdx.x / blocks * blocks, before = 0;
    for (gpm_u32 block = first + threadIdx.x; block < blockIdx.x; block += blockDim.x)
        before += partial[block * blockDim.x + blockDim.x - 1];
    before = scan(before, sums);
    if (threadIdx.x == blockDim.x - 1) sums[0] = before;
    __syncthreads();
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    sums_of[i] = partial[i] + sums[0];
    gpm_persist();
    __syncthreads();
    if (threadIdx.x == 0) {
        done[blockIdx.x] = run;
        gpm_persist();
    }
}
