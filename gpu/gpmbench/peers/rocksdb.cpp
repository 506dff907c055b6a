// gpKVS on RocksDB, the paper's figure 1a: batches of SETs of 8 bytes each, durable when a batch
// returns, by several threads.
//
//     g++ -O2 -std=c++17 rocksdb.cpp -lrocksdb -o rocksdb      (Debian: librocksdb-dev)
//     ./rocksdb FOLDER [SETS [SECONDS]]
//
// Each thread writes its part of a batch as one WriteBatch whose write-ahead log is synchronised:
// the batch of a thread is whole or not there, that of all is not, so that less is asked of RocksDB
// than of gpKVS. Before a time is told each key is read back, and once more from the files alone,
// by a database that is opened again.
//
// What a synchronised write of 4 KiB takes there is told first: a batch has one for each of its
// threads.
#include <fcntl.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>
#include <unistd.h>

#include <memory>

#include "sets.h"

using rocksdb::Slice;

static void check(const rocksdb::Status &status) {
    if (status.ok()) return;
    std::fprintf(stderr, "rocksdb: %s\n", status.ToString().c_str());
    std::exit(1);
}

static Slice bytes_of(const uint64_t &word) { return Slice(reinterpret_cast<const char *>(&word), sizeof word); }

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
    return by_threads(threads, count, [=](uint64_t from, uint64_t to) {
        rocksdb::WriteBatch writes;
        for (uint64_t i = from; i < to; i++) {
            uint64_t key = key_of(seed, i), value = value_of(key);
            check(writes.Put(bytes_of(key), bytes_of(value)));
        }
        rocksdb::WriteOptions durable;
        durable.sync = true;
        check(db->Write(durable, &writes));
    });
}

static void read_back(rocksdb::DB *db, unsigned threads, uint64_t seed, uint64_t count) {
    by_threads(threads, count, [=](uint64_t from, uint64_t to) {
        std::string found;
        for (uint64_t i = from; i < to; i++) {
            uint64_t key = key_of(seed, i);
            check(db->Get(rocksdb::ReadOptions(), bytes_of(key), &found));
            check_value(key, found.data(), found.size());
        }
    });
}

static std::unique_ptr<rocksdb::DB> opened(const std::string &folder) {
    rocksdb::DB *db = nullptr;
    check(rocksdb::DB::Open(options(), folder, &db));
    return std::unique_ptr<rocksdb::DB>(db);
}

// The median of a few batches, which are in the files when it is told.
static double batch(const std::string &in, unsigned threads, uint64_t count) {
    std::string folder = in + "/rocksdb-sets";
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
    return median_without_the_first(times);
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
    if (argc > 1) std::printf("a synchronised write of 4 KiB: %.3f ms\n", synchronised_write(argv[1]));
    return measure(argc, argv, "RocksDB", batch);
}
