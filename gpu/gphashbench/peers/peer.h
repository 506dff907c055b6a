// What programs that measure other people's tables share: memory of the kind that our regions are
// in, keys, values, times, and a look at what was read.
#pragma once
#include <cuda_runtime.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define CHECK(call)                                                                                     \
    do {                                                                                                \
        cudaError_t error_ = (call);                                                                    \
        if (error_ != cudaSuccess) {                                                                    \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error_));        \
            std::exit(1);                                                                               \
        }                                                                                               \
    } while (0)

static const uint32_t VALUE_WORDS = 32;  // of 4 bytes: a value has 128, as in the paper
static const uint32_t THREADS = 128;

inline uint32_t blocks_of(uint64_t items) { return (uint32_t)((items + THREADS - 1) / THREADS); }

// Persistent memory: a memfd, whose pages of 4 KiB are pinned for the GPU.
struct Pm {
    void *at = nullptr;
    uint64_t bytes = 0;

    explicit Pm(uint64_t wanted) : bytes((wanted + 4095) / 4096 * 4096) {
        int file = memfd_create("peer", 0);
        if (file < 0 || ftruncate(file, (off_t)bytes) != 0) std::perror("memfd"), std::exit(1);
        at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
        if (at == MAP_FAILED) std::perror("mmap"), std::exit(1);
        close(file);
        CHECK(cudaHostRegister(at, bytes, cudaHostRegisterMapped));
    }
    Pm(const Pm &) = delete;
    ~Pm() {
        CHECK(cudaHostUnregister(at));
        munmap(at, bytes);
    }
};

// Different for different numbers, so that keys are; 32 and 64 bits.
__host__ __device__ inline uint32_t mix32(uint32_t word) {
    word = (word ^ word >> 16) * 0x85ebca6bu;
    word = (word ^ word >> 13) * 0xc2b2ae35u;
    return word ^ word >> 16;
}
__host__ __device__ inline uint64_t mix64(uint64_t word) {
    word = (word ^ word >> 33) * 0xff51afd7ed558ccdull;
    word = (word ^ word >> 33) * 0xc4ceb9fe1a85ec53ull;
    return word ^ word >> 33;
}
// A word of version `seed` of a record's value.
__host__ __device__ inline uint32_t value_word(uint32_t record, uint32_t seed, uint32_t word) {
    return mix32(record * VALUE_WORDS + word) ^ seed * 0x9e3779b9u;
}
// The order in which records are searched: another one than that of the inserts.
__host__ __device__ inline uint32_t shuffled(uint32_t number, uint32_t records) {
    return (uint32_t)((uint64_t)number * 2654435761u % records);
}

static __global__ void make_values(uint32_t *values, uint32_t first, uint64_t count, uint32_t seed) {
    uint64_t at = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
    if (at < count * VALUE_WORDS) values[at] = value_word(first + at / VALUE_WORDS, seed, at % VALUE_WORDS);
}
static __global__ void look(const uint32_t *found, uint64_t count, uint32_t records, bool in_order, uint32_t seed, uint32_t *wrong) {
    uint64_t at = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
    if (at >= count * VALUE_WORDS) return;
    uint32_t number = at / VALUE_WORDS, record = in_order ? number : shuffled(number, records);
    if (found[at] != value_word(record, seed, at % VALUE_WORDS)) atomicAdd(wrong, 1);
}
static __global__ void count_unlike(const uint8_t *answers, uint64_t count, uint8_t expected, uint32_t *wrong) {
    uint64_t at = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
    if (at < count && answers[at] != expected) atomicAdd(wrong, 1);
}

template <typename T> T *on_device(uint64_t count) {
    T *at;
    CHECK(cudaMalloc(&at, count * sizeof(T)));
    return at;
}

struct Counter {
    uint32_t *at = on_device<uint32_t>(1);
    Counter() { CHECK(cudaMemset(at, 0, 4)); }
    ~Counter() { cudaFree(at); }
    uint32_t value() const {
        uint32_t value;
        CHECK(cudaMemcpy(&value, at, 4, cudaMemcpyDeviceToHost));
        return value;
    }
};

// Ends the program where anything is wrong: no figure is printed then.
inline void none_wrong(const char *what, uint64_t wrong) {
    if (wrong == 0) return;
    std::fprintf(stderr, "%s: %llu are wrong, no figure is printed\n", what, (unsigned long long)wrong);
    std::exit(1);
}
inline void all_answer(const char *what, const uint8_t *answers, uint64_t count, uint8_t expected) {
    Counter wrong;
    count_unlike<<<blocks_of(count), THREADS>>>(answers, count, expected, wrong.at);
    none_wrong(what, wrong.value());
}
inline void all_read(const char *what, const uint32_t *found, uint64_t count, uint32_t records, bool in_order, uint32_t seed) {
    Counter wrong;
    look<<<blocks_of(count * VALUE_WORDS), THREADS>>>(found, count, records, in_order, seed, wrong.at);
    none_wrong(what, wrong.value());
}

// Milliseconds of what a function launches.
template <typename Work> double time_of(Work work) {
    cudaEvent_t from, to;
    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaEventRecord(from));
    work();
    CHECK(cudaEventRecord(to));
    CHECK(cudaEventSynchronize(to));
    CHECK(cudaGetLastError());
    float milliseconds;
    CHECK(cudaEventElapsedTime(&milliseconds, from, to));
    return milliseconds;
}
inline double median(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

// A line of results: million operations a second of a peer. It is printed when it ends, which a
// program that found something wrong does not come to.
struct Row {
    std::string line;
    Row(const char *peer, uint64_t pairs, double load) {
        char load_is[16];
        std::snprintf(load_is, sizeof load_is, "%.2f", load);
        line = "{\"peer\": \"" + std::string(peer) + "\", \"pairs\": " + std::to_string(pairs) + ", \"load\": " + load_is;
    }
    void count(const char *name, uint64_t value) { line += ", \"" + std::string(name) + "\": " + std::to_string(value); }
    void rate(const char *name, uint64_t operations, double milliseconds) {
        char rate_is[32];
        std::snprintf(rate_is, sizeof rate_is, "%.1f", operations / milliseconds / 1e3);
        line += ", \"" + std::string(name) + "_M\": " + rate_is;
    }
    ~Row() { std::printf("%s}\n", line.c_str()); }
};
