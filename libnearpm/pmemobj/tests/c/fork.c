/* A child of fork has the pools of its parent before it: what it tries is refused, and neither its
 * calls nor its end touch them. */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

struct root {
    PMEMmutex mutex;
    PMEMoid object;
    char words[4096];
};

static PMEMobjpool *pool;
static struct root *root;

static void child_tries(void)
{
    struct pobj_action action;
    PMEMoid oid = OID_NULL;
    errno = 0;
    CHECK(pmemobj_alloc(pool, &oid, 100, 1, NULL, NULL) == -1 && errno == EBUSY);
    CHECK(strstr(pmemobj_errormsg(), "parent") != NULL);
    CHECK(pmemobj_strdup(pool, &oid, "a", 1) == -1 && OID_IS_NULL(pmemobj_reserve(pool, &action, 100, 1)));
    pmemobj_set_value(pool, &action, (uint64_t *)root->words, 1);
    CHECK(pmemobj_publish(pool, &action, 1) == -1 && errno == EBUSY);
    pmemobj_free(&root->object);
    CHECK(!OID_IS_NULL(root->object) && errno == EBUSY);
    volatile int aborted = 0;
    TX_BEGIN(pool) {
        pmemobj_tx_add_range_direct(root->words, 8);
        CHECK(0);
    } TX_ONABORT {
        aborted = pmemobj_tx_errno();
    } TX_END
    CHECK(aborted == EBUSY);
    errno = 0;
    pmemobj_persist(pool, root->words, sizeof(root->words));
    CHECK(errno == EBUSY);
    pmemobj_memcpy_persist(pool, root->words + 1024, "child", 6);
    pmemobj_flush(pool, root->words, 8);
    pmemobj_drain(pool);
    CHECK(pmemobj_mutex_lock(pool, &root->mutex) == 0 && pmemobj_mutex_unlock(pool, &root->mutex) == 0);
}

/* Runs a child, which must end well. */
static void in_child(void (*run)(const char *), const char *path)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        run(path);
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void only_exits(const char *path)
{
    (void)path;
}

static void executes(const char *path)
{
    (void)path;
    execl("/bin/true", "true", NULL);
    exit(1);
}

static void tries(const char *path)
{
    (void)path;
    child_tries();
}

static void closes(const char *path)
{
    (void)path;
    child_tries();
    pmemobj_close(pool);
    errno = 0;
    CHECK(pmemobj_alloc(pool, NULL, 100, 1, NULL, NULL) == -1 && errno == EINVAL);
}

/* The child has pools of its own. */
static void opens_its_own(const char *path)
{
    char other[4096];
    snprintf(other, sizeof(other), "%s.child%d", path, getpid());
    PMEMobjpool *own = pmemobj_create(other, LAYOUT, PMEMOBJ_MIN_POOL, 0600);
    CHECK(own != NULL && pmemobj_alloc(own, NULL, 100, 1, NULL, NULL) == 0);
    child_tries();
    pmemobj_close(own);
    CHECK(pmemobj_check(other, LAYOUT) == 1 && unlink(other) == 0);
    /* The parent still has the lock on its own. */
    errno = 0;
    CHECK(pmemobj_open(path, LAYOUT) == NULL && errno != 0);
}

/* What a transaction that was open at the fork does is the parent's: the child can neither add to
 * it nor commit it. */
static void in_a_transaction(int commits)
{
    volatile int done = 0;
    volatile pid_t parent = getpid();
    TX_BEGIN(pool) {
        TX_ADD_DIRECT(&root->words[0]);
        root->words[0]++;
        TX_ADD_DIRECT(&root->words[64]);
        pid_t child = fork();
        if (child == 0) {
            if (commits)
                pmemobj_tx_commit();
            else
                pmemobj_tx_add_range_direct(root->words + 128, 8);
            _exit(1);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        root->words[64]++;
    } TX_ONCOMMIT {
        done = 1;
    } TX_ONABORT {
        if (getpid() != parent)
            _exit(pmemobj_tx_errno() == EBUSY ? 0 : 1);
        CHECK(0);
    } TX_END
    CHECK(done);
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    if (is_pmdk)
        return 0;
    pool = new_pool(arguments[1], 16);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    CHECK(pmemobj_alloc(pool, &root->object, 1000, 1, NULL, NULL) == 0);
    void (*const children[])(const char *) = {only_exits, executes, tries, closes, opens_its_own};
    for (unsigned i = 0; i < sizeof(children) / sizeof(children[0]); i++) {
        strcpy(root->words + 2048, "parent");
        pmemobj_persist(pool, root->words + 2048, 7);
        in_child(children[i], arguments[1]);
        CHECK(pmemobj_alloc(pool, NULL, 100, 1, NULL, NULL) == 0 && count_objects(pool) == i + 2);
    }
    in_a_transaction(0);
    in_a_transaction(1);
    CHECK(root->words[0] == 2 && root->words[64] == 2);
    pool = reopen(pool, arguments[1]);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    CHECK(root->words[0] == 2 && root->words[64] == 2 && strcmp(root->words + 2048, "parent") == 0);
    CHECK(count_objects(pool) == 6 && pmemobj_alloc_usable_size(root->object) >= 1000);
    pmemobj_close(pool);
    CHECK(pmemobj_check(arguments[1], LAYOUT) == 1);
    return 0;
}
