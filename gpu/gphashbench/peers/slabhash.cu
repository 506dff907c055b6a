// SlabHash (Ashkiani and others, IPDPS 2018; github.com/owensgroup/SlabHash) with persistence
// added, and with the same patches in the GPU's memory.
//
// A pair of SlabHash is a key and a value of 4 bytes each, in one word of 8. Persistent: its slabs
// lie in PM, a value of 128 bytes in a cell of PM whose number is the pair's value; `patch.py` lets
// the slabs' memory come from here and keeps the allocator's bitmaps in the GPU's memory.
//
// | operation | what makes it durable |
// |---|---|
// | insert | value, fence, pair by one compare-and-swap, fence |
// | update | value in another cell, fence, pair by one compare-and-swap, fence |
// | delete | pair by one exchange, fence |
// | a slab more | empty and durable before it is linked; link, fence |
//
// No log is needed, as a pair is one word. All of this is in its favour: keys of 4 bytes; cells
// that nobody has to find; nothing that is freed; bitmaps that a recovery would have to make anew
// from the slabs, which is not here.
//
//     slabhash persistent|volatile LOAD PAIRS BATCH
//
// LOAD is of the slabs that buckets begin with. Each answer and each byte that is read is looked at
// before a figure is printed.
#include "peer.h"

// Where slabs and cells are; the allocator and the table ask for it.
static bool persistent;
static std::vector<Pm *> held;

static __global__ void fill_words(uint32_t *at, uint64_t words, uint32_t word) {
    uint64_t number = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
    if (number < words) at[number] = word;
    __threadfence_system();
}
static cudaError_t peer_allocate(void **at, uint64_t bytes) {
    if (!persistent) return cudaMalloc(at, bytes);
    held.push_back(new Pm(bytes));
    *at = held.back()->at;
    return cudaSuccess;
}
static cudaError_t peer_free(void *at) {
    if (!persistent) return cudaFree(at);
    auto of = std::find_if(held.begin(), held.end(), [&](Pm *pm) { return pm->at == at; });
    delete *of;
    held.erase(of);
    return cudaSuccess;
}
static cudaError_t peer_memset(void *at, int byte, uint64_t bytes) {
    fill_words<<<blocks_of(bytes / 4), THREADS>>>((uint32_t *)at, bytes / 4, (uint32_t)(byte & 0xff) * 0x01010101u);
    return cudaDeviceSynchronize();
}

#include "slab_hash.cuh"

using Table = GpuSlabHash<uint32_t, uint32_t, SlabHashTypeT::ConcurrentMap>;
using Context = GpuSlabHashContext<uint32_t, uint32_t, SlabHashTypeT::ConcurrentMap>;
using Map = ConcurrentMapT<uint32_t, uint32_t>;

static __device__ uint32_t key_of(uint32_t record) { return mix32(record); }

template <bool DURABLE> static __device__ void fence() {
    if (DURABLE) __threadfence_system();
}

// A warp stores its lanes' values, a value at a time.
static __device__ void put_values(uint32_t *cells, const uint32_t *values, uint32_t cell, uint32_t number, bool has, uint32_t lane) {
    for (uint32_t of = 0; of < 32; of++) {
        if (!__shfl_sync(~0u, has, of)) continue;
        uint64_t to = __shfl_sync(~0u, cell, of), from = __shfl_sync(~0u, number, of);
        cells[to * VALUE_WORDS + lane] = values[from * VALUE_WORDS + lane];
    }
}

template <bool DURABLE>
static __global__ void insert(Context table, uint32_t first, uint32_t count, uint32_t *cells, const uint32_t *values, uint8_t *answers) {
    uint32_t number = threadIdx.x + blockIdx.x * blockDim.x, lane = threadIdx.x & 31;
    if (number - lane >= count) return;
    AllocatorContextT allocator(table.getAllocatorContext());
    allocator.initAllocator(number, lane);
    bool has = number < count, todo = has;
    uint32_t key = has ? key_of(first + number) : 0, cell = first + number;
    put_values(cells, values, cell, number, has, lane);
    fence<DURABLE>();
    bool done = table.insertPairUnique(todo, lane, key, cell, table.computeBucket(key), allocator);
    fence<DURABLE>();
    if (has) answers[number] = done;
}

template <bool DURABLE>
static __global__ void update(Context table, uint32_t first, uint32_t count, uint32_t records, uint32_t *cells, const uint32_t *values, uint8_t *answers) {
    uint32_t number = threadIdx.x + blockIdx.x * blockDim.x, lane = threadIdx.x & 31;
    if (number - lane >= count) return;
    bool has = number < count, todo = has, done = false;
    // The cells behind those that inserts have taken.
    uint32_t key = has ? key_of(first + number) : 0, bucket = table.computeBucket(key), cell = records + first + number;
    put_values(cells, values, cell, number, has, lane);
    fence<DURABLE>();
    uint32_t next = Map::A_INDEX_POINTER, work, last = 0;
    while ((work = __ballot_sync(~0u, todo))) {
        if (work != last) next = Map::A_INDEX_POINTER;
        last = work;
        uint32_t source = __ffs(work) - 1;
        uint32_t wanted = __shfl_sync(~0u, key, source), from = __shfl_sync(~0u, bucket, source);
        volatile uint32_t *slab = next == Map::A_INDEX_POINTER ? table.getPointerFromBucket(from, 0) : table.getPointerFromSlab(next, 0);
        uint32_t word = slab[lane];
        int at = __ffs(__ballot_sync(~0u, word == wanted) & Map::REGULAR_NODE_KEY_MASK) - 1;
        if (at < 0) {
            next = __shfl_sync(~0u, word, 31);
            if (next == Map::EMPTY_INDEX_POINTER && lane == source) todo = false;
            continue;
        }
        uint64_t old = (uint64_t)__shfl_sync(~0u, word, at + 1) << 32 | wanted;
        if (lane == source && atomicCAS((unsigned long long *)(slab + at), old, (uint64_t)cell << 32 | wanted) == old) {
            todo = false;
            done = true;
        }
    }
    fence<DURABLE>();
    if (has) answers[number] = done;
}

static __global__ void search(Context table, uint32_t count, bool in_order, const uint32_t *cells, uint32_t *found, uint8_t *answers) {
    uint32_t number = threadIdx.x + blockIdx.x * blockDim.x, lane = threadIdx.x & 31;
    if (number - lane >= count) return;
    bool has = number < count, todo = has;
    uint32_t key = has ? key_of(in_order ? number : shuffled(number, count)) : 0, cell = SEARCH_NOT_FOUND;
    table.searchKey(todo, lane, key, cell, table.computeBucket(key));
    if (found != nullptr) {
        for (uint32_t of = 0; of < 32; of++) {
            uint64_t from = __shfl_sync(~0u, cell, of), to = number - lane + of;
            if (from != SEARCH_NOT_FOUND) found[to * VALUE_WORDS + lane] = cells[from * VALUE_WORDS + lane];
        }
    }
    if (has) answers[number] = cell != SEARCH_NOT_FOUND;
}

template <bool DURABLE> static __global__ void remove(Context table, uint32_t count, uint8_t *answers) {
    uint32_t number = threadIdx.x + blockIdx.x * blockDim.x, lane = threadIdx.x & 31;
    if (number - lane >= count) return;
    bool has = number < count, todo = has;
    uint32_t key = has ? key_of(shuffled(number, count)) : 0;
    bool done = table.deleteKey(todo, lane, key, table.computeBucket(key));
    fence<DURABLE>();
    if (has) answers[number] = done;
}

template <bool DURABLE> static void measure(double load, uint32_t pairs, uint32_t most) {
    std::vector<double> inserts;
    uint32_t *values = on_device<uint32_t>((uint64_t)pairs * VALUE_WORDS), *found = on_device<uint32_t>((uint64_t)pairs * VALUE_WORDS), *cells;
    uint8_t *answers = on_device<uint8_t>(pairs);
    // A cell for each pair, and one for its update.
    CHECK(peer_allocate((void **)&cells, 2ull * pairs * VALUE_WORDS * 4));
    uint32_t buckets = (uint32_t)(pairs / (15 * load));
    auto batches = [&](auto launch) {
        for (uint32_t first = 0; first < pairs; first += most) launch(first, std::min(most, pairs - first));
    };
    // The first table does not count: neither the link nor the GPU has been busy before it.
    const int tables = 4;
    for (int turn = 0; turn < tables; turn++) {
        DynamicAllocatorT allocator;
        Table table(buckets, &allocator, 0, 1);
        Context &context = table.context();
        auto fill = [&](uint32_t seed) { make_values<<<blocks_of((uint64_t)pairs * VALUE_WORDS), THREADS>>>(values, 0, pairs, seed); };
        fill(1);
        double time = time_of([&] {
            batches([&](uint32_t first, uint32_t count) {
                insert<DURABLE><<<blocks_of(count), THREADS>>>(context, first, count, cells, values + (uint64_t)first * VALUE_WORDS, answers + first);
            });
        });
        all_answer("insert", answers, pairs, 1);
        if (turn > 0) inserts.push_back(time);
        auto searched = [&](uint32_t *into, uint32_t seed, bool in_order) {
            std::vector<double> times;
            for (int repeat = 0; repeat < 5; repeat++)
                times.push_back(time_of([&] { search<<<blocks_of(pairs), THREADS>>>(context, pairs, in_order, cells, into, answers); }));
            all_answer("search", answers, pairs, 1);
            if (into != nullptr) all_read("search", into, pairs, pairs, in_order, seed);
            return median(times);
        };
        CHECK(cudaMemset(found, 0, (uint64_t)pairs * VALUE_WORDS * 4));
        // Every table's values are looked at, of all that were inserted.
        double with_value = searched(found, 1, false);
        if (turn + 1 < tables) continue;
        std::string name = std::string(DURABLE ? "SlabHash with persistence added, 4 + 128 B" : "SlabHash and values in the GPU's memory, 4 + 128 B") +
                           (most < pairs ? ", batches of 2^20" : ", one batch");
        Row row(name.c_str(), pairs, load);
        row.rate("insert", pairs, median(inserts));
        row.rate("find", pairs, with_value);
        row.rate("find_in_order", pairs, searched(found, 1, true));
        row.rate("find_keys", pairs, searched(nullptr, 1, false));
        fill(2);
        row.rate("update", pairs, time_of([&] {
            batches([&](uint32_t first, uint32_t count) {
                update<DURABLE><<<blocks_of(count), THREADS>>>(context, first, count, pairs, cells, values + (uint64_t)first * VALUE_WORDS, answers + first);
            });
        }));
        all_answer("update", answers, pairs, 1);
        row.rate("find_updated", pairs, searched(found, 2, false));
        row.rate("delete", pairs, time_of([&] { remove<DURABLE><<<blocks_of(pairs), THREADS>>>(context, pairs, answers); }));
        all_answer("delete", answers, pairs, 1);
        search<<<blocks_of(pairs), THREADS>>>(context, pairs, false, cells, nullptr, answers);
        all_answer("search behind deletes", answers, pairs, 0);
    }
    CHECK(peer_free(cells));
    cudaFree(values), cudaFree(found), cudaFree(answers);
}

int main(int count, char **words) {
    if (count != 5) {
        std::fprintf(stderr, "slabhash persistent|volatile LOAD PAIRS BATCH\n");
        return 2;
    }
    persistent = std::string(words[1]) == "persistent";
    double load = std::atof(words[2]);
    uint32_t pairs = (uint32_t)std::atoll(words[3]), most = (uint32_t)std::atoll(words[4]);
    for (uint32_t record = 0; record < pairs; record++) none_wrong("keys that SlabHash keeps for itself", mix32(record) == EMPTY_KEY);
    persistent ? measure<true>(load, pairs, most) : measure<false>(load, pairs, most);
}
