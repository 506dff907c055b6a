// Scan: inclusive prefix sums of many arrays, one a block, each stage kept in PM.
#pragma once

// Stage s of the array of block b is stages[(b * (count + 1) + s) * length ...]; stage 0 is the
// input. A thread makes the elements tid, tid + threads, ... of a stage from the one before: its
// own and those of one other thread. Recovery is native: the kernel is run again and goes on from
// what is there. `flags` (a word a thread and stage) are volatile and zero at each launch; threads
// of a block and `length` are powers of two.
extern "C" __global__ void sbrp_scan(const sbrp_u32 *input, sbrp_u32 *stages, sbrp_u32 *flags, sbrp_u32 length, sbrp_u32 count) {
    sbrp_u32 tid = threadIdx.x, threads = blockDim.x;
    sbrp_u32 *stage = stages + blockIdx.x * (count + 1) * length, *flag = flags + blockIdx.x * (count + 1) * threads;
    for (sbrp_u32 e = tid; e < length; e += threads)
        if (stage[e] == SBRP_EMPTY) stage[e] = input[blockIdx.x * length + e];
    pRel_block(&flag[tid], 1);
    for (sbrp_u32 s = 1, offset = 1; s <= count; s++, offset *= 2) {
        sbrp_u32 *before = stage;
        stage += length;
        sbrp_u32 other = (tid - offset) & (threads - 1);
        while (pAcq_block(&flag[other]) == 0) {}
        for (sbrp_u32 e = tid; e < length; e += threads)
            if (stage[e] == SBRP_EMPTY) stage[e] = before[e] + (e >= offset ? before[e - offset] : 0);
        flag += threads;
        pRel_block(&flag[tid], 1);
    }
}
