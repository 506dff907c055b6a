/* Two threads move money between persistent accounts; whenever the program dies, the sum is what it
 * was.
 *
 *     cc -pthread bank.c $(pkg-config --cflags --libs nearpm) -o bank
 *     ./bank a.pool 100000 [in-place]    so many transfers by each thread; 0: for ever, saying
 *                                        "running" when they do
 */
#include <inttypes.h>
#include <nearpm.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ACCOUNTS = 64, START = 1000, THREADS = 2 };

struct bank {
    uint64_t opened;
    int64_t accounts[ACCOUNTS];
};

static struct nearpm_pool *pool;
static struct bank *bank;
static uint64_t transfers;
/* Locks are the program's own, and held until the commit: what a transaction has not committed
 * nobody else may build upon. */
static pthread_mutex_t locks[ACCOUNTS];

static void check(int code, const char *what) {
    if (code != NEARPM_OK) {
        fprintf(stderr, "%s: error %d: %s\n", what, code, nearpm_errormsg());
        exit(1);
    }
}

static void transfer(unsigned from, unsigned to, int64_t amount) {
    struct nearpm_tx *tx;
    const struct nearpm_range ranges[] = {{&bank->accounts[from], sizeof(int64_t)}, {&bank->accounts[to], sizeof(int64_t)}};
    unsigned first = from < to ? from : to, second = from < to ? to : from;
    pthread_mutex_lock(&locks[first]);
    pthread_mutex_lock(&locks[second]);
    check(nearpm_tx_begin(pool, &tx), "begin");
    check(nearpm_tx_add_all(tx, ranges, 2), "add");
    bank->accounts[from] -= amount;
    bank->accounts[to] += amount;
    /* A transfer that overdraws is taken back. */
    if (bank->accounts[from] < 0) check(nearpm_tx_abort(tx), "abort");
    else check(nearpm_tx_commit(tx), "commit");
    pthread_mutex_unlock(&locks[second]);
    pthread_mutex_unlock(&locks[first]);
}

static void *work(void *seed) {
    uint64_t random = (uint64_t)(uintptr_t)seed + 1;
    for (uint64_t i = 0; transfers == 0 || i < transfers; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned from = random >> 33 & (ACCOUNTS - 1), to = random >> 43 & (ACCOUNTS - 1);
        if (from != to) transfer(from, to, (int64_t)(random >> 53));
    }
    return NULL;
}

static void open_accounts(void) {
    struct nearpm_tx *tx;
    check(nearpm_tx_begin(pool, &tx), "begin");
    check(nearpm_tx_add(tx, bank, sizeof *bank), "add");
    for (int i = 0; i < ACCOUNTS; i++) bank->accounts[i] = START;
    bank->opened = 1;
    check(nearpm_tx_commit(tx), "commit");
}

static void check_sum(void) {
    int64_t sum = 0;
    for (int i = 0; i < ACCOUNTS; i++) {
        if (bank->accounts[i] < 0) exit((fprintf(stderr, "account %d is overdrawn\n", i), 1));
        sum += bank->accounts[i];
    }
    if (sum != ACCOUNTS * START) exit((fprintf(stderr, "the sum is %" PRId64 "\n", sum), 1));
}

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "usage: bank POOL TRANSFERS [in-place]\n"), 2;
    struct nearpm_options options;
    memset(&options, 0, sizeof options);
    if (argc > 3 && strcmp(argv[3], "in-place") == 0) {
        /* The program takes it upon itself that the file lies in persistent memory. */
        options.mode = NEARPM_IN_PLACE;
        options.survives = NEARPM_AS_PERSISTENT_MEMORY;
    }
    transfers = strtoull(argv[2], NULL, 10);
    int code = nearpm_open(argv[1], &options, &pool);
    if (code == NEARPM_ENOENT) code = nearpm_create(argv[1], 16 << 20, &options, &pool);
    check(code, "open");
    check(nearpm_root(pool, sizeof *bank, (void **)&bank), "root");
    if (!bank->opened) open_accounts();
    check_sum();
    for (int i = 0; i < ACCOUNTS; i++) pthread_mutex_init(&locks[i], NULL);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    if (transfers == 0) {
        printf("running\n");
        fflush(stdout);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    check_sum();
    struct nearpm_statistics statistics;
    check(nearpm_get_statistics(pool, &statistics, sizeof statistics), "statistics");
    printf("%" PRIu64 " committed, %" PRIu64 " taken back\n", statistics.transactions, statistics.aborts);
    check(nearpm_close(pool), "close");
    return 0;
}
