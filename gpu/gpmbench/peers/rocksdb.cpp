// gpKVS on RocksDB, the paper's figure 1a: batches of SETs of 8 bytes each, durable when a batch returns, by several threads.
//
//     g++ -O2 -std=c++17 rocksdb.cpp -lrocksdb -o rocksdb      (Debian: librocksdb-dev)
//     ./rocksdb FOLDER [SETS [SECONDS]]
//
// Each thread writes its part of a batch as one WriteBatch whose write-ahead log is synchronised: the batch of a thread is whole or not there, that of
// all is not, so that less is asked of RocksDB than of gpKVS. Before a time is told each key is read back, and once more from the files alone, by a
// database that is opened again.
//
// A batch begins small and grows four times up to SETS (2 M, the paper's) while SECONDS (60) in all suffice, so that a slow machine gives the rate of a smaller
// batch. What a synchronised write of 4 KiB takes there is told first: a batch has one for each of its threads.
#include <fcntl.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using rocksdb::Slice;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

// Of the smallest batch: 64 of its SETs for each of the most threads.
static const uint64_t FEWEST = 1 << 10;
static const uint64_t BATCHES = 4;

static uint64_t mix(uint64_t key) {
    key = (key ^ key >> 33) * 0xff51afd7ed558ccdull;
    key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53ull;
    return key ^ key >> 33;
}

static uint64_t key_of(uint64_t seed, uint64_t i) { return 1 + mix(seed << 32 | i) % (1ull << 40); }

static void check(const rocksdb::Status &status) {
    if (status.ok()) return;
    std::fprintf(stderr, "rocksdb: %s\n", status.ToString().c_str());
    std::exit(1);
}

static Slice bytes_of(const uint64_t &word) { return Slice(reinterpret_cast<const char *>(&word), sizeof word); }

// The parts of a batch, each by a thread.
template <typename Part> static void by_threads(unsigned threads, uint64_t count, Part part) {
    std::vector<std::thread> running;
    for (unsigned t = 0; t < threads; t++)
        running.emplace_back([=] { part(count * t / threads, count * (t + 1) / threads); });
    for (auto &thread : running) thread.join();
}

static rocksdb::Options options() {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = 512 << 20;
    options.unordered_write = true;
    // Else each log is given 590 MB at once, which a file system in memory fills with zeros.
    options.allow_fallocate = false;
    options.IncreaseParallelism(16);
    return options;
}

static double set(rocksdb::DB *db, unsigned threads, uint64_t seed, uint64_t count) {
    auto started = Clock::now();
    by_threads(threads, count, [=](uint64_t from, uint64_t to) {
        rocksdb::WriteBatch writes;
        for (uint64_t i = from; i < to; i++) {
            uint64_t key = key_of(seed, i), value = ~key;
            check(writes.Put(bytes_of(key), bytes_of(value)));
        }
        rocksdb::WriteOptions durable;
        durable.sync = true;
        check(db->Write(durable, &writes));
    });
    return Milliseconds(Clock::now() - started).count();
}

static void read_back(rocksdb::DB *db, unsigned threads, uint64_t seed, uint64_t count) {
    by_threads(threads, count, [=](uint64_t from, uint64_t to) {
        std::string found;
        for (uint64_t i = from; i < to; i++) {
            uint64_t key = key_of(seed, i), value = ~key;
            check(db->Get(rocksdb::ReadOptions(), bytes_of(key), &found));
            if (found.size() != sizeof value || std::memcmp(found.data(), &value, sizeof value)) {
                std::fprintf(stderr, "rocksdb: key %llu has another value\n", (unsigned long long)key);
                std::exit(1);
            }
        }
    });
}

static std::unique_ptr<rocksdb::DB> opened(const std::string &folder) {
    rocksdb::DB *db = nullptr;
    check(rocksdb::DB::Open(options(), folder, &db));
    return std::unique_ptr<rocksdb::DB>(db);
}

// The median of a few batches, which are in the files when it is told.
static double batch(const std::string &folder, unsigned threads, uint64_t count) {
    check(rocksdb::DestroyDB(folder, options()));
    auto db = opened(folder);
    std::vector<double> times;
    for (uint64_t seed = 0; seed < BATCHES; seed++) {
        times.push_back(set(db.get(), threads, seed, count));
        read_back(db.get(), threads, seed, count);
    }
    db.reset();
    db = opened(folder);
    for (uint64_t seed = 0; seed < BATCHES; seed++) read_back(db.get(), threads, seed, count);
    db.reset();
    check(rocksdb::DestroyDB(folder, options()));
    // The first makes the files.
    times.erase(times.begin());
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

// What a write of 4 KiB that is synchronised takes in the folder, in milliseconds.
static double synchronised_write(const std::string &folder) {
    std::string path = folder + "/rocksdb-write";
    int file = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (file < 0) return std::perror(path.c_str()), std::exit(1), 0;
    std::vector<char> page(4096, 1);
    const int count = 20;
    auto started = Clock::now();
    for (int i = 0; i < count; i++)
        if (write(file, page.data(), page.size()) != (ssize_t)page.size() || fdatasync(file)) return std::perror("write"), std::exit(1), 0;
    double time = Milliseconds(Clock::now() - started).count() / count;
    close(file);
    unlink(path.c_str());
    return time;
}

int main(int argc, char **argv) {
    if (argc < 2) return std::fprintf(stderr, "usage: rocksdb FOLDER [SETS [SECONDS]]\n"), 2;
    uint64_t most = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1 << 21;
    double seconds = argc > 3 ? std::strtod(argv[3], nullptr) : 60;
    if (most < FEWEST || !(seconds > 0)) return std::fprintf(stderr, "rocksdb: at least %llu SETs, and some seconds\n", (unsigned long long)FEWEST), 2;
    std::string folder = std::string(argv[1]) + "/rocksdb-sets";
    std::setvbuf(stdout, nullptr, _IOLBF, 1024);
    std::printf("a synchronised write of 4 KiB: %.3f ms\n", synchronised_write(argv[1]));
    const unsigned numbers[] = {16, 4, 1};
    for (unsigned threads : numbers) {
        auto started = Clock::now();
        double took = 0, allowed = seconds / std::size(numbers);
        // Four times as many take about four times as long.
        auto left = [&] { return allowed - Milliseconds(Clock::now() - started).count() / 1e3; };
        for (uint64_t count = FEWEST; 4 * took < left(); count = std::min(4 * count, most)) {
            auto begun = Clock::now();
            double time = batch(folder, threads, count);
            took = Milliseconds(Clock::now() - begun).count() / 1e3;
            std::printf("RocksDB, %u threads: a batch of %llu SETs in %.2f ms, %.3f M/s\n", threads, (unsigned long long)count, time, count / time / 1e3);
            if (count == most) break;
        }
    }
}
