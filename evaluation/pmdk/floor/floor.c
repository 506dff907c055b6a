/*
 * The floor: what of libpmemobj's binary interface the benchmark's programs need, with no
 * persistence at all. Nothing is logged, flushed or fenced, nothing can be aborted or recovered.
 * What remains is the program's own work, the calls, and what the interface makes every library do:
 * keep the caller's jmp_buf of each transaction, give zeroed memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libpmemobj.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define UUID 0x4E50464C4F4F52u
#define GRAIN 16
/* Sizes up to here have a free list for each grain, larger ones for each power of two. */
#define SMALL_BYTES 1024
#define SMALL_CLASSES (SMALL_BYTES / GRAIN + 1)
#define CLASSES (SMALL_CLASSES + 32)
/* What a thread takes from the pool at once. */
#define CHUNK_BYTES ((uint64_t)64 << 10)
#define DEEPEST 32

/* Of the interface: pmemobj_direct, inline in the program, reads both. */
int _pobj_cache_invalidate;
__thread struct _pobj_pcache _pobj_cached_pool;

/* The one pool of a process. */
static char *base;
static uint64_t pool_bytes, root_offset;
static _Atomic uint64_t next_chunk;

/* Before each object, and the link of a free one. */
struct header {
    uint64_t size_class;
    struct header *next;
};

static __thread struct header *free_lists[CLASSES];
static __thread uint64_t chunk_at, chunk_end;

static __thread jmp_buf frames[DEEPEST];
static __thread enum pobj_tx_stage stages[DEEPEST];
static __thread unsigned depth;

static uint64_t class_of(uint64_t bytes)
{
    if (bytes <= SMALL_BYTES)
        return (bytes + GRAIN - 1) / GRAIN;
    return SMALL_CLASSES + (64 - (uint64_t)__builtin_clzll(bytes - 1)) - 10;
}

static uint64_t class_bytes(uint64_t size_class)
{
    return size_class < SMALL_CLASSES ? size_class * GRAIN : (uint64_t)1 << (size_class - SMALL_CLASSES + 10);
}

static uint64_t take(uint64_t bytes)
{
    if (bytes > CHUNK_BYTES / 4) {
        uint64_t at = atomic_fetch_add_explicit(&next_chunk, bytes, memory_order_relaxed);
        return at + bytes <= pool_bytes ? at : 0;
    }
    if (chunk_at + bytes > chunk_end) {
        chunk_at = atomic_fetch_add_explicit(&next_chunk, CHUNK_BYTES, memory_order_relaxed);
        chunk_end = chunk_at + CHUNK_BYTES;
        if (chunk_end > pool_bytes) {
            chunk_end = chunk_at;
            return 0;
        }
    }
    uint64_t at = chunk_at;
    chunk_at += bytes;
    return at;
}

static PMEMoid allocate(size_t bytes, int zeroed)
{
    uint64_t size_class = class_of(bytes);
    struct header *header = free_lists[size_class];
    if (header != NULL) {
        free_lists[size_class] = header->next;
    } else {
        uint64_t at = take(sizeof *header + class_bytes(size_class));
        if (at == 0) {
            errno = ENOMEM;
            return OID_NULL;
        }
        header = (struct header *)(base + at);
        header->size_class = size_class;
    }
    if (zeroed)
        memset(header + 1, 0, bytes);
    return (PMEMoid){UUID, (uint64_t)((char *)(header + 1) - base)};
}

static void release(PMEMoid oid)
{
    struct header *header = (struct header *)(base + oid.off) - 1;
    header->next = free_lists[header->size_class];
    free_lists[header->size_class] = header;
}

PMEMobjpool *pmemobj_create(const char *path, const char *layout, size_t bytes, mode_t mode)
{
    (void)layout;
    if (base != NULL) {
        errno = EBUSY;
        return NULL;
    }
    int file = open(path, O_RDWR | O_CREAT | O_EXCL, mode);
    if (file < 0)
        return NULL;
    void *mapping = MAP_FAILED;
    if (posix_fallocate(file, 0, (off_t)bytes) == 0)
        mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    close(file);
    if (mapping == MAP_FAILED)
        return NULL;
    base = mapping;
    pool_bytes = bytes;
    next_chunk = 4096;
    return mapping;
}

void pmemobj_close(PMEMobjpool *pool)
{
    munmap(pool, pool_bytes);
    base = NULL;
    _pobj_cache_invalidate++;
}

const char *pmemobj_errormsg(void)
{
    return strerror(errno);
}

PMEMobjpool *pmemobj_pool_by_oid(PMEMoid oid)
{
    return oid.pool_uuid_lo == UUID ? (PMEMobjpool *)base : NULL;
}

PMEMoid pmemobj_root(PMEMobjpool *pool, size_t bytes)
{
    (void)pool;
    if (root_offset == 0)
        root_offset = allocate(bytes, 1).off;
    return root_offset == 0 ? OID_NULL : (PMEMoid){UUID, root_offset};
}

int pmemobj_alloc(PMEMobjpool *pool, PMEMoid *place, size_t bytes, uint64_t type, pmemobj_constr constructor, void *argument)
{
    (void)type;
    PMEMoid fresh = allocate(bytes, 0);
    if (fresh.off == 0 || (constructor != NULL && constructor(pool, base + fresh.off, argument) != 0))
        return -1;
    if (place != NULL)
        *place = fresh;
    return 0;
}

void pmemobj_free(PMEMoid *place)
{
    if (place->off == 0)
        return;
    release(*place);
    *place = OID_NULL;
}

enum pobj_tx_stage pmemobj_tx_stage(void)
{
    return depth == 0 ? TX_STAGE_NONE : stages[depth - 1];
}

int pmemobj_tx_begin(PMEMobjpool *pool, jmp_buf environment, ...)
{
    (void)pool;
    if (depth == DEEPEST)
        abort();
    if (environment != NULL)
        memcpy(frames[depth], environment, sizeof(jmp_buf));
    stages[depth++] = TX_STAGE_WORK;
    return 0;
}

void pmemobj_tx_process(void)
{
    enum pobj_tx_stage *stage = &stages[depth - 1];
    *stage = *stage == TX_STAGE_WORK ? TX_STAGE_ONCOMMIT : *stage == TX_STAGE_ONCOMMIT ? TX_STAGE_FINALLY : TX_STAGE_NONE;
}

int pmemobj_tx_end(void)
{
    depth--;
    return 0;
}

int pmemobj_tx_errno(void)
{
    return 0;
}

int pmemobj_tx_add_range(PMEMoid oid, uint64_t offset, size_t bytes)
{
    (void)oid, (void)offset, (void)bytes;
    return 0;
}

int pmemobj_tx_add_range_direct(const void *start, size_t bytes)
{
    (void)start, (void)bytes;
    return 0;
}

PMEMoid pmemobj_tx_alloc(size_t bytes, uint64_t type)
{
    (void)type;
    return allocate(bytes, 0);
}

PMEMoid pmemobj_tx_zalloc(size_t bytes, uint64_t type)
{
    (void)type;
    return allocate(bytes, 1);
}

int pmemobj_tx_free(PMEMoid oid)
{
    if (oid.off != 0)
        release(oid);
    return 0;
}

void pmemobj_persist(PMEMobjpool *pool, const void *start, size_t bytes)
{
    (void)pool, (void)start, (void)bytes;
}

void *pmemobj_memcpy_persist(PMEMobjpool *pool, void *to, const void *from, size_t bytes)
{
    (void)pool;
    return memcpy(to, from, bytes);
}

void *pmemobj_memset_persist(PMEMobjpool *pool, void *to, int byte, size_t bytes)
{
    (void)pool;
    return memset(to, byte, bytes);
}
