/*
 * The maps of the comparison with PMDK, in processes that are killed: what is found is a map of
 * exactly the keys whose transactions were committed, or one more than was heard of.
 */
#include "check.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "maps.h"

#define ROUNDS 12
#define KINDS 4

static const struct map_kind *const kinds[KINDS] = {&btree, &rbtree, &skiplist, &hashmap};

struct root {
    PMEMoid maps[KINDS];
    uint64_t inserted; /* in each map: a transaction inserts into all of them */
};

static PMEMobjpool *pool;
static struct root *root;

static uint64_t key_of(uint64_t index)
{
    uint64_t x = (index + 1) * 0x9E3779B97F4A7C15u;
    return (x ^ x >> 31) * 0x94D049BB133111EBu | 1;
}

static void open_pool(const char *path)
{
    pool = pmemobj_open(path, LAYOUT);
    CHECK(pool != NULL);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(*root)));
}

static void work(const char *path, int report)
{
    open_pool(path);
    for (uint64_t index = root->inserted;; index++) {
        TX_BEGIN(pool) {
            for (int i = 0; i < KINDS; i++) {
                PMEMoid value = pmemobj_tx_alloc(sizeof(uint64_t), TYPE_VALUE);
                *(uint64_t *)pmemobj_direct(value) = index + (uint64_t)i;
                kinds[i]->insert(pool, root->maps[i], key_of(index), value);
            }
            SET(root->inserted, index + 1);
        } TX_ONABORT {
            CHECK(0);
        } TX_END
        uint64_t inserted = index + 1;
        CHECK(write(report, &inserted, sizeof(inserted)) == sizeof(inserted));
    }
}

static void check_maps(void)
{
    for (int i = 0; i < KINDS; i++) {
        for (uint64_t index = 0; index < root->inserted; index++) {
            PMEMoid value = kinds[i]->find(root->maps[i], key_of(index));
            CHECK(!OID_IS_NULL(value) && *(uint64_t *)pmemobj_direct(value) == index + (uint64_t)i);
        }
        for (uint64_t index = root->inserted; index < root->inserted + 100; index++)
            CHECK(OID_IS_NULL(kinds[i]->find(root->maps[i], key_of(index))));
    }
    /* No object was left over by a transaction that did not commit. */
    uint64_t values = 0;
    for (PMEMoid oid = pmemobj_first(pool); !OID_IS_NULL(oid); oid = pmemobj_next(oid))
        values += pmemobj_type_num(oid) == TYPE_VALUE;
    CHECK(values == KINDS * root->inserted);
}

/* Works in a child, which is killed when it has reported up to `wanted` or died itself; gives the
 * last report. */
static uint64_t killed(const char *path, uint64_t reported, uint64_t wanted)
{
    int channel[2], status;
    uint64_t heard;
    CHECK(pipe(channel) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        work(path, channel[1]);
    close(channel[1]);
    while (reported < wanted && read(channel[0], &heard, sizeof(heard)) == sizeof(heard))
        reported = heard;
    CHECK(kill(child, SIGKILL) == 0);
    while (read(channel[0], &heard, sizeof(heard)) == sizeof(heard))
        reported = heard;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(channel[0]);
    return reported;
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    pool = new_pool(arguments[1], 64);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(*root)));
    TX_BEGIN(pool) {
        for (int i = 0; i < KINDS; i++)
            SET(root->maps[i], kinds[i]->create());
    } TX_ONABORT {
        CHECK(0);
    } TX_END
    pmemobj_close(pool);
    uint64_t reported = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        reported = killed(arguments[1], reported, reported + 1 + round * 17 % 120);
        open_pool(arguments[1]);
        CHECK(root->inserted == reported || root->inserted == reported + 1);
        check_maps();
        reported = root->inserted;
        pmemobj_close(pool);
    }
    CHECK(pmemobj_check(arguments[1], LAYOUT) == 1);
    return 0;
}
