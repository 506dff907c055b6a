/*
 * Inserts random keys into a map. An operation is one transaction { allocate an object of 8 B;
 * insert it under a key }, or `--batch` of them in one transaction. With more threads each has a
 * map of its own in the one pool.
 */
#include "maps.h"

#include <stdlib.h>
#include <string.h>

#include "pool.h"

static const struct map_kind *const KINDS[] = {&btree, &rbtree, &skiplist, &hashmap};

struct worker {
    const struct options *options;
    const struct map_kind *kind;
    PMEMobjpool *pool;
    PMEMoid map;
    uint64_t seed;
};

static uint64_t value_of(uint64_t key)
{
    return ~key;
}

static void insert(const struct worker *worker, uint64_t key)
{
    PMEMoid value = pmemobj_tx_alloc(sizeof(uint64_t), TYPE_VALUE);
    *(uint64_t *)pmemobj_direct(value) = value_of(key);
    worker->kind->insert(worker->pool, worker->map, key, value);
}

static void transaction(const struct worker *worker, uint64_t first, uint64_t behind)
{
    TX_BEGIN(worker->pool) {
        for (uint64_t i = first; i < behind; i++)
            insert(worker, sequence(worker->seed, i));
    } TX_ONABORT {
        fail("a transaction was aborted: %s", pmemobj_errormsg());
    } TX_END
}

static void work(void *context)
{
    const struct worker *worker = context;
    uint64_t ops = worker->options->ops, batch = worker->options->batch;
    for (uint64_t first = 0; first < ops; first += batch)
        transaction(worker, first, first + batch < ops ? first + batch : ops);
}

static void verify(const struct worker *worker)
{
    for (uint64_t i = 0; i < worker->options->ops; i++) {
        uint64_t key = sequence(worker->seed, i);
        PMEMoid value = worker->kind->find(worker->map, key);
        if (OID_IS_NULL(value))
            fail("key %llu of %llu is not in the map", (unsigned long long)i, (unsigned long long)worker->options->ops);
        if (*(uint64_t *)pmemobj_direct(value) != value_of(key))
            fail("key %llu has another's value", (unsigned long long)i);
    }
    for (uint64_t i = 0; i < 1000; i++)
        if (!OID_IS_NULL(worker->kind->find(worker->map, sequence(~worker->seed, i))))
            fail("a key is in the map that was never inserted");
}

static const struct map_kind *kind_named(const char *name)
{
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (strcmp(KINDS[i]->name, name) == 0)
            return KINDS[i];
    fail("there is no map \"%s\"", name);
}

/* Makes an empty map and hangs it into the root object. */
static void make_map(PMEMobjpool *pool, const struct map_kind *kind, PMEMoid *place)
{
    TX_BEGIN(pool) {
        SET(*place, kind->create());
    } TX_ONABORT {
        fail("the map cannot be made: %s", pmemobj_errormsg());
    } TX_END
}

int main(int argc, char **argv)
{
    struct options options = options_read(argc, argv);
    const struct map_kind *kind = kind_named(options.variant);
    PMEMobjpool *pool = pool_create(&options);
    PMEMoid root = pmemobj_root(pool, options.threads * sizeof(PMEMoid));
    PMEMoid *maps = pmemobj_direct(root);
    if (maps == NULL)
        fail("no root object: %s", pmemobj_errormsg());
    struct worker *workers = calloc(options.threads, sizeof *workers);
    void **contexts = calloc(options.threads, sizeof *contexts);
    for (unsigned i = 0; i < options.threads; i++) {
        make_map(pool, kind, &maps[i]);
        workers[i] = (struct worker){&options, kind, pool, maps[i], options.seed + i};
        contexts[i] = &workers[i];
    }
    bench_run(&options, work, contexts);
    for (unsigned i = 0; i < options.threads; i++)
        verify(&workers[i]);
    pmemobj_close(pool);
    pool_report("maps", options.ops * options.threads, "\"variant\":\"%s\",\"threads\":%u,\"batch\":%u", kind->name,
                options.threads, options.batch);
    free(contexts);
    free(workers);
    return 0;
}
