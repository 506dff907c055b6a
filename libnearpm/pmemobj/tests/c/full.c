/* Pools without room: errors say so, what is there stays, and objects can be freed all the same,
 * also after the next open. */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

static const size_t SIZES[] = {100000, 10000, 1000, 64};

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

/* A process fills the pool and dies; whoever opens it next tries to allocate first, and frees
 * then. */
static void filled_by_another(const char *path)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        pool = pmemobj_open(path, LAYOUT);
        CHECK(pool != NULL);
        first = pmemobj_direct(pmemobj_root(pool, sizeof(PMEMoid)));
        for (unsigned i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++)
            fill(SIZES[i]);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    pool = pmemobj_open(path, LAYOUT);
    CHECK(pool != NULL);
    first = pmemobj_direct(pmemobj_root(pool, sizeof(PMEMoid)));
    for (unsigned i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++)
        fill(SIZES[i]);
    while (!OID_IS_NULL(*first))
        free_first();
    CHECK(count_objects(pool) == 0);
    pmemobj_close(pool);
}

/* A change whose log finds no room aborts, and the pool goes on. */
static void change_without_room(const char *path)
{
    const size_t bytes = 8 << 20;
    volatile int aborted = 0;
    PMEMoid large, small;
    CHECK(remove(path) == 0);
    pool = new_pool(path, 16);
    CHECK(pmemobj_zalloc(pool, &large, bytes, 1) == 0);
    TX_BEGIN(pool) {
        pmemobj_tx_add_range(large, 0, bytes);
        memset(pmemobj_direct(large), 1, bytes);
    } TX_ONABORT {
        aborted = pmemobj_tx_errno();
    } TX_END
    CHECK(aborted == ENOMEM && *(char *)pmemobj_direct(large) == 0);
    CHECK(pmemobj_alloc(pool, &small, 100, 1, NULL, NULL) == 0);
    pmemobj_free(&large);
    CHECK(count_objects(pool) == 1);
    pmemobj_close(pool);
}

/* Who adds more than there is room for in the log is told by that call; what was added before is
 * committed. */
static void adds_without_room(const char *path)
{
    const size_t bytes = 4000;
    volatile int refused = 0, committed = 0, added = 0;
    CHECK(remove(path) == 0);
    pool = new_pool(path, 16);
    first = pmemobj_direct(pmemobj_root(pool, sizeof(PMEMoid)));
    fill(bytes);
    TX_BEGIN(pool) {
        for (PMEMoid oid = *first; !OID_IS_NULL(oid) && !refused; oid = ((struct chained *)pmemobj_direct(oid))->next) {
            refused = pmemobj_tx_xadd_range(oid, sizeof(PMEMoid), bytes - sizeof(PMEMoid), POBJ_XADD_NO_ABORT);
            if (!refused) {
                ((char *)pmemobj_direct(oid))[bytes - 1] = 1;
                added++;
            }
        }
    } TX_ONCOMMIT {
        committed = 1;
    } TX_END
    /* PMDK has not even room for one. */
    CHECK(refused == ENOMEM && committed && (is_pmdk || added > 10));
    pool = reopen(pool, path);
    first = pmemobj_direct(pmemobj_root(pool, sizeof(PMEMoid)));
    CHECK(((char *)pmemobj_direct(*first))[bytes - 1] == (added > 0));
    pmemobj_close(pool);
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    pool = new_pool(arguments[1], 16);
    first = pmemobj_direct(pmemobj_root(pool, sizeof(PMEMoid)));
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
    pmemobj_close(pool);
    filled_by_another(arguments[1]);
    change_without_room(arguments[1]);
    adds_without_room(arguments[1]);
    return 0;
}
