/*
 * Pairs of an allocation and a release, of one size: `--variant atomic` by pmemobj_alloc and
 * pmemobj_free on a pointer in the pool, `--variant tx` by two transactions. Each object is stored
 * to while it lives.
 */
#include <stdlib.h>
#include <string.h>

#include "pool.h"

#define TYPE_OBJECT 1
/* Objects that live at the same time when the program checks that none overlap. */
#define LIVE 64

/* A thread's place in the root object: two never share a line. */
struct slot {
    _Alignas(128) PMEMoid object;
};

struct worker {
    const struct options *options;
    PMEMobjpool *pool;
    struct slot *slot;
    uint64_t mark;
};

/* Stores into a fresh object, and looks whether the mark of another thread comes between. */
static void use(const struct worker *worker, PMEMoid object)
{
    volatile uint64_t *first = pmemobj_direct(object);
    if (first == NULL)
        fail("an allocation failed: %s", pmemobj_errormsg());
    *first = worker->mark;
    if (*first != worker->mark)
        fail("two threads have the same object");
}

static void allocate_atomic(const struct worker *worker, PMEMoid *place)
{
    if (pmemobj_alloc(worker->pool, place, worker->options->bytes, TYPE_OBJECT, NULL, NULL) != 0)
        fail("an allocation failed: %s", pmemobj_errormsg());
}

static void work_atomic(void *context)
{
    const struct worker *worker = context;
    for (uint64_t op = 0; op < worker->options->ops; op++) {
        allocate_atomic(worker, &worker->slot->object);
        use(worker, worker->slot->object);
        pmemobj_free(&worker->slot->object);
    }
}

static PMEMoid allocate_tx(const struct worker *worker)
{
    PMEMoid object = OID_NULL, *place = &object;
    TX_BEGIN(worker->pool) {
        *place = pmemobj_tx_alloc(worker->options->bytes, TYPE_OBJECT);
        use(worker, *place);
    } TX_ONABORT {
        fail("a transaction was aborted: %s", pmemobj_errormsg());
    } TX_END
    return *place;
}

static void release_tx(const struct worker *worker, PMEMoid object)
{
    TX_BEGIN(worker->pool) {
        pmemobj_tx_free(object);
    } TX_ONABORT {
        fail("a transaction was aborted: %s", pmemobj_errormsg());
    } TX_END
}

static void work_tx(void *context)
{
    const struct worker *worker = context;
    for (uint64_t op = 0; op < worker->options->ops; op++)
        release_tx(worker, allocate_tx(worker));
}

/* Many objects live at once: each keeps its content. */
static void verify(const struct worker *worker)
{
    size_t bytes = worker->options->bytes;
    PMEMoid objects[LIVE];
    for (int i = 0; i < LIVE; i++) {
        allocate_atomic(worker, &objects[i]);
        memset(pmemobj_direct(objects[i]), i + 1, bytes);
    }
    for (int i = 0; i < LIVE; i++) {
        const char *object = pmemobj_direct(objects[i]);
        for (size_t at = 0; at < bytes; at++)
            if (object[at] != i + 1)
                fail("two objects overlap");
        pmemobj_free(&objects[i]);
        if (!OID_IS_NULL(objects[i]))
            fail("a released object's pointer is not null");
    }
}

int main(int argc, char **argv)
{
    struct options options = options_read(argc, argv);
    bool atomic = strcmp(options.variant, "atomic") == 0;
    if (!atomic && strcmp(options.variant, "tx") != 0)
        fail("--variant is atomic or tx");
    PMEMobjpool *pool = pool_create(&options);
    PMEMoid root = pmemobj_root(pool, (options.threads + 1) * sizeof(struct slot));
    if (OID_IS_NULL(root))
        fail("no root object: %s", pmemobj_errormsg());
    uintptr_t line = sizeof(struct slot);
    struct slot *slots = (struct slot *)(((uintptr_t)pmemobj_direct(root) + line - 1) / line * line);
    struct worker *workers = calloc(options.threads, sizeof *workers);
    void **contexts = calloc(options.threads, sizeof *contexts);
    for (unsigned i = 0; i < options.threads; i++) {
        workers[i] = (struct worker){&options, pool, &slots[i], 0x1111111111111111u * (i + 1)};
        contexts[i] = &workers[i];
    }
    bench_run(&options, atomic ? work_atomic : work_tx, contexts);
    verify(&workers[0]);
    pmemobj_close(pool);
    pool_report("alloc", options.ops * options.threads, "\"variant\":\"%s\",\"threads\":%u,\"bytes\":%zu",
                options.variant, options.threads, options.bytes);
    free(contexts);
    free(workers);
    return 0;
}
