/* A program with one fault, which LINT_FAULT names; without it a clean one. */
#include "check.h"

#include <stddef.h>

struct root {
    uint64_t added[4];
    uint64_t outside[4];
    PMEMmutex lock;
    PMEMoid list;
};

static PMEMobjpool *pool;
static struct root *root;
static const char *fault;

static int is(const char *name)
{
    return strcmp(fault, name) == 0;
}

static int construct(PMEMobjpool *unused, void *object, void *argument)
{
    (void)unused;
    memset(object, *(int *)argument, 100);
    return 0;
}

static void in_transaction(uint64_t round)
{
    TX_BEGIN_PARAM(pool, TX_PARAM_MUTEX, &root->lock, TX_PARAM_NONE) {
        pmemobj_tx_add_range_direct(&root->added[0], sizeof(uint64_t));
        root->added[0] = round;
        if (is("unlogged") && round == 3)
            root->added[2] = round;
        if (is("unused") && round == 4)
            pmemobj_tx_add_range_direct(&root->added[3], sizeof(uint64_t));
        PMEMoid object = pmemobj_tx_alloc(200, 1);
        memset(pmemobj_direct(object), (int)round, 200);
        if (round % 3 == 0)
            pmemobj_tx_abort(ECANCELED);
    } TX_END
}

static void outside(uint64_t round)
{
    root->outside[0] = round;
    root->outside[1] = round + 1;
    pmemobj_persist(pool, root->outside, 2 * sizeof(uint64_t));
    if (is("redundant") && round == 3)
        pmemobj_persist(pool, &root->outside[1], sizeof(uint64_t));
    if (is("unpersisted") && round == 3)
        root->outside[3] = round;
    root->outside[2] = round + 2;
    pmemobj_flush(pool, &root->outside[2], sizeof(uint64_t));
    pmemobj_drain(pool);
    int fill = (int)round;
    PMEMoid object;
    CHECK(pmemobj_alloc(pool, &object, 100, 2, construct, &fill) == 0);
    pmemobj_free(&object);
    CHECK(pmemobj_mutex_lock(pool, &root->lock) == 0);
    CHECK(pmemobj_mutex_unlock(pool, &root->lock) == 0);
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    const char *named = getenv("LINT_FAULT");
    fault = named == NULL ? "none" : named;
    pool = new_pool(arguments[1], 8);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    CHECK(root != NULL);
    for (uint64_t round = 1; round < 10; round++) {
        in_transaction(round);
        outside(round);
    }
    pmemobj_close(pool);
    return 0;
}
