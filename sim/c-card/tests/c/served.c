/* Pools of both kinds on a card that the program opens itself:
 *
 *     served POOL ADDRESS NAME ROUND      POOL is not used; the first round makes the pools
 */
#include "check.h"

#include <stdint.h>

static uint64_t by_transactions(const char *place, uint64_t round)
{
    struct nearpm_options options;
    struct nearpm_statistics statistics;
    struct nearpm_pool *pool;
    struct nearpm_tx *tx;
    uint64_t *word;
    memset(&options, 0, sizeof options);
    options.mechanism = NEARPM_BY_UNDO;
    options.executor = NEARPM_CARD;
    if (round == 1)
        OK(nearpm_create(place, 1 << 20, &options, &pool));
    else
        OK(nearpm_open(place, &options, &pool));
    OK(nearpm_root(pool, sizeof *word, (void **)&word));
    CHECK(*word == round - 1);
    OK(nearpm_tx_begin(pool, &tx));
    OK(nearpm_tx_add(tx, word, sizeof *word));
    *word = round;
    OK(nearpm_tx_commit(tx));
    OK(nearpm_get_statistics(pool, &statistics, sizeof statistics));
    OK(nearpm_close(pool));
    return statistics.commands;
}

static uint64_t by_primitives(const char *place, uint64_t round)
{
    struct nearpm_statistics statistics;
    uint32_t pool;
    uint64_t *word;
    if (round == 1) {
        CHECK(NearPM_pool_create(place, 1 << 20, &pool) == 0);
        word = (uint64_t *)NearPM_alloc(pool, sizeof *word);
        CHECK(word != NULL && NearPM_set_root(pool, word) == 0);
    } else {
        CHECK(NearPM_pool_open(place, &pool) == 0);
        word = (uint64_t *)NearPM_root(pool);
        CHECK(word != NULL);
    }
    CHECK(*word == round - 1);
    CHECK(NearPM_undolog_create(pool, 0, word, sizeof *word) == 0);
    *word = round;
    CHECK(NearPM_commit_log(pool, 0) == 0);
    CHECK(NearPM_get_statistics(pool, &statistics, sizeof statistics) == 0);
    CHECK(NearPM_pool_close(pool) == 0);
    return statistics.commands;
}

int main(int count, char **arguments)
{
    char place[2][256];
    CHECK(count == 5);
    CHECK(NearPM_init_device(arguments[2]) == 0);
    REFUSED(NEARPM_EEXIST, NearPM_init_device(arguments[2]) == 0 ? NEARPM_OK : nearpm_errno());
    uint64_t round = strtoull(arguments[4], NULL, 10);
    snprintf(place[0], sizeof place[0], "card:%s/direct", arguments[3]);
    snprintf(place[1], sizeof place[1], "card:%s/primitives", arguments[3]);
    uint32_t several;
    CHECK(NearPM_pool_create("card:a+b/pool", 1 << 20, &several) == -1 && NearPM_errno() == NEARPM_EINVAL);
    CHECK(by_transactions(place[0], round) > 0);
    CHECK(by_primitives(place[1], round) > 0);
    return 0;
}
