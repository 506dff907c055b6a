/* What has gone wrong in PMDK once: transactions and publications of many entries, objects that
 * come and go in one transaction. Numbers are those of PMDK's repository. What goes wrong in a
 * crash alone is in defects_cut.c. */
#include "check.h"

#define MANY 5000

static PMEMobjpool *pool;

struct root {
    PMEMoid oids[MANY];
    uint64_t words[2048];
};

static struct root *root;

/* More allocations than 2052 in one transaction: committed, aborted, freed (#5461). */
static void many_allocations(void)
{
    for (volatile int commit = 0; commit < 2; commit++) {
        TX_BEGIN(pool) {
            pmemobj_tx_add_range_direct(root->oids, sizeof(root->oids));
            for (unsigned i = 0; i < MANY; i++) {
                root->oids[i] = pmemobj_tx_alloc(40, i);
                memset(pmemobj_direct(root->oids[i]), (int)i, 40);
            }
            if (!commit)
                pmemobj_tx_abort(EPERM);
        } TX_END
        CHECK(count_objects(pool) == (commit ? MANY : 0) && OID_IS_NULL(root->oids[0]) == !commit);
    }
    for (unsigned i = 0; i < MANY; i++)
        CHECK(pmemobj_type_num(root->oids[i]) == i && *((char *)pmemobj_direct(root->oids[i]) + 39) == (char)i);
    for (volatile int commit = 0; commit < 2; commit++) {
        TX_BEGIN(pool) {
            for (unsigned i = 0; i < MANY; i++)
                pmemobj_tx_free(root->oids[i]);
            if (!commit)
                pmemobj_tx_abort(EPERM);
        } TX_END
        CHECK(count_objects(pool) == (commit ? 0 : MANY));
    }
}

/* Freed in the transaction that allocated it, with and without a range of it added. */
static void freed_at_once(void)
{
    for (volatile int commit = 0; commit < 2; commit++) {
        TX_BEGIN(pool) {
            for (unsigned i = 0; i < 100; i++) {
                PMEMoid kept = pmemobj_tx_zalloc(100 + i, 1), gone = pmemobj_tx_alloc(100 + i * 50, 2);
                pmemobj_tx_add_range(gone, 0, 50);
                memset(pmemobj_direct(gone), 1, 100 + i * 50);
                memset(pmemobj_direct(kept), 2, 100 + i);
                pmemobj_tx_free(gone);
            }
            if (!commit)
                pmemobj_tx_abort(EPERM);
        } TX_END
        CHECK(count_objects(pool) == (commit ? 100 : 0));
    }
    PMEMoid next;
    for (PMEMoid oid = pmemobj_first(pool); !OID_IS_NULL(oid); oid = next) {
        next = pmemobj_next(oid);
        CHECK(pmemobj_type_num(oid) == 1 && *((char *)pmemobj_direct(oid) + 99) == 2);
        pmemobj_free(&oid);
    }
    CHECK(count_objects(pool) == 0);
}

/* Publications of `count` words; in a transaction, too. */
static void publish_words(unsigned count, struct pobj_action *actions)
{
    for (volatile unsigned in_transaction = 0; in_transaction < 2; in_transaction++) {
        const uint64_t first = count * 2 + in_transaction;
        for (unsigned i = 0; i < count; i++)
            pmemobj_set_value(pool, &actions[i], &root->words[i], first + i);
        if (in_transaction) {
            TX_BEGIN(pool) {
                pmemobj_tx_publish(actions, count);
            } TX_ONABORT {
                CHECK(0);
            } TX_END
        } else {
            CHECK(pmemobj_publish(pool, actions, count) == 0);
        }
        for (unsigned i = 0; i < count; i++)
            CHECK(root->words[i] == first + i);
    }
}

/* Publications of every size around 640 and 1024 bytes and entries (#5583), and of more than 64
 * objects. */
static void large_publications(void)
{
    static struct pobj_action actions[2048];
    for (unsigned count = 1; count <= 130; count++)
        publish_words(count, actions);
    for (unsigned count = 639; count <= 1025; count += count == 641 ? 382 : 1)
        publish_words(count, actions);
    for (unsigned i = 0; i < 500; i++) {
        PMEMoid oid = pmemobj_reserve(pool, &actions[i], 64 + i, i);
        pmemobj_memset_persist(pool, pmemobj_direct(oid), (int)i, 64 + i);
        pmemobj_set_value(pool, &actions[500 + i], &root->words[i], oid.off);
    }
    CHECK(pmemobj_publish(pool, actions, 1000) == 0 && count_objects(pool) == 500);
    for (unsigned i = 0; i < 500; i++) {
        PMEMoid oid = {pmemobj_oid(root).pool_uuid_lo, root->words[i]};
        CHECK(pmemobj_type_num(oid) == i && *((char *)pmemobj_direct(oid) + 63 + i) == (char)i);
        pmemobj_defer_free(pool, oid, &actions[i]);
    }
    CHECK(pmemobj_publish(pool, actions, 500) == 0 && count_objects(pool) == 0);
}

/* More than 64 words of ordinary memory, alone and with words of the pool (#4266). */
static void volatile_words(void)
{
    static struct pobj_action actions[512];
    static uint64_t ordinary[256];
    for (unsigned count = 60; count <= 256; count += 49) {
        for (unsigned i = 0; i < count; i++) {
            pmemobj_set_value(pool, &actions[2 * i], &ordinary[i], count + i);
            pmemobj_set_value(pool, &actions[2 * i + 1], &root->words[i], count * 2 + i);
        }
        CHECK(pmemobj_publish(pool, actions, 2 * count) == 0);
        for (unsigned i = 0; i < count; i++)
            CHECK(ordinary[i] == count + i && root->words[i] == count * 2 + i);
        for (volatile unsigned commit = 0; commit < 2; commit++) {
            for (unsigned i = 0; i < count; i++)
                pmemobj_set_value(pool, &actions[i], &ordinary[i], 7 * count + i);
            TX_BEGIN(pool) {
                pmemobj_tx_publish(actions, count);
                CHECK(ordinary[0] == count);
                if (!commit)
                    pmemobj_tx_abort(EPERM);
            } TX_END
            for (unsigned i = 0; i < count; i++)
                CHECK(ordinary[i] == (commit ? 7 : 1) * count + i);
        }
    }
}

/* An object that is freed before anything is allocated, while its space is reserved again: what
 * comes next lies apart (#5470). */
static void freed_before_anything_is_allocated(const char *path)
{
    enum { LARGE = 1 << 20, OTHERS = 20 };
    PMEMoid old, others[OTHERS];
    struct pobj_action action;
    CHECK(pmemobj_alloc(pool, &old, LARGE, 1, NULL, NULL) == 0);
    pool = reopen(pool, path);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    old = pmemobj_first(pool);
    CHECK(!OID_IS_NULL(old));
    pmemobj_free(&old);
    PMEMoid reserved = pmemobj_reserve(pool, &action, LARGE, 2);
    CHECK(!OID_IS_NULL(reserved));
    memset(pmemobj_direct(reserved), 1, LARGE);
    for (unsigned i = 0; i < OTHERS; i++) {
        CHECK(pmemobj_alloc(pool, &others[i], LARGE, 3, NULL, NULL) == 0);
        memset(pmemobj_direct(others[i]), 2, LARGE);
    }
    CHECK(pmemobj_publish(pool, &action, 1) == 0);
    for (unsigned i = 0; i < LARGE; i += 64)
        CHECK(((char *)pmemobj_direct(reserved))[i] == 1);
    CHECK(count_objects(pool) == OTHERS + 1);
    pmemobj_free(&reserved);
    for (unsigned i = 0; i < OTHERS; i++)
        pmemobj_free(&others[i]);
    CHECK(count_objects(pool) == 0);
}

/* The bytes of pmemobj_tx_zalloc are zero also where objects were before, and after an abort. */
static void zeroed(void)
{
    for (volatile unsigned round = 0; round < 20; round++) {
        TX_BEGIN(pool) {
            for (unsigned size = 1; size < 300000; size = size * 3 + 1) {
                char *data = pmemobj_direct(pmemobj_tx_zalloc(size, 1));
                for (unsigned i = 0; i < size; i++)
                    CHECK(data[i] == 0);
                memset(data, 0xff, size);
            }
            pmemobj_tx_abort(EPERM);
        } TX_END
    }
    CHECK(count_objects(pool) == 0);
}

/* Many ranges in one transaction, also the same ones again. */
static void many_ranges(void)
{
    for (unsigned i = 0; i < 2048; i++)
        root->words[i] = i;
    pmemobj_persist(pool, root->words, sizeof(root->words));
    for (volatile int commit = 0; commit < 2; commit++) {
        TX_BEGIN(pool) {
            for (unsigned round = 0; round < 3; round++)
                for (unsigned i = 0; i < 2048; i += 2) {
                    unsigned at = i * 911 % 2048;
                    TX_ADD_DIRECT(&root->words[at]);
                    root->words[at] = 10000 + round;
                }
            if (!commit)
                pmemobj_tx_abort(EPERM);
        } TX_END
        for (unsigned i = 0; i < 2048; i++)
            CHECK(root->words[i] == (commit && i % 2 == 0 ? 10002 : i));
    }
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    pool = new_pool(arguments[1], 64);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    many_allocations();
    freed_at_once();
    large_publications();
    volatile_words();
    freed_before_anything_is_allocated(arguments[1]);
    zeroed();
    many_ranges();
    pool = reopen(pool, arguments[1]);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    CHECK(root->words[0] == 10002 && root->words[1] == 1 && count_objects(pool) == 0);
    pmemobj_close(pool);
    return 0;
}
