/* Calls of a loop ask the system for nothing but memory and turns: with every other system call
 * forbidden they work. */
#include "check.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define ROUNDS 300

static PMEMobjpool *pool;
static uint64_t class_flag;

#define ALLOWED(name)                                                                                                  \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Of the calling thread. */
static void forbid_system_calls(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOWED(mmap),
        ALLOWED(munmap),
        ALLOWED(mremap),
        ALLOWED(mprotect),
        ALLOWED(madvise),
        ALLOWED(brk),
        ALLOWED(futex),
        ALLOWED(sched_yield),
        ALLOWED(write),
        ALLOWED(rt_sigprocmask),
        ALLOWED(exit),
        ALLOWED(exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void objects(void)
{
    PMEMoid oid;
    CHECK(pmemobj_alloc(pool, &oid, 100, 1, NULL, NULL) == 0);
    CHECK(pmemobj_realloc(pool, &oid, 200, 1) == 0);
    pmemobj_free(&oid);
    CHECK(pmemobj_xalloc(pool, &oid, 100, 1, class_flag, NULL, NULL) == 0);
    CHECK(pmemobj_type_num(oid) == 1 && pmemobj_alloc_usable_size(oid) >= 100 && pmemobj_pool_by_oid(oid) == pool);
    pmemobj_free(&oid);
    CHECK(pmemobj_xalloc(pool, &oid, 100, 1, POBJ_ARENA_ID(1), NULL, NULL) == 0);
    pmemobj_free(&oid);
    struct pobj_action action;
    oid = pmemobj_xreserve(pool, &action, 100, 1, class_flag);
    CHECK(!OID_IS_NULL(oid) && pmemobj_publish(pool, &action, 1) == 0);
    CHECK(count_objects(pool) == 1);
    pmemobj_free(&oid);
}

static void transactions(uint64_t *number)
{
    TX_BEGIN(pool) {
        TX_ADD_DIRECT(number);
        *number += 1;
        pmemobj_tx_free(pmemobj_tx_xalloc(100, 1, class_flag));
    } TX_END
    TX_BEGIN(pool) {
        pmemobj_tx_alloc(100, 1);
        pmemobj_tx_abort(EPERM);
    } TX_END
    pmemobj_persist(pool, number, sizeof(*number));
    pmemobj_memset_persist(pool, number + 1, 7, 64);
}

static void one_round(void)
{
    uint64_t *number = pmemobj_direct(pmemobj_root(pool, 1024));
    objects();
    transactions(number);
    unsigned arenas;
    CHECK(pmemobj_ctl_get(pool, "heap.narenas.total", &arenas) == 0 && arenas > 0);
    CHECK(pmemobj_xpersist(pool, number, 8, 0x10) == -1 && pmemobj_errormsg()[0] != 0);
}

static void *work(void *nothing)
{
    one_round();
    forbid_system_calls();
    for (int round = 0; round < ROUNDS; round++)
        one_round();
    return nothing;
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    pool = new_pool(arguments[1], 16);
    struct pobj_alloc_class_desc class = {500, 0, 100, POBJ_HEADER_COMPACT, 0};
    CHECK(pmemobj_ctl_set(pool, "heap.alloc_class.new.desc", &class) == 0);
    class_flag = POBJ_CLASS_ID(class.class_id);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, work, NULL) == 0 && pthread_join(thread, NULL) == 0);
    pmemobj_close(pool);
    return 0;
}
