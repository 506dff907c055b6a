/* Pools whose changes are forgotten: the runner sets copy_on_write.at_open=1. What creates a pool
 * changes it as ever. */
#include "check.h"

#include <unistd.h>

struct root {
    uint64_t committed, persisted, stored;
    PMEMoid object;
    char bytes[100000];
};

/* The bytes of a file. */
static char *bytes_of(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL && fseek(file, 0, SEEK_END) == 0);
    *size = (size_t)ftell(file);
    char *bytes = malloc(*size);
    CHECK(bytes != NULL && fseek(file, 0, SEEK_SET) == 0 && fread(bytes, 1, *size, file) == *size && fclose(file) == 0);
    return bytes;
}

static void changes(PMEMobjpool *pool, struct root *root)
{
    CHECK(root->committed == 1 && root->persisted == 1 && root->stored == 1 && OID_IS_NULL(root->object));
    for (unsigned round = 0; round < 3000; round++) {
        TX_BEGIN(pool) {
            pmemobj_tx_add_range_direct(&root->committed, sizeof(root->committed));
            root->committed++;
            if (round % 100 == 0) {
                pmemobj_tx_add_range_direct(root->bytes, sizeof(root->bytes));
                memset(root->bytes, (int)round / 100, sizeof(root->bytes));
            }
        } TX_ONABORT {
            CHECK(0);
        } TX_END
    }
    TX_BEGIN(pool) {
        pmemobj_tx_add_range_direct(&root->committed, sizeof(root->committed));
        root->committed = 0;
        pmemobj_tx_abort(ECANCELED);
    } TX_END
    CHECK(root->committed == 3001 && root->bytes[99999] == 29);
    root->persisted = 2;
    pmemobj_persist(pool, &root->persisted, sizeof(root->persisted));
    root->stored = 2;
    CHECK(pmemobj_alloc(pool, &root->object, 1000, 1, NULL, NULL) == 0 && count_objects(pool) == 1);
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    const char *path = arguments[1];
    PMEMobjpool *pool = new_pool(path, 16);
    struct root *root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    root->committed = root->persisted = root->stored = 1;
    pmemobj_persist(pool, root, sizeof(*root));
    pmemobj_close(pool);
    size_t size, size_after;
    char *before = bytes_of(path, &size);
    for (unsigned i = 0; i < 2; i++) {
        pool = pmemobj_open(path, LAYOUT);
        CHECK(pool != NULL);
        changes(pool, pmemobj_direct(pmemobj_root(pool, sizeof(struct root))));
        pmemobj_close(pool);
    }
    char *after = bytes_of(path, &size_after);
    CHECK(size == size_after && memcmp(before, after, size) == 0);
    CHECK(pmemobj_check(path, LAYOUT) == 1);
    free(before);
    free(after);
    return 0;
}
