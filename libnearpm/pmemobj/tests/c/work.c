/* What transactions do: ranges with their flags, objects that come and go, publications, logs. */
#include "check.h"

#include <wchar.h>

struct root {
    uint64_t words[1024];
    PMEMoid oids[64];
};

static PMEMobjpool *pool;
static struct root *root;
static PMEMoid root_oid;

static void ranges(void)
{
    for (unsigned i = 0; i < 1024; i++)
        root->words[i] = i;
    pmemobj_persist(pool, root, sizeof(*root));
    TX_BEGIN(pool) {
        /* Overlapping, adjacent, one inside the other. */
        pmemobj_tx_add_range(root_oid, 0, 100);
        pmemobj_tx_add_range(root_oid, 64, 200);
        pmemobj_tx_add_range_direct(&root->words[40], 8);
        pmemobj_tx_add_range_direct(&root->words[30], 8 * 100);
        pmemobj_tx_add_range(root_oid, 8 * 500, 8 * 500);
        memset(root->words, 0xff, 264);
        memset(&root->words[30], 0xee, 8 * 100);
        memset(&root->words[500], 0xdd, 8 * 500);
        pmemobj_tx_abort(EPERM);
    } TX_END
    for (unsigned i = 0; i < 1024; i++)
        CHECK(root->words[i] == i);
}

static void flags(void)
{
    TX_BEGIN(pool) {
        CHECK(pmemobj_tx_xadd_range(root_oid, 0, 8, POBJ_XADD_NO_SNAPSHOT) == 0);
        root->words[0] = 100;
        CHECK(pmemobj_tx_xadd_range_direct(&root->words[1], 8, POBJ_XADD_NO_FLUSH) == 0);
        root->words[1] = 101;
        CHECK(pmemobj_tx_xadd_range_direct(&root->words[2], 8, POBJ_XADD_ASSUME_INITIALIZED) == 0);
        root->words[2] = 102;
        pmemobj_tx_abort(EPERM);
    } TX_END
    CHECK(root->words[0] == 100 && root->words[1] == 1 && root->words[2] == 2);
}

static void objects(void)
{
    unsigned before = count_objects(pool);
    volatile PMEMoid one, two;
    TX_BEGIN(pool) {
        one = pmemobj_tx_zalloc(1000, 5);
        char *data = pmemobj_direct(one);
        for (unsigned i = 0; i < 1000; i++)
            CHECK(data[i] == 0);
        CHECK(pmemobj_type_num(one) == 5 && pmemobj_alloc_usable_size(one) >= 1000);
        two = pmemobj_tx_xalloc(10, 6, POBJ_XALLOC_ZERO | POBJ_XALLOC_NO_FLUSH);
        CHECK(*(char *)pmemobj_direct(two) == 0);
        TX_ADD_DIRECT(&root->oids[0]);
        root->oids[0] = one;
        TX_ADD_DIRECT(&root->oids[1]);
        root->oids[1] = two;
    } TX_ONABORT {
        CHECK(0);
    } TX_END
    CHECK(count_objects(pool) == before + 2);

    TX_BEGIN(pool) {
        CHECK(pmemobj_tx_free(OID_NULL) == 0);
        CHECK(pmemobj_tx_free(one) == 0);
        pmemobj_tx_alloc(2000, 7);
        pmemobj_tx_abort(EPERM);
    } TX_END
    CHECK(count_objects(pool) == before + 2 && pmemobj_type_num(one) == 5);

    TX_BEGIN(pool) {
        strcpy(pmemobj_direct(two), "moved");
        root->oids[1] = pmemobj_tx_realloc(two, 5000, 8);
        CHECK(strcmp(pmemobj_direct(root->oids[1]), "moved") == 0);
        root->oids[0] = pmemobj_tx_zrealloc(one, 3000, 9);
        CHECK(((char *)pmemobj_direct(root->oids[0]))[2999] == 0);
        CHECK(OID_IS_NULL(pmemobj_tx_realloc(pmemobj_tx_alloc(10, 1), 0, 1)));
    } TX_END
    CHECK(count_objects(pool) == before + 2 && pmemobj_type_num(root->oids[1]) == 8);
    TX_BEGIN(pool) {
        pmemobj_tx_free(root->oids[0]);
        pmemobj_tx_free(root->oids[1]);
    } TX_END
    CHECK(count_objects(pool) == before);
}

static void strings(void)
{
    volatile PMEMoid oids[4];
    TX_BEGIN(pool) {
        oids[0] = pmemobj_tx_strdup("text", 1);
        oids[1] = pmemobj_tx_wcsdup(L"wide", 2);
        oids[2] = pmemobj_tx_strdup("", 3);
        oids[3] = pmemobj_tx_xwcsdup(L"", 4, POBJ_XALLOC_NO_ABORT);
    } TX_ONABORT {
        CHECK(0);
    } TX_END
    CHECK(strcmp(pmemobj_direct(oids[0]), "text") == 0 && wcscmp(pmemobj_direct(oids[1]), L"wide") == 0);
    CHECK(strcmp(pmemobj_direct(oids[2]), "") == 0 && wcscmp(pmemobj_direct(oids[3]), L"") == 0);
    TX_BEGIN(pool) {
        for (unsigned i = 0; i < 4; i++)
            pmemobj_tx_free(oids[i]);
    } TX_END
}

static void publications(void)
{
    unsigned before = count_objects(pool);
    struct pobj_action actions[3];
    root->words[9] = 9;
    for (int commit = 0; commit < 2; commit++) {
        volatile PMEMoid oid = pmemobj_reserve(pool, &actions[0], 100, 3);
        memset(pmemobj_direct(oid), 1, 100);
        pmemobj_persist(pool, pmemobj_direct(oid), 100);
        pmemobj_set_value(pool, &actions[1], &root->words[9], 77);
        TX_BEGIN(pool) {
            CHECK(pmemobj_tx_publish(actions, 2) == 0);
            CHECK(root->words[9] == 9);
            if (!commit)
                pmemobj_tx_abort(EPERM);
        } TX_END
        CHECK(count_objects(pool) == before + (unsigned)commit && root->words[9] == (commit ? 77 : 9));
        if (commit) {
            pmemobj_defer_free(pool, oid, &actions[2]);
            TX_BEGIN(pool) {
                CHECK(pmemobj_tx_xpublish(&actions[2], 1, POBJ_XPUBLISH_NO_ABORT) == 0);
            } TX_END
        }
    }
    CHECK(count_objects(pool) == before);
}

static void logs(void)
{
    PMEMoid buffer;
    size_t sizes[] = {10, 100, 4096};
    CHECK(pmemobj_tx_log_snapshots_max_size(sizes, 1) == 128);
    CHECK(pmemobj_tx_log_snapshots_max_size(sizes, 3) == 4416);
    CHECK(pmemobj_tx_log_intents_max_size(10) == 256);
    sizes[0] = SIZE_MAX;
    errno = 0;
    CHECK(pmemobj_tx_log_snapshots_max_size(sizes, 1) == SIZE_MAX);
    CHECK(errno == ERANGE);
    CHECK(pmemobj_zalloc(pool, &buffer, 16384, 0) == 0);
    TX_BEGIN(pool) {
        CHECK(pmemobj_tx_log_append_buffer(TX_LOG_TYPE_SNAPSHOT, pmemobj_direct(buffer), 8192) == 0);
        CHECK(pmemobj_tx_log_append_buffer(TX_LOG_TYPE_INTENT, (char *)pmemobj_direct(buffer) + 8192, 8192) == 0);
        CHECK(pmemobj_tx_log_auto_alloc(TX_LOG_TYPE_SNAPSHOT, 0) == 0);
        CHECK(pmemobj_tx_log_auto_alloc(TX_LOG_TYPE_INTENT, 0) == 0);
        TX_ADD_DIRECT(&root->words[0]);
        root->words[0] = 5;
    } TX_ONABORT {
        CHECK(0);
    } TX_END
    CHECK(root->words[0] == 5);
    pmemobj_free(&buffer);
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    pool = new_pool(arguments[1], 32);
    root_oid = pmemobj_root(pool, sizeof(struct root));
    root = pmemobj_direct(root_oid);
    ranges();
    flags();
    objects();
    strings();
    publications();
    logs();
    pool = reopen(pool, arguments[1]);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    CHECK(root->words[9] == 77 && root->words[0] == 5 && count_objects(pool) == 0);
    pmemobj_close(pool);
    return 0;
}
