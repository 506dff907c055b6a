// BFS: levels of a graph's nodes, with native persistence: a node's level is stored to PM when it is found, and a level is done when the host has noted it.
#include "nearpm_gpm.cuh"

#define UNSEEN 0xffffffffu

// Nodes of one level find those of the next. `levels` is in the GPU's memory, `persistent` in PM.
extern "C" __global__ void bfs_level(const gpm_u32 *starts, const gpm_u32 *targets, const gpm_u32 *frontier, gpm_u32 n, gpm_u32 level,
                                     gpm_u32 *levels, gpm_u32 *persistent, gpm_u32 *next, gpm_u32 *count) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    gpm_u32 node = frontier[i];
    for (gpm_u32 edge = starts[node]; edge < starts[node + 1]; edge++) {
        gpm_u32 target = targets[edge];
        if (levels[target] == UNSEEN && atomicCAS(&levels[target], UNSEEN, level + 1) == UNSEEN) {
            persistent[target] = level + 1;
            next[atomicAdd(count, 1u)] = target;
        }
    }
    gpm_persist();
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
