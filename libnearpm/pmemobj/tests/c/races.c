/* Threads that share words of a pool under its locks, for tools that look for races: `RACE=1`
 * leaves one lock away. */
#include "check.h"

#include <pthread.h>

enum { THREADS = 3, ROUNDS = 20 };

struct root {
    PMEMmutex mutex;
    PMEMrwlock rwlock;
    PMEMcond cond;
    long by_mutex, by_rwlock, by_transaction, arrived;
};

static PMEMobjpool *pool;
static struct root *root;
static int races;

static void *work(void *argument)
{
    (void)argument;
    for (volatile int i = 0; i < ROUNDS; i++) {
        if (!races)
            CHECK(pmemobj_mutex_lock(pool, &root->mutex) == 0);
        root->by_mutex++;
        if (!races)
            CHECK(pmemobj_mutex_unlock(pool, &root->mutex) == 0);

        CHECK(pmemobj_rwlock_wrlock(pool, &root->rwlock) == 0);
        root->by_rwlock++;
        CHECK(pmemobj_rwlock_unlock(pool, &root->rwlock) == 0);
        CHECK(pmemobj_rwlock_rdlock(pool, &root->rwlock) == 0);
        CHECK(root->by_rwlock > 0);
        CHECK(pmemobj_rwlock_unlock(pool, &root->rwlock) == 0);

        TX_BEGIN_PARAM(pool, TX_PARAM_MUTEX, &root->mutex, TX_PARAM_NONE) {
            TX_ADD_DIRECT(&root->by_transaction);
            root->by_transaction++;
        } TX_ONABORT {
            CHECK(0);
        } TX_END
    }
    CHECK(pmemobj_mutex_lock(pool, &root->mutex) == 0);
    root->arrived++;
    CHECK(pmemobj_cond_broadcast(pool, &root->cond) == 0);
    while (root->arrived < THREADS)
        CHECK(pmemobj_cond_wait(pool, &root->cond, &root->mutex) == 0);
    CHECK(pmemobj_mutex_unlock(pool, &root->mutex) == 0);
    return NULL;
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    races = getenv("RACE") != NULL;
    pool = new_pool(arguments[1], 16);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(races || root->by_mutex == THREADS * ROUNDS);
    CHECK(root->by_rwlock == THREADS * ROUNDS && root->by_transaction == THREADS * ROUNDS);
    pmemobj_close(pool);
    return 0;
}
