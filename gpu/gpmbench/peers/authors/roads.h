// The graph that ours searches, made instead of read: `Graph::roads` of
// gpu/gpmbench/src/programs/bfs.rs.
#pragma once
#include <vector>

#include "pattern.h"

static const unsigned ROADS_LENGTH = 6000, ROADS_WIDTH = 4000;
static std::vector<unsigned> &road_starts() { static std::vector<unsigned> all; return all; }
static std::vector<unsigned> &road_targets() { static std::vector<unsigned> all; return all; }

static bool road_is(unsigned place, unsigned share) { return pattern(place, 1) % 100 < share; }

static void roads() {
    unsigned nodes = ROADS_LENGTH * ROADS_WIDTH;
    std::vector<std::pair<unsigned, unsigned>> edges;
    for (unsigned x = 0; x < ROADS_LENGTH; x++)
        for (unsigned y = 0; y < ROADS_WIDTH; y++) {
            unsigned here = x * ROADS_WIDTH + y;
            if (x + 1 < ROADS_LENGTH && (y == 0 || road_is(2 * here, 20))) edges.push_back({here, here + ROADS_WIDTH});
            if (y + 1 < ROADS_WIDTH) edges.push_back({here, here + 1});
        }
    auto &starts = road_starts(), &targets = road_targets();
    starts.assign(nodes + 1, 0);
    for (auto [a, b] : edges) starts[a + 1]++, starts[b + 1]++;
    for (unsigned node = 0; node < nodes; node++) starts[node + 1] += starts[node];
    std::vector<unsigned> next = starts;
    targets.resize(2 * edges.size());
    for (auto [a, b] : edges) targets[next[a]++] = b, targets[next[b]++] = a;
}

// Levels by the processor, to compare with.
static long long wrong_levels(const int *cost, int source, int infinite) {
    auto &starts = road_starts(), &targets = road_targets();
    std::vector<int> level(starts.size() - 1, infinite);
    std::vector<unsigned> queue{(unsigned)source};
    level[source] = 0;
    for (size_t at = 0; at < queue.size(); at++)
        for (unsigned edge = starts[queue[at]]; edge < starts[queue[at] + 1]; edge++)
            if (level[targets[edge]] == infinite) level[targets[edge]] = level[queue[at]] + 1, queue.push_back(targets[edge]);
    long long wrong = 0;
    for (size_t node = 0; node < level.size(); node++) wrong += level[node] != cost[node];
    std::printf("%zu nodes reached, last level %d, %lld levels wrong\n", queue.size(), level[queue.back()], wrong);
    return wrong;
}
