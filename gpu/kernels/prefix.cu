// PS: inclusive prefix sums of arrays, with native persistence (the paper's figure 8): what a block
// has finished is not done again.
//
// The last thread's sum does not say that a block is done, as every number is a legal sum: a word a
// block does, the run's number.
//
// What limits it is the link to PM, so that only sums go over it. The input and the blocks' totals
// are in the GPU's memory: they are computed again in a hundredth of the time that storing them to
// PM would take.
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

// What a block's numbers add up to.
extern "C" __global__ void block_totals(const gpm_u32 *input, gpm_u32 *totals) {
    __shared__ gpm_u32 sums[MOST_WARPS];
    gpm_u32 sum = scan(input[blockIdx.x * blockDim.x + threadIdx.x], sums);
    if (threadIdx.x == blockDim.x - 1) totals[blockIdx.x] = sum;
}

// What the numbers before each block in its array add up to, in the place of its total. A block an
// array of `blocks` blocks.
extern "C" __global__ void block_offsets(gpm_u32 *totals, gpm_u32 blocks) {
    __shared__ gpm_u32 sums[MOST_WARPS], carried;
    gpm_u32 *array = totals + blockIdx.x * blocks;
    if (threadIdx.x == 0) carried = 0;
    __syncthreads();
    for (gpm_u32 first = 0; first < blocks; first += blockDim.x) {
        gpm_u32 block = first + threadIdx.x;
        gpm_u32 own = block < blocks ? array[block] : 0;
        gpm_u32 sum = carried + scan(own, sums);
        if (block < blocks) array[block] = sum - own;
        __syncthreads();
        if (threadIdx.x == blockDim.x - 1) carried = sum;
        __syncthreads();
    }
}

// The sums over whole arrays. A block is done when its word is the run's number, which it becomes
// behind all of its sums. One thread looks at the word: each warp's look would be a request over
// the link.
extern "C" __global__ void whole_sums(const gpm_u32 *input, const gpm_u32 *offsets, gpm_u32 *sums_of, gpm_u32 *done, gpm_u32 run) {
    __shared__ gpm_u32 sums[MOST_WARPS], is_done;
    if (threadIdx.x == 0) is_done = done[blockIdx.x] == run;
    __syncthreads();
    if (is_done) return;
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    sums_of[i] = offsets[blockIdx.x] + scan(input[i], sums);
    gpm_persist();
    __syncthreads();
    if (threadIdx.x == 0) {
        done[blockIdx.x] = run;
        gpm_persist();
    }
}
