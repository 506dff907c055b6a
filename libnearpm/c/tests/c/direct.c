/* What the interface of direct pools promises, used as it is meant. */
#include "check.h"

#include <stdint.h>

struct root {
    uint64_t words[600];
    uint64_t objects[100];
};

static struct nearpm_options options;
static struct nearpm_pool *pool;
static const char *path;
static struct root *root;

static void reopen(void)
{
    OK(nearpm_close(pool));
    OK(nearpm_open(path, &options, &pool));
    OK(nearpm_root(pool, sizeof *root, (void **)&root));
}

static unsigned count_objects(void)
{
    unsigned count = 0;
    void *object = NULL, *before = NULL;
    for (;;) {
        OK(nearpm_next(pool, object, &object));
        if (!object)
            return count;
        CHECK(object > before);
        before = object;
        count++;
    }
}

static void roots(void)
{
    void *found = &found;
    struct nearpm_tx *tx;
    uint64_t size;
    OK(nearpm_root(pool, 0, &found));
    CHECK(found == NULL);
    OK(nearpm_root(pool, sizeof *root, (void **)&root));
    OK(nearpm_root(pool, sizeof *root, &found));
    CHECK(found == root);
    for (unsigned i = 0; i < 600; i++)
        CHECK(root->words[i] == 0);
    OK(nearpm_usable_size(pool, root, &size));
    CHECK(size >= sizeof *root);
    /* Another root, taken back, then committed; then the former one may go. */
    void *other;
    for (int commit = 0; commit < 2; commit++) {
        OK(nearpm_tx_begin(pool, &tx));
        OK(nearpm_tx_zalloc(tx, sizeof *root, &other));
        OK(nearpm_tx_set_root(tx, other));
        OK(nearpm_tx_free(tx, root));
        OK(commit ? nearpm_tx_commit(tx) : nearpm_tx_abort(tx));
        OK(nearpm_root(pool, 0, &found));
        CHECK(found == (commit ? other : (void *)root));
    }
    reopen();
    CHECK(count_objects() == 1);
}

static void transactions(void)
{
    struct nearpm_tx *tx;
    void *object;
    for (int commit = 0; commit < 2; commit++) {
        const struct nearpm_range ranges[] = {{&root->words[0], 80}, {&root->words[500], 8}};
        OK(nearpm_tx_begin(pool, &tx));
        OK(nearpm_tx_add_all(tx, ranges, 2));
        OK(nearpm_tx_add(tx, &root->words[5], 80));
        for (unsigned i = 0; i < 15; i++)
            root->words[i] = 100 + i;
        root->words[500] = 500;
        OK(nearpm_tx_add_new(tx, &root->words[550], 8));
        root->words[550] = 550;
        OK(nearpm_tx_zalloc(tx, 5000, &object));
        for (unsigned i = 0; i < 5000; i++)
            CHECK(((char *)object)[i] == 0);
        memset(object, 0xab, 5000);
        OK(nearpm_tx_add(tx, &root->objects[0], 8));
        root->objects[0] = nearpm_offset(pool, object);
        OK(commit ? nearpm_tx_commit(tx) : nearpm_tx_abort(tx));
        CHECK((root->words[14] == 114) == commit && (root->objects[0] != 0) == commit);
    }
    reopen();
    CHECK(root->words[0] == 100 && root->words[14] == 114 && root->words[500] == 500 && root->words[550] == 550);
    unsigned char *bytes = (unsigned char *)nearpm_direct(pool, root->objects[0]);
    for (unsigned i = 0; i < 5000; i++)
        CHECK(bytes[i] == 0xab);
    OK(nearpm_tx_begin(pool, &tx));
    OK(nearpm_tx_free(tx, bytes));
    OK(nearpm_tx_add(tx, &root->objects[0], 8));
    root->objects[0] = 0;
    OK(nearpm_tx_commit(tx));
    CHECK(count_objects() == 1);
}

static void atomic_objects(void)
{
    uint64_t mine = 0, nothing = 0;
    for (unsigned i = 0; i < 100; i++) {
        uint64_t contents[4] = {i, i, i, i};
        OK(nearpm_alloc(pool, sizeof contents, i % 2 ? contents : NULL, &root->objects[i]));
    }
    OK(nearpm_alloc(pool, 10, "ordinary", &mine));
    CHECK(count_objects() == 102);
    reopen();
    for (unsigned i = 0; i < 100; i++) {
        uint64_t *object = (uint64_t *)nearpm_direct(pool, root->objects[i]);
        for (unsigned j = 0; j < 4; j++)
            CHECK(object[j] == (i % 2 ? i : 0));
        OK(nearpm_free(pool, &root->objects[i]));
        CHECK(root->objects[i] == 0);
    }
    CHECK(strcmp((char *)nearpm_direct(pool, mine), "ordinary") == 0);
    OK(nearpm_free(pool, &mine));
    OK(nearpm_free(pool, &nothing));
    CHECK(mine == 0 && count_objects() == 1);
    reopen();
    CHECK(root->objects[0] == 0 && root->objects[99] == 0 && count_objects() == 1);
}

static void outside_of_transactions(void)
{
    const struct nearpm_range ranges[] = {{&root->words[20], 8}, {&root->words[300], 8}};
    root->words[20] = 20;
    root->words[300] = 300;
    root->words[21] = 21;
    OK(nearpm_persist_all(pool, ranges, 2));
    OK(nearpm_persist(pool, &root->words[21], 8));
    OK(nearpm_wait_durable(pool));
    reopen();
    CHECK(root->words[20] == 20 && root->words[300] == 300 && root->words[21] == 21);
}

static void reports(void)
{
    struct nearpm_tx *tx;
    /* A program of tomorrow, which knows more fields, and one of yesterday. */
    struct { struct nearpm_info known; uint64_t unknown; } longer;
    uint64_t first[1];
    longer.unknown = 1;
    OK(nearpm_get_info(pool, &longer.known, sizeof longer));
    CHECK(longer.unknown == 0 && longer.known.bytes == 8 << 20 && longer.known.mode == options.mode);
    CHECK(longer.known.base == (char *)root - nearpm_offset(pool, root) && longer.known.id == 77);
    CHECK(longer.known.heap_start < longer.known.heap_end && longer.known.free_bytes < longer.known.bytes);
    struct nearpm_statistics before, after;
    OK(nearpm_get_statistics(pool, &before, sizeof before));
    OK(nearpm_tx_begin(pool, &tx));
    OK(nearpm_tx_add(tx, root->words, 8));
    root->words[0]++;
    OK(nearpm_tx_commit(tx));
    OK(nearpm_tx_begin(pool, &tx));
    OK(nearpm_tx_abort(tx));
    OK(nearpm_get_statistics(pool, &after, sizeof after));
    OK(nearpm_get_statistics(pool, (struct nearpm_statistics *)first, sizeof first));
    CHECK(after.transactions == before.transactions + 1 && after.aborts == before.aborts + 1);
    CHECK(first[0] == after.transactions && after.log_bytes > before.log_bytes && after.fences > before.fences);
    CHECK(after.log_entries > before.log_entries && after.lines_written_back > before.lines_written_back);
    /* A card makes the copies for pools that lie on it, unless the processor does. */
    CHECK((after.commands > before.commands) ==
          (on_card() && options.mechanism != NEARPM_BY_RECORD && options.executor != NEARPM_CPU));
    struct nearpm_heap heap;
    OK(nearpm_get_heap(pool, &heap, sizeof heap));
    CHECK(heap.objects == 1 && heap.used_bytes >= sizeof *root);
    CHECK((heap.log_bytes > 0) == (options.mechanism == NEARPM_BY_RECORD));
    CHECK(heap.largest_free_bytes > 0 && heap.largest_free_bytes <= heap.free_bytes);
    struct nearpm_recovery recovery;
    OK(nearpm_get_recovery(pool, &recovery, sizeof recovery));
    CHECK(recovery.undone == 0 && recovery.redone == 0 && recovery.bytes == 0);
    /* What is left in a ring of an entry that a newer one lies over looks like a torn one. */
    CHECK(recovery.torn == 0 || options.mechanism != NEARPM_BY_RECORD);
}

/* Twice at once for reading: what was committed is seen, and nothing can be changed. */
static void read_only(void)
{
    struct nearpm_options reading;
    struct nearpm_pool *readers[2];
    struct nearpm_tx *tx;
    uint64_t offset = 0;
    memset(&reading, 0, sizeof reading);
    reading.read_only = 1;
    uint64_t first = root->words[0];
    if (on_card()) {
        REFUSED(NEARPM_EINVAL, nearpm_open(path, &reading, &readers[0]));
        return;
    }
    OK(nearpm_close(pool));
    for (int i = 0; i < 2; i++) {
        struct root *seen;
        OK(nearpm_open(path, &reading, &readers[i]));
        OK(nearpm_root(readers[i], sizeof *seen, (void **)&seen));
        CHECK(seen->words[0] == first);
        REFUSED(NEARPM_EACCES, nearpm_tx_begin(readers[i], &tx));
        REFUSED(NEARPM_EACCES, nearpm_alloc(readers[i], 8, NULL, &offset));
        REFUSED(NEARPM_EACCES, nearpm_persist(readers[i], seen, 8));
    }
    REFUSED(NEARPM_EBUSY, nearpm_open(path, &options, &pool));
    OK(nearpm_close(readers[0]));
    OK(nearpm_close(readers[1]));
    OK(nearpm_open(path, &options, &pool));
    OK(nearpm_root(pool, sizeof *root, (void **)&root));
}

/* Several pools, each with its transactions on one thread. */
static void several_pools(void)
{
    struct nearpm_pool *other;
    struct nearpm_tx *here, *there;
    char name[4096];
    uint64_t *word;
    snprintf(name, sizeof name, "%s.other", path);
    OK(nearpm_create(name, 2 << 20, NULL, &other));
    OK(nearpm_root(other, 8, (void **)&word));
    OK(nearpm_tx_begin(pool, &here));
    OK(nearpm_tx_begin(other, &there));
    OK(nearpm_tx_add(here, root->words, 8));
    OK(nearpm_tx_add(there, word, 8));
    REFUSED(NEARPM_ERANGE, nearpm_tx_add(here, word, 8));
    uint64_t old = root->words[0]++;
    *word = 5;
    OK(nearpm_tx_abort(here));
    OK(nearpm_tx_commit(there));
    CHECK(root->words[0] == old && *word == 5);
    OK(nearpm_close(other));
    OK(nearpm_open(name, NULL, &other));
    OK(nearpm_root(other, 8, (void **)&word));
    CHECK(*word == 5);
    OK(nearpm_close(other));
    CHECK(remove(name) == 0);
}

int main(int count, char **arguments)
{
    path = arguments[1];
    options = options_of(count, arguments);
    options.id = 77;
    options.prefault = 1;
    CHECK(strlen(nearpm_version()) >= 5);
    OK(nearpm_create(path, 8 << 20, &options, &pool));
    roots();
    transactions();
    atomic_objects();
    outside_of_transactions();
    reports();
    read_only();
    several_pools();
    OK(nearpm_close(pool));
    return 0;
}
