// What ../speed.rs measures: coalesced integer work, and hash inserts.
typedef unsigned long long u64;
typedef unsigned int u32;

extern "C" __global__ void mix(u32 *data, u32 rounds) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    u32 x = data[i];
#pragma unroll 4
    for (u32 r = 0; r < rounds; r++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        x = x * 1664525 + 1013904223;
    }
    data[i] = x;
}

extern "C" __global__ void stream(const uint2 *from, uint2 *to, u32 n) {
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        uint2 value = from[i];
        value.x += value.y;
        to[i] = value;
    }
}

extern "C" __global__ void copy(const u32 *from, u32 *to, u32 n) {
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) to[i] = from[i] + 1;
}

extern "C" __global__ void insert(u64 *table, u32 mask, u32 keys) {
    for (u32 k = blockIdx.x * blockDim.x + threadIdx.x; k < keys; k += gridDim.x * blockDim.x) {
        u64 key = k + 1;
        u32 slot = (u32)((key * 0x9e3779b97f4a7c15ull) >> 32) & mask;
        while (atomicCAS(&table[slot], 0ull, key) != 0) slot = (slot + 1) & mask;
        __threadfence_system();
    }
}

extern "C" __global__ void log_insert(u32 *log, u64 *tails, u32 entries) {
    u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    u64 tail = tails[thread];
    for (u32 i = 0; i < entries; i++) {
        u32 *entry = log + ((u64)(thread / 32) * entries + tail) * 4 * 32 + thread % 32;
        for (u32 word = 0; word < 4; word++) entry[word * 32] = thread + word;
        __threadfence_system();
        tails[thread] = ++tail;
        __threadfence_system();
    }
}
