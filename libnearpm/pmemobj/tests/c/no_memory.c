/* The system gives the process no more memory: calls fail with ENOMEM and transactions abort, at
 * whatever point it is, and the pool is sound afterwards. RLIMIT_AS is lowered in steps, so that
 * each thing that is allocated fails first at some step. */
#include "check.h"

#include <malloc.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOTS 4096

struct root {
    uint64_t changes;
    PMEMoid slots[SLOTS];
    char bytes[8 << 20];
};

static PMEMobjpool *pool;
static struct root *root;

/* Bytes of the address space that are used. */
static size_t used(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%zu", &pages) == 1);
    fclose(file);
    return pages * 4096;
}

/* One transaction: objects that come and go, many ranges, a long one, words that are set at the
 * end. Gives its error. */
static int change(unsigned step)
{
    volatile int error = 0;
    volatile unsigned at;
    struct pobj_action actions[16];
    TX_BEGIN(pool) {
        for (at = 0; at < 200 + step * 40 % 3000; at++) {
            PMEMoid *slot = &root->slots[(at * 7 + step) % SLOTS];
            TX_ADD_DIRECT(slot);
            if (!OID_IS_NULL(*slot)) {
                pmemobj_tx_free(*slot);
                *slot = OID_NULL;
            } else {
                *slot = pmemobj_tx_zalloc(16 + at % 3 * 700, 1);
            }
        }
        for (at = 0; at < step * 64 % 20000; at++)
            pmemobj_tx_add_range_direct(root->bytes + at * 200, 8);
        size_t length = (size_t)step * 65521 % sizeof(root->bytes);
        pmemobj_tx_add_range_direct(root->bytes, length);
        memset(root->bytes, (int)step, length);
        for (at = 0; at < 16; at++)
            pmemobj_set_value(pool, &actions[at], (uint64_t *)root->bytes + at, step);
        pmemobj_tx_publish(actions, 16);
        TX_ADD_DIRECT(&root->changes);
        root->changes++;
    } TX_ONABORT {
        error = pmemobj_tx_errno();
    } TX_END
    return error;
}

/* As many objects as slots have, and the bytes that the last transaction left. */
static void check_sound(uint64_t changes)
{
    unsigned full = 0;
    for (unsigned i = 0; i < SLOTS; i++)
        full += !OID_IS_NULL(root->slots[i]) && pmemobj_alloc_usable_size(root->slots[i]) >= 16;
    CHECK(root->changes == changes && count_objects(pool) == full);
}

/* A process that may have so many bytes more than it has: what it tries succeeds or fails with
 * ENOMEM. */
static void starve(const char *path, unsigned step, size_t more)
{
    pool = pmemobj_open(path, LAYOUT);
    CHECK(pool != NULL);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    uint64_t changes = root->changes;
    mallopt(M_MMAP_THRESHOLD, 64 << 10);
    malloc_trim(0);
    struct rlimit before, limit;
    CHECK(getrlimit(RLIMIT_AS, &before) == 0);
    limit = (struct rlimit){used() + more, before.rlim_max};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    unsigned failed = 0;
    PMEMoid left[4] = {OID_NULL, OID_NULL, OID_NULL, OID_NULL};
    for (unsigned i = 0; i < 4; i++) {
        int error = change(step + i * 13);
        CHECK(error == 0 || error == ENOMEM);
        failed += error != 0;
        changes += error == 0;
        if (pmemobj_alloc(pool, &left[i], 100 + i * 1000, 1, NULL, NULL) == 0)
            pmemobj_free(&left[i]);
        else
            CHECK(errno == ENOMEM && OID_IS_NULL(left[i]));
        pmemobj_persist(pool, root->bytes + i * 4096, 4096);
    }
    CHECK(setrlimit(RLIMIT_AS, &before) == 0);
    /* Also a free may be refused; it says so, and the object stays. */
    for (unsigned i = 0; i < 4; i++)
        pmemobj_free(&left[i]);
    check_sound(changes);
    /* With memory everything goes on. */
    CHECK(change(step) == 0);
    check_sound(changes + 1);
    pmemobj_close(pool);
    /* As the end of the process: how many were refused. */
    exit(failed == 0 ? 10 : 11);
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    if (is_pmdk)
        return 0;
    pool = new_pool(arguments[1], 64);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    pmemobj_close(pool);
    const char *thorough = getenv("NEARPM_THOROUGH");
    size_t stride = thorough != NULL && *thorough != '\0' ? 4096 : 256 << 10;
    unsigned starved = 0, served = 0, step = 0;
    for (size_t more = 0; more < 24 << 20; more += stride, step++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0)
            starve(arguments[1], step, more);
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
        starved += WEXITSTATUS(status) == 11;
        served += WEXITSTATUS(status) == 10;
    }
    CHECK(starved + served == step && starved > 0 && served > 0);
    CHECK(pmemobj_check(arguments[1], LAYOUT) == 1);
    return 0;
}
