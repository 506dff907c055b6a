/* Processes that die in the middle: what is found is what was committed, and nothing of the
 * rest. */
#include "check.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define ACCOUNTS 64
#define TOTAL 6400
#define ROUNDS "60" /* unless the variable of this name says how many */
#define LONGEST 1000 /* objects of the chain, which the pool has room for */

struct root {
    int64_t accounts[ACCOUNTS];
    PMEMoid chain; /* as many objects as `length` says */
    uint64_t length, committed;
};

struct link {
    PMEMoid next;
    uint64_t number;
    char filling[];
};

static PMEMobjpool *pool;
static struct root *root;

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Moves money between accounts, and makes the chain longer or shorter. */
static void step(uint64_t *state, int report)
{
    uint64_t from = next_random(state) % ACCOUNTS, to = next_random(state) % ACCOUNTS;
    const volatile uint64_t grows = next_random(state) % 3;
    const uint64_t size = sizeof(struct link) + next_random(state) % 20000;
    TX_BEGIN(pool) {
        TX_ADD_DIRECT(&root->accounts[from]);
        root->accounts[from] -= 7;
        TX_ADD_DIRECT(&root->accounts[to]);
        root->accounts[to] += 7;
        pmemobj_tx_add_range_direct(&root->chain, sizeof(root->chain) + 2 * sizeof(uint64_t));
        if (OID_IS_NULL(root->chain) || (grows && root->length < LONGEST)) {
            PMEMoid oid = pmemobj_tx_zalloc(size, 1);
            struct link *link = pmemobj_direct(oid);
            link->next = root->chain;
            link->number = ++root->length;
            root->chain = oid;
        } else {
            PMEMoid oid = root->chain;
            root->chain = ((struct link *)pmemobj_direct(oid))->next;
            root->length--;
            pmemobj_tx_free(oid);
        }
        root->committed++;
    } TX_ONABORT {
        CHECK(0);
    } TX_END
    uint64_t committed = root->committed;
    CHECK(write(report, &committed, sizeof(committed)) == sizeof(committed));
}

static void check_contents(uint64_t reported)
{
    int64_t total = 0;
    for (unsigned i = 0; i < ACCOUNTS; i++)
        total += root->accounts[i];
    CHECK(total == TOTAL);
    uint64_t length = root->length;
    for (PMEMoid oid = root->chain; !OID_IS_NULL(oid); oid = ((struct link *)pmemobj_direct(oid))->next)
        CHECK(((struct link *)pmemobj_direct(oid))->number == length--);
    CHECK(length == 0 && count_objects(pool) == root->length);
    /* What a commit has returned for is there; one more may have been durable already. */
    if (root->committed < reported || root->committed > reported + 1)
        fprintf(stderr, "%llu were reported, %llu are there\n", (unsigned long long)reported,
                (unsigned long long)root->committed);
    CHECK(root->committed >= reported && root->committed <= reported + 1);
}

static void work(const char *path, int report, uint64_t seed)
{
    pool = pmemobj_open(path, LAYOUT);
    CHECK(pool != NULL);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(*root)));
    for (uint64_t state = seed;;)
        step(&state, report);
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    pool = new_pool(arguments[1], 64);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(*root)));
    for (unsigned i = 0; i < ACCOUNTS; i++)
        root->accounts[i] = TOTAL / ACCOUNTS;
    pmemobj_persist(pool, root, sizeof(*root));
    uint64_t reported = 0;
    pmemobj_close(pool);
    const char *asked = getenv("ROUNDS");
    const unsigned long rounds = strtoul(asked ? asked : ROUNDS, NULL, 10);
    CHECK(rounds > 0);
    for (unsigned round = 0; round < rounds; round++) {
        int channel[2];
        CHECK(pipe(channel) == 0);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0)
            work(arguments[1], channel[1], round + 1);
        close(channel[1]);
        uint64_t heard, wanted = reported + 1 + round * 7 % 200;
        while (reported < wanted && read(channel[0], &heard, sizeof(heard)) == sizeof(heard))
            reported = heard;
        CHECK(kill(child, SIGKILL) == 0);
        while (read(channel[0], &heard, sizeof(heard)) == sizeof(heard))
            reported = heard;
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        close(channel[0]);
        pool = pmemobj_open(arguments[1], LAYOUT);
        CHECK(pool != NULL);
        root = pmemobj_direct(pmemobj_root(pool, sizeof(*root)));
        check_contents(reported);
        reported = root->committed;
        pmemobj_close(pool);
    }
    CHECK(pmemobj_check(arguments[1], LAYOUT) == 1);
    return 0;
}
