/* Several threads at once: transactions, allocation, lists and messages of each its own. */
#include "check.h"

#include <pthread.h>
#include <stdint.h>

#define THREADS 4
#define ROUNDS 1000
#define KEPT 32

struct own {
    PMEMoid oids[KEPT];
    uint64_t sum;
};

struct root {
    struct own own[THREADS];
    PMEMmutex mutex;
    uint64_t shared;
};

static PMEMobjpool *pool;
static struct root *root;

static void one_round(struct own *own, uint64_t random, unsigned round)
{
    PMEMoid *at = &own->oids[random % KEPT];
    size_t bytes = 16 + random / KEPT % (round % 50 == 0 ? 100000 : 500);
    TX_BEGIN(pool) {
        TX_ADD_DIRECT(at);
        TX_ADD_DIRECT(&own->sum);
        if (OID_IS_NULL(*at)) {
            *at = pmemobj_tx_alloc(bytes, 1);
            uint64_t *data = pmemobj_direct(*at);
            *data = random;
            own->sum += random;
        } else {
            own->sum -= *(uint64_t *)pmemobj_direct(*at);
            pmemobj_tx_free(*at);
            *at = OID_NULL;
        }
        if (round % 7 == 0)
            pmemobj_tx_abort(EPERM);
    } TX_END
}

static void *work(void *argument)
{
    uintptr_t number = (uintptr_t)argument;
    struct own *own = &root->own[number];
    volatile uint64_t random = number + 1;
    for (volatile unsigned round = 0; round < ROUNDS; round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        one_round(own, random >> 20, round);
        TX_BEGIN_PARAM(pool, TX_PARAM_MUTEX, &root->mutex) {
            TX_ADD_DIRECT(&root->shared);
            root->shared++;
        } TX_END
        PMEMoid oid;
        CHECK(pmemobj_alloc(pool, &oid, 40 + round % 100, 2, NULL, NULL) == 0);
        pmemobj_memset_persist(pool, pmemobj_direct(oid), (int)number, 40);
        pmemobj_free(&oid);
    }
    /* The message of one thread is not that of another. */
    char expected[64];
    CHECK(pmemobj_errormsg()[0] != 0);
    CHECK(pmemobj_xpersist(pool, root, 8, 0x10u << number) == -1);
    snprintf(expected, sizeof(expected), "invalid flags 0x%x", 0x10u << number);
    for (unsigned i = 0; i < 1000; i++)
        CHECK(strcmp(pmemobj_errormsg(), expected) == 0);
    return NULL;
}

static void check_contents(void)
{
    unsigned objects = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        uint64_t sum = 0;
        for (unsigned k = 0; k < KEPT; k++)
            if (!OID_IS_NULL(root->own[i].oids[k])) {
                sum += *(uint64_t *)pmemobj_direct(root->own[i].oids[k]);
                objects++;
            }
        CHECK(sum == root->own[i].sum);
    }
    CHECK(root->shared == THREADS * ROUNDS && count_objects(pool) == objects && objects > 0);
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    pool = new_pool(arguments[1], 64);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    check_contents();
    pool = reopen(pool, arguments[1]);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    check_contents();
    pmemobj_close(pool);
    return 0;
}
