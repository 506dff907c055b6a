/* What a program sees of the primitives of the paper's Table 2, wherever the pool is:
 *
 *     seen POOL
 */
#include "check.h"

#include <stdint.h>

#define PAGE 4096

struct root {
    uint8_t bytes[PAGE];
    uint64_t words[512];
    uint64_t shadow; /* offset of a page */
};

static const char *path;
static uint32_t pool;
static struct root *root;

#define DONE(call) CHECK((call) == 0)

static void reopen(void)
{
    DONE(NearPM_pool_close(pool));
    DONE(NearPM_pool_open(path, &pool));
    root = (struct root *)NearPM_root(pool);
    CHECK(root != NULL);
}

/* The old value is what the program saw, not what was durable. */
static void undo(void)
{
    root->words[0] = 1;
    DONE(NearPM_undolog_create(pool, 0, &root->words[0], 8));
    root->words[0] = 2;
    DONE(NearPM_abort_log(pool, 0));
    CHECK(root->words[0] == 1);
    DONE(NearPM_undolog_create(pool, 0, &root->words[0], 8));
    root->words[0] = 3;
    /* Beside the log, and not persisted. */
    root->words[1] = 4;
    DONE(NearPM_commit_log(pool, 0));
    reopen();
    CHECK(root->words[0] == 3 && root->words[1] == 4);
    /* What an open log covers is taken back, what it does not stays. */
    DONE(NearPM_undolog_create(pool, 0, &root->words[0], 8));
    root->words[0] = 5;
    root->words[1] = 6;
    reopen();
    CHECK(root->words[0] == 3 && root->words[1] == 6);
}

/* Ranges that begin and end inside of words, and neighbours in them. */
static void parts_of_words(void)
{
    for (unsigned i = 0; i < 64; i++)
        root->bytes[i] = (uint8_t)i;
    DONE(NearPM_persist(pool, root->bytes, 64));
    DONE(NearPM_undolog_create(pool, 0, &root->bytes[3], 10));
    DONE(NearPM_undolog_create(pool, 1, &root->bytes[13], 2));
    memset(&root->bytes[3], 0xaa, 12);
    DONE(NearPM_abort_log(pool, 0));
    DONE(NearPM_commit_log(pool, 1));
    for (unsigned i = 0; i < 64; i++)
        CHECK(root->bytes[i] == (i == 13 || i == 14 ? 0xaa : i));
    reopen();
    for (unsigned i = 0; i < 64; i++)
        CHECK(root->bytes[i] == (i == 13 || i == 14 ? 0xaa : i));
}

static void redo(void)
{
    uint8_t first[5] = {91, 92, 93, 94, 95}, second[20];
    memset(second, 77, sizeof second);
    void *entry = NearPM_redolog_create(pool, 2, &root->bytes[101], first, sizeof first);
    CHECK(entry != NULL && NearPM_redolog_create(pool, 2, &root->bytes[120], second, sizeof second) != NULL);
    CHECK(root->bytes[101] == 0 && root->bytes[120] == 0);
    DONE(NearPM_applylog(pool, 2, entry, sizeof first));
    /* In the same word as the end of the first value. */
    root->bytes[106] = 11;
    DONE(NearPM_commit_log(pool, 2));
    CHECK(memcmp(&root->bytes[101], first, sizeof first) == 0 && memcmp(&root->bytes[120], second, sizeof second) == 0);
    CHECK(root->bytes[100] == 0 && root->bytes[106] == 11 && root->bytes[119] == 0 && root->bytes[140] == 0);
    reopen();
    CHECK(memcmp(&root->bytes[101], first, sizeof first) == 0 && memcmp(&root->bytes[120], second, sizeof second) == 0);
    CHECK(root->bytes[106] == 11);
    /* Values that are dropped. */
    CHECK(NearPM_redolog_create(pool, 2, &root->bytes[101], second, sizeof second) != NULL);
    DONE(NearPM_abort_log(pool, 2));
    CHECK(memcmp(&root->bytes[101], first, sizeof first) == 0);
}

static void checkpoint(void)
{
    root->words[200] = 7;
    DONE(NearPM_ckpoint_create(pool, 0, &root->words[200], 8));
    root->words[200] = 8;
    root->words[201] = 9;
    DONE(NearPM_abort_log(pool, 0));
    CHECK(root->words[200] == 7 && root->words[201] == 0);
    DONE(NearPM_ckpoint_create(pool, 0, &root->words[200], 8));
    root->words[200] = 8;
    DONE(NearPM_commit_log(pool, 0));
    reopen();
    CHECK(root->words[200] == 8);
}

static void shadow(void)
{
    uint64_t *page = (uint64_t *)NearPM_alloc(pool, PAGE), *copy;
    CHECK(page != NULL && page[0] == 0 && page[511] == 0);
    page[0] = 1;
    page[511] = 2;
    root->shadow = NearPM_offset(pool, page);
    /* Neither the page nor its reference was persisted. */
    copy = (uint64_t *)NearPM_shadowcpy(pool, 0, page, PAGE);
    CHECK(copy != NULL && copy != page && copy[0] == 1 && copy[511] == 2);
    copy[1] = 3;
    DONE(NearPM_persist(pool, copy, PAGE));
    DONE(NearPM_switch_page(pool, &root->shadow, copy));
    CHECK(root->shadow == NearPM_offset(pool, copy));
    CHECK(NearPM_free(pool, page) == -1 && NearPM_errno() == NEARPM_ERANGE);
    reopen();
    copy = (uint64_t *)NearPM_direct(pool, root->shadow);
    CHECK(copy != NULL && copy[0] == 1 && copy[1] == 3 && copy[511] == 2);
    /* A place that was used before has zeros again. */
    memset(copy, 0xff, PAGE);
    DONE(NearPM_persist(pool, copy, PAGE));
    DONE(NearPM_free(pool, copy));
    for (unsigned i = 0; i < 8; i++) {
        page = (uint64_t *)NearPM_alloc(pool, PAGE);
        CHECK(page != NULL);
        for (unsigned k = 0; k < PAGE / 8; k++)
            CHECK(page[k] == 0);
    }
}

/* Ranges that leave the pool, logs that are not there: nothing happens. */
static void misuse(void)
{
    struct nearpm_statistics statistics;
    uint64_t word = 5;
    void *last = NearPM_direct(pool, (8 << 20) - 8);
    CHECK(last != NULL);
    CHECK(NearPM_undolog_create(pool, 0, &word, 8) == -1 && NearPM_errno() == NEARPM_ERANGE);
    CHECK(NearPM_undolog_create(pool, 0, root, 0) == -1 && NearPM_errno() == NEARPM_EINVAL);
    CHECK(NearPM_undolog_create(pool, 0, root, UINT64_MAX) == -1 && NearPM_errno() == NEARPM_ERANGE);
    CHECK(NearPM_undolog_create(pool, 999, root, 8) == -1 && NearPM_errno() == NEARPM_ELOG);
    CHECK(NearPM_ckpoint_create(pool, 0, last, 4096) == -1 && NearPM_errno() == NEARPM_ERANGE);
    CHECK(NearPM_ckpoint_create(pool, 0, root, UINT64_MAX) == -1 && NearPM_errno() == NEARPM_ERANGE);
    CHECK(NearPM_persist(pool, last, 4096) == -1 && NearPM_errno() == NEARPM_ERANGE);
    CHECK(NearPM_persist(pool, root, UINT64_MAX) == -1 && NearPM_errno() == NEARPM_ERANGE);
    CHECK(NearPM_redolog_create(pool, 0, last, &word, UINT64_MAX) == NULL && NearPM_errno() == NEARPM_EINVAL);
    CHECK(NearPM_shadowcpy(pool, 0, root->bytes + 64, PAGE) == NULL && NearPM_errno() == NEARPM_ERANGE);
    CHECK(NearPM_switch_page(pool, &word, root) == -1 && NearPM_errno() == NEARPM_ERANGE);
    CHECK(NearPM_get_statistics(pool, NULL, sizeof statistics) == -1 && NearPM_errno() == NEARPM_EINVAL);
    CHECK(NearPM_get_statistics(pool + 1, &statistics, sizeof statistics) == -1 && NearPM_errno() == NEARPM_ENOENT);
    /* A log is of one kind. */
    DONE(NearPM_undolog_create(pool, 0, &root->words[300], 8));
    root->words[300] = 1;
    CHECK(NearPM_redolog_create(pool, 0, &root->words[301], &word, 8) == NULL && NearPM_errno() == NEARPM_ELOG);
    DONE(NearPM_commit_log(pool, 0));
    reopen();
    CHECK(root->words[300] == 1 && root->words[301] == 0);
}

int main(int count, char **arguments)
{
    CHECK(count == 2);
    path = arguments[1];
    DONE(NearPM_init_device(NULL));
    DONE(NearPM_pool_create(path, 8 << 20, &pool));
    root = (struct root *)NearPM_alloc(pool, sizeof *root);
    CHECK(root != NULL);
    DONE(NearPM_set_root(pool, root));
    undo();
    parts_of_words();
    redo();
    checkpoint();
    shadow();
    misuse();
    DONE(NearPM_pool_close(pool));
    return 0;
}
