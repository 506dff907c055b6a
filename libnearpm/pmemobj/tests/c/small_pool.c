/* Many threads, each with a small object of its own size, in a small pool: nobody's transaction
 * finds no space because of what other threads have at hand. */
#include "check.h"

#include <pthread.h>
#include <stdint.h>

#define THREADS 256
#define ROUNDS 20

static PMEMobjpool *pool;
static pthread_barrier_t barrier;
static unsigned aborts;

static void *work(void *argument)
{
    uintptr_t number = (uintptr_t)argument;
    PMEMoid volatile kept = OID_NULL;
    pthread_barrier_wait(&barrier);
    for (volatile int round = 0; round < ROUNDS; round++) {
        PMEMoid volatile fresh = OID_NULL;
        TX_BEGIN(pool) {
            fresh = pmemobj_tx_alloc(100 + number, 2);
            if (!OID_IS_NULL(kept))
                pmemobj_tx_free(kept);
        } TX_ONCOMMIT {
            kept = fresh;
        } TX_ONABORT {
            __atomic_add_fetch(&aborts, 1, __ATOMIC_SEQ_CST);
        } TX_END
    }
    pthread_barrier_wait(&barrier);
    return NULL;
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    pool = new_pool(arguments[1], 8);
    pthread_t threads[THREADS];
    CHECK(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(aborts == 0);
    CHECK(count_objects(pool) == THREADS);
    pool = reopen(pool, arguments[1]);
    CHECK(count_objects(pool) == THREADS);
    pmemobj_close(pool);
    return 0;
}
