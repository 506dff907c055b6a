/* What has gone wrong in PMDK once: transactions and publications of many entries, objects that come and go in one transaction. */
#include "check.h"

#define MANY 5000

static PMEMobjpool *pool;

struct root {
    PMEMoid oids[MANY];
    uint64_t words[2048];
};

static struct root *root;

/* More allocations than 2052 in one transaction: committed, aborted, freed. */
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

/* Publications of 640 to 1024 words, and of more than 64 objects. */
static void large_publications(void)
{
    static struct pobj_action actions[2048];
    for (unsigned count = 639; count <= 1025; count += 193) {
        for (unsigned i = 0; i < count; i++)
            pmemobj_set_value(pool, &actions[i], &root->words[i], count + i);
        CHECK(pmemobj_publish(pool, actions, count) == 0);
        for (unsigned i = 0; i < count; i++)
            CHECK(root->words[i] == count + i);
    }
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
    zeroed();
    many_ranges();
    pool = reopen(pool, arguments[1]);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    CHECK(root->words[0] == 10002 && root->words[1] == 1 && count_objects(pool) == 0);
    pmemobj_close(pool);
    return 0;
}
