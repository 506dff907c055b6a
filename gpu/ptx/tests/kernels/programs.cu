// Programs that use what a GPU has: see ../programs.rs.
typedef unsigned long long u64;
typedef unsigned int u32;

extern "C" __device__ void __assertfail(const char *, const char *, unsigned, const char *, size_t);

__device__ u32 counter = 7;
__device__ u32 table[4] = {10, 20, 30, 40};
__device__ u32 *pointer = &table[2];
__constant__ float scale[2] = {0.5f, 2.0f};
extern __shared__ u32 dynamic[];

extern "C" __global__ void add(const u32 *a, const u32 *b, u32 *out, u32 n) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}

// Sum of a block by shuffles and shared memory.
extern "C" __global__ void sum(const u32 *in, u32 *out) {
    __shared__ u32 parts[32];
    u32 value = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (u32 d = 16; d > 0; d /= 2) value += __shfl_down_sync(0xffffffff, value, d);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 total = 0;
        for (u32 i = 0; i < blockDim.x / 32; i++) total += parts[i];
        out[blockIdx.x] = total;
    }
}

// Reverses a block through dynamically sized shared memory.
extern "C" __global__ void reverse(u32 *data) {
    dynamic[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = dynamic[blockDim.x - 1 - threadIdx.x];
}

// Every lane takes the same lock: needs lanes with program counters of their own.
extern "C" __global__ void spin_lock(u32 *lock, u32 *count, u32 *most) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            u32 value = *(volatile u32 *)count;
            *(volatile u32 *)count = value + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
    atomicMax(most, *(volatile u32 *)count);
}

// The textbook lock, which deadlocks where the lanes of a warp move together.
extern "C" __global__ void naive_lock(u32 *lock, u32 *count) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    *(volatile u32 *)count = *(volatile u32 *)count + 1;
    __threadfence();
    atomicExch(lock, 0);
}

extern "C" __global__ void diverge(u32 *out) {
    u32 i = threadIdx.x, value = 0;
    switch (i % 9) {
    case 0: value = 3; break;
    case 1: value = i * 3; break;
    case 2: for (u32 k = 0; k < i; k++) value += k; break;
    case 3: value = i ^ 5; break;
    case 4: value = 1000 - i; break;
    case 5: if (i & 16) value = 1; else value = 2; break;
    case 6: value = i << 2; break;
    case 7: out[i] = 77; return;
    default: value = i / 3;
    }
    out[i] = value + __popc(__ballot_sync(__activemask(), 1)) * 0;
}

__device__ __noinline__ u32 twice(u32 x, u32 *more) {
    *more = x + 1;
    return 2 * x;
}

extern "C" __global__ void calls(u32 *out) {
    u32 more;
    u32 first = twice(threadIdx.x, &more);
    out[threadIdx.x] = first + 100 * twice(more, &more) + more;
}

struct Pair { u64 a; u32 b; };

extern "C" __global__ void variables(u64 *out, Pair pair, u32 i) {
    if (threadIdx.x == 0) {
        out[0] = atomicAdd(&counter, 1);
        out[1] = *pointer + table[i];
        out[2] = (u64)(scale[i & 1] * 10.0f);
        out[3] = pair.a + pair.b;
        u32 local[8];
        for (u32 k = 0; k < 8; k++) local[(k * 3 + i) % 8] = k;
        out[4] = local[i];
    }
}

extern "C" __global__ void asserts(u32 *data) {
    if (data[threadIdx.x] == 5) __assertfail("data[i] != 5", "programs.cu", 42, "asserts", 1);
}

extern "C" __global__ void outside(u32 *data, u32 n) { data[n + threadIdx.x] = 1; }
extern "C" __global__ void misaligned(char *data) { *(u32 *)(data + 2) = 1; }
extern "C" __global__ void forever(volatile u32 *data) { while (*data == 0) {} }

extern "C" __global__ void half_barrier(u32 *data) {
    if (threadIdx.x < 32) {
        asm volatile("bar.sync 1, 64;");
    }
    data[threadIdx.x] = 1;
}

extern "C" __global__ void two_barriers(u32 *data) {
    if (threadIdx.x < 32) asm volatile("barrier.sync 1;"); else asm volatile("barrier.sync 2;");
    data[threadIdx.x] = 1;
}

extern "C" __global__ void lost_lanes(u32 *data) {
    u32 value = threadIdx.x;
    if (threadIdx.x < 16) value = __shfl_sync(0xffffffff, value, 0);
    else { asm volatile("barrier.sync 3;"); }
    data[threadIdx.x] = value;
}

extern "C" __global__ void producer(u32 *data) {
    if (threadIdx.x < 32) {
        dynamic[threadIdx.x] = threadIdx.x * 7;
        asm volatile("bar.arrive 2, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 2, 64;" ::: "memory");
        data[threadIdx.x - 32] = dynamic[threadIdx.x - 32];
    }
}

extern "C" __global__ void counts(u32 *data, u32 *votes) {
    u32 i = threadIdx.x;
    u32 odd = __syncthreads_count(data[i] & 1), any = __syncthreads_or(data[i] > 250), all = __syncthreads_and(data[i] < 300);
    if (i == 0) votes[0] = odd, votes[1] = any != 0, votes[2] = all != 0;
}

extern "C" __global__ void warp_votes(u32 *out) {
    u32 i = threadIdx.x;
    int same;
    out[i] = __ballot_sync(0xffffffff, i % 3 == 0);
    out[32 + i] = __match_any_sync(0xffffffff, i % 4);
    out[64 + i] = __match_all_sync(0xffffffff, i / 32, &same) + same;
    out[96 + i] = __all_sync(0xffffffff, i < 32) + 2 * __any_sync(0xffffffff, i == 31);
    out[128 + i] = __reduce_add_sync(0xffffffff, i);
    out[160 + i] = __reduce_max_sync(0xffffffff, (int)i - 40);
    if (i >= 16) out[192 + i] = __ballot_sync(0xffff0000, i & 1); else out[192 + i] = __ballot_sync(0xffff, i & 1);
}

extern "C" __global__ void specials(u32 *out) {
    u32 lane, eq, lt, le, gt, ge, warp;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("mov.u32 %0, %%lanemask_eq;" : "=r"(eq));
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
    asm("mov.u32 %0, %%lanemask_le;" : "=r"(le));
    asm("mov.u32 %0, %%lanemask_gt;" : "=r"(gt));
    asm("mov.u32 %0, %%lanemask_ge;" : "=r"(ge));
    asm("mov.u32 %0, %%warpid;" : "=r"(warp));
    u32 i = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    i += blockDim.x * blockDim.y * blockDim.z * (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
    out += 8 * i;
    out[0] = lane, out[1] = eq, out[2] = lt, out[3] = le, out[4] = gt, out[5] = ge, out[6] = warp, out[7] = i;
}

// Strided loads and stores of persistent memory, for the counts.
extern "C" __global__ void strided(u32 *pm, u32 stride) {
    u32 i = threadIdx.x;
    pm[i * stride] = pm[i * stride] + 1;
}

extern "C" __global__ void vectors(uint4 *pm) {
    uint4 value = pm[threadIdx.x];
    value.x += value.y;
    pm[threadIdx.x + 32] = value;
}

extern "C" __global__ void pm_atomics(u32 *pm) {
    atomicAdd(&pm[threadIdx.x % 4], 1);
    __threadfence();
    __threadfence_block();
    __threadfence_system();
}
