// Small programs whose sets of crash images are known: see ../litmus.rs.
typedef unsigned long long u64;
typedef unsigned int u32;

// Keeps the compiler, not the GPU, from moving stores.
#define COMPILER_FENCE() asm volatile("" ::: "memory")

extern "C" __global__ void fenced(u64 *pm) {
    pm[0] = 1;
    __threadfence_system();
    pm[1] = 1;
}

extern "C" __global__ void unfenced(u64 *pm) {
    pm[0] = 1;
    COMPILER_FENCE();
    pm[1] = 1;
}

extern "C" __global__ void device_fenced(u64 *pm) {
    pm[0] = 1;
    __threadfence();
    pm[1] = 1;
}

extern "C" __global__ void sc_fenced(u64 *pm) {
    pm[0] = 1;
    asm volatile("fence.sc.sys;" ::: "memory");
    pm[1] = 1;
}

extern "C" __global__ void released(u64 *pm) {
    pm[0] = 1;
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(pm + 1), "l"(1ull) : "memory");
}

extern "C" __global__ void torn(ulonglong2 *pm) {
    pm[0] = make_ulonglong2(1, 2);
}

extern "C" __global__ void same_word(u64 *pm) {
    pm[0] = 1;
    COMPILER_FENCE();
    pm[0] = 2;
    COMPILER_FENCE();
    pm[0] = 3;
}

extern "C" __global__ void halves(u32 *pm) {
    pm[0] = 1;
    COMPILER_FENCE();
    pm[1] = 1;
}

extern "C" __global__ void overlap(u64 *pm) {
    pm[0] = 0x1111111122222222ull;
    COMPILER_FENCE();
    *(u32 *)pm = 0x33333333;
}

// One thread stores and raises a flag in device memory; a thread of another block waits for it,
// fences, and stores.
template <int WRITER, int READER> __device__ void hand_over(u64 *pm, volatile u32 *flag) {
    if (blockIdx.x == 0) {
        pm[0] = 1;
        if (WRITER == 1) __threadfence_block();
        if (WRITER == 2) __threadfence();
        COMPILER_FENCE();
        *flag = 1;
    } else {
        while (*flag == 0) {}
        if (READER == 2) __threadfence();
        if (READER == 3) __threadfence_system();
        COMPILER_FENCE();
        pm[1] = 1;
    }
}

extern "C" __global__ void observed(u64 *pm, u32 *flag) { hand_over<2, 3>(pm, flag); }
extern "C" __global__ void not_released(u64 *pm, u32 *flag) { hand_over<0, 3>(pm, flag); }
extern "C" __global__ void narrow_release(u64 *pm, u32 *flag) { hand_over<1, 3>(pm, flag); }
extern "C" __global__ void narrow_fence(u64 *pm, u32 *flag) { hand_over<2, 2>(pm, flag); }

extern "C" __global__ void not_observed(u64 *pm) {
    if (blockIdx.x == 0) {
        pm[0] = 1;
    } else {
        __threadfence_system();
        pm[1] = 1;
    }
}

extern "C" __global__ void read_from(volatile u64 *pm) {
    if (blockIdx.x == 0) {
        pm[0] = 1;
    } else if (pm[0] == 1) {
        __threadfence_system();
        pm[1] = 1;
    }
}

// Release and acquire of device scope on a flag, in the forms that cuda::atomic gives.
extern "C" __global__ void acquired(u64 *pm, u32 *flag) {
    if (blockIdx.x == 0) {
        pm[0] = 1;
        asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(1) : "memory");
    } else {
        u32 seen;
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        } while (seen == 0);
        __threadfence_system();
        pm[1] = 1;
    }
}

// The thread that counts last persists what all threads stored, and marks it.
extern "C" __global__ void last_counted(u64 *pm, u32 *count) {
    pm[blockIdx.x] = 1;
    __threadfence();
    if (atomicAdd(count, 1) == gridDim.x - 1) {
        __threadfence_system();
        pm[gridDim.x] = 1;
    }
}

extern "C" __global__ void barrier_last(u64 *pm) {
    pm[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence_system();
        pm[blockDim.x] = 1;
    }
}

extern "C" __global__ void no_barrier_last(u64 *pm) {
    pm[threadIdx.x] = 1;
    if (threadIdx.x == 0) {
        __threadfence_system();
        pm[blockDim.x] = 1;
    }
}

extern "C" __global__ void warp_last(u64 *pm) {
    pm[threadIdx.x] = 1;
    __syncwarp();
    if (threadIdx.x == 0) {
        __threadfence_system();
        pm[blockDim.x] = 1;
    }
}

extern "C" __global__ void atomics(u64 *pm) {
    atomicAdd(pm, 1);
    atomicAdd(pm, 2);
}

// The first block waits for the second.
extern "C" __global__ void waits_first(u64 *pm, volatile u32 *flag) {
    if (blockIdx.x == 0) {
        while (*flag == 0) {}
        pm[0] = 1;
    } else {
        *flag = 1;
    }
}

// One warp's thread comes to a barrier without waiting, one of another warp waits there.
extern "C" __global__ void arrives(u64 *pm) {
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0) pm[0] = 1;
        asm volatile("bar.arrive 1, 64;" ::: "memory");
        if (threadIdx.x == 0) {
            __threadfence_system();
            pm[2] = 1;
        }
    } else {
        if (threadIdx.x == 32) pm[1] = 1;
        asm volatile("bar.sync 1, 64;" ::: "memory");
        if (threadIdx.x == 32) {
            __threadfence_system();
            pm[3] = 1;
        }
    }
}
