// gpKVS on pmemKV, the paper's figure 1a: batches of SETs of 8 bytes each by several threads, in its concurrent hash map (`cmap`).
//
//     g++ -O2 -std=c++17 pmemkv.cpp -lpmemkv -o pmemkv
//     PMEM_IS_PMEM_FORCE=1 ./pmemkv FOLDER [SETS [SECONDS]]
//
// pmemKV 1.5 and libpmemobj-cpp 1.13 are built from their repositories (BUILD_TESTS, BUILD_EXAMPLES, BUILD_DOC, BUILD_JSON_CONFIG, ENGINE_VCMAP,
// ENGINE_VSMAP, ENGINE_STREE off); Debian has what they need: libpmemobj-dev. Each SET is a transaction of its own, so that less is asked of it than of
// gpKVS, of which a batch is whole or not there. Memory that is none is taken to be persistent by PMEM_IS_PMEM_FORCE, as tmpfs is for ours.
//
// A batch begins small and grows four times up to SETS (2 M, the paper's) while SECONDS (60) in all suffice. Each key is read back, and once more when the
// pool was opened again.
#include <libpmemkv.hpp>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

using pmem::kv::status;
using pmem::kv::string_view;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

static const uint64_t FEWEST = 1 << 10;
static const uint64_t BATCHES = 4;

static uint64_t mix(uint64_t key) {
    key = (key ^ key >> 33) * 0xff51afd7ed558ccdull;
    key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53ull;
    return key ^ key >> 33;
}

static uint64_t key_of(uint64_t seed, uint64_t i) { return 1 + mix(seed << 32 | i) % (1ull << 40); }

static void check(status status) {
    if (status == pmem::kv::status::OK) return;
    std::fprintf(stderr, "pmemkv: %s\n", pmem::kv::errormsg().c_str());
    std::exit(1);
}

static string_view bytes_of(const uint64_t &word) { return string_view(reinterpret_cast<const char *>(&word), sizeof word); }

// The parts of a batch, each by a thread.
template <typename Part> static void by_threads(unsigned threads, uint64_t count, Part part) {
    std::vector<std::thread> running;
    for (unsigned t = 0; t < threads; t++)
        running.emplace_back([=] { part(count * t / threads, count * (t + 1) / threads); });
    for (auto &thread : running) thread.join();
}

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
    auto started = Clock::now();
    by_threads(threads, count, [&db, seed](uint64_t from, uint64_t to) {
        for (uint64_t i = from; i < to; i++) {
            uint64_t key = key_of(seed, i), value = ~key;
            check(db.put(bytes_of(key), bytes_of(value)));
        }
    });
    return Milliseconds(Clock::now() - started).count();
}

static void read_back(pmem::kv::db &db, unsigned threads, uint64_t seed, uint64_t count) {
    by_threads(threads, count, [&db, seed](uint64_t from, uint64_t to) {
        for (uint64_t i = from; i < to; i++) {
            uint64_t key = key_of(seed, i), value = ~key;
            bool right = false;
            check(db.get(bytes_of(key), [&](string_view found) {
                right = found.size() == sizeof value && !std::memcmp(found.data(), &value, sizeof value);
            }));
            if (!right) {
                std::fprintf(stderr, "pmemkv: key %llu has another value\n", (unsigned long long)key);
                std::exit(1);
            }
        }
    });
}

// The median of a few batches, which are in the file when it is told.
static double batch(const std::string &path, unsigned threads, uint64_t count) {
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
    // The first touches the memory.
    times.erase(times.begin());
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

int main(int argc, char **argv) {
    if (argc < 2) return std::fprintf(stderr, "usage: pmemkv FOLDER [SETS [SECONDS]]\n"), 2;
    uint64_t most = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1 << 21;
    double seconds = argc > 3 ? std::strtod(argv[3], nullptr) : 60;
    if (most < FEWEST || !(seconds > 0)) return std::fprintf(stderr, "pmemkv: at least %llu SETs, and some seconds\n", (unsigned long long)FEWEST), 2;
    std::string path = std::string(argv[1]) + "/pmemkv-sets";
    std::setvbuf(stdout, nullptr, _IOLBF, 1024);
    const unsigned numbers[] = {16, 4, 1};
    for (unsigned threads : numbers) {
        auto started = Clock::now();
        double took = 0, allowed = seconds / std::size(numbers);
        auto left = [&] { return allowed - Milliseconds(Clock::now() - started).count() / 1e3; };
        for (uint64_t count = FEWEST; 4 * took < left(); count = std::min(4 * count, most)) {
            auto begun = Clock::now();
            double time = batch(path, threads, count);
            took = Milliseconds(Clock::now() - begun).count() / 1e3;
            std::printf("pmemKV, %u threads: %llu SETs in %.2f ms, %.3f M/s\n", threads, (unsigned long long)count, time, count / time / 1e3);
            if (count == most) break;
        }
    }
}
