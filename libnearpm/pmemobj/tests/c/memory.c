/* Copies and persists; what they make durable is there after the process has died. */
#include "check.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

struct root {
    char bytes[4096];
    uint64_t words[64];
    char long_bytes[3000];
};

static PMEMobjpool *pool;
static struct root *root;

static void calls(void)
{
    char from[1000];
    memset(from, 'f', sizeof(from));
    CHECK(pmemobj_memcpy_persist(pool, root->bytes, from, 1000) == root->bytes && root->bytes[999] == 'f');
    CHECK(pmemobj_memset_persist(pool, root->bytes + 1000, 's', 500) == root->bytes + 1000);
    CHECK(root->bytes[1000] == 's' && root->bytes[1499] == 's' && root->bytes[1500] == 0);
    /* In place it goes around the cache, but for what it has of lines at its ends. */
    CHECK(pmemobj_memset_persist(pool, root->long_bytes + 101, 'l', 2500) == root->long_bytes + 101);
    CHECK(root->long_bytes[100] == 0 && root->long_bytes[101] == 'l' && root->long_bytes[2600] == 'l');
    CHECK(root->long_bytes[2601] == 0);
    CHECK(pmemobj_memmove(pool, root->bytes + 10, root->bytes, 1400, 0) == root->bytes + 10);
    CHECK(root->bytes[1009] == 'f' && root->bytes[1010] == 's');
    CHECK(pmemobj_memmove(pool, root->bytes, root->bytes + 10, 1400, PMEMOBJ_F_MEM_NONTEMPORAL) == root->bytes);
    CHECK(root->bytes[999] == 'f' && root->bytes[1000] == 's');
    CHECK(pmemobj_memcpy(pool, root->bytes + 2000, from, 100, PMEMOBJ_F_MEM_NODRAIN) == root->bytes + 2000);
    CHECK(pmemobj_memset(pool, root->bytes + 2100, 't', 100, PMEMOBJ_F_MEM_NOFLUSH) == root->bytes + 2100);
    CHECK(root->bytes[2199] == 't');
    pmemobj_flush(pool, root->bytes + 2100, 100);
    pmemobj_drain(pool);
    for (unsigned i = 0; i < 64; i++) {
        root->words[i] = i + 1;
        pmemobj_flush(pool, &root->words[63 - i], 8);
    }
    pmemobj_drain(pool);
    pmemobj_drain(pool);
    CHECK(pmemobj_xpersist(pool, root, 8, 0) == 0 && pmemobj_xflush(pool, root, 8, PMEMOBJ_F_RELAXED) == 0);
    errno = 0;
    CHECK(pmemobj_xpersist(pool, root, 8, 0x7b) == -1 && errno == EINVAL);
    CHECK(strcmp(pmemobj_errormsg(), "invalid flags 0x7b") == 0);
    errno = 0;
    CHECK(pmemobj_xflush(pool, root, 8, 1) == -1 && errno == EINVAL);
    pmemobj_persist(pool, root, 0);
}

static void expect(void)
{
    CHECK(root->bytes[999] == 'f' && root->bytes[1000] == 's' && root->bytes[1399] == 's');
    for (unsigned i = 0; i < sizeof(root->long_bytes); i++)
        CHECK(root->long_bytes[i] == (i > 100 && i <= 2600 ? 'l' : 0));
    CHECK(root->bytes[2000] == 'f' && root->bytes[2099] == 'f' && root->bytes[2100] == 't' && root->bytes[2199] == 't');
    for (unsigned i = 0; i < 64; i++)
        CHECK(root->words[i] == i + 1);
}

/* What is durable does not ask for an orderly end. */
static void dies(const char *path)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        pool = pmemobj_open(path, LAYOUT);
        CHECK(pool != NULL);
        root = pmemobj_direct(pmemobj_root(pool, sizeof(*root)));
        memset(root, 0, sizeof(*root));
        pmemobj_persist(pool, root, sizeof(*root));
        calls();
        kill(getpid(), SIGKILL);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    pool = pmemobj_open(path, LAYOUT);
    CHECK(pool != NULL);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(*root)));
    expect();
}

/* A persist inside of a transaction does not make durable what the transaction may take back; apart
 * from that it does. */
static void inside(const char *path)
{
    pmemobj_close(pool);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        pool = pmemobj_open(path, LAYOUT);
        CHECK(pool != NULL);
        root = pmemobj_direct(pmemobj_root(pool, sizeof(*root)));
        TX_BEGIN(pool) {
            TX_ADD_DIRECT(&root->words[0]);
            root->words[0] = 1000;
            root->words[32] = 2000;
            pmemobj_persist(pool, &root->words[0], 8);
            pmemobj_persist(pool, &root->words[32], 8);
            /* The transaction has taken the middle one of three. */
            TX_ADD_DIRECT(&root->words[41]);
            root->words[40] = root->words[41] = root->words[42] = 3000;
            pmemobj_persist(pool, &root->words[40], 24);
            kill(getpid(), SIGKILL);
        } TX_END
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    pool = pmemobj_open(path, LAYOUT);
    CHECK(pool != NULL);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(*root)));
    CHECK(root->words[0] == 1 && root->words[32] == 2000);
    CHECK(root->words[40] == 3000 && root->words[41] == 42 && root->words[42] == 3000);
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    pool = new_pool(arguments[1], 16);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    calls();
    expect();
    pool = reopen(pool, arguments[1]);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    expect();
    pmemobj_close(pool);
    dies(arguments[1]);
    inside(arguments[1]);
    pmemobj_close(pool);
    return 0;
}
