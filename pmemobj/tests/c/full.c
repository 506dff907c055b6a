/* Pools without room: errors say so, what is there stays, and objects can be freed all the same, also after the next open. */
#include "check.h"

struct chained {
    PMEMoid next;
};

static PMEMobjpool *pool;
static PMEMoid *first;

/* Fills the pool with objects of a size; gives their number. */
static unsigned fill(size_t size)
{
    unsigned count = 0;
    PMEMoid oid;
    while (pmemobj_zalloc(pool, &oid, size, 1) == 0) {
        ((struct chained *)pmemobj_direct(oid))->next = *first;
        pmemobj_persist(pool, pmemobj_direct(oid), sizeof(struct chained));
        *first = oid;
        pmemobj_persist(pool, first, sizeof(*first));
        count++;
    }
    CHECK(errno == ENOMEM);
    return count;
}

static void free_first(void)
{
    PMEMoid oid = *first;
    TX_BEGIN(pool) {
        TX_ADD_DIRECT(first);
        *first = ((struct chained *)pmemobj_direct(oid))->next;
        pmemobj_tx_free(oid);
    } TX_ONABORT {
        CHECK(0);
    } TX_END
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    pool = new_pool(arguments[1], 16);
    first = pmemobj_direct(pmemobj_root(pool, sizeof(PMEMoid)));
    static const size_t SIZES[] = {100000, 10000, 1000, 64};
    unsigned objects = 0;
    for (unsigned i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++)
        objects += fill(SIZES[i]);
    CHECK(objects > 100 && count_objects(pool) == objects);
    volatile int aborted = 0;
    TX_BEGIN(pool) {
        pmemobj_tx_alloc(1000, 1);
    } TX_ONABORT {
        CHECK(pmemobj_tx_errno() == ENOMEM);
        aborted = 1;
    } TX_END
    CHECK(aborted && count_objects(pool) == objects);

    pool = reopen(pool, arguments[1]);
    first = pmemobj_direct(pmemobj_root(pool, sizeof(PMEMoid)));
    CHECK(count_objects(pool) == objects);
    for (unsigned i = 0; i < 10; i++)
        free_first();
    CHECK(count_objects(pool) == objects - 10);
    while (!OID_IS_NULL(*first))
        free_first();
    CHECK(count_objects(pool) == 0);
    for (unsigned i = 0; i < 2; i++)
        CHECK(fill(1000000) > 8 || i == 1);
    pmemobj_close(pool);
    return 0;
}
