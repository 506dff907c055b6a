// BFS: levels of a graph's nodes, with native persistence: a node's level is stored to PM when it
// is found, and a level is done when a word in PM says so.
#include "nearpm_gpm.cuh"

#define UNSEEN 0xffffffffu

// The counters of a search, zero before it but for the first: nodes of a level by its number modulo
// 3, and blocks that came to a meeting.
struct bfs_counters {
    gpm_u32 found[3];
    gpm_u32 arrived;
};

// All blocks of the grid wait for each other, for the `round`th time: they have to be so few that
// all of them run at the same time.
static __device__ __forceinline__ void bfs_meet(bfs_counters *counters, gpm_u32 round) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(&counters->arrived, 1u);
        while (*(volatile gpm_u32 *)&counters->arrived < round * gridDim.x) {}
        __threadfence();
    }
    __syncthreads();
}

// Goes on from a level whose nodes are all known to the last one: nodes of a level find those of
// the next. `levels` is in the GPU's memory, `persistent` in PM. Each thread persists what it has
// found before the blocks meet, so that all of a level has persisted when `done` says it; that word
// persists by the next level's fence, or when the kernel ends.
extern "C" __global__ void bfs_search(const gpm_u32 *starts, const gpm_u32 *targets, gpm_u32 level, gpm_u32 *levels, gpm_u32 *persistent,
                                      gpm_u64 *done, gpm_u32 *even, gpm_u32 *odd, bfs_counters *counters) {
    gpm_u32 first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    for (gpm_u32 round = 1;; round++, level++) {
        gpm_u32 n = *(volatile gpm_u32 *)&counters->found[level % 3];
        if (n == 0) return;
        // Those of the level before were read by all before the last meeting.
        if (first == 0) counters->found[(level + 2) % 3] = 0;
        // What other blocks have stored is not read by a cache of this one.
        const volatile gpm_u32 *frontier = level % 2 ? odd : even;
        gpm_u32 *next = level % 2 ? even : odd;
        for (gpm_u32 i = first; i < n; i += step) {
            gpm_u32 node = frontier[i];
            for (gpm_u32 edge = starts[node]; edge < starts[node + 1]; edge++) {
                gpm_u32 target = targets[edge];
                // One that was seen meanwhile may look as it was: the exchange tells.
                if (levels[target] == UNSEEN && atomicCAS(&levels[target], UNSEEN, level + 1) == UNSEEN) {
                    persistent[target] = level + 1;
                    next[atomicAdd(&counters->found[(level + 1) % 3], 1u)] = target;
                }
            }
        }
        gpm_persist();
        bfs_meet(counters, round);
        if (first == 0) *done = gpm_sealed_word(level + 1);
    }
}

// What a crash left: levels up to `level` count, and its nodes are the frontier.
extern "C" __global__ void bfs_resume(const gpm_u32 *persistent, gpm_u32 nodes, gpm_u32 level, gpm_u32 *levels, gpm_u32 *frontier,
                                      gpm_u32 *count) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= nodes) return;
    gpm_u32 found = persistent[i];
    levels[i] = found <= level ? found : UNSEEN;
    if (found == level) frontier[atomicAdd(count, 1u)] = i;
}
