// MQ: queues in PM, one a block. A command inserts or removes a batch of entries whole.
#pragma once

// Words of a queue's head in PM: each kind of word has a line of its own.
#define SBRP_QUEUE_WORDS 96u
#define SBRP_HEAD 0u
#define SBRP_TAIL 1u
#define SBRP_LOG_HEAD 32u
#define SBRP_LOG_TAIL 33u
#define SBRP_ACTIVE 64u  // the command that the log is of; 0 for none

// When thread 0 returns, its later stores come after the earlier ones of all threads of the block:
// a tree of releases and acquires.
__device__ __forceinline__ void sbrp_join(sbrp_u32 *flags, sbrp_u32 value) {
    sbrp_u32 tid = threadIdx.x;
    for (sbrp_u32 half = blockDim.x / 2; half > 0; half /= 2) {
        if (tid >= half) {
            pRel_block(&flags[tid], value);
            break;
        }
        while (pAcq_block(&flags[tid + half]) != value) {}
    }
}

__device__ __forceinline__ sbrp_u32 sbrp_mq_value(sbrp_u32 block, sbrp_u32 place) { return sbrp_mix(block * 0x10001u + place); }

// Commands block, block + blocks, ... of `commands` are this block's: by turns an insertion and a
// removal of `size` entries. `flags`: volatile, a word a thread, zero at each launch. `removed`:
// volatile, a block's sum of the entries that it has removed. `capacity` is a power of two.
extern "C" __global__ void sbrp_mq(sbrp_u32 *entries, sbrp_u32 capacity, sbrp_u32 *queues, sbrp_u32 commands, sbrp_u32 size, sbrp_u32 *flags,
                                   sbrp_u32 *removed) {
    sbrp_u32 tid = threadIdx.x, *queue = queues + blockIdx.x * SBRP_QUEUE_WORDS, *flag = flags + blockIdx.x * blockDim.x;
    sbrp_u32 *data = entries + blockIdx.x * capacity;
    sbrp_u32 head = queue[SBRP_HEAD], tail = queue[SBRP_TAIL], value = 0, sum = 0;
    __syncthreads();
    for (sbrp_u32 command = blockIdx.x; command < commands; command += gridDim.x) {
        value += 2;
        if (tid == 0) {
            queue[SBRP_LOG_HEAD] = head;
            queue[SBRP_LOG_TAIL] = tail;
            oFence();
            queue[SBRP_ACTIVE] = command + 1;
            pRel_block(&flag[0], value - 1);
        }
        if (tail == head) {
            while (pAcq_block(&flag[0]) != value - 1) {}
            for (sbrp_u32 i = tid; i < size; i += blockDim.x) data[(tail + i) & (capacity - 1)] = sbrp_mq_value(blockIdx.x, tail + i);
            tail += size;
        } else {
            for (sbrp_u32 i = tid; i < size; i += blockDim.x) sum += data[(head + i) & (capacity - 1)];
            head += size;
        }
        sbrp_join(flag, value);
        if (tid == 0) {
            queue[SBRP_HEAD] = head;
            queue[SBRP_TAIL] = tail;
            oFence();
            queue[SBRP_ACTIVE] = 0;
            oFence();
        }
        // The next command's entries may overwrite removed ones only when this one counts; all wait
        // for the leader, which says so by the log's flag.
        __syncthreads();
    }
    atomicAdd(&removed[blockIdx.x], sum);
}

// A command that was under way is taken back: one thread a queue.
extern "C" __global__ void sbrp_mq_recover(sbrp_u32 *queues, sbrp_u32 count) {
    sbrp_u32 thread = blockIdx.x * blockDim.x + threadIdx.x, *queue = queues + thread * SBRP_QUEUE_WORDS;
    if (thread >= count || queue[SBRP_ACTIVE] == 0) return;
    queue[SBRP_HEAD] = queue[SBRP_LOG_HEAD];
    queue[SBRP_TAIL] = queue[SBRP_LOG_TAIL];
    dFence();
    queue[SBRP_ACTIVE] = 0;
}
