// gpKVS on pmemKV, the paper's figure 1a: batches of SETs of 8 bytes each by several threads, in
// its concurrent hash map (`cmap`).
//
//     g++ -O2 -std=c++17 pmemkv.cpp -lpmemkv -o pmemkv
//     PMEM_IS_PMEM_FORCE=1 ./pmemkv FOLDER [SETS [SECONDS]]
//
// pmemKV 1.5 and libpmemobj-cpp 1.13 are built from their repositories (BUILD_TESTS,
// BUILD_EXAMPLES, BUILD_DOC, BUILD_JSON_CONFIG, ENGINE_VCMAP, ENGINE_VSMAP, ENGINE_STREE off);
// Debian has what they need: libpmemobj-dev. Each SET is a transaction of its own, so that less is
// asked of it than of gpKVS, of which a batch is whole or not there. Memory that is none is taken
// to be persistent by PMEM_IS_PMEM_FORCE, as tmpfs is for ours.
//
// Each key is read back, and once more when the pool was opened again.
#include <libpmemkv.hpp>
#include <unistd.h>

#include "sets.h"

using pmem::kv::status;
using pmem::kv::string_view;

static void check(status status) {
    if (status == pmem::kv::status::OK) return;
    std::fprintf(stderr, "pmemkv: %s\n", pmem::kv::errormsg().c_str());
    std::exit(1);
}

static string_view bytes_of(const uint64_t &word) { return string_view(reinterpret_cast<const char *>(&word), sizeof word); }

static void open(pmem::kv::db &db, const std::string &path, uint64_t bytes) {
    pmem::kv::config config;
    check(config.put_path(path));
    if (bytes) {
        check(config.put_size(bytes));
        check(config.put_create_if_missing(true));
    }
    check(db.open("cmap", std::move(config)));
}

static double set(pmem::kv::db &db, unsigned threads, uint64_t seed, uint64_t count) {
    return by_threads(threads, count, [&db, seed](uint64_t from, uint64_t to) {
        for (uint64_t i = from; i < to; i++) {
            uint64_t key = key_of(seed, i), value = value_of(key);
            check(db.put(bytes_of(key), bytes_of(value)));
        }
    });
}

static void read_back(pmem::kv::db &db, unsigned threads, uint64_t seed, uint64_t count) {
    by_threads(threads, count, [&db, seed](uint64_t from, uint64_t to) {
        for (uint64_t i = from; i < to; i++) {
            uint64_t key = key_of(seed, i);
            check(db.get(bytes_of(key), [&](string_view found) { check_value(key, found.data(), found.size()); }));
        }
    });
}

// The median of a few batches, which are in the file when it is told.
static double batch(const std::string &folder, unsigned threads, uint64_t count) {
    std::string path = folder + "/pmemkv-sets";
    unlink(path.c_str());
    std::vector<double> times;
    {
        pmem::kv::db db;
        // A pair, its node and its share of the buckets take less than 512 bytes.
        open(db, path, (256u << 20) + 512 * BATCHES * count);
        for (uint64_t seed = 0; seed < BATCHES; seed++) {
            times.push_back(set(db, threads, seed, count));
            read_back(db, threads, seed, count);
        }
        db.close();
    }
    pmem::kv::db db;
    open(db, path, 0);
    for (uint64_t seed = 0; seed < BATCHES; seed++) read_back(db, threads, seed, count);
    db.close();
    unlink(path.c_str());
    return median_without_the_first(times);
}

int main(int argc, char **argv) { return measure(argc, argv, "pmemKV", batch); }
