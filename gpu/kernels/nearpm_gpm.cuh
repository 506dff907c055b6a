// Device side of GPM: what a kernel calls to keep data in persistent memory (PM) that is mapped
// into the GPU.
//
// No includes, so that NVRTC and nvcc both take it. The names are those of the paper (GPM, ASPLOS
// 2022, Table 2).
//
// A log is described to kernels by a `gpmlog` in the GPU's own memory, which the host makes anew
// whenever it opens the log: pointers are there and nowhere in PM. A kernel copies it into a local
// variable first, so that its fields stay in registers across fences:
//
//     __global__ void kernel(const gpmlog *described, ...) {
//         const gpmlog log = *described;
//         gpmlog_insert(&log, &entry, sizeof entry);
//
// Launches are one-dimensional.
#pragma once

typedef unsigned int gpm_u32;
typedef unsigned long long gpm_u64;

#define GPM_WARP 32u
// Bytes of a line, the unit of PCIe writes that a warp's stores are joined to.
#define GPM_LINE 128u

// What a call returns, and what the host finds in the log's status word (the highest of all
// threads).
#define GPM_OK 0
#define GPM_FULL 1       // no room for one more entry: nothing was written
#define GPM_SIZE 2       // the entry has another size than the log's
#define GPM_SHAPE 3      // the launch has another shape than the log's
#define GPM_PARTITION 4  // the log has no such partition
#define GPM_EMPTY 5      // there is no entry to read or remove

#define GPM_LOG_SEALED 1u  // hierarchical, entries with a seal: one fence an insert
#define GPM_LOG_TAIL 2u    // hierarchical, a tail word a thread: two fences an insert
#define GPM_LOG_CONV 3u    // partitions with a lock each

// Do not persist each insert: the caller does, before it stores what the entries stand for.
#define GPM_UNSTRICT 1u
// The tail of a conventional log is read from the GPU's memory, not from PM.
#define GPM_MIRROR 2u

// A log as kernels see it. Host: `nearpm-gpm`, `Descriptor`.
struct gpmlog {
    gpm_u32 kind;
    gpm_u32 flags;
    gpm_u32 blocks;      // launch shape of a hierarchical log; partitions of a conventional one
    gpm_u32 threads;     // threads a block
    gpm_u32 words;       // 4-byte words of an entry, without its seal
    gpm_u32 depth;       // entries a thread; words a partition of a conventional log
    gpm_u32 generation;  // entries of another generation do not count
    gpm_u32 reserved;
    char *data;          // PM: stripes, or partitions
    char *tails;         // PM: a word a thread; a line a partition
    gpm_u32 *counts;     // GPU memory: entries a thread; words a partition
    gpm_u32 *locks;      // GPU memory: a word a partition
    gpm_u32 *status;     // GPU memory: worst error
    gpm_u64 stride;      // bytes from partition to partition
};

// ---- Persist ------------------------------------------------------------------------------------

// All stores of this thread so far, and those it has observed, are ordered before all its later
// ones. Durability `Ordered`.
static __device__ __forceinline__ void gpm_persist() { __threadfence_system(); }

// The same, and what was stored at `address` has arrived in the memory: PCIe gives a read back only
// behind the writes that went before it. Durability `Arrived`.
static __device__ __forceinline__ gpm_u32 gpm_persist_arrived(const void *address) {
    __threadfence_system();
    return *(const volatile gpm_u32 *)address;
}

// ---- Copies -------------------------------------------------------------------------------------

// Copies by all threads of the grid, without a persist. Both addresses and the size are multiples
// of 16 bytes.
static __device__ __forceinline__ void gpm_memcpy_nodrain(void *to, const void *from, gpm_u64 bytes) {
    gpm_u64 step = (gpm_u64)gridDim.x * blockDim.x;
    for (gpm_u64 at = (gpm_u64)blockIdx.x * blockDim.x + threadIdx.x; at < bytes / 16; at += step)
        ((uint4 *)to)[at] = ((const uint4 *)from)[at];
}

// The same, and each thread persists what it stored.
static __device__ __forceinline__ void gpm_memcpy(void *to, const void *from, gpm_u64 bytes) {
    gpm_memcpy_nodrain(to, from, bytes);
    gpm_persist();
}

// Fills by all threads of the grid with a word, without a persist.
static __device__ __forceinline__ void gpm_memset_nodrain(void *to, gpm_u32 word, gpm_u64 bytes) {
    gpm_u64 step = (gpm_u64)gridDim.x * blockDim.x;
    for (gpm_u64 at = (gpm_u64)blockIdx.x * blockDim.x + threadIdx.x; at < bytes / 16; at += step)
        ((uint4 *)to)[at] = make_uint4(word, word, word, word);
}

// The same, and each thread persists what it stored.
static __device__ __forceinline__ void gpm_memset(void *to, gpm_u32 word, gpm_u64 bytes) {
    gpm_memset_nodrain(to, word, bytes);
    gpm_persist();
}

// ---- Seals --------------------------------------------------------------------------------------

// An identifier of 48 bits with the low half of its CRC-32C above it: a word that is stored whole,
// and tells what was never stored. Host: `seal_word` of `nearpm-interface`.
static __device__ __forceinline__ gpm_u64 gpm_sealed_word(gpm_u64 id) {
    gpm_u32 crc = 0xffffffffu;
    for (gpm_u32 bit = 0; bit < 48; bit++) crc = crc >> 1 ^ (((crc ^ (gpm_u32)(id >> bit)) & 1u) ? 0x82f63b78u : 0u);
    return id | (gpm_u64)(~crc & 0xffffu) << 48;
}

// The seal of an entry: a word that tells a whole entry of this generation from any other contents
// of its slot. For the same payload two generations never have the same seal, so that what an
// earlier batch left whole is refused for certain. An entry of which one word is missing is refused
// for certain, too; one of which more are, but for one in 2^32. Zero, which is what a new log and a
// removed entry have, is no seal. Host: `nearpm-gpm`, `seal_of`.
static __device__ __forceinline__ gpm_u32 gpm_seal_step(gpm_u32 h, gpm_u32 word) {
    h = (h ^ word) * 0x85ebca6bu;
    return h ^ h >> 13;
}

static __device__ __forceinline__ gpm_u32 gpm_seal_start(gpm_u32 words) { return 0x9e3779b9u ^ words; }

static __device__ __forceinline__ gpm_u32 gpm_seal_end(gpm_u32 h, gpm_u32 generation) {
    h *= 0xc2b2ae35u;
    h ^= h >> 16;
    h ^= generation * 0x9e3779b1u;
    return h ? h : 0xffffffffu;
}

static __device__ __forceinline__ gpm_u32 gpm_seal(const gpm_u32 *payload, gpm_u32 words, gpm_u32 generation) {
    gpm_u32 h = gpm_seal_start(words);
#pragma unroll
    for (gpm_u32 j = 0; j < words; j++) h = gpm_seal_step(h, payload[j]);
    return gpm_seal_end(h, generation);
}

// ---- Hierarchical log ---------------------------------------------------------------------------
//
// Grid > block > warp: each warp has `depth` entries one behind the other, each of one line a word:
// lane l has word l of every line. What a warp stores at once is one line.

// Number of this thread in a log of its launch's shape: warps are whole.
static __device__ __forceinline__ gpm_u32 gpmlog_thread(const gpmlog *log) {
    return blockIdx.x * ((log->threads + GPM_WARP - 1) / GPM_WARP * GPM_WARP) + threadIdx.x;
}

static __device__ __forceinline__ gpm_u32 *gpmlog_place(const gpmlog *log, gpm_u32 thread, gpm_u32 slot, gpm_u32 words) {
    gpm_u32 stripes = words + (log->kind == GPM_LOG_SEALED ? 1 : 0);
    gpm_u64 entry = (gpm_u64)(thread / GPM_WARP) * log->depth + slot;
    return (gpm_u32 *)(log->data + entry * stripes * GPM_LINE) + thread % GPM_WARP;
}

static __device__ __forceinline__ int gpmlog_failed(const gpmlog *log, int what) {
    atomicMax(log->status, (gpm_u32)what);
    return what;
}

static __device__ __forceinline__ gpm_u32 gpmlog_tail_word(const gpmlog *log, gpm_u32 count) {
    return log->generation << 16 | count;
}

// Puts an entry into a slot that the caller knows to be free, and persists it. `thread` is a number
// as of `gpmlog_thread`; `words` is the log's, as a constant, so that loops unroll.
static __device__ __forceinline__ void gpmlog_put(const gpmlog *log, gpm_u32 thread, gpm_u32 slot, const gpm_u32 *payload,
                                                  gpm_u32 words) {
    gpm_u32 *place = gpmlog_place(log, thread, slot, words);
#pragma unroll
    for (gpm_u32 j = 0; j < words; j++) place[j * (GPM_LINE / 4)] = payload[j];
    if (log->kind == GPM_LOG_SEALED) {
        place[words * (GPM_LINE / 4)] = gpm_seal(payload, words, log->generation);
    } else {
        // The tail must not be there before the entry is.
        gpm_persist();
        ((gpm_u32 *)log->tails)[thread] = gpmlog_tail_word(log, slot + 1);
    }
    if (!(log->flags & GPM_UNSTRICT)) gpm_persist();
}

// Reads the entry of a slot. Whether it counts in this generation; of a tail log the caller asks
// the tail.
static __device__ __forceinline__ bool gpmlog_get(const gpmlog *log, gpm_u32 thread, gpm_u32 slot, gpm_u32 *payload,
                                                  gpm_u32 words) {
    const volatile gpm_u32 *place = gpmlog_place(log, thread, slot, words);
#pragma unroll
    for (gpm_u32 j = 0; j < words; j++) payload[j] = place[j * (GPM_LINE / 4)];
    if (log->kind != GPM_LOG_SEALED) return true;
    gpm_u32 seal = place[words * (GPM_LINE / 4)];
    return seal == gpm_seal(payload, words, log->generation);
}

// Entries of a thread as PM has them: for the mirror in the GPU's memory when a log is opened.
static __device__ __forceinline__ gpm_u32 gpmlog_stored(const gpmlog *log, gpm_u32 thread) {
    if (log->kind == GPM_LOG_TAIL) {
        gpm_u32 tail = ((const volatile gpm_u32 *)log->tails)[thread];
        gpm_u32 count = tail & 0xffffu;
        return (tail >> 16) == (log->generation & 0xffffu) && count <= log->depth ? count : 0;
    }
    gpm_u32 count = 0;
    for (; count < log->depth; count++) {
        const volatile gpm_u32 *place = gpmlog_place(log, thread, count, log->words);
        gpm_u32 h = gpm_seal_start(log->words);
        for (gpm_u32 j = 0; j < log->words; j++) h = gpm_seal_step(h, place[j * (GPM_LINE / 4)]);
        if (place[log->words * (GPM_LINE / 4)] != gpm_seal_end(h, log->generation)) break;
    }
    return count;
}

static __device__ __forceinline__ int gpmhcl_check(const gpmlog *log, gpm_u32 size) {
    if (size != log->words * 4) return GPM_SIZE;
    return gridDim.x == log->blocks && blockDim.x == log->threads ? GPM_OK : GPM_SHAPE;
}

// ---- Conventional log ---------------------------------------------------------------------------
//
// A partition is a line with its tail, {generation 32 bit, words 32 bit} in one word of 8 bytes,
// and room for entries, one behind the other. Its lock is in the GPU's memory: a crash frees it.

static __device__ __forceinline__ gpm_u32 *gpmconv_entries(const gpmlog *log, gpm_u32 partition) {
    return (gpm_u32 *)(log->data + partition * log->stride + GPM_LINE);
}

static __device__ __forceinline__ volatile gpm_u64 *gpmconv_tail(const gpmlog *log, gpm_u32 partition) {
    return (volatile gpm_u64 *)(log->data + partition * log->stride);
}

static __device__ __forceinline__ gpm_u32 gpmconv_stored(const gpmlog *log, gpm_u32 partition) {
    gpm_u64 tail = *gpmconv_tail(log, partition);
    gpm_u32 words = (gpm_u32)tail;
    return (gpm_u32)(tail >> 32) == log->generation && words <= log->depth ? words : 0;
}

static __device__ __forceinline__ void gpmconv_set(const gpmlog *log, gpm_u32 partition, gpm_u32 words) {
    *gpmconv_tail(log, partition) = (gpm_u64)log->generation << 32 | words;
    ((volatile gpm_u32 *)log->counts)[partition] = words;
}

static __device__ __forceinline__ gpm_u32 gpmconv_words(const gpmlog *log, gpm_u32 partition) {
    if (log->flags & GPM_MIRROR) return ((const volatile gpm_u32 *)log->counts)[partition];
    return gpmconv_stored(log, partition);
}

static __device__ __forceinline__ bool gpmconv_try_lock(const gpmlog *log, gpm_u32 partition) {
    if (atomicCAS(&log->locks[partition], 0u, 1u) != 0u) return false;
    __threadfence();
    return true;
}

static __device__ __forceinline__ void gpmconv_unlock(const gpmlog *log, gpm_u32 partition) {
    __threadfence();
    atomicExch(&log->locks[partition], 0u);
}

static __device__ __forceinline__ int gpmconv_append(const gpmlog *log, const gpm_u32 *entry, gpm_u32 words,
                                                     gpm_u32 partition) {
    gpm_u32 at = gpmconv_words(log, partition);
    if (words > log->depth - at) return GPM_FULL;
    gpm_u32 *place = gpmconv_entries(log, partition) + at;
    // One store is one transaction for certain; of several to one place a card joins some.
    if (words % 4 == 0 && (gpm_u64)place % 16 == 0) {
#pragma unroll
        for (gpm_u32 j = 0; j < words; j += 4) {
            uint4 four = {entry[j], entry[j + 1], entry[j + 2], entry[j + 3]};
            *(uint4 *)(place + j) = four;
        }
    } else {
#pragma unroll
        for (gpm_u32 j = 0; j < words; j++) place[j] = entry[j];
    }
    gpm_persist();
    gpmconv_set(log, partition, at + words);
    if (!(log->flags & GPM_UNSTRICT)) gpm_persist();
    return GPM_OK;
}

// ---- The paper's calls --------------------------------------------------------------------------

// Inserts an entry of `size` bytes, a multiple of 4, and persists it. Without a partition a
// conventional log takes the thread's number modulo its partitions.
static __device__ __forceinline__ int gpmlog_insert(const gpmlog *log, const void *entry, gpm_u32 size,
                                                    int partition = -1) {
    const gpm_u32 *payload = (const gpm_u32 *)entry;
    if (log->kind == GPM_LOG_CONV) {
        gpm_u32 p = partition < 0 ? (blockIdx.x * blockDim.x + threadIdx.x) % log->blocks : (gpm_u32)partition;
        if (p >= log->blocks) return gpmlog_failed(log, GPM_PARTITION);
        if (size % 4 || size == 0) return gpmlog_failed(log, GPM_SIZE);
        int outcome = GPM_OK;
        // Lanes of one warp may wait for each other: the one that has the lock goes on inside of
        // the loop.
        for (bool done = false; !done;) {
            if (gpmconv_try_lock(log, p)) {
                outcome = gpmconv_append(log, payload, size / 4, p);
                gpmconv_unlock(log, p);
                done = true;
            }
        }
        return outcome ? gpmlog_failed(log, outcome) : GPM_OK;
    }
    int wrong = gpmhcl_check(log, size);
    if (wrong) return gpmlog_failed(log, wrong);
    gpm_u32 thread = gpmlog_thread(log);
    gpm_u32 slot = log->counts[thread];
    if (slot >= log->depth) return gpmlog_failed(log, GPM_FULL);
    gpmlog_put(log, thread, slot, payload, size / 4);
    log->counts[thread] = slot + 1;
    return GPM_OK;
}

// Entries (of a conventional log: words) that the calling thread, or the partition, has.
static __device__ __forceinline__ gpm_u32 gpmlog_get_size(const gpmlog *log, int partition = -1) {
    if (log->kind == GPM_LOG_CONV) return (gpm_u32)partition < log->blocks ? gpmconv_words(log, partition) : 0;
    return log->counts[gpmlog_thread(log)];
}

static __device__ __forceinline__ bool gpmlog_is_empty(const gpmlog *log, int partition = -1) {
    return gpmlog_get_size(log, partition) == 0;
}

// Reads the newest entry.
static __device__ __forceinline__ int gpmlog_read(const gpmlog *log, void *entry, gpm_u32 size, int partition = -1) {
    gpm_u32 *payload = (gpm_u32 *)entry;
    if (log->kind == GPM_LOG_CONV) {
        if ((gpm_u32)partition >= log->blocks) return gpmlog_failed(log, GPM_PARTITION);
        gpm_u32 at = gpmconv_words(log, partition);
        if (at < size / 4) return GPM_EMPTY;
        const gpm_u32 *place = gpmconv_entries(log, partition) + (at - size / 4);
        for (gpm_u32 j = 0; j < size / 4; j++) payload[j] = place[j];
        return GPM_OK;
    }
    int wrong = gpmhcl_check(log, size);
    if (wrong) return gpmlog_failed(log, wrong);
    gpm_u32 thread = gpmlog_thread(log);
    gpm_u32 count = log->counts[thread];
    if (count == 0) return GPM_EMPTY;
    return gpmlog_get(log, thread, count - 1, payload, size / 4) ? GPM_OK : GPM_EMPTY;
}

// Removes the newest entry of a hierarchical log's thread, durably, and of a conventional log's
// partition, whose caller takes care that no other thread uses it.
static __device__ __forceinline__ int gpmlog_remove(const gpmlog *log, gpm_u32 size, int partition = -1) {
    if (log->kind == GPM_LOG_CONV) {
        if ((gpm_u32)partition >= log->blocks) return gpmlog_failed(log, GPM_PARTITION);
        gpm_u32 at = gpmconv_words(log, partition);
        if (at < size / 4) return GPM_EMPTY;
        gpmconv_set(log, partition, at - size / 4);
        gpm_persist();
        return GPM_OK;
    }
    int wrong = gpmhcl_check(log, size);
    if (wrong) return gpmlog_failed(log, wrong);
    gpm_u32 thread = gpmlog_thread(log);
    gpm_u32 count = log->counts[thread];
    if (count == 0) return GPM_EMPTY;
    if (log->kind == GPM_LOG_SEALED)
        gpmlog_place(log, thread, count - 1, log->words)[log->words * (GPM_LINE / 4)] = 0;
    else
        ((gpm_u32 *)log->tails)[thread] = gpmlog_tail_word(log, count - 1);
    gpm_persist();
    log->counts[thread] = count - 1;
    return GPM_OK;
}

// Reads the newest entry and removes it.
static __device__ __forceinline__ int gpmlog_read_remove(const gpmlog *log, void *entry, gpm_u32 size,
                                                         int partition = -1) {
    int outcome = gpmlog_read(log, entry, size, partition);
    return outcome ? outcome : gpmlog_remove(log, size, partition);
}

// Removes all entries of the calling thread, or of the partition, durably. The host clears a whole
// log at once, for less.
static __device__ __forceinline__ int gpmlog_clear(const gpmlog *log, int partition = -1) {
    if (log->kind == GPM_LOG_CONV) {
        if ((gpm_u32)partition >= log->blocks) return gpmlog_failed(log, GPM_PARTITION);
        gpmconv_set(log, partition, 0);
        gpm_persist();
        return GPM_OK;
    }
    if (gridDim.x != log->blocks || blockDim.x != log->threads) return gpmlog_failed(log, GPM_SHAPE);
    gpm_u32 thread = gpmlog_thread(log);
    if (log->kind == GPM_LOG_SEALED)
        // An entry that keeps its seal would count again when the slots before it are used again.
        for (gpm_u32 slot = log->counts[thread]; slot-- > 0;)
            gpmlog_place(log, thread, slot, log->words)[log->words * (GPM_LINE / 4)] = 0;
    else
        ((gpm_u32 *)log->tails)[thread] = gpmlog_tail_word(log, 0);
    gpm_persist();
    log->counts[thread] = 0;
    return GPM_OK;
}
