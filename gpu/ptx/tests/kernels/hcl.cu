// Insert into a hierarchical coalesced log: a warp's words of an entry lie side by side in lines of
// 128 bytes.
typedef unsigned long long u64;
typedef unsigned int u32;

#define WORDS 4

template <bool PERSIST_ENTRY> __device__ void insert(u32 *log, u64 *tails, u32 entries) {
    u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    u32 warp = thread / 32, lane = thread % 32;
    u64 tail = tails[thread];
    for (u32 i = 0; i < entries; i++) {
        u32 *entry = log + ((u64)warp * entries + tail) * WORDS * 32 + lane;
        for (u32 word = 0; word < WORDS; word++) entry[word * 32] = thread * 1000 + (u32)tail * 10 + word + 1;
        if (PERSIST_ENTRY) __threadfence_system();
        asm volatile("" ::: "memory");
        tail += 1;
        tails[thread] = tail;
        __threadfence_system();
    }
}

extern "C" __global__ void hcl_insert(u32 *log, u64 *tails, u32 entries) { insert<true>(log, tails, entries); }
extern "C" __global__ void hcl_insert_unfenced(u32 *log, u64 *tails, u32 entries) { insert<false>(log, tails, entries); }

// Removes the last entry of each thread: its tail goes back.
extern "C" __global__ void hcl_undo(u32 *log, u64 *tails, u32 entries, u32 *data) {
    u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    u64 tail = tails[thread];
    if (tail == 0) return;
    data[thread] = log[((u64)(thread / 32) * entries + tail - 1) * WORDS * 32 + thread % 32];
    __threadfence_system();
    tails[thread] = tail - 1;
    __threadfence_system();
}
