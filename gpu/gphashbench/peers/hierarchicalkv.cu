// HierarchicalKV (github.com/NVIDIA-Merlin/HierarchicalKV): keys of 8 bytes in the GPU's memory,
// values of 128 bytes in pinned memory of the host. It is volatile: nothing is ordered, and keys
// are in no memory that survives.
//
//     hierarchicalkv CAPACITY BATCH        fills 0.8 of the capacity, a power of two
//
// An old pair makes room for a new one where a bucket is full: what is not there any more is told,
// everything else is looked at byte by byte.
#include "merlin_hashtable.cuh"
#include "peer.h"

using Table = nv::merlin::HashTable<uint64_t, float, uint64_t, nv::merlin::EvictStrategy::kLru>;

static __global__ void make_keys(uint64_t *keys, uint32_t first, uint32_t count, uint32_t records, bool in_order) {
    uint32_t number = threadIdx.x + blockIdx.x * blockDim.x;
    if (number < count) keys[number] = mix64(1 + (in_order ? first + number : shuffled(first + number, records)));
}
static __global__ void look_at_found(const uint32_t *found, const bool *there, uint32_t first, uint32_t count, uint32_t records, uint32_t seed,
                                     uint32_t *wrong, uint32_t *missing) {
    uint64_t at = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
    if (at >= (uint64_t)count * VALUE_WORDS) return;
    uint32_t number = at / VALUE_WORDS, word = at % VALUE_WORDS;
    if (!there[number]) {
        if (word == 0) atomicAdd(missing, 1);
    } else if (found[at] != value_word(shuffled(first + number, records), seed, word)) {
        atomicAdd(wrong, 1);
    }
}

int main(int count, char **words) {
    if (count != 3) {
        std::fprintf(stderr, "hierarchicalkv CAPACITY BATCH\n");
        return 2;
    }
    const uint64_t capacity = std::atoll(words[1]);
    const uint32_t most = (uint32_t)std::atoll(words[2]), pairs = (uint32_t)(capacity * 8 / 10);
    uint64_t *keys = on_device<uint64_t>(pairs);
    uint32_t *values = on_device<uint32_t>((uint64_t)pairs * VALUE_WORDS), *found = on_device<uint32_t>((uint64_t)pairs * VALUE_WORDS);
    bool *there = on_device<bool>(pairs);
    auto batches = [&](auto run) {
        for (uint32_t first = 0; first < pairs; first += most) run(first, std::min(most, pairs - first));
    };
    std::vector<double> inserts, updates, searches;
    uint32_t missing = 0;
    // The first table does not count.
    for (int turn = 0; turn < 4; turn++) {
        nv::merlin::HashTableOptions options;
        options.init_capacity = options.max_capacity = capacity;
        options.max_hbm_for_vectors = 0;
        options.max_load_factor = 1.0f;
        options.dim = VALUE_WORDS;
        options.device_id = 0;
        Table table;
        table.init(options);
        auto put = [&](uint32_t seed) {
            make_keys<<<blocks_of(pairs), THREADS>>>(keys, 0, pairs, pairs, true);
            make_values<<<blocks_of((uint64_t)pairs * VALUE_WORDS), THREADS>>>(values, 0, pairs, seed);
            return time_of([&] {
                batches([&](uint32_t first, uint32_t of) {
                    table.insert_or_assign(of, keys + first, (const float *)(values + (uint64_t)first * VALUE_WORDS));
                });
            });
        };
        auto get = [&](uint32_t seed) {
            make_keys<<<blocks_of(pairs), THREADS>>>(keys, 0, pairs, pairs, false);
            CHECK(cudaMemset(found, 0, (uint64_t)pairs * VALUE_WORDS * 4));
            double time = time_of([&] {
                batches([&](uint32_t first, uint32_t of) {
                    table.find(of, keys + first, (float *)(found + (uint64_t)first * VALUE_WORDS), there + first);
                });
            });
            Counter wrong, absent;
            batches([&](uint32_t first, uint32_t of) {
                look_at_found<<<blocks_of((uint64_t)of * VALUE_WORDS), THREADS>>>(found + (uint64_t)first * VALUE_WORDS, there + first, first, of, pairs,
                                                                                  seed, wrong.at, absent.at);
            });
            none_wrong("search", wrong.value());
            missing = absent.value();
            return time;
        };
        double inserted = put(1), searched = get(1), updated = put(2);
        get(2);
        // Room is made for few.
        none_wrong("pairs that are not there any more, of a hundred", missing > pairs / 100 ? missing : 0);
        if (turn > 0) inserts.push_back(inserted), searches.push_back(searched), updates.push_back(updated);
    }
    Row row("HierarchicalKV, values in pinned memory of the host, volatile", pairs, 0.8);
    row.rate("insert", pairs, median(inserts));
    row.rate("find", pairs, median(searches));
    row.rate("update", pairs, median(updates));
    row.count("not_there", missing);
}
