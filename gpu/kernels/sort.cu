// Stable radix sort of (key, value) pairs of 32 bits, 8 bits of the key a pass: count, scan,
// scatter. It brings what is to be stored at random places into the order of the places, so that
// persistent memory is gone through in windows.
#include "nearpm_gpm.cuh"

#define DIGITS 256u
#define THREADS 256u  // of a block: one a digit
#define ROUNDS 16u
#define TILE (THREADS * ROUNDS)
#define WARPS (THREADS / GPM_WARP)

// Counts a tile's keys by digit: counts[digit][tile].
extern "C" __global__ void radix_count(const gpm_u32 *keys, gpm_u32 n, gpm_u32 shift, gpm_u32 *counts) {
    __shared__ gpm_u32 histogram[DIGITS];
    histogram[threadIdx.x] = 0;
    __syncthreads();
    for (gpm_u32 round = 0; round < ROUNDS; round++) {
        gpm_u32 i = blockIdx.x * TILE + round * THREADS + threadIdx.x;
        if (i < n) atomicAdd(&histogram[keys[i] >> shift & (DIGITS - 1)], 1u);
    }
    __syncthreads();
    counts[threadIdx.x * gridDim.x + blockIdx.x] = histogram[threadIdx.x];
}

// Block's sum of what the threads before this one have; `total` is that of all. Blocks of THREADS
// threads.
static __device__ gpm_u32 before(gpm_u32 value, gpm_u32 *sums, gpm_u32 *total) {
    gpm_u32 lane = threadIdx.x % GPM_WARP, warp = threadIdx.x / GPM_WARP, sum = value;
    for (gpm_u32 distance = 1; distance < GPM_WARP; distance *= 2) {
        gpm_u32 other = __shfl_up_sync(0xffffffffu, sum, distance);
        if (lane >= distance) sum += other;
    }
    __syncthreads();
    if (lane == GPM_WARP - 1) sums[warp] = sum;
    __syncthreads();
    gpm_u32 earlier = 0, all = 0;
    for (gpm_u32 w = 0; w < WARPS; w++) {
        if (w < warp) earlier += sums[w];
        all += sums[w];
    }
    *total = all;
    return earlier + sum - value;
}

// One block a digit: turns its counts into places within the digit; totals[digit] is their number.
extern "C" __global__ void radix_scan(gpm_u32 *counts, gpm_u32 tiles, gpm_u32 *totals) {
    __shared__ gpm_u32 sums[WARPS];
    gpm_u32 *row = counts + blockIdx.x * tiles;
    gpm_u32 done = 0;
    for (gpm_u32 start = 0; start < tiles; start += THREADS) {
        gpm_u32 tile = start + threadIdx.x;
        gpm_u32 total, value = tile < tiles ? row[tile] : 0;
        gpm_u32 place = before(value, sums, &total);
        if (tile < tiles) row[tile] = done + place;
        done += total;
    }
    if (threadIdx.x == 0) totals[blockIdx.x] = done;
}

// Lanes of this warp that are in the grid's range and have the same digit.
static __device__ gpm_u32 peers(gpm_u32 digit, bool valid) {
    gpm_u32 mask = __ballot_sync(0xffffffffu, valid);
    for (gpm_u32 bit = 0; bit < 8; bit++) {
        bool set = digit >> bit & 1;
        gpm_u32 votes = __ballot_sync(0xffffffffu, set);
        mask &= set ? votes : ~votes;
    }
    return mask;
}

// Brings a tile's pairs to their places; pairs of the same digit keep their order.
extern "C" __global__ void radix_scatter(const gpm_u32 *keys, const gpm_u32 *values, gpm_u32 n, gpm_u32 shift,
                                         const gpm_u32 *counts, const gpm_u32 *totals, gpm_u32 *to_keys,
                                         gpm_u32 *to_values) {
    __shared__ gpm_u32 base[DIGITS];
    __shared__ gpm_u32 histogram[WARPS][DIGITS];
    __shared__ gpm_u32 sums[WARPS];
    gpm_u32 all, lane = threadIdx.x % GPM_WARP, warp = threadIdx.x / GPM_WARP;
    base[threadIdx.x] = before(totals[threadIdx.x], sums, &all) + counts[threadIdx.x * gridDim.x + blockIdx.x];
    for (gpm_u32 w = 0; w < WARPS; w++) histogram[w][threadIdx.x] = 0;
    __syncthreads();
    for (gpm_u32 round = 0; round < ROUNDS; round++) {
        gpm_u32 i = blockIdx.x * TILE + round * THREADS + threadIdx.x;
        bool valid = i < n;
        gpm_u32 key = valid ? keys[i] : 0;
        gpm_u32 digit = key >> shift & (DIGITS - 1);
        gpm_u32 same = peers(digit, valid);
        gpm_u32 rank = __popc(same & ((1u << lane) - 1));
        if (valid && rank == 0) histogram[warp][digit] = __popc(same);
        __syncthreads();
        if (valid) {
            gpm_u32 place = base[digit] + rank;
            for (gpm_u32 w = 0; w < WARPS; w++)
                if (w < warp) place += histogram[w][digit];
            to_keys[place] = key;
            to_values[place] = values[i];
        }
        __syncthreads();
        for (gpm_u32 w = 0; w < WARPS; w++) {
            base[threadIdx.x] += histogram[w][threadIdx.x];
            histogram[w][threadIdx.x] = 0;
        }
        __syncthreads();
    }
}

// values[i] = i
extern "C" __global__ void radix_number(gpm_u32 *values, gpm_u32 n) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] = i;
}
