/* Stages of transactions, nesting, aborts by longjmp, callbacks, errors that are returned. */
#include "check.h"

#include <unistd.h>

struct root {
    uint64_t words[512];
};

static PMEMobjpool *pool;
static struct root *root;

static void stages(void)
{
    volatile int committed = 0, aborted = 0, finally = 0;
    CHECK(pmemobj_tx_stage() == TX_STAGE_NONE);
    TX_BEGIN(pool) {
        CHECK(pmemobj_tx_stage() == TX_STAGE_WORK);
        TX_ADD_FIELD_DIRECT(root, words[0]);
        root->words[0] = 1;
    } TX_ONCOMMIT {
        CHECK(pmemobj_tx_stage() == TX_STAGE_ONCOMMIT);
        committed = 1;
    } TX_ONABORT {
        aborted = 1;
    } TX_FINALLY {
        CHECK(pmemobj_tx_stage() == TX_STAGE_FINALLY);
        finally = 1;
    } TX_END
    CHECK(committed && !aborted && finally && root->words[0] == 1 && pmemobj_tx_stage() == TX_STAGE_NONE);

    committed = aborted = finally = 0;
    errno = 0;
    TX_BEGIN(pool) {
        TX_ADD_FIELD_DIRECT(root, words[0]);
        root->words[0] = 2;
        pmemobj_tx_abort(EINTR);
        CHECK(0);
    } TX_ONCOMMIT {
        committed = 1;
    } TX_ONABORT {
        CHECK(pmemobj_tx_stage() == TX_STAGE_ONABORT && root->words[0] == 1);
        CHECK(errno == EINTR && pmemobj_tx_errno() == EINTR);
        aborted = 1;
    } TX_FINALLY {
        finally = 1;
    } TX_END
    CHECK(!committed && aborted && finally && root->words[0] == 1 && errno == EINTR);
    CHECK(pmemobj_tx_errno() == EINTR);
    CHECK(strstr(pmemobj_errormsg(), "explicit transaction abort") != NULL);
    TX_BEGIN(pool) {
        pmemobj_tx_abort(0);
    } TX_END
    CHECK(errno == ECANCELED);
    TX_BEGIN(pool) {
    } TX_END
    CHECK(pmemobj_tx_errno() == 0);
}

/* An abort inside takes everything back, through as many levels as there are. */
static void nesting(void)
{
    volatile int aborts = 0;
    root->words[0] = root->words[1] = 0;
    TX_BEGIN(pool) {
        TX_ADD_FIELD_DIRECT(root, words[0]);
        root->words[0] = 10;
        TX_BEGIN(pool) {
            TX_ADD_FIELD_DIRECT(root, words[1]);
            root->words[1] = 11;
        } TX_ONABORT {
            CHECK(0);
        } TX_END
        CHECK(pmemobj_tx_stage() == TX_STAGE_WORK);
    } TX_ONABORT {
        CHECK(0);
    } TX_END
    CHECK(root->words[0] == 10 && root->words[1] == 11);

    TX_BEGIN(pool) {
        TX_SET_DIRECT(root, words[0], 20);
        TX_BEGIN(pool) {
            TX_SET_DIRECT(root, words[1], 21);
            TX_BEGIN(pool) {
                TX_SET_DIRECT(root, words[1], 22);
                pmemobj_tx_abort(EPERM);
            } TX_ONABORT {
                CHECK(aborts++ == 0 && pmemobj_tx_errno() == EPERM);
                /* Only the outermost takes back. */
                CHECK(root->words[1] == 22);
            } TX_END
            CHECK(0);
        } TX_ONABORT {
            CHECK(aborts++ == 1);
        } TX_END
        CHECK(0);
    } TX_ONABORT {
        CHECK(aborts++ == 2 && root->words[0] == 10 && root->words[1] == 11);
    } TX_END
    CHECK(aborts == 3 && errno == EPERM && root->words[0] == 10 && root->words[1] == 11);
}

/* Without an environment errors come back. */
static void returned(void)
{
    CHECK(pmemobj_tx_begin(pool, NULL, TX_PARAM_NONE) == 0);
    TX_SET_DIRECT(root, words[0], 30);
    CHECK(pmemobj_tx_begin(pool, NULL, TX_PARAM_NONE) == 0);
    TX_SET_DIRECT(root, words[1], 31);
    pmemobj_tx_abort(EPERM);
    CHECK(pmemobj_tx_stage() == TX_STAGE_ONABORT);
    CHECK(pmemobj_tx_end() == EPERM);
    CHECK(pmemobj_tx_stage() == TX_STAGE_ONABORT);
    CHECK(pmemobj_tx_end() == EPERM);
    CHECK(pmemobj_tx_stage() == TX_STAGE_NONE && root->words[0] == 10 && root->words[1] == 11);

    CHECK(pmemobj_tx_begin(pool, NULL, TX_PARAM_NONE) == 0);
    TX_SET_DIRECT(root, words[0], 32);
    pmemobj_tx_commit();
    CHECK(pmemobj_tx_stage() == TX_STAGE_ONCOMMIT);
    pmemobj_tx_process();
    CHECK(pmemobj_tx_stage() == TX_STAGE_FINALLY);
    CHECK(pmemobj_tx_end() == 0 && root->words[0] == 32);
}

static void failure_behavior(void)
{
    TX_BEGIN(pool) {
        CHECK(pmemobj_tx_get_failure_behavior() == POBJ_TX_FAILURE_ABORT);
        pmemobj_tx_set_failure_behavior(POBJ_TX_FAILURE_RETURN);
        errno = 0;
        CHECK(OID_IS_NULL(pmemobj_tx_alloc(PMEMOBJ_MAX_ALLOC_SIZE + 1, 1)) && errno == ENOMEM);
        CHECK(OID_IS_NULL(pmemobj_tx_alloc(0, 1)) && errno == EINVAL);
        CHECK(pmemobj_tx_add_range_direct(&errno, 4) == EINVAL);
        CHECK(OID_IS_NULL(pmemobj_tx_strdup(NULL, 1)) && errno == EINVAL);
        TX_BEGIN(pool) {
            CHECK(pmemobj_tx_get_failure_behavior() == POBJ_TX_FAILURE_RETURN);
            pmemobj_tx_set_failure_behavior(POBJ_TX_FAILURE_ABORT);
        } TX_END
        CHECK(pmemobj_tx_get_failure_behavior() == POBJ_TX_FAILURE_RETURN);
    } TX_ONABORT {
        CHECK(0);
    } TX_END
}

/* With POBJ_XALLOC_NO_ABORT and the like one call returns its error. */
static void no_abort(void)
{
    PMEMoid foreign = {1, 4096};
    TX_BEGIN(pool) {
        CHECK(OID_IS_NULL(pmemobj_tx_xalloc(0, 1, POBJ_XALLOC_NO_ABORT)) && errno == EINVAL);
        CHECK(pmemobj_tx_xfree(foreign, POBJ_XFREE_NO_ABORT) == EINVAL);
        CHECK(pmemobj_tx_xadd_range(foreign, 0, 8, POBJ_XADD_NO_ABORT) == EINVAL);
        CHECK(pmemobj_tx_xadd_range_direct(&errno, 8, POBJ_XADD_NO_ABORT) == EINVAL);
        CHECK(pmemobj_tx_xadd_range_direct(root, 8, POBJ_XADD_NO_ABORT | 1ull << 40) == EINVAL);
        CHECK(OID_IS_NULL(pmemobj_tx_xstrdup(NULL, 1, POBJ_XALLOC_NO_ABORT)) && errno == EINVAL);
        CHECK(OID_IS_NULL(pmemobj_tx_xwcsdup(NULL, 1, POBJ_XALLOC_NO_ABORT)) && errno == EINVAL);
        CHECK(pmemobj_tx_xlog_append_buffer(TX_LOG_TYPE_INTENT, root, 8, POBJ_XLOG_APPEND_BUFFER_NO_ABORT) == EINVAL);
        CHECK(pmemobj_tx_xlog_append_buffer(TX_LOG_TYPE_SNAPSHOT, root, 8, POBJ_XLOG_APPEND_BUFFER_NO_ABORT) ==
              EINVAL);
        CHECK(pmemobj_tx_xlog_append_buffer(TX_LOG_TYPE_INTENT, root, 4096,
                                            POBJ_XLOG_APPEND_BUFFER_NO_ABORT | 1ull << 40) == EINVAL);
    } TX_ONABORT {
        CHECK(0);
    } TX_END
}

/* A call that fails aborts, with its error. */
static void aborting_calls(void)
{
    volatile int aborts = 0;
    TX_BEGIN(pool) {
        pmemobj_tx_alloc(0, 1);
        CHECK(0);
    } TX_ONABORT {
        CHECK(pmemobj_tx_errno() == EINVAL);
        aborts++;
    } TX_END
    TX_BEGIN(pool) {
        pmemobj_tx_alloc((size_t)1 << 33, 1);
        CHECK(0);
    } TX_ONABORT {
        CHECK(pmemobj_tx_errno() == ENOMEM);
        aborts++;
    } TX_END
    PMEMoid foreign = {1, 4096};
    TX_BEGIN(pool) {
        pmemobj_tx_add_range(foreign, 0, 8);
        CHECK(0);
    } TX_ONABORT {
        CHECK(pmemobj_tx_errno() == EINVAL);
        aborts++;
    } TX_END
    TX_BEGIN(pool) {
        pmemobj_tx_add_range_direct(pool, 8);
        CHECK(0);
    } TX_ONABORT {
        CHECK(pmemobj_tx_errno() == EINVAL);
        aborts++;
    } TX_END
    TX_BEGIN(pool) {
        pmemobj_tx_log_append_buffer(TX_LOG_TYPE_INTENT, root, 8);
        CHECK(0);
    } TX_ONABORT {
        CHECK(pmemobj_tx_errno() == EINVAL);
        aborts++;
    } TX_END
    CHECK(aborts == 5);
}

static enum pobj_tx_stage called[16];
static unsigned calls;

static void callback(PMEMobjpool *of, enum pobj_tx_stage stage, void *argument)
{
    CHECK((of == pool || stage == TX_STAGE_NONE) && argument == &calls);
    called[calls++] = stage;
}

static void callbacks(void)
{
    TX_BEGIN_CB(pool, callback, &calls) {
        TX_BEGIN(pool) {
        } TX_END
        CHECK(calls == 0);
    } TX_END
    CHECK(calls == 4 && called[0] == TX_STAGE_WORK && called[1] == TX_STAGE_ONCOMMIT &&
          called[2] == TX_STAGE_FINALLY && called[3] == TX_STAGE_NONE);
    calls = 0;
    TX_BEGIN_CB(pool, callback, &calls) {
        pmemobj_tx_abort(EPERM);
    } TX_END
    CHECK(calls == 3 && called[0] == TX_STAGE_ONABORT && called[1] == TX_STAGE_FINALLY && called[2] == TX_STAGE_NONE);
    calls = 0;
    TX_BEGIN(pool) {
    } TX_END
    CHECK(calls == 0);
}

static unsigned data_seen;

/* As libpmemobj-cpp keeps its callbacks: in every stage but the last one, which is none, the data
 * is there. */
static void data_in_callback(PMEMobjpool *of, enum pobj_tx_stage stage, void *argument)
{
    if (stage == TX_STAGE_NONE)
        return;
    CHECK(of == pool && pmemobj_tx_get_user_data() == argument);
    data_seen |= 1u << stage;
    if (stage == TX_STAGE_FINALLY)
        pmemobj_tx_set_user_data(NULL);
}

static void user_data_in_every_stage(void)
{
    static int value;
    for (volatile int commit = 0; commit < 2; commit++) {
        data_seen = 0;
        CHECK(pmemobj_tx_begin(pool, NULL, TX_PARAM_CB, data_in_callback, &value, TX_PARAM_NONE) == 0);
        pmemobj_tx_set_user_data(&value);
        if (commit)
            pmemobj_tx_commit();
        else
            pmemobj_tx_abort(EPERM);
        CHECK(pmemobj_tx_get_user_data() == &value);
        CHECK(pmemobj_tx_end() == (commit ? 0 : EPERM));
        unsigned wanted = commit ? 1u << TX_STAGE_WORK | 1u << TX_STAGE_ONCOMMIT : 1u << TX_STAGE_ONABORT;
        CHECK(data_seen == (wanted | 1u << TX_STAGE_FINALLY));
    }
}

static void user_data(void)
{
    int value;
    TX_BEGIN(pool) {
        CHECK(pmemobj_tx_get_user_data() == NULL);
        pmemobj_tx_set_user_data(&value);
        TX_BEGIN(pool) {
            CHECK(pmemobj_tx_get_user_data() == &value);
        } TX_END
    } TX_END
    TX_BEGIN(pool) {
        CHECK(pmemobj_tx_get_user_data() == NULL);
    } TX_END
}

/* A transaction of another pool inside aborts the outer one. */
static void other_pool(const char *path)
{
    char other_path[1024];
    snprintf(other_path, sizeof(other_path), "%s.other", path);
    PMEMobjpool *other = new_pool(other_path, 8);
    volatile int aborted = 0;
    root->words[5] = 0;
    TX_BEGIN(pool) {
        TX_SET_DIRECT(root, words[5], 1);
        TX_BEGIN(other) {
            CHECK(0);
        } TX_END
        CHECK(0);
    } TX_ONABORT {
        aborted = 1;
        CHECK(pmemobj_tx_errno() == EINVAL);
    } TX_END
    CHECK(aborted && root->words[5] == 0);
    /* Two threads of control may be in two pools one after the other. */
    TX_BEGIN(other) {
        CHECK(!OID_IS_NULL(pmemobj_tx_zalloc(100, 1)));
    } TX_END
    CHECK(count_objects(other) == 1);
    pmemobj_close(other);
    CHECK(unlink(other_path) == 0);
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    pool = new_pool(arguments[1], 16);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    stages();
    nesting();
    returned();
    failure_behavior();
    no_abort();
    aborting_calls();
    callbacks();
    user_data();
    user_data_in_every_stage();
    other_pool(arguments[1]);
    pmemobj_close(pool);
    return 0;
}
