/* Locks in the pool: several threads, deadlines, transactions that hold them, values of one run. */
#define _GNU_SOURCE
#include "check.h"

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define THREADS 4
#define ROUNDS 5000

struct guarded {
    PMEMmutex mutex;
    PMEMrwlock rwlock;
    PMEMcond cond;
    uint64_t counter, turn;
};

struct root {
    struct guarded one;
    PMEMmutex apart;
    struct pmemvlt run;
    uint64_t value;
};

static PMEMobjpool *pool;
static struct root *root;

static struct timespec soon(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += 20000000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static void *held_elsewhere(void *argument)
{
    (void)argument;
    struct timespec until = soon();
    CHECK(pmemobj_mutex_trylock(pool, &root->one.mutex) == EBUSY);
    CHECK(pmemobj_mutex_timedlock(pool, &root->one.mutex, &until) == ETIMEDOUT);
    CHECK(pmemobj_rwlock_trywrlock(pool, &root->one.rwlock) == EBUSY);
    CHECK(pmemobj_rwlock_timedwrlock(pool, &root->one.rwlock, &until) == ETIMEDOUT);
    CHECK(pmemobj_rwlock_tryrdlock(pool, &root->one.rwlock) == 0);
    CHECK(pmemobj_rwlock_unlock(pool, &root->one.rwlock) == 0);
    CHECK(pmemobj_rwlock_timedrdlock(pool, &root->one.rwlock, &until) == 0);
    CHECK(pmemobj_rwlock_unlock(pool, &root->one.rwlock) == 0);
    return NULL;
}

static void calls(void)
{
    pthread_t thread;
    pmemobj_mutex_zero(pool, &root->one.mutex);
    pmemobj_rwlock_zero(pool, &root->one.rwlock);
    pmemobj_cond_zero(pool, &root->one.cond);
    CHECK(pmemobj_mutex_lock(pool, &root->one.mutex) == 0);
    CHECK(pmemobj_rwlock_rdlock(pool, &root->one.rwlock) == 0);
    CHECK(pthread_create(&thread, NULL, held_elsewhere, NULL) == 0 && pthread_join(thread, NULL) == 0);
    struct timespec until = soon();
    CHECK(pmemobj_cond_timedwait(pool, &root->one.cond, &root->one.mutex, &until) == ETIMEDOUT);
    CHECK(pmemobj_mutex_unlock(pool, &root->one.mutex) == 0);
    CHECK(pmemobj_rwlock_unlock(pool, &root->one.rwlock) == 0);
    CHECK(pmemobj_rwlock_wrlock(pool, &root->one.rwlock) == 0);
    CHECK(pmemobj_rwlock_unlock(pool, &root->one.rwlock) == 0);
    CHECK(pmemobj_mutex_trylock(pool, &root->one.mutex) == 0);
    CHECK(pmemobj_mutex_unlock(pool, &root->one.mutex) == 0);
}

/* Threads take turns; half of them abort, which must not lose a wake-up: the lock lies in the range
 * that is taken back. */
static void *take_turns(void *argument)
{
    uint64_t number = (uintptr_t)argument;
    for (volatile unsigned round = 0; round < ROUNDS; round++) {
        TX_BEGIN_PARAM(pool, TX_PARAM_MUTEX, &root->one.mutex, TX_PARAM_RWLOCK, &root->one.rwlock) {
            pmemobj_tx_add_range_direct(&root->one, sizeof(root->one));
            root->one.counter++;
            if (number % 2)
                pmemobj_tx_abort(EPERM);
        } TX_END
    }
    return NULL;
}

static void in_transactions(void)
{
    pthread_t threads[THREADS];
    root->one.counter = 0;
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, take_turns, (void *)i) == 0);
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(root->one.counter == THREADS / 2 * ROUNDS);
    CHECK(pmemobj_mutex_trylock(pool, &root->one.mutex) == 0);
    CHECK(pmemobj_mutex_unlock(pool, &root->one.mutex) == 0);
}

static void *try_apart(void *argument)
{
    *(int *)argument = pmemobj_mutex_trylock(pool, &root->apart);
    if (*(int *)argument == 0)
        CHECK(pmemobj_mutex_unlock(pool, &root->apart) == 0);
    return NULL;
}

/* A lock that a transaction takes is held to the end of the outermost, also when it aborts. */
static void held_to_the_end(void)
{
    pthread_t thread;
    int outcome;
    TX_BEGIN(pool) {
        TX_BEGIN(pool) {
            CHECK(pmemobj_tx_lock(TX_PARAM_MUTEX, &root->apart) == 0);
            CHECK(pmemobj_tx_xlock(TX_PARAM_MUTEX, &root->apart, POBJ_XLOCK_NO_ABORT) == 0);
        } TX_END
        CHECK(pthread_create(&thread, NULL, try_apart, &outcome) == 0 && pthread_join(thread, NULL) == 0);
        CHECK(outcome == EBUSY);
        pmemobj_tx_abort(EPERM);
    } TX_ONABORT {
        CHECK(pthread_create(&thread, NULL, try_apart, &outcome) == 0 && pthread_join(thread, NULL) == 0);
        CHECK(outcome == EBUSY);
    } TX_END
    CHECK(pthread_create(&thread, NULL, try_apart, &outcome) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(outcome == 0);
}

/* A lock that is not to be had: pmemobj_tx_lock returns the error, pmemobj_tx_xlock aborts unless
 * it is told not to. */
static void not_to_be_had(void)
{
    volatile int committed = 0, aborted = 0;
    CHECK(pmemobj_rwlock_wrlock(pool, &root->one.rwlock) == 0);
    TX_BEGIN(pool) {
        CHECK(pmemobj_tx_lock(TX_PARAM_RWLOCK, &root->one.rwlock) == EDEADLK);
        CHECK(pmemobj_tx_xlock(TX_PARAM_RWLOCK, &root->one.rwlock, POBJ_XLOCK_NO_ABORT) == EDEADLK);
        CHECK(pmemobj_tx_stage() == TX_STAGE_WORK);
    } TX_ONCOMMIT {
        committed++;
    } TX_END
    TX_BEGIN(pool) {
        pmemobj_tx_xlock(TX_PARAM_RWLOCK, &root->one.rwlock, 0);
        CHECK(0);
    } TX_ONABORT {
        aborted = pmemobj_tx_errno();
    } TX_END
    CHECK(committed == 1 && aborted == EDEADLK);
    CHECK(pmemobj_rwlock_unlock(pool, &root->one.rwlock) == 0);
}

static void *wait_for_turn(void *argument)
{
    uint64_t number = (uintptr_t)argument;
    CHECK(pmemobj_mutex_lock(pool, &root->one.mutex) == 0);
    while (root->one.turn != number)
        CHECK(pmemobj_cond_wait(pool, &root->one.cond, &root->one.mutex) == 0);
    root->one.turn++;
    CHECK(pmemobj_cond_broadcast(pool, &root->one.cond) == 0 && pmemobj_cond_signal(pool, &root->one.cond) == 0);
    CHECK(pmemobj_mutex_unlock(pool, &root->one.mutex) == 0);
    return NULL;
}

static void conditions(void)
{
    pthread_t threads[THREADS];
    root->one.turn = 0;
    for (uintptr_t i = THREADS; i-- > 0;)
        CHECK(pthread_create(&threads[i], NULL, wait_for_turn, (void *)i) == 0);
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(root->one.turn == THREADS);
}

static int initialised;

static int initialise(void *value, void *argument)
{
    initialised++;
    *(uint64_t *)value = *(uint64_t *)argument;
    return *(uint64_t *)argument == 0;
}

static void values_of_a_run(void)
{
    uint64_t bad = 0, good = initialised + 5;
    int before = initialised;
    CHECK(pmemobj_volatile(pool, &root->run, &root->value, sizeof(root->value), initialise, &bad) == NULL);
    CHECK(pmemobj_volatile(pool, &root->run, &root->value, sizeof(root->value), initialise, &good) == &root->value);
    CHECK(pmemobj_volatile(pool, &root->run, &root->value, sizeof(root->value), initialise, &bad) == &root->value);
    CHECK(root->value == good && initialised == before + 2);
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    pool = new_pool(arguments[1], 16);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    for (unsigned run = 0; run < 2; run++) {
        calls();
        in_transactions();
        held_to_the_end();
    not_to_be_had();
        conditions();
        values_of_a_run();
        /* Whoever held a lock of a former run is gone. */
        CHECK(pmemobj_mutex_lock(pool, &root->one.mutex) == 0 && pmemobj_rwlock_wrlock(pool, &root->one.rwlock) == 0);
        pmemobj_persist(pool, &root->one, sizeof(root->one));
        pool = reopen(pool, arguments[1]);
        root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    }
    pmemobj_close(pool);
    return 0;
}
