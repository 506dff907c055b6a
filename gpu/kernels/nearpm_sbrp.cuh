// Device side of scoped buffered release persistency (SBRP, ASPLOS 2023): the six operations by
// which a kernel orders what it stores to persistent memory (PM). No includes, so that NVRTC and
// nvcc both take it. The names are those of the paper (section 5).
//
//     oFence()              this thread's later stores to PM do not become durable before its
//                           earlier ones
//     dFence()              returns when this thread's earlier stores to PM are durable
//     pRel_block(X, value)  stores value to *X, after the earlier stores of this thread, for
//                           threads of the block
//     pAcq_block(X)         loads *X; later stores come after what was released there, by a thread
//                           of the block
//     pRel_dev, pAcq_dev    the same for all threads of the GPU
//
// X matches releases to acquires: it may lie in PM or not. One source is lowered in three ways,
// chosen before this file is included:
//
//     (nothing)           operations of hardware that knows SBRP: fences and relaxed accesses that
//                         it takes for persistency, which no compiler emits
//     SBRP_LOWERING_GPM   the same, each followed by a fence for volatile memory: GPM's persist
//                         barrier flushes both (section 7)
//     SBRP_LOWERING_CARD  a GPU of today: every order is a system fence, so that the order holds
//                         whatever the scope; see docs/gpusim.md
#pragma once

typedef unsigned int sbrp_u32;
typedef unsigned long long sbrp_u64;

#if defined(SBRP_LOWERING_CARD)

__device__ __forceinline__ void oFence() { __threadfence_system(); }
__device__ __forceinline__ void dFence() { __threadfence_system(); }

#define SBRP_RELEASE(NAME, SCOPE)                                                            \
    __device__ __forceinline__ void NAME(sbrp_u32 *at, sbrp_u32 value) {                     \
        __threadfence_system();                                                              \
        asm volatile("st.release." SCOPE ".u32 [%0], %1;" ::"l"(at), "r"(value) : "memory"); \
    }
#define SBRP_ACQUIRE(NAME, SCOPE)                                                             \
    __device__ __forceinline__ sbrp_u32 NAME(const sbrp_u32 *at) {                            \
        sbrp_u32 value;                                                                       \
        asm volatile("ld.acquire." SCOPE ".u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory"); \
        return value;                                                                         \
    }

#else

#if defined(SBRP_LOWERING_GPM)
#define SBRP_VOLATILE_TOO() __threadfence()
#else
#define SBRP_VOLATILE_TOO()
#endif

__device__ __forceinline__ void oFence() {
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    SBRP_VOLATILE_TOO();
}
__device__ __forceinline__ void dFence() {
    asm volatile("fence.acq_rel.sys;" ::: "memory");
    SBRP_VOLATILE_TOO();
}

#define SBRP_RELEASE(NAME, SCOPE)                                                            \
    __device__ __forceinline__ void NAME(sbrp_u32 *at, sbrp_u32 value) {                     \
        SBRP_VOLATILE_TOO();                                                                 \
        asm volatile("st.relaxed." SCOPE ".u32 [%0], %1;" ::"l"(at), "r"(value) : "memory"); \
    }
#define SBRP_ACQUIRE(NAME, SCOPE)                                                             \
    __device__ __forceinline__ sbrp_u32 NAME(const sbrp_u32 *at) {                            \
        sbrp_u32 value;                                                                       \
        asm volatile("ld.relaxed." SCOPE ".u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory"); \
        SBRP_VOLATILE_TOO();                                                                  \
        return value;                                                                         \
    }

#endif

SBRP_RELEASE(pRel_block, "cta")
SBRP_ACQUIRE(pAcq_block, "cta")
SBRP_RELEASE(pRel_dev, "gpu")
SBRP_ACQUIRE(pAcq_dev, "gpu")

#undef SBRP_RELEASE
#undef SBRP_ACQUIRE
