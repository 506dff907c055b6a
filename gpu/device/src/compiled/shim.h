// What kernels have of CUDA C++, for a compiler of the processor: each thread of a block is a
// fiber, and fibers give way where threads wait for each other. Blocks run one after the other. A
// kernel's text is compiled behind this one, with -include.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <ucontext.h>
#include <vector>

#define __global__ __attribute__((visibility("default")))
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
// Blocks do not overlap, so that one of each is enough; a block finds what the one before it left,
// which CUDA does not define either.
#define __shared__ static

namespace shim {

constexpr unsigned WARP = 32;
constexpr size_t STACK = 128 << 10;

struct place {
    unsigned x = 0, y = 0, z = 0;
};

// Threads that wait for each other: a warp, or a block.
struct meeting {
    unsigned members = 0, arrived = 0;
    uint64_t round = 0;
};

struct warp {
    meeting lanes;
    uint64_t values[WARP];
};

struct fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    place thread;
    bool ended = false;
};

// Each module has one of its own, so that devices of several threads do not meet.
struct machine {
    place block, blocks, threads;
    std::vector<fiber> fibers;
    std::vector<warp> warps;
    meeting all;
    fiber *current = nullptr;
    ucontext_t scheduler;
    void (*body)() = nullptr;
};

static machine gpu;

static inline void give_way() { swapcontext(&gpu.current->context, &gpu.scheduler); }

static inline void leave(meeting &here) {
    here.members--;
    if (here.members > 0 && here.arrived == here.members) here.arrived = 0, here.round++;
}

static inline void meet(meeting &here) {
    uint64_t round = here.round;
    if (++here.arrived == here.members) {
        here.arrived = 0;
        here.round++;
        return;
    }
    while (here.round == round) give_way();
}

static inline unsigned thread_number() { return gpu.current->thread.x; }
static inline warp &own_warp() { return gpu.warps[thread_number() / WARP]; }
static inline unsigned lane() { return thread_number() % WARP; }

// Every lane of the warp gives a value, and gets what `from` says of all of them.
template <typename T, typename F>
static inline T exchange(T value, F from) {
    static_assert(sizeof(T) <= 8, "a value of at most 8 bytes");
    warp &mine = own_warp();
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    mine.values[lane()] = bits;
    meet(mine.lanes);
    T result = from(mine);
    // Nobody gives the next value before all have this one.
    meet(mine.lanes);
    return result;
}

template <typename T>
static inline T value_of(const warp &w, unsigned lane) {
    T value;
    std::memcpy(&value, &w.values[lane], sizeof value);
    return value;
}

static inline void run_body() {
    gpu.body();
    gpu.current->ended = true;
    leave(own_warp().lanes);
    leave(gpu.all);
    give_way();
}

static inline void run_block(unsigned threads) {
    unsigned warps = (threads + WARP - 1) / WARP;
    gpu.warps.assign(warps, warp());
    for (unsigned t = 0; t < threads; t++) gpu.warps[t / WARP].lanes.members++;
    gpu.all = meeting();
    gpu.all.members = threads;
    for (unsigned t = 0; t < threads; t++) {
        fiber &f = gpu.fibers[t];
        f.ended = false;
        f.thread.x = t;
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack.get();
        f.context.uc_stack.ss_size = STACK;
        f.context.uc_link = nullptr;
        makecontext(&f.context, run_body, 0);
    }
    for (unsigned live = threads; live > 0;) {
        live = 0;
        for (unsigned t = 0; t < threads; t++) {
            if (gpu.fibers[t].ended) continue;
            gpu.current = &gpu.fibers[t];
            swapcontext(&gpu.scheduler, &gpu.fibers[t].context);
            if (!gpu.fibers[t].ended) live++;
        }
    }
}

// Integers and pointers are handed over apart from floats, and the processor's calling convention
// (System V, x86-64) puts each kind in its places in their order: a kernel takes those that it has.
using kernel = void (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                        uint64_t, uint64_t, float, float, float, float);
static kernel entry;
static uint64_t integers[14];
static float floats[4];

static inline void call() {
    uint64_t *i = integers;
    float *f = floats;
    entry(i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7], i[8], i[9], i[10], i[11], i[12], i[13], f[0], f[1], f[2], f[3]);
}

}  // namespace shim

#define threadIdx (shim::gpu.current->thread)
#define blockIdx (shim::gpu.block)
#define blockDim (shim::gpu.threads)
#define gridDim (shim::gpu.blocks)

// Runs a kernel: 14 integers or pointers, 4 floats.
extern "C" __global__ inline __attribute__((used)) void shim_launch(void *entry, unsigned blocks, unsigned threads, const uint64_t *integers,
                                                                     const float *floats) {
    std::memcpy(shim::integers, integers, sizeof shim::integers);
    std::memcpy(shim::floats, floats, sizeof shim::floats);
    shim::entry = (shim::kernel)entry;
    shim::gpu.body = shim::call;
    shim::gpu.blocks.x = blocks;
    shim::gpu.threads.x = threads;
    while (shim::gpu.fibers.size() < threads) {
        shim::gpu.fibers.emplace_back();
        shim::gpu.fibers.back().stack.reset(new char[shim::STACK]);
    }
    for (unsigned block = 0; block < blocks; block++) {
        shim::gpu.block.x = block;
        shim::run_block(threads);
    }
}

// ---- Vectors ------------------------------------------------------------------------------------

struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

// ---- Waiting, fences ----------------------------------------------------------------------------

static inline void __syncthreads() { shim::meet(shim::gpu.all); }
static inline void __syncwarp(unsigned = ~0u) { shim::meet(shim::own_warp().lanes); }
static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}

// ---- Lanes together -----------------------------------------------------------------------------

template <typename T>
static inline T __shfl_sync(unsigned, T value, int from) {
    return shim::exchange(value, [=](const shim::warp &w) { return shim::value_of<T>(w, (unsigned)from % shim::WARP); });
}
template <typename T>
static inline T __shfl_up_sync(unsigned, T value, unsigned by) {
    unsigned own = shim::lane();
    return shim::exchange(value, [=](const shim::warp &w) { return shim::value_of<T>(w, own >= by ? own - by : own); });
}
template <typename T>
static inline T __shfl_xor_sync(unsigned, T value, int by) {
    unsigned own = shim::lane();
    return shim::exchange(value, [=](const shim::warp &w) { return shim::value_of<T>(w, (own ^ (unsigned)by) % shim::WARP); });
}
static inline unsigned __ballot_sync(unsigned mask, bool vote) {
    return shim::exchange((unsigned)vote, [=](const shim::warp &w) {
        unsigned votes = 0;
        for (unsigned l = 0; l < shim::WARP; l++)
            if (mask >> l & 1 && w.values[l]) votes |= 1u << l;
        return votes;
    });
}

// ---- Atomics: fibers give way nowhere in them, but behind one that may be tried again -----------

template <typename T, typename U>
static inline T atomicAdd(T *place, U value) {
    T old = *place;
    *place = old + (T)value;
    return old;
}
template <typename T, typename U>
static inline T atomicMax(T *place, U value) {
    T old = *place;
    if ((T)value > old) *place = (T)value;
    return old;
}
template <typename T, typename U>
static inline T atomicExch(T *place, U value) {
    T old = *place;
    *place = (T)value;
    return old;
}
template <typename T, typename U, typename V>
static inline T atomicCAS(T *place, U expected, V value) {
    T old = *place;
    if (old == (T)expected)
        *place = (T)value;
    else
        shim::give_way();
    return old;
}

// ---- Bits and functions -------------------------------------------------------------------------

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline float __uint_as_float(unsigned bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
static inline unsigned __float_as_uint(float value) {
    unsigned bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
