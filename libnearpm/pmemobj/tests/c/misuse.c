/* Calls with senseless arguments, and at the wrong time: each is refused by an error, the process
 * goes on, and the pool stays sound. PMDK ends the process in most of these cases, so that this is
 * for the library under test alone. */
#include "check.h"

#include <pthread.h>
#include <stdint.h>
#include <wchar.h>

TOID_DECLARE(struct node, 7);
struct node {
    POBJ_LIST_ENTRY(struct node) entry;
    uint64_t value;
};
POBJ_LIST_HEAD(list_head, struct node);

struct root {
    PMEMmutex mutex;
    PMEMrwlock rwlock;
    PMEMcond cond;
    struct list_head list, other;
    PMEMoid oid;
    uint64_t words[64];
};

static PMEMobjpool *pool;
static struct root *root;

/* A call must fail with EINVAL. */
#define REFUSED(call)                                                                                                  \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        CHECK(call);                                                                                                   \
        CHECK(errno == EINVAL && pmemobj_errormsg()[0] != '\0');                                                       \
    } while (0)
/* A call without a result does nothing. */
#define IGNORED(call)                                                                                                  \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        call;                                                                                                          \
        CHECK(errno == EINVAL);                                                                                        \
    } while (0)
#define NONE(oid) OID_IS_NULL(oid)

static int constructor(PMEMobjpool *of, void *at, void *argument)
{
    (void)of, (void)at, (void)argument;
    return 0;
}

static void handles(PMEMobjpool *bad)
{
    struct pobj_action action = {0};
    struct timespec time = {0, 0};
    struct pmemvlt vlt = {0};
    struct pobj_defrag_result result;
    PMEMoid oid = OID_NULL, *oids[] = {&oid};
    uint64_t word = 0;
    int value = 0;
    struct node node;
    REFUSED(NONE(pmemobj_root(bad, 100)) && NONE(pmemobj_root_construct(bad, 100, constructor, NULL)));
    REFUSED(pmemobj_root_size(bad) == 0);
    IGNORED(pmemobj_set_user_data(bad, &node));
    REFUSED(pmemobj_get_user_data(bad) == NULL);
    REFUSED(pmemobj_alloc(bad, &oid, 10, 1, NULL, NULL) == -1);
    REFUSED(pmemobj_xalloc(bad, &oid, 10, 1, 0, NULL, NULL) == -1);
    REFUSED(pmemobj_zalloc(bad, &oid, 10, 1) == -1);
    REFUSED(pmemobj_realloc(bad, &oid, 10, 1) == -1);
    REFUSED(pmemobj_zrealloc(bad, &oid, 10, 1) == -1);
    REFUSED(pmemobj_strdup(bad, &oid, "a", 1) == -1);
    REFUSED(pmemobj_wcsdup(bad, &oid, L"a", 1) == -1);
    REFUSED(NONE(pmemobj_first(bad)));
    REFUSED(NONE(pmemobj_reserve(bad, &action, 10, 1)) && NONE(pmemobj_xreserve(bad, &action, 10, 1, 0)));
    IGNORED(pmemobj_set_value(bad, &action, &word, 1));
    REFUSED(pmemobj_publish(bad, &action, 1) == -1);
    IGNORED(pmemobj_cancel(bad, &action, 1));
    REFUSED(pmemobj_defrag(bad, oids, 1, &result) == -1);
    IGNORED(pmemobj_persist(bad, root, 8));
    IGNORED(pmemobj_flush(bad, root, 8));
    IGNORED(pmemobj_drain(bad));
    IGNORED(pmemobj_xpersist(bad, root, 8, 0));
    IGNORED(pmemobj_xflush(bad, root, 8, 0));
    IGNORED(pmemobj_memcpy(bad, root->words, "a", 1, 0));
    IGNORED(pmemobj_memmove(bad, root->words, "a", 1, 0));
    IGNORED(pmemobj_memset(bad, root->words, 1, 1, 0));
    IGNORED(pmemobj_memcpy_persist(bad, root->words, "a", 1));
    IGNORED(pmemobj_memset_persist(bad, root->words, 1, 1));
    CHECK(root->words[0] == 0);
    CHECK(pmemobj_mutex_lock(bad, &root->mutex) == EINVAL && pmemobj_mutex_trylock(bad, &root->mutex) == EINVAL);
    CHECK(pmemobj_mutex_timedlock(bad, &root->mutex, &time) == EINVAL && pmemobj_mutex_unlock(bad, &root->mutex) == EINVAL);
    CHECK(pmemobj_rwlock_rdlock(bad, &root->rwlock) == EINVAL && pmemobj_rwlock_wrlock(bad, &root->rwlock) == EINVAL);
    CHECK(pmemobj_rwlock_tryrdlock(bad, &root->rwlock) == EINVAL && pmemobj_rwlock_trywrlock(bad, &root->rwlock) == EINVAL);
    CHECK(pmemobj_rwlock_timedrdlock(bad, &root->rwlock, &time) == EINVAL);
    CHECK(pmemobj_rwlock_timedwrlock(bad, &root->rwlock, &time) == EINVAL && pmemobj_rwlock_unlock(bad, &root->rwlock) == EINVAL);
    CHECK(pmemobj_cond_signal(bad, &root->cond) == EINVAL && pmemobj_cond_broadcast(bad, &root->cond) == EINVAL);
    CHECK(pmemobj_cond_wait(bad, &root->cond, &root->mutex) == EINVAL);
    CHECK(pmemobj_cond_timedwait(bad, &root->cond, &root->mutex, &time) == EINVAL);
    IGNORED(pmemobj_mutex_zero(bad, &root->mutex));
    IGNORED(pmemobj_rwlock_zero(bad, &root->rwlock));
    IGNORED(pmemobj_cond_zero(bad, &root->cond));
    REFUSED(pmemobj_volatile(bad, &vlt, &word, sizeof(word), NULL, NULL) == NULL);
    REFUSED(pmemobj_list_insert(bad, 0, &root->list, OID_NULL, 0, oid) == -1);
    REFUSED(NONE(pmemobj_list_insert_new(bad, 0, &root->list, OID_NULL, 0, 64, 1, NULL, NULL)));
    REFUSED(pmemobj_list_remove(bad, 0, &root->list, oid, 0) == -1);
    REFUSED(pmemobj_list_move(bad, 0, &root->list, 0, &root->other, OID_NULL, 0, oid) == -1);
    if (bad != NULL) {
        REFUSED(pmemobj_ctl_get(bad, "stats.enabled", &value) == -1);
        REFUSED(pmemobj_ctl_set(bad, "stats.enabled", &value) == -1);
        REFUSED(pmemobj_ctl_exec(bad, "heap.arena.create", &value) == -1);
        IGNORED(pmemobj_close(bad));
    }
}

/* What a transaction ends with that does something to an object. */
static int in_transaction(PMEMoid oid, const struct pobj_action *action, int call)
{
    volatile int aborted = 0;
    TX_BEGIN(pool) {
        switch (call) {
        case 0: pmemobj_tx_free(oid); break;
        case 1: pmemobj_tx_realloc(oid, 100, 1); break;
        case 2: pmemobj_tx_publish((struct pobj_action *)action, 1); break;
        }
    } TX_ONABORT {
        aborted = pmemobj_tx_errno();
    } TX_END
    return aborted;
}

/* Identifiers that name no object: they are refused by everything that takes one. */
static void identifier(const volatile PMEMoid *named)
{
    PMEMoid bad = *named, copy = bad;
    struct pobj_action action;
    CHECK(pmemobj_alloc_usable_size(bad) == 0 && pmemobj_type_num(bad) == 0 && NONE(pmemobj_next(bad)));
    IGNORED(pmemobj_free(&copy));
    CHECK(OID_EQUALS(copy, bad));
    REFUSED(pmemobj_realloc(pool, &copy, 100, 1) == -1);
    REFUSED(pmemobj_realloc(pool, &copy, 0, 1) == -1);
    REFUSED(pmemobj_zrealloc(pool, &copy, 100, 1) == -1);
    pmemobj_defer_free(pool, bad, &action);
    REFUSED(pmemobj_publish(pool, &action, 1) == -1);
    REFUSED(pmemobj_list_insert(pool, 0, &root->list, OID_NULL, 0, bad) == -1);
    REFUSED(NONE(pmemobj_list_insert_new(pool, 0, &root->list, bad, 0, sizeof(struct node), 1, NULL, NULL)));
    REFUSED(pmemobj_list_remove(pool, 0, &root->list, bad, 0) == -1);
    REFUSED(pmemobj_list_remove(pool, 0, &root->list, bad, 1) == -1);
    REFUSED(pmemobj_list_move(pool, 0, &root->list, 0, &root->other, OID_NULL, 0, bad) == -1);
    for (int call = 0; call < 3; call++)
        CHECK(in_transaction(bad, &action, call) == EINVAL);
    TX_BEGIN(pool) {
        CHECK(pmemobj_tx_xfree(*named, POBJ_XFREE_NO_ABORT) == EINVAL);
        CHECK(pmemobj_tx_xpublish(&action, 1, POBJ_XPUBLISH_NO_ABORT) == EINVAL);
    } TX_ONABORT {
        CHECK(0);
    } TX_END
}

static void identifiers(void)
{
    PMEMoid object, freed, root_oid = pmemobj_oid(root);
    CHECK(pmemobj_zalloc(pool, &object, 4096, 1) == 0 && pmemobj_alloc(pool, &freed, 100, 1, NULL, NULL) == 0);
    PMEMoid twice = freed;
    pmemobj_free(&freed);
    identifier(&twice);
    uint64_t size = 16 << 20;
    uint64_t offsets[] = {1, 8, 16, 4096, object.off + 8, object.off + 16, object.off + 4096, object.off - 16, size - 8, size,
                          size + 16, UINT64_MAX, UINT64_MAX - 15, 1ull << 63, root_oid.off + 16};
    /* What looks like headers of other objects inside of one. */
    for (uint64_t word = 0; word < 512; word++)
        ((uint64_t *)pmemobj_direct(object))[word] = (word << 44) | 64;
    for (unsigned i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
        identifier(&(PMEMoid){object.pool_uuid_lo, offsets[i]});
    for (uint64_t off = object.off + 16; off < object.off + 4096; off += 272)
        identifier(&(PMEMoid){object.pool_uuid_lo, off});
    identifier(&(PMEMoid){object.pool_uuid_lo + 1, object.off});
    CHECK(pmemobj_alloc_usable_size(object) >= 4096);
    pmemobj_free(&object);
    CHECK(count_objects(pool) == 0);
}

static void sizes(void)
{
    const size_t wild[] = {SIZE_MAX, SIZE_MAX - 15, PMEMOBJ_MAX_ALLOC_SIZE + 1, (size_t)1 << 44, (size_t)1 << 63};
    struct pobj_action action;
    PMEMoid oid = OID_NULL, small;
    CHECK(pmemobj_alloc(pool, &small, 100, 1, NULL, NULL) == 0);
    for (unsigned i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
        CHECK(pmemobj_alloc(pool, &oid, wild[i], 1, NULL, NULL) == -1 && errno == ENOMEM);
        CHECK(pmemobj_zalloc(pool, &oid, wild[i], 1) == -1 && errno == ENOMEM);
        CHECK(pmemobj_realloc(pool, &small, wild[i], 1) == -1 && errno == ENOMEM);
        CHECK(NONE(pmemobj_reserve(pool, &action, wild[i], 1)) && errno == ENOMEM);
        CHECK(NONE(pmemobj_root(pool, wild[i])) && errno == ENOMEM);
        CHECK(NONE(pmemobj_list_insert_new(pool, 0, &root->list, OID_NULL, 0, wild[i], 1, NULL, NULL)) && errno == ENOMEM);
        for (int call = 0; call < 6; call++) {
            volatile int aborted = 0;
            TX_BEGIN(pool) {
                switch (call) {
                case 0: pmemobj_tx_alloc(wild[i], 1); break;
                case 1: pmemobj_tx_zalloc(wild[i], 1); break;
                case 2: pmemobj_tx_realloc(small, wild[i], 1); break;
                case 3: pmemobj_tx_add_range(pmemobj_oid(root), 0, wild[i]); break;
                case 4: pmemobj_tx_add_range_direct(root, wild[i]); break;
                case 5: pmemobj_tx_add_range(pmemobj_oid(root), wild[i], 8); break;
                }
            } TX_ONABORT {
                aborted = pmemobj_tx_errno();
            } TX_END
            CHECK(aborted == (call < 3 ? ENOMEM : EINVAL));
        }
        pmemobj_persist(pool, root, wild[i]);
        pmemobj_flush(pool, root, wild[i]);
        pmemobj_drain(pool);
        size_t sum[] = {wild[i], wild[i]};
        CHECK(pmemobj_tx_log_snapshots_max_size(sum, 2) > 0 && pmemobj_tx_log_intents_max_size(wild[i]) > 0);
    }
    REFUSED(pmemobj_alloc(pool, &oid, 0, 1, NULL, NULL) == -1);
    REFUSED(pmemobj_tx_log_snapshots_max_size(NULL, 2) == SIZE_MAX);
    pmemobj_free(&small);
}

/* Ranges of the pool that no object has: the log may be there. */
static void ranges(void)
{
    char *base = (char *)pool;
    for (volatile size_t at = 0; at < 16 << 20; at += 60000) {
        pmemobj_persist(pool, base + at, 100);
        pmemobj_flush(pool, base + at, 70000);
        TX_BEGIN(pool) {
            pmemobj_tx_xadd_range_direct(base + at, 64, POBJ_XADD_NO_ABORT);
        } TX_ONABORT {
            CHECK(0);
        } TX_END
    }
    pmemobj_persist(pool, base, 16 << 20);
    pmemobj_drain(pool);
    struct pobj_action action;
    pmemobj_set_value(pool, &action, (uint64_t *)base, 1);
    REFUSED(pmemobj_publish(pool, &action, 1) == -1);
    pmemobj_set_value(pool, &action, (uint64_t *)(base + (16 << 20) - 8), 1);
    REFUSED(pmemobj_publish(pool, &action, 1) == -1);
    PMEMoid *outside = (PMEMoid *)base;
    REFUSED(pmemobj_alloc(pool, outside, 100, 1, NULL, NULL) == -1);
}

static void flags(void)
{
    const uint64_t bad = 1ull << 20;
    struct pobj_action action;
    PMEMoid oid;
    REFUSED(pmemobj_xalloc(pool, &oid, 100, 1, bad, NULL, NULL) == -1);
    REFUSED(pmemobj_xalloc(pool, &oid, 100, 1, POBJ_CLASS_ID(255), NULL, NULL) == -1);
    REFUSED(pmemobj_xalloc(pool, &oid, 100, 1, POBJ_CLASS_ID(0xffff), NULL, NULL) == -1);
    REFUSED(pmemobj_xalloc(pool, &oid, 100, 1, POBJ_ARENA_ID(0xffff), NULL, NULL) == -1);
    REFUSED(NONE(pmemobj_xreserve(pool, &action, 100, 1, bad)));
    REFUSED(pmemobj_xpersist(pool, root, 8, 1u << 20) == -1);
    REFUSED(pmemobj_xflush(pool, root, 8, 1u << 20) == -1);
    for (int call = 0; call < 9; call++) {
        volatile int aborted = 0;
        TX_BEGIN(pool) {
            switch (call) {
            case 0: pmemobj_tx_xalloc(100, 1, bad); break;
            case 1: pmemobj_tx_xadd_range_direct(root, 8, bad); break;
            case 2: pmemobj_tx_xfree(OID_NULL, bad); break;
            case 3: pmemobj_tx_xstrdup("a", 1, bad); break;
            case 4: pmemobj_tx_xpublish(NULL, 0, bad); break;
            case 5: pmemobj_tx_xlock(TX_PARAM_MUTEX, &root->mutex, bad); break;
            case 6: pmemobj_tx_xlock((enum pobj_tx_param)77, &root->mutex, 0); break;
            case 7: pmemobj_tx_publish(NULL, 3); break;
            case 8: pmemobj_tx_strdup(NULL, 1); break;
            }
        } TX_ONABORT {
            aborted = pmemobj_tx_errno();
        } TX_END
        CHECK(aborted == EINVAL);
    }
}

/* Nothing where something must be. */
static void nothing(void)
{
    struct pobj_action action;
    PMEMoid oid = OID_NULL;
    int value;
    REFUSED(pmemobj_create(NULL, LAYOUT, PMEMOBJ_MIN_POOL, 0600) == NULL);
    REFUSED(pmemobj_open(NULL, LAYOUT) == NULL);
    REFUSED(pmemobj_check(NULL, LAYOUT) == -1);
    pmemobj_close(NULL);
    IGNORED(pmemobj_free(NULL));
    REFUSED(pmemobj_realloc(pool, NULL, 10, 1) == -1);
    REFUSED(pmemobj_strdup(pool, &oid, NULL, 1) == -1);
    REFUSED(pmemobj_wcsdup(pool, &oid, NULL, 1) == -1);
    REFUSED(NONE(pmemobj_reserve(pool, NULL, 10, 1)));
    IGNORED(pmemobj_set_value(pool, NULL, root->words, 1));
    IGNORED(pmemobj_defer_free(pool, oid, NULL));
    REFUSED(pmemobj_publish(pool, NULL, 1) == -1);
    IGNORED(pmemobj_cancel(pool, NULL, 1));
    IGNORED(pmemobj_memcpy(pool, NULL, "a", 1, 0));
    IGNORED(pmemobj_memset(pool, NULL, 1, 1, 0));
    REFUSED(pmemobj_ctl_get(pool, NULL, &value) == -1);
    REFUSED(pmemobj_ctl_get(pool, "stats.enabled", NULL) == -1);
    REFUSED(pmemobj_ctl_set(pool, "stats.enabled", NULL) == -1);
    REFUSED(pmemobj_ctl_exec(pool, "heap.arena.create", NULL) == -1);
    REFUSED(pmemobj_ctl_get(NULL, "stats.enabled", &value) == -1);
    CHECK(pmemobj_mutex_lock(pool, NULL) == EINVAL && pmemobj_mutex_lock(pool, (PMEMmutex *)((char *)root + 1)) == EINVAL);
    CHECK(pmemobj_cond_wait(pool, NULL, &root->mutex) == EINVAL && pmemobj_cond_wait(pool, &root->cond, NULL) == EINVAL);
    CHECK(pmemobj_cond_timedwait(pool, &root->cond, &root->mutex, NULL) == EINVAL);
    CHECK(pmemobj_mutex_timedlock(pool, &root->mutex, NULL) == EINVAL);
    IGNORED(pmemobj_mutex_zero(pool, NULL));
    REFUSED(pmemobj_volatile(pool, NULL, &value, sizeof(value), NULL, NULL) == NULL);
    CHECK(pmemobj_direct(OID_NULL) == NULL && pmemobj_direct((PMEMoid){1, 1}) == NULL);
    CHECK(pmemobj_pool_by_oid(OID_NULL) == NULL && pmemobj_pool_by_ptr(NULL) == NULL && NONE(pmemobj_oid(NULL)));
    memset(&action, 0x5a, sizeof(action));
    REFUSED(pmemobj_publish(pool, &action, 1) == -1);
    pmemobj_cancel(pool, &action, 1);
}

/* Actions used again, or made up. */
static void actions(void)
{
    struct pobj_action action, again;
    unsigned before = count_objects(pool);
    CHECK(!NONE(pmemobj_reserve(pool, &action, 100, 1)));
    again = action;
    CHECK(pmemobj_publish(pool, &action, 1) == 0);
    REFUSED(pmemobj_publish(pool, &again, 1) == -1);
    pmemobj_cancel(pool, &again, 1);
    CHECK(count_objects(pool) == before + 1);
    PMEMoid oid = pmemobj_first(pool);
    pmemobj_free(&oid);

    CHECK(!NONE(pmemobj_reserve(pool, &action, 100, 1)));
    again = action;
    pmemobj_cancel(pool, &action, 1);
    pmemobj_cancel(pool, &again, 1);
    REFUSED(pmemobj_publish(pool, &again, 1) == -1);

    CHECK(!NONE(pmemobj_reserve(pool, &action, 100, 1)));
    volatile int aborted = 0;
    TX_BEGIN(pool) {
        pmemobj_tx_publish(&action, 1);
        pmemobj_tx_publish(&action, 1);
        pmemobj_tx_abort(5);
    } TX_ONABORT {
        aborted = pmemobj_tx_errno();
    } TX_END
    CHECK(aborted == 5 && count_objects(pool) == before);
    CHECK(pmemobj_alloc(pool, &oid, 100, 1, NULL, NULL) == 0);
    TX_BEGIN(pool) {
        CHECK(pmemobj_tx_free(oid) == 0);
        CHECK(pmemobj_tx_xfree(oid, POBJ_XFREE_NO_ABORT) == EINVAL);
    } TX_ONABORT {
        CHECK(0);
    } TX_END
    CHECK(count_objects(pool) == before);
}

static void callback(PMEMobjpool *of, enum pobj_tx_stage stage, void *argument)
{
    (void)of, (void)stage, (void)argument;
}

/* Calls that are made in another stage, or outside of any transaction. */
static void out_of_stage(void)
{
    struct pobj_action action = {0};
    CHECK(pmemobj_tx_stage() == TX_STAGE_NONE);
    REFUSED(pmemobj_tx_add_range(pmemobj_oid(root), 0, 8) == EINVAL);
    REFUSED(pmemobj_tx_xadd_range(pmemobj_oid(root), 0, 8, 0) == EINVAL);
    REFUSED(pmemobj_tx_add_range_direct(root, 8) == EINVAL && pmemobj_tx_xadd_range_direct(root, 8, 0) == EINVAL);
    REFUSED(NONE(pmemobj_tx_alloc(8, 1)) && NONE(pmemobj_tx_zalloc(8, 1)) && NONE(pmemobj_tx_xalloc(8, 1, 0)));
    REFUSED(NONE(pmemobj_tx_realloc(OID_NULL, 8, 1)) && NONE(pmemobj_tx_zrealloc(OID_NULL, 8, 1)));
    REFUSED(NONE(pmemobj_tx_strdup("a", 1)) && NONE(pmemobj_tx_xstrdup("a", 1, 0)));
    REFUSED(NONE(pmemobj_tx_wcsdup(L"a", 1)) && NONE(pmemobj_tx_xwcsdup(L"a", 1, 0)));
    REFUSED(pmemobj_tx_free(OID_NULL) == EINVAL && pmemobj_tx_xfree(OID_NULL, 0) == EINVAL);
    REFUSED(pmemobj_tx_publish(&action, 1) == EINVAL && pmemobj_tx_xpublish(&action, 1, 0) == EINVAL);
    REFUSED(pmemobj_tx_lock(TX_PARAM_MUTEX, &root->mutex) == EINVAL);
    REFUSED(pmemobj_tx_xlock(TX_PARAM_MUTEX, &root->mutex, 0) == EINVAL);
    REFUSED(pmemobj_tx_log_append_buffer(TX_LOG_TYPE_SNAPSHOT, root->words, 256) == EINVAL);
    REFUSED(pmemobj_tx_xlog_append_buffer(TX_LOG_TYPE_SNAPSHOT, root->words, 256, 0) == EINVAL);
    REFUSED(pmemobj_tx_log_auto_alloc(TX_LOG_TYPE_SNAPSHOT, 0) == EINVAL);
    IGNORED(pmemobj_tx_abort(1));
    IGNORED(pmemobj_tx_commit());
    IGNORED(pmemobj_tx_process());
    REFUSED(pmemobj_tx_end() == EINVAL);
    IGNORED(pmemobj_tx_set_user_data(root));
    REFUSED(pmemobj_tx_get_user_data() == NULL);
    IGNORED(pmemobj_tx_set_failure_behavior(POBJ_TX_FAILURE_RETURN));
    IGNORED(pmemobj_tx_get_failure_behavior());
    CHECK(pmemobj_tx_stage() == TX_STAGE_NONE);

    volatile int commits = 0;
    TX_BEGIN(pool) {
        TX_ADD_DIRECT(&root->words[1]);
        root->words[1]++;
        REFUSED(pmemobj_tx_end() == EINVAL);
    } TX_ONCOMMIT {
        commits++;
        REFUSED(pmemobj_tx_add_range_direct(root, 8) == EINVAL);
        REFUSED(NONE(pmemobj_tx_alloc(8, 1)));
        IGNORED(pmemobj_tx_abort(1));
        IGNORED(pmemobj_tx_commit());
    } TX_FINALLY {
        REFUSED(pmemobj_tx_free(OID_NULL) == EINVAL);
    } TX_END
    CHECK(commits == 1 && root->words[1] == 1);
}

/* Transactions that cannot begin have a stage of abort of their own, or abort the one around
 * them. */
static void refused_transactions(PMEMobjpool *bad)
{
    volatile int inner = 0, outer = 0, work = 0;
    TX_BEGIN(bad) {
        work++;
    } TX_ONABORT {
        inner = pmemobj_tx_errno();
    } TX_ONCOMMIT {
        CHECK(0);
    } TX_END
    CHECK(work == 0 && inner == EINVAL && errno == EINVAL && pmemobj_tx_stage() == TX_STAGE_NONE);

    uint64_t before = root->words[2];
    TX_BEGIN(pool) {
        TX_ADD_DIRECT(&root->words[2]);
        root->words[2]++;
        TX_BEGIN(bad) {
            work++;
        } TX_END
    } TX_ONABORT {
        outer = pmemobj_tx_errno();
    } TX_END
    CHECK(work == 0 && outer == EINVAL && root->words[2] == before && pmemobj_tx_stage() == TX_STAGE_NONE);

    /* In the other stages nothing happens to the transaction around it. */
    volatile int committed = 0, nested = 0;
    TX_BEGIN(pool) {
        TX_BEGIN(pool) {
            TX_ADD_DIRECT(&root->words[2]);
            root->words[2]++;
        } TX_ONCOMMIT {
            TX_BEGIN(pool) {
                work++;
            } TX_ONABORT {
                nested = pmemobj_tx_errno();
            } TX_END
            CHECK(pmemobj_tx_stage() == TX_STAGE_ONCOMMIT);
        } TX_END
    } TX_ONCOMMIT {
        committed++;
    } TX_ONABORT {
        CHECK(0);
    } TX_END
    CHECK(work == 0 && committed == 1 && nested == EINVAL && root->words[2] == before + 1);

    /* Without an environment the error is returned. */
    CHECK(pmemobj_tx_begin(bad, NULL, TX_PARAM_NONE) == EINVAL && pmemobj_tx_stage() == TX_STAGE_ONABORT);
    CHECK(pmemobj_tx_end() == EINVAL && pmemobj_tx_stage() == TX_STAGE_NONE);

    volatile int set_twice = 0;
    TX_BEGIN_PARAM(pool, TX_PARAM_CB, callback, NULL, TX_PARAM_CB, callback, root, TX_PARAM_NONE) {
        CHECK(0);
    } TX_ONABORT {
        set_twice = pmemobj_tx_errno();
    } TX_END
    CHECK(set_twice == EINVAL);
}

static int jumps_away(PMEMobjpool *of, void *at, void *argument)
{
    (void)of, (void)at, (void)argument;
    pmemobj_tx_abort(77);
    return 0;
}

static int asks_for_the_root(PMEMobjpool *of, void *at, void *argument)
{
    (void)at, (void)argument;
    errno = 0;
    CHECK(NONE(pmemobj_root_construct(of, 1 << 20, asks_for_the_root, NULL)) && errno == EDEADLK);
    return -1;
}

/* A transaction that aborts inside of a constructor does not end it: the root is still this
 * thread's to make. */
static int aborts_inside(PMEMobjpool *of, void *at, void *argument)
{
    (void)at, (void)argument;
    volatile int aborted = 0;
    TX_BEGIN(of) {
        pmemobj_tx_abort(77);
    } TX_ONABORT {
        aborted = pmemobj_tx_errno();
    } TX_END
    CHECK(aborted == 77);
    errno = 0;
    CHECK(NONE(pmemobj_root(of, 1 << 20)) && errno == EDEADLK);
    return 0;
}

static void *enlarges_the_root(void *size)
{
    CHECK(!NONE(pmemobj_root(pool, *(size_t *)size)));
    return NULL;
}

/* A constructor that goes away, or calls what calls it, leaves nothing locked. */
static void constructors(void)
{
    size_t size = pmemobj_root_size(pool);
    volatile int aborted = 0;
    TX_BEGIN(pool) {
        pmemobj_root_construct(pool, size + 1, jumps_away, NULL);
    } TX_ONABORT {
        aborted = pmemobj_tx_errno();
    } TX_END
    CHECK(aborted == 77 && pmemobj_root_size(pool) == size);
    errno = 0;
    CHECK(NONE(pmemobj_root_construct(pool, size + 1, asks_for_the_root, NULL)) && errno == ECANCELED);
    CHECK(!NONE(pmemobj_root_construct(pool, ++size, aborts_inside, NULL)) && pmemobj_root_size(pool) == size);
    /* Inside of another transaction it ends that as well, and so the constructor. */
    aborted = 0;
    TX_BEGIN(pool) {
        pmemobj_root_construct(pool, size + 1, aborts_inside, NULL);
    } TX_ONABORT {
        aborted = pmemobj_tx_errno();
    } TX_END
    CHECK(aborted == 77 && pmemobj_root_size(pool) == size);
    size++;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, enlarges_the_root, &size) == 0 && pthread_join(thread, NULL) == 0);
    root = pmemobj_direct(pmemobj_root(pool, size));
    CHECK(pmemobj_root_size(pool) == size);
}

/* Lists: objects of no list, heads that lie elsewhere, entries behind the end, and links that lead
 * nowhere. */
static void lists(void)
{
    const size_t entry = offsetof(struct node, entry);
    struct list_head elsewhere = {0};
    PMEMoid inside = pmemobj_list_insert_new(pool, entry, &root->list, OID_NULL, 0, sizeof(struct node), 7, NULL, NULL);
    PMEMoid alone, tiny;
    CHECK(!NONE(inside) && pmemobj_zalloc(pool, &alone, sizeof(struct node), 7) == 0 && pmemobj_zalloc(pool, &tiny, 16, 7) == 0);
    REFUSED(pmemobj_list_remove(pool, entry, &root->list, alone, 0) == -1);
    REFUSED(pmemobj_list_remove(pool, entry, &root->list, alone, 1) == -1);
    REFUSED(pmemobj_list_move(pool, entry, &root->list, entry, &root->other, OID_NULL, 0, alone) == -1);
    REFUSED(pmemobj_list_insert(pool, entry, &root->list, alone, 0, alone) == -1);
    REFUSED(pmemobj_list_insert(pool, entry, &root->list, OID_NULL, 0, tiny) == -1);
    REFUSED(pmemobj_list_insert(pool, 4096, &root->list, OID_NULL, 0, alone) == -1);
    REFUSED(pmemobj_list_insert(pool, SIZE_MAX - 7, &root->list, OID_NULL, 0, alone) == -1);
    REFUSED(pmemobj_list_insert(pool, entry, NULL, OID_NULL, 0, alone) == -1);
    REFUSED(pmemobj_list_insert(pool, entry, &elsewhere, OID_NULL, 0, alone) == -1);
    REFUSED(pmemobj_list_insert(pool, entry, (char *)&root->list + 4, OID_NULL, 0, alone) == -1);
    REFUSED(pmemobj_list_insert(pool, entry, pool, OID_NULL, 0, alone) == -1);
    REFUSED(NONE(pmemobj_list_insert_new(pool, entry, &root->list, OID_NULL, 0, 8, 7, NULL, NULL)));
    struct node *node = pmemobj_direct(inside);
    PMEMoid next = *(PMEMoid *)&node->entry;
    ((PMEMoid *)&node->entry)->off = UINT64_MAX - 100;
    REFUSED(pmemobj_list_insert(pool, entry, &root->list, OID_NULL, 0, alone) == -1);
    REFUSED(pmemobj_list_remove(pool, entry, &root->list, inside, 1) == -1);
    *(PMEMoid *)&node->entry = next;
    CHECK(pmemobj_list_remove(pool, entry, &root->list, inside, 1) == 0);
    pmemobj_free(&alone);
    pmemobj_free(&tiny);
}

/* A pool that a transaction works on is not closed under it. */
static void close_inside(void)
{
    volatile int done = 0;
    TX_BEGIN(pool) {
        errno = 0;
        pmemobj_close(pool);
        CHECK(errno == EBUSY);
        TX_ADD_DIRECT(&root->words[3]);
        root->words[3] = 33;
    } TX_ONCOMMIT {
        done = 1;
    } TX_END
    CHECK(done && root->words[3] == 33);
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    if (is_pmdk)
        return 0;
    pool = new_pool(arguments[1], 16);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    handles(NULL);
    handles((PMEMobjpool *)root);
    handles((PMEMobjpool *)&pool);
    identifiers();
    sizes();
    ranges();
    flags();
    nothing();
    actions();
    out_of_stage();
    refused_transactions(NULL);
    refused_transactions((PMEMobjpool *)root);
    constructors();
    lists();
    close_inside();
    CHECK(count_objects(pool) == 0);
    PMEMobjpool *closed = pool;
    pool = reopen(pool, arguments[1]);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    CHECK(root->words[1] == 1 && root->words[3] == 33 && count_objects(pool) == 0);
    if (closed != pool)
        handles(closed);
    pmemobj_close(pool);
    CHECK(pmemobj_check(arguments[1], LAYOUT) == 1);
    return 0;
}
