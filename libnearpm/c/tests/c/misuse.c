/* Wrong arguments of every kind: each is refused with a code and a message, and nothing is lost. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

struct root {
    uint64_t words[16];
    uint64_t object;
};

static const char *path;
static struct nearpm_options options;
static struct nearpm_pool *pool;
static struct root *root;

/* Handles that are none: addresses of the program and of the pool, and numbers. */
static void handles(void)
{
    int here;
    void *senseless[] = {NULL, &here, root, (void *)(uintptr_t)1, (void *)UINTPTR_MAX, (char *)pool + 1};
    for (unsigned i = 0; i < sizeof senseless / sizeof *senseless; i++) {
        struct nearpm_pool *other = (struct nearpm_pool *)senseless[i];
        struct nearpm_tx *tx = (struct nearpm_tx *)senseless[i], *begun = tx;
        struct nearpm_range range = {root->words, 8};
        struct nearpm_info info;
        struct nearpm_statistics statistics;
        struct nearpm_recovery recovery;
        struct nearpm_heap heap;
        void *address = &here;
        uint64_t word = 0;
        REFUSED(NEARPM_EINVAL, nearpm_close(other));
        REFUSED(NEARPM_EINVAL, nearpm_root(other, 8, &address));
        REFUSED(NEARPM_EINVAL, nearpm_alloc(other, 8, NULL, &word));
        REFUSED(NEARPM_EINVAL, nearpm_free(other, &word));
        REFUSED(NEARPM_EINVAL, nearpm_usable_size(other, root, &word));
        REFUSED(NEARPM_EINVAL, nearpm_next(other, NULL, &address));
        REFUSED(NEARPM_EINVAL, nearpm_persist(other, root, 8));
        REFUSED(NEARPM_EINVAL, nearpm_persist_all(other, &range, 1));
        REFUSED(NEARPM_EINVAL, nearpm_wait_durable(other));
        REFUSED(NEARPM_EINVAL, nearpm_get_info(other, &info, sizeof info));
        REFUSED(NEARPM_EINVAL, nearpm_get_statistics(other, &statistics, sizeof statistics));
        REFUSED(NEARPM_EINVAL, nearpm_get_recovery(other, &recovery, sizeof recovery));
        REFUSED(NEARPM_EINVAL, nearpm_get_heap(other, &heap, sizeof heap));
        CHECK(!nearpm_direct(other, 64) && nearpm_errno() == NEARPM_EINVAL);
        CHECK(!nearpm_offset(other, root) && nearpm_errno() == NEARPM_EINVAL);
        REFUSED(NEARPM_EINVAL, nearpm_tx_begin(other, &begun));
        CHECK(begun == NULL && address == &here && word == 0);
        REFUSED(NEARPM_EINVAL, nearpm_tx_add(tx, root, 8));
        REFUSED(NEARPM_EINVAL, nearpm_tx_add_all(tx, &range, 1));
        REFUSED(NEARPM_EINVAL, nearpm_tx_add_new(tx, root, 8));
        REFUSED(NEARPM_EINVAL, nearpm_tx_alloc(tx, 8, &address));
        REFUSED(NEARPM_EINVAL, nearpm_tx_zalloc(tx, 8, &address));
        REFUSED(NEARPM_EINVAL, nearpm_tx_free(tx, root));
        REFUSED(NEARPM_EINVAL, nearpm_tx_set_root(tx, NULL));
        REFUSED(NEARPM_EINVAL, nearpm_tx_commit(tx));
        REFUSED(NEARPM_EINVAL, nearpm_tx_abort(tx));
    }
}

static void creating_and_opening(void)
{
    struct nearpm_pool *other = pool;
    char missing[4096], foreign[4096];
    snprintf(missing, sizeof missing, "%s.missing", path);
    snprintf(foreign, sizeof foreign, "%s.foreign", path);
    REFUSED(NEARPM_EINVAL, nearpm_open(path, &options, NULL));
    REFUSED(NEARPM_EINVAL, nearpm_create(missing, 1 << 20, &options, NULL));
    REFUSED(NEARPM_EINVAL, nearpm_open(NULL, &options, &other));
    CHECK(other == NULL);
    REFUSED(NEARPM_EINVAL, nearpm_open("\xff\xfe", &options, &other));
    REFUSED(NEARPM_ENOENT, nearpm_open(missing, &options, &other));
    /* No card has this name; in place none would do. */
    REFUSED(options.mode == NEARPM_IN_PLACE ? NEARPM_EINVAL : NEARPM_ENOENT,
            nearpm_open("card:card0/pool", &options, &other));
    REFUSED(NEARPM_EBUSY, nearpm_open(path, &options, &other));
    REFUSED(NEARPM_EEXIST, nearpm_create(path, 1 << 20, &options, &other));
    REFUSED(NEARPM_EINVAL, nearpm_create(missing, 1, &options, &other));
    REFUSED(NEARPM_ENOSPC, nearpm_create(missing, UINT64_C(1) << 60, &options, &other));
    CHECK(access(missing, F_OK) != 0);
    for (unsigned field = 0; field < 9; field++) {
        struct nearpm_options bad = options;
        uint32_t *fields[] = {&bad.mode,     &bad.durability, &bad.survives,   &bad.prefault,
                              &bad.read_only, &bad.lint,       &bad.mechanism, &bad.executor,
                              &bad.reserved[6]};
        *fields[field] = 77;
        REFUSED(NEARPM_EINVAL, nearpm_create(missing, 1 << 20, &bad, &other));
        REFUSED(NEARPM_EINVAL, nearpm_open(path, &bad, &other));
    }
    struct nearpm_options in_place = options;
    in_place.mode = NEARPM_IN_PLACE;
    for (in_place.mechanism = NEARPM_BY_UNDO; in_place.mechanism <= NEARPM_BY_SHADOW; in_place.mechanism++) {
        REFUSED(NEARPM_EINVAL, nearpm_create(missing, 1 << 20, &in_place, &other));
        CHECK(strstr(nearpm_errormsg(), "use Mode::WorkingCopy"));
    }
    struct nearpm_options by_card = options;
    by_card.mechanism = NEARPM_BY_UNDO;
    by_card.executor = NEARPM_CARD;
    if (!on_card())
        REFUSED(NEARPM_EINVAL, nearpm_create(missing, 1 << 20, &by_card, &other));
    struct nearpm_options reading = options;
    reading.read_only = 1;
    REFUSED(NEARPM_EINVAL, nearpm_create(missing, 1 << 20, &reading, &other));
    REFUSED(on_card() ? NEARPM_EINVAL : NEARPM_EBUSY, nearpm_open(path, &reading, &other));
    CHECK(access(missing, F_OK) != 0 && other == NULL);
    FILE *file = fopen(foreign, "w");
    CHECK(file && fputs("This is a letter and not a pool.", file) >= 0 && fclose(file) == 0);
    REFUSED(NEARPM_EBADPOOL, nearpm_open(foreign, &options, &other));
    CHECK(truncate(foreign, 0) == 0);
    REFUSED(NEARPM_EBADPOOL, nearpm_open(foreign, &options, &other));
    CHECK(unlink(foreign) == 0);
}

/* Ranges, objects and places that are not there; the transaction goes on. */
static void ranges_and_objects(void)
{
    struct nearpm_tx *tx;
    struct nearpm_info info;
    OK(nearpm_get_info(pool, &info, sizeof info));
    char *base = (char *)info.base;
    uint64_t word = 7, *inside = root->words;
    void *object = NULL;
    struct nearpm_range ranges[] = {{&root->words[1], 8}, {&word, 8}, {&root->words[2], 0}};
    OK(nearpm_tx_begin(pool, &tx));
    OK(nearpm_tx_add(tx, inside, 8));
    *inside = 1;
    REFUSED(NEARPM_ERANGE, nearpm_tx_add(tx, &word, 8));
    REFUSED(NEARPM_ERANGE, nearpm_tx_add(tx, NULL, 8));
    REFUSED(NEARPM_EINVAL, nearpm_tx_add(tx, inside, 0));
    REFUSED(NEARPM_ERANGE, nearpm_tx_add(tx, inside, info.bytes));
    REFUSED(NEARPM_ERANGE, nearpm_tx_add(tx, inside, UINT64_MAX));
    REFUSED(NEARPM_ERANGE, nearpm_tx_add(tx, base, 8));
    REFUSED(NEARPM_ERANGE, nearpm_tx_add(tx, base + info.heap_start - 1, 2));
    REFUSED(NEARPM_ERANGE, nearpm_tx_add(tx, base + info.bytes, 1));
    REFUSED(NEARPM_ERANGE, nearpm_tx_add_all(tx, ranges, 2));
    REFUSED(NEARPM_EINVAL, nearpm_tx_add_all(tx, ranges + 2, 1));
    REFUSED(NEARPM_EINVAL, nearpm_tx_add_all(tx, ranges, 0));
    REFUSED(NEARPM_EINVAL, nearpm_tx_add_all(tx, NULL, 1));
    REFUSED(NEARPM_EINVAL, nearpm_tx_add_all(tx, ranges, SIZE_MAX));
    REFUSED(NEARPM_ERANGE, nearpm_tx_add_new(tx, &word, 8));
    REFUSED(NEARPM_EINVAL, nearpm_tx_alloc(tx, 0, &object));
    REFUSED(NEARPM_EINVAL, nearpm_tx_alloc(tx, 8, NULL));
    REFUSED(NEARPM_ENOSPC, nearpm_tx_zalloc(tx, info.bytes, &object));
    REFUSED(NEARPM_ENOSPC, nearpm_tx_zalloc(tx, UINT64_MAX, &object));
    REFUSED(NEARPM_ERANGE, nearpm_tx_free(tx, &word));
    REFUSED(NEARPM_ERANGE, nearpm_tx_free(tx, &root->words[2]));
    REFUSED(NEARPM_ERANGE, nearpm_tx_free(tx, base + info.heap_end - 16));
    REFUSED(NEARPM_EINVAL, nearpm_tx_free(tx, root));
    REFUSED(NEARPM_ERANGE, nearpm_tx_set_root(tx, &root->words[2]));
    REFUSED(NEARPM_ERANGE, nearpm_tx_set_root(tx, &word));
    CHECK(object == NULL);
    REFUSED(NEARPM_ERANGE, nearpm_persist(pool, &word, 8));
    REFUSED(NEARPM_EINVAL, nearpm_persist(pool, inside, 0));
    REFUSED(NEARPM_ERANGE, nearpm_persist(pool, inside, UINT64_MAX));
    REFUSED(NEARPM_ERANGE, nearpm_persist_all(pool, ranges, 2));
    REFUSED(NEARPM_EINVAL, nearpm_alloc(pool, 8, NULL, NULL));
    REFUSED(NEARPM_EINVAL, nearpm_alloc(pool, 0, NULL, &root->object));
    REFUSED(NEARPM_ERANGE, nearpm_alloc(pool, 8, NULL, (uint64_t *)((char *)&root->object + 1)));
    REFUSED(NEARPM_ENOSPC, nearpm_alloc(pool, info.bytes, NULL, &root->object));
    REFUSED(NEARPM_ERANGE, nearpm_alloc(pool, 8, NULL, (uint64_t *)base));
    REFUSED(NEARPM_EINVAL, nearpm_free(pool, NULL));
    REFUSED(NEARPM_ERANGE, nearpm_free(pool, &word));
    uint64_t place = nearpm_offset(pool, root);
    REFUSED(NEARPM_EINVAL, nearpm_free(pool, &place));
    REFUSED(NEARPM_ERANGE, nearpm_root(pool, 1 << 20, &object));
    REFUSED(NEARPM_EINVAL, nearpm_root(pool, 8, NULL));
    REFUSED(NEARPM_ERANGE, nearpm_usable_size(pool, &root->words[2], &word));
    REFUSED(NEARPM_EINVAL, nearpm_usable_size(pool, root, NULL));
    REFUSED(NEARPM_ERANGE, nearpm_next(pool, &word, &object));
    REFUSED(NEARPM_EINVAL, nearpm_next(pool, NULL, NULL));
    REFUSED(NEARPM_EINVAL, nearpm_get_info(pool, NULL, sizeof info));
    REFUSED(NEARPM_EINVAL, nearpm_get_info(pool, &info, 0));
    CHECK(!nearpm_direct(pool, info.bytes) && nearpm_errno() == NEARPM_ERANGE);
    CHECK(!nearpm_direct(pool, UINT64_MAX) && !nearpm_offset(pool, &word) && nearpm_errno() == NEARPM_ERANGE);
    CHECK(root->object == 0 && word == 7 && place == nearpm_offset(pool, root));
    OK(nearpm_tx_commit(tx));
    CHECK(*inside == 1);
}

static void freed_twice(void)
{
    struct nearpm_tx *tx;
    void *object, *second;
    uint64_t copy;
    OK(nearpm_tx_begin(pool, &tx));
    OK(nearpm_tx_alloc(tx, 100, &object));
    OK(nearpm_tx_free(tx, object));
    REFUSED(NEARPM_ERANGE, nearpm_tx_free(tx, object));
    REFUSED(NEARPM_ERANGE, nearpm_tx_set_root(tx, object));
    OK(nearpm_tx_commit(tx));
    OK(nearpm_alloc(pool, 100, NULL, &copy));
    object = nearpm_direct(pool, copy);
    struct nearpm_tx *other;
    OK(nearpm_tx_begin(pool, &tx));
    OK(nearpm_tx_begin(pool, &other));
    OK(nearpm_tx_free(tx, object));
    REFUSED(NEARPM_ERANGE, nearpm_tx_free(other, object));
    REFUSED(NEARPM_ERANGE, nearpm_tx_set_root(other, object));
    OK(nearpm_tx_alloc(other, 100, &second));
    REFUSED(NEARPM_ERANGE, nearpm_tx_set_root(tx, second));
    OK(nearpm_tx_commit(tx));
    OK(nearpm_tx_abort(other));
    REFUSED(NEARPM_ERANGE, nearpm_free(pool, &copy));
    CHECK(copy == nearpm_offset(pool, object));
}

/* Changes that the log has no room for: the range is refused, and the rest is committed. */
static void changes_without_room(void)
{
    const size_t bytes = 3 << 20;
    struct nearpm_tx *tx;
    OK(nearpm_alloc(pool, bytes, NULL, &root->object));
    char *object = (char *)nearpm_direct(pool, root->object);
    OK(nearpm_tx_begin(pool, &tx));
    OK(nearpm_tx_add(tx, object, 8));
    object[0] = 1;
    REFUSED(NEARPM_ENOSPC, nearpm_tx_add(tx, object, bytes));
    OK(nearpm_tx_commit(tx));
    CHECK(object[0] == 1);
    OK(nearpm_free(pool, &root->object));
}

/* A medium that refuses what a commit writes: the program hears of it, and the pool is as of one
 * whole commit when it is opened again. */
static void refused_by_the_medium(void)
{
    char refused[4096];
    struct nearpm_options synchronised = options;
    struct nearpm_pool *there;
    struct nearpm_tx *tx;
    struct rlimit limit, none;
    uint64_t *word;
    if (options.mode != NEARPM_WORKING_COPY || options.mechanism != NEARPM_BY_RECORD || on_card())
        return;
    synchronised.survives = NEARPM_POWER_CUT;
    snprintf(refused, sizeof refused, "%s.refused", path);
    OK(nearpm_create(refused, 1 << 20, &synchronised, &there));
    OK(nearpm_root(there, sizeof *word, (void **)&word));
    OK(nearpm_tx_begin(there, &tx));
    OK(nearpm_tx_add(tx, word, sizeof *word));
    *word = 5;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    none = limit;
    none.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
    REFUSED(NEARPM_ESYSTEM, nearpm_tx_commit(tx));
    REFUSED(NEARPM_EPOISONED, nearpm_tx_begin(there, &tx));
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    nearpm_close(there);
    OK(nearpm_open(refused, &synchronised, &there));
    OK(nearpm_root(there, sizeof *word, (void **)&word));
    CHECK(*word == 0 || *word == 5);
    OK(nearpm_close(there));
}

static struct nearpm_tx *of_another_thread;

static void *other_thread(void *unused)
{
    (void)unused;
    CHECK(nearpm_errno() == NEARPM_OK && strlen(nearpm_errormsg()) == 0);
    REFUSED(NEARPM_EINVAL, nearpm_tx_add(of_another_thread, root, 8));
    REFUSED(NEARPM_EINVAL, nearpm_tx_commit(of_another_thread));
    REFUSED(NEARPM_EINVAL, nearpm_tx_abort(of_another_thread));
    /* This one is left open: it is taken back when the thread ends. */
    struct nearpm_tx *left;
    OK(nearpm_tx_begin(pool, &left));
    OK(nearpm_tx_add(left, &root->words[8], 8));
    root->words[8] = 99;
    return NULL;
}

static void threads_and_closing(void)
{
    struct nearpm_tx *tx, *ended;
    pthread_t thread;
    OK(nearpm_tx_begin(pool, &tx));
    of_another_thread = ended = tx;
    CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(root->words[8] == 0);
    OK(nearpm_tx_add(tx, &root->words[9], 8));
    root->words[9] = 9;
    REFUSED(NEARPM_EBUSY, nearpm_close(pool));
    OK(nearpm_tx_commit(tx));
    REFUSED(NEARPM_EINVAL, nearpm_tx_commit(ended));
    REFUSED(NEARPM_EINVAL, nearpm_tx_abort(ended));
    REFUSED(NEARPM_EINVAL, nearpm_tx_add(ended, root, 8));
    OK(nearpm_tx_begin(pool, &tx));
    REFUSED(NEARPM_EINVAL, nearpm_tx_add(ended, root, 8));
    OK(nearpm_tx_abort(tx));
    struct nearpm_pool *closed = pool;
    OK(nearpm_close(pool));
    REFUSED(NEARPM_EINVAL, nearpm_close(closed));
    REFUSED(NEARPM_EINVAL, nearpm_tx_begin(closed, &tx));
    OK(nearpm_open(path, &options, &pool));
    REFUSED(NEARPM_EINVAL, nearpm_close(closed));
    OK(nearpm_root(pool, sizeof *root, (void **)&root));
    CHECK(root->words[0] == 1 && root->words[8] == 0 && root->words[9] == 9 && root->object == 0);
}

int main(int count, char **arguments)
{
    path = arguments[1];
    options = options_of(count, arguments);
    OK(nearpm_create(path, 4 << 20, &options, &pool));
    OK(nearpm_root(pool, sizeof *root, (void **)&root));
    handles();
    creating_and_opening();
    ranges_and_objects();
    freed_twice();
    changes_without_room();
    refused_by_the_medium();
    threads_and_closing();
    handles();
    OK(nearpm_close(pool));
    return 0;
}
