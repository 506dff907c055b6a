/* A persistent array of counters, changed by each of the primitives. Every run adds one to each
 * counter in each way.
 *
 *     cc counter.c $(pkg-config --cflags --libs nearpm) -o counter && ./counter a.pool
 *     ./counter a.pool crash     leaves in the middle of every change: the next run finds none
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nearpm.h"

enum { COUNTERS = 512, PAGE = 4096 };

struct root {
    uint64_t undo[COUNTERS];
    uint64_t redo[COUNTERS];
    uint64_t checkpoint[COUNTERS];
    uint64_t shadow; /* offset of a page of counters */
};

static void check(int ok, const char *what) {
    if (!ok) {
        fprintf(stderr, "%s: error %d: %s\n", what, NearPM_errno(), NearPM_errormsg());
        exit(1);
    }
}

static uint64_t sum(const uint64_t *counters) {
    uint64_t total = 0;
    for (int i = 0; i < COUNTERS; i++) total += counters[i];
    return total;
}

int main(int argc, char **argv) {
    if (argc < 2) return fprintf(stderr, "usage: counter POOL [crash]\n"), 2;
    int crash = argc > 2 && strcmp(argv[2], "crash") == 0;
    uint32_t pool;
    check(NearPM_init_device("cpu") == 0, "init");
    if (NearPM_pool_open(argv[1], &pool) != 0) {
        check(NearPM_errno() == NEARPM_ENOENT, "open");
        check(NearPM_pool_create(argv[1], 4 << 20, &pool) == 0, "create");
    }
    struct root *root = (struct root *)NearPM_root(pool);
    if (!root) {
        root = (struct root *)NearPM_alloc(pool, sizeof *root);
        check(root != NULL, "alloc");
        void *page = NearPM_alloc(pool, PAGE);
        check(page != NULL, "alloc");
        root->shadow = NearPM_offset(pool, page);
        check(NearPM_persist(pool, root, sizeof *root) == 0, "persist");
        check(NearPM_set_root(pool, root) == 0, "set_root");
    }

    /* In place, the old value in the log. */
    check(NearPM_undolog_create(pool, 0, root->undo, sizeof root->undo) == 0, "undolog_create");
    for (int i = 0; i < COUNTERS; i++) root->undo[i]++;

    /* The new value in the log. */
    uint64_t next[COUNTERS];
    for (int i = 0; i < COUNTERS; i++) next[i] = root->redo[i] + 1;
    void *entry = NearPM_redolog_create(pool, 1, root->redo, next, sizeof next);
    check(entry != NULL, "redolog_create");

    /* In place, the old pages in the log. */
    check(NearPM_ckpoint_create(pool, 2, root->checkpoint, sizeof root->checkpoint) == 0, "ckpoint_create");
    for (int i = 0; i < COUNTERS; i++) root->checkpoint[i]++;

    /* On a copy of the page. */
    uint64_t *copy = (uint64_t *)NearPM_shadowcpy(pool, 0, NearPM_direct(pool, root->shadow), PAGE);
    check(copy != NULL, "shadowcpy");
    for (int i = 0; i < COUNTERS; i++) copy[i]++;

    if (crash) {
        fprintf(stderr, "leaving in the middle\n");
        _Exit(3);
    }
    check(NearPM_commit_log(pool, 0) == 0, "commit undo");
    check(NearPM_applylog(pool, 1, entry, sizeof next) == 0, "applylog");
    check(NearPM_commit_log(pool, 1) == 0, "commit redo");
    check(NearPM_commit_log(pool, 2) == 0, "commit checkpoint");
    check(NearPM_persist(pool, copy, PAGE) == 0, "persist");
    check(NearPM_switch_page(pool, &root->shadow, copy) == 0, "switch_page");

    printf("undo %" PRIu64 ", redo %" PRIu64 ", checkpoint %" PRIu64 ", shadow %" PRIu64 "\n", sum(root->undo) / COUNTERS,
           sum(root->redo) / COUNTERS, sum(root->checkpoint) / COUNTERS,
           sum((uint64_t *)NearPM_direct(pool, root->shadow)) / COUNTERS);
    check(NearPM_undolog_create(pool, 0, root, 0) == -1 && NearPM_errno() == NEARPM_EINVAL, "a size of zero is refused");
    check(NearPM_undolog_create(pool, 0, &pool, 8) == -1 && NearPM_errno() == NEARPM_ERANGE, "a foreign pointer is refused");
    check(NearPM_undolog_create(pool, 99, root, 8) == -1 && NearPM_errno() == NEARPM_ELOG, "a thread without log is refused");
    check(NearPM_commit_log(pool + 1, 0) == -1 && NearPM_errno() == NEARPM_ENOENT, "an unknown pool is refused");
    check(NearPM_pool_open(argv[1], &pool) == -1 && NearPM_errno() == NEARPM_EBUSY, "a second open is refused");
    check(NearPM_pool_close(pool) == 0, "close");
    return 0;
}
