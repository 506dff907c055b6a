// Red: sums of arrays (section 4, Fig. 3). Each block sums its part as a tree whose partial sums
// lie in PM; one block adds the blocks' sums.
#pragma once

// Recovery is native: the kernel is run again, and a thread whose partial sum is there only says
// so. `flags` are volatile and zero at each launch; `partial` (a word a thread and round) and
// `sums` (a word a block and round) are SBRP_EMPTY at first.
extern "C" __global__ void sbrp_red(const sbrp_u32 *input, sbrp_u32 n, sbrp_u32 rounds, sbrp_u32 *partial, sbrp_u32 *sums, sbrp_u32 *totals,
                                    sbrp_u32 *flags) {
    sbrp_u32 tid = threadIdx.x, threads = gridDim.x * blockDim.x;
    for (sbrp_u32 round = 0; round < rounds; round++) {
        sbrp_u32 place = (round * gridDim.x + blockIdx.x) * blockDim.x;
        sbrp_u32 *mine = partial + place, *flag = flags + place, *block_sums = sums + round * gridDim.x;
        bool done = tid == 0 ? block_sums[blockIdx.x] != SBRP_EMPTY : mine[tid] != SBRP_EMPTY;
        sbrp_u32 sum = 0;
        for (sbrp_u32 i = blockIdx.x * blockDim.x + tid; i < n && !done; i += threads) sum += input[round * n + i];
        for (sbrp_u32 half = blockDim.x / 2; half > 0; half /= 2) {
            if (tid >= half) {
                if (!done) mine[tid] = sum;
                pRel_block(&flag[tid], 1);
                break;
            }
            if (done) continue;
            while (pAcq_block(&flag[tid + half]) == 0) {}
            sum += mine[tid + half];
        }
        if (tid == 0 && !done) pRel_dev(&block_sums[blockIdx.x], sum);
    }
    // The last block adds the blocks' sums, a round a thread.
    if (blockIdx.x == gridDim.x - 1 && tid < rounds) {
        sbrp_u32 total = 0;
        for (sbrp_u32 block = 0; block < gridDim.x; block++) {
            sbrp_u32 sum;
            while ((sum = pAcq_dev(&sums[tid * gridDim.x + block])) == SBRP_EMPTY) {}
            total += sum;
        }
        totals[tid] = total;
    }
}
