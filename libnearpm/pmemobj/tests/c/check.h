/* Checks of the programs that run on PMDK and on this library alike. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s (errno %d, message \"%s\")\n", __FILE__, __LINE__, #condition, errno,           \
                    pmemobj_errormsg());                                                                               \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Whether this process runs on PMDK itself: what crashes there is not tried. Set by
 * `check_begin`. */
static int is_pmdk __attribute__((unused));

/* Call first: the arguments are the path of a pool that does not exist, and the library's name. */
static inline void check_begin(int count, char **arguments)
{
    if (count != 3) {
        fprintf(stderr, "usage: %s POOL pmdk|nearpm\n", arguments[0]);
        exit(2);
    }
    is_pmdk = strcmp(arguments[2], "pmdk") == 0;
}

#define LAYOUT "nearpm-check"

static inline PMEMobjpool *new_pool(const char *path, size_t mebibytes)
{
    PMEMobjpool *pool = pmemobj_create(path, LAYOUT, mebibytes << 20, 0600);
    CHECK(pool != NULL);
    return pool;
}

static inline PMEMobjpool *reopen(PMEMobjpool *pool, const char *path)
{
    pmemobj_close(pool);
    pool = pmemobj_open(path, LAYOUT);
    CHECK(pool != NULL);
    return pool;
}

/* Objects that iteration finds. */
static inline unsigned count_objects(PMEMobjpool *pool)
{
    unsigned count = 0;
    for (PMEMoid oid = pmemobj_first(pool); !OID_IS_NULL(oid); oid = pmemobj_next(oid))
        count++;
    return count;
}

/*
 * Opens the pool of `POOL LIBRARY prepare|work|verify SEED NUMBER`, which "prepare" makes: the
 * arguments of programs under power cuts. Returns the root object of so many bytes.
 */
static inline void *open_for_cuts(int count, char **arguments, size_t bytes, PMEMobjpool **pool)
{
    CHECK(count >= 4);
    check_begin(3, arguments);
    int prepares = strcmp(arguments[3], "prepare") == 0;
    CHECK(prepares || count == 6);
    *pool = prepares ? new_pool(arguments[1], 8) : pmemobj_open(arguments[1], LAYOUT);
    CHECK(*pool != NULL);
    return pmemobj_direct(pmemobj_root(*pool, bytes));
}

#endif
