// Batches of SETs of 8 bytes each, put into somebody else's store by several threads: keys,
// threads, and batches that grow.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

// SETs of the smallest batch: 64 for each of the most threads.
static const uint64_t FEWEST = 1 << 10;
// Batches of a size; the first makes files, or touches memory, and does not count.
static const uint64_t BATCHES = 4;

static uint64_t mix(uint64_t key) {
    key = (key ^ key >> 33) * 0xff51afd7ed558ccdull;
    key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53ull;
    return key ^ key >> 33;
}

static uint64_t key_of(uint64_t seed, uint64_t i) { return 1 + mix(seed << 32 | i) % (1ull << 40); }
static uint64_t value_of(uint64_t key) { return ~key; }

// Ends the program where a key has another value than it was given.
static void check_value(uint64_t key, const char *found, size_t bytes) {
    uint64_t value = value_of(key);
    if (bytes == sizeof value && !std::memcmp(found, &value, sizeof value)) return;
    std::fprintf(stderr, "key %llu has another value\n", (unsigned long long)key);
    std::exit(1);
}

// The parts of a batch, each by a thread. Gives the milliseconds that all of them took.
template <typename Part> static double by_threads(unsigned threads, uint64_t count, Part part) {
    auto started = Clock::now();
    std::vector<std::thread> running;
    for (unsigned t = 0; t < threads; t++)
        running.emplace_back([=] { part(count * t / threads, count * (t + 1) / threads); });
    for (auto &thread : running) thread.join();
    return Milliseconds(Clock::now() - started).count();
}

static double median_without_the_first(std::vector<double> times) {
    times.erase(times.begin());
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

// `batch(folder, threads, count)` gives the milliseconds of a batch that was looked at. Batches
// grow four times up to SETS (2 M, the paper's) while SECONDS (60) in all suffice, so that a slow
// machine gives the rate of a smaller one.
template <typename Batch> static int measure(int argc, char **argv, const char *store, Batch batch) {
    if (argc < 2) return std::fprintf(stderr, "usage: %s FOLDER [SETS [SECONDS]]\n", argv[0]), 2;
    uint64_t most = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1 << 21;
    double seconds = argc > 3 ? std::strtod(argv[3], nullptr) : 60;
    if (most < FEWEST || !(seconds > 0)) return std::fprintf(stderr, "at least %llu SETs, and some seconds\n", (unsigned long long)FEWEST), 2;
    std::setvbuf(stdout, nullptr, _IOLBF, 1024);
    const unsigned numbers[] = {16, 4, 1};
    for (unsigned threads : numbers) {
        auto started = Clock::now();
        double took = 0, allowed = seconds / std::size(numbers);
        auto left = [&] { return allowed - Milliseconds(Clock::now() - started).count() / 1e3; };
        // Four times as many take about four times as long.
        for (uint64_t count = FEWEST; 4 * took < left(); count = std::min(4 * count, most)) {
            auto begun = Clock::now();
            double time = batch(std::string(argv[1]), threads, count);
            took = Milliseconds(Clock::now() - begun).count() / 1e3;
            std::printf("%s, %u threads: a batch of %llu SETs in %.2f ms, %.3f M/s\n", store, threads, (unsigned long long)count, time, count / time / 1e3);
            if (count == most) break;
        }
    }
    return 0;
}
