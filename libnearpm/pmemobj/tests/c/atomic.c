/* Allocation outside of transactions, and reserve and publish. */
#include "check.h"

#include <wchar.h>

struct root {
    PMEMoid oids[16];
    uint64_t words[2000];
};

static PMEMobjpool *pool;
static struct root *root;

static int construct(PMEMobjpool *of, void *object, void *argument)
{
    CHECK(of == pool);
    *(uint64_t *)object = *(uint64_t *)argument;
    pmemobj_persist(of, object, sizeof(uint64_t));
    return *(uint64_t *)argument == 0;
}

static void allocation(void)
{
    PMEMoid local;
    uint64_t value = 42;
    CHECK(pmemobj_alloc(pool, &root->oids[0], 100, 7, construct, &value) == 0);
    CHECK(*(uint64_t *)pmemobj_direct(root->oids[0]) == 42 && pmemobj_type_num(root->oids[0]) == 7);
    /* PMDK's own ctree asks so of keys without a value (OID_INSTANCEOF), and crashes there. */
    CHECK(is_pmdk || pmemobj_type_num(OID_NULL) == 0);
    value = 0;
    errno = 0;
    local = root->oids[0];
    CHECK(pmemobj_alloc(pool, &local, 100, 7, construct, &value) == -1 && errno == ECANCELED);
    CHECK(OID_EQUALS(local, root->oids[0]));
    errno = 0;
    CHECK(pmemobj_alloc(pool, &local, 0, 7, NULL, NULL) == -1 && errno == EINVAL);
    CHECK(strcmp(pmemobj_errormsg(), "allocation with size 0") == 0);
    errno = 0;
    CHECK(pmemobj_alloc(pool, &local, PMEMOBJ_MAX_ALLOC_SIZE + 1, 7, NULL, NULL) == -1 && errno == ENOMEM);
    CHECK(strcmp(pmemobj_errormsg(), "requested size too large") == 0);
    errno = 0;
    CHECK(pmemobj_alloc(pool, &local, (size_t)1 << 32, 7, NULL, NULL) == -1 && errno == ENOMEM);
    errno = 0;
    CHECK(pmemobj_xalloc(pool, &local, 8, 7, 1 << 20, NULL, NULL) == -1 && errno == EINVAL);
    CHECK(strcmp(pmemobj_errormsg(), "unknown flags 0x100000") == 0);
    CHECK(pmemobj_alloc(pool, NULL, 8, 1, NULL, NULL) == 0 && count_objects(pool) == 2);
    local = pmemobj_first(pool);
    if (OID_EQUALS(local, root->oids[0]))
        local = pmemobj_next(local);
    pmemobj_free(&local);
    CHECK(OID_IS_NULL(local) && local.pool_uuid_lo == 0);
    pmemobj_free(&local);

    CHECK(pmemobj_zalloc(pool, &root->oids[1], 100000, 8) == 0);
    char *data = pmemobj_direct(root->oids[1]);
    for (unsigned i = 0; i < 100000; i++)
        CHECK(data[i] == 0);
    CHECK(pmemobj_xalloc(pool, &local, 64, 9, POBJ_XALLOC_ZERO, NULL, NULL) == 0);
    CHECK(*(uint64_t *)pmemobj_direct(local) == 0);
    pmemobj_free(&local);
    pmemobj_free(&root->oids[1]);
    CHECK(OID_IS_NULL(root->oids[1]) && count_objects(pool) == 1 && pmemobj_alloc_usable_size(OID_NULL) == 0);
    pmemobj_free(&root->oids[0]);
}

static void reallocation(void)
{
    PMEMoid *oid = &root->oids[0];
    CHECK(pmemobj_realloc(pool, oid, 0, 1) == 0 && OID_IS_NULL(*oid));
    CHECK(pmemobj_realloc(pool, oid, 100, 1) == 0 && pmemobj_type_num(*oid) == 1);
    memset(pmemobj_direct(*oid), 'x', 100);
    CHECK(pmemobj_realloc(pool, oid, 10000, 2) == 0 && pmemobj_type_num(*oid) == 2);
    CHECK(((char *)pmemobj_direct(*oid))[99] == 'x' && pmemobj_alloc_usable_size(*oid) >= 10000);
    CHECK(pmemobj_realloc(pool, oid, 50, 2) == 0 && ((char *)pmemobj_direct(*oid))[49] == 'x');
    CHECK(pmemobj_zrealloc(pool, oid, 20000, 2) == 0 && ((char *)pmemobj_direct(*oid))[19999] == 0);
    CHECK(((char *)pmemobj_direct(*oid))[49] == 'x' && count_objects(pool) == 1);
    errno = 0;
    CHECK(pmemobj_realloc(pool, oid, PMEMOBJ_MAX_ALLOC_SIZE + 1, 2) == -1 && errno == ENOMEM);
    CHECK(pmemobj_realloc(pool, oid, 0, 1) == 0 && OID_IS_NULL(*oid) && count_objects(pool) == 0);
}

static void strings(void)
{
    errno = 0;
    CHECK(pmemobj_strdup(pool, &root->oids[0], NULL, 1) == -1 && errno == EINVAL);
    CHECK(pmemobj_wcsdup(pool, &root->oids[0], NULL, 1) == -1 && errno == EINVAL);
    CHECK(pmemobj_strdup(pool, &root->oids[0], "text", 1) == 0);
    CHECK(pmemobj_wcsdup(pool, &root->oids[1], L"wide", 2) == 0);
    CHECK(strcmp(pmemobj_direct(root->oids[0]), "text") == 0);
    CHECK(wcscmp(pmemobj_direct(root->oids[1]), L"wide") == 0);
    pmemobj_free(&root->oids[0]);
    pmemobj_free(&root->oids[1]);
}

static void actions(void)
{
    struct pobj_action acts[8];
    errno = 0;
    /* PMDK 1.12 crashes here. */
    if (!is_pmdk)
        CHECK(OID_IS_NULL(pmemobj_reserve(pool, &acts[0], 0, 1)) && errno == EINVAL);
    errno = 0;
    CHECK(OID_IS_NULL(pmemobj_xreserve(pool, &acts[0], 8, 1, 1 << 20)) && errno == EINVAL);
    PMEMoid one = pmemobj_reserve(pool, &acts[0], 100, 4);
    CHECK(acts[0].heap.offset == one.off && acts[0].heap.usable_size >= 100);
    CHECK(pmemobj_type_num(one) == 4 && pmemobj_alloc_usable_size(one) == acts[0].heap.usable_size);
    CHECK(count_objects(pool) == 0);
    pmemobj_cancel(pool, acts, 1);
    CHECK(count_objects(pool) == 0);

    one = pmemobj_xreserve(pool, &acts[0], 1000, 4, POBJ_XALLOC_ZERO);
    CHECK(((char *)pmemobj_direct(one))[999] == 0);
    pmemobj_memset_persist(pool, pmemobj_direct(one), 'a', 1000);
    PMEMoid two = pmemobj_reserve(pool, &acts[1], 10, 5);
    pmemobj_memset_persist(pool, pmemobj_direct(two), 'b', 10);
    root->words[0] = root->words[1] = 0;
    pmemobj_set_value(pool, &acts[2], &root->oids[0].off, one.off);
    pmemobj_set_value(pool, &acts[3], &root->oids[0].pool_uuid_lo, one.pool_uuid_lo);
    pmemobj_set_value(pool, &acts[4], &root->words[1], 22);
    CHECK(root->words[1] == 0);
    CHECK(pmemobj_publish(pool, acts, 5) == 0);
    CHECK(OID_EQUALS(root->oids[0], one) && root->words[1] == 22 && count_objects(pool) == 2);
    pmemobj_defer_free(pool, one, &acts[0]);
    pmemobj_defer_free(pool, two, &acts[1]);
    pmemobj_set_value(pool, &acts[2], &root->oids[0].off, 0);
    CHECK(count_objects(pool) == 2);
    pmemobj_cancel(pool, acts, 3);
    CHECK(count_objects(pool) == 2 && !OID_IS_NULL(root->oids[0]));
    CHECK(pmemobj_publish(pool, acts, 3) == 0 && count_objects(pool) == 0 && OID_IS_NULL(root->oids[0]));
    CHECK(pmemobj_publish(pool, NULL, 0) == 0);
}

static void defragmentation(void)
{
    PMEMoid oids[100], *pointers[100];
    for (unsigned i = 0; i < 100; i++) {
        CHECK(pmemobj_alloc(pool, &oids[i], 64, i, NULL, NULL) == 0);
        *(unsigned *)pmemobj_direct(oids[i]) = i;
        pointers[i] = &oids[i];
    }
    struct pobj_defrag_result result;
    CHECK(pmemobj_defrag(pool, pointers, 100, &result) == 0);
    CHECK(result.total == 100 && result.relocated <= 100);
    for (unsigned i = 0; i < 100; i++) {
        CHECK(*(unsigned *)pmemobj_direct(oids[i]) == i && pmemobj_type_num(oids[i]) == i);
        pmemobj_free(&oids[i]);
    }
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    pool = new_pool(arguments[1], 32);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    allocation();
    reallocation();
    strings();
    actions();
    defragmentation();
    CHECK(pmemobj_strdup(pool, &root->oids[3], "kept", 1) == 0);
    pool = reopen(pool, arguments[1]);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    CHECK(strcmp(pmemobj_direct(root->oids[3]), "kept") == 0 && root->words[1] == 22 && count_objects(pool) == 1);
    pmemobj_close(pool);
    return 0;
}
