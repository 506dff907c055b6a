// gpKVS on RocksDB, the paper's figure 1a: batches of SETs of 8 bytes each, durable when a batch returns, by several threads.
//
//     g++ -O2 -std=c++17 rocksdb.cpp -lrocksdb -o rocksdb      (Debian: librocksdb-dev)
//     ./rocksdb FOLDER [SETS]
//
// Each thread writes its part of a batch as one WriteBatch whose write-ahead log is synchronised: the batch of a thread is whole or not there, that of
// all is not, so that less is asked of RocksDB than of gpKVS. Before a time is told each key is read back.
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

using rocksdb::Slice;

static uint64_t mix(uint64_t key) {
    key = (key ^ key >> 33) * 0xff51afd7ed558ccdull;
    key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53ull;
    return key ^ key >> 33;
}

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

static double batch(rocksdb::DB *db, unsigned threads, uint64_t seed, uint64_t count) {
    auto key_of = [=](uint64_t i) { return 1 + mix(seed << 32 | i) % (1ull << 40); };
    auto started = std::chrono::steady_clock::now();
    by_threads(threads, count, [=](uint64_t from, uint64_t to) {
        rocksdb::WriteBatch writes;
        for (uint64_t i = from; i < to; i++) {
            uint64_t key = key_of(i), value = ~key;
            check(writes.Put(bytes_of(key), bytes_of(value)));
        }
        rocksdb::WriteOptions durable;
        durable.sync = true;
        check(db->Write(durable, &writes));
    });
    std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - started;
    by_threads(threads, count, [=](uint64_t from, uint64_t to) {
        std::string found;
        for (uint64_t i = from; i < to; i++) {
            uint64_t key = key_of(i), value = ~key;
            check(db->Get(rocksdb::ReadOptions(), bytes_of(key), &found));
            if (found.size() != sizeof value || std::memcmp(found.data(), &value, sizeof value)) {
                std::fprintf(stderr, "rocksdb: key %llu has another value\n", (unsigned long long)key);
                std::exit(1);
            }
        }
    });
    return time.count();
}

int main(int argc, char **argv) {
    if (argc < 2) return std::fprintf(stderr, "usage: rocksdb FOLDER [SETS]\n"), 2;
    uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1 << 21;
    std::string folder = std::string(argv[1]) + "/rocksdb-sets";
    std::setvbuf(stdout, nullptr, _IOLBF, 1024);
    for (unsigned threads : {16u, 4u, 1u}) {
        rocksdb::Options options;
        options.create_if_missing = options.error_if_exists = true;
        options.write_buffer_size = 512 << 20;
        options.unordered_write = true;
        options.IncreaseParallelism(16);
        check(rocksdb::DestroyDB(folder, options));
        rocksdb::DB *db = nullptr;
        check(rocksdb::DB::Open(options, folder, &db));
        std::vector<double> times;
        for (uint64_t seed = 0; seed < 4; seed++) times.push_back(batch(db, threads, seed, count));
        // The first makes the files.
        times.erase(times.begin());
        std::sort(times.begin(), times.end());
        std::printf("RocksDB, %u threads: a batch of %llu SETs in %.1f ms, %.2f M/s\n", threads, (unsigned long long)count, times[1],
                    count / times[1] / 1e3);
        delete db;
        check(rocksdb::DestroyDB(folder, options));
    }
}
