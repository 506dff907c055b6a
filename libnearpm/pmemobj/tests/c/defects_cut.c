/*
 * What has gone wrong in PMDK (numbers are those of github.com/pmem/pmdk) when power failed in
 * large transactions and publications: after a commit of more than 2052 snapshots or allocations,
 * whose log the recovery left half cleaned for the next large transaction (#5461); in
 * pmemobj_tx_zalloc, whose zeros were not made durable (#4945); in publications between 640 and
 * 1024 bytes or entries (#5583); with objects freed by the transaction that allocated them. Three
 * processes, as in power_cut.c:
 *
 *     defects_cut POOL LIBRARY prepare
 *     defects_cut POOL LIBRARY work SEED OPERATIONS     prints a dot when an operation has returned
 *     defects_cut POOL LIBRARY verify SEED DOTS         and goes on with what was recovered
 */
#include "check.h"

#include <unistd.h>

#define OBJECTS 2100
#define BYTES 304 /* of the first objects */
#define LARGE 200
#define WORDS 1025

struct root {
    uint64_t counter; /* operations */
    PMEMoid oids[OBJECTS];
    uint64_t words[WORDS];
    uint64_t published; /* words that the last publication set */
};

enum kind { ALLOCATE, MODIFY, FREE, PUBLISH, COME_AND_GO, KINDS };

static PMEMobjpool *pool;
static struct root *root;

/* The operation after which the counter is `number`, from 1. */
static enum kind kind_of(uint64_t number)
{
    return (enum kind)((number - 1) % KINDS);
}

static unsigned words_of(uint64_t number)
{
    static const unsigned sizes[] = {40, 41, 63, 64, 65, 640, 832, 1024, 1025};
    return sizes[number / KINDS % (sizeof(sizes) / sizeof(*sizes))];
}

static unsigned bytes_of(unsigned object)
{
    return object < LARGE ? BYTES : 40;
}

static void publish(uint64_t number)
{
    static struct pobj_action actions[WORDS + 2];
    unsigned count = words_of(number);
    for (unsigned i = 0; i < count; i++)
        pmemobj_set_value(pool, &actions[i], &root->words[i], number + i);
    pmemobj_set_value(pool, &actions[count], &root->counter, number);
    pmemobj_set_value(pool, &actions[count + 1], &root->published, number);
    CHECK(pmemobj_publish(pool, actions, count + 2) == 0);
}

static void step(enum kind kind)
{
    if (kind == ALLOCATE || kind == FREE)
        TX_ADD_DIRECT(&root->oids);
    for (unsigned i = 0; i < OBJECTS; i++) {
        switch (kind) {
        case ALLOCATE:
            root->oids[i] = pmemobj_tx_zalloc(bytes_of(i), 1);
            break;
        case MODIFY:
            /* What is here must not be seen in the next zeroed object. */
            pmemobj_tx_add_range(root->oids[i], 0, bytes_of(i));
            memset(pmemobj_direct(root->oids[i]), 0xff, bytes_of(i));
            *(uint64_t *)pmemobj_direct(root->oids[i]) = i;
            break;
        case FREE:
            pmemobj_tx_free(root->oids[i]);
            root->oids[i] = OID_NULL;
            break;
        default: {
            PMEMoid gone = pmemobj_tx_alloc(bytes_of(i), 2);
            pmemobj_tx_add_range(gone, 0, bytes_of(i));
            memset(pmemobj_direct(gone), 0xee, bytes_of(i));
            pmemobj_tx_free(gone);
        }
        }
    }
}

static void perform(uint64_t number)
{
    if (kind_of(number) == PUBLISH) {
        publish(number);
        return;
    }
    TX_BEGIN(pool) {
        TX_ADD_DIRECT(&root->counter);
        root->counter = number;
        step(kind_of(number));
    } TX_ONABORT {
        CHECK(0);
    } TX_END
}

/* What there is must be what the counter says. */
static void check_contents(void)
{
    uint64_t done = root->counter;
    int there = done > 0 && (kind_of(done) == ALLOCATE || kind_of(done) == MODIFY);
    CHECK(count_objects(pool) == (there ? OBJECTS : 0));
    for (unsigned i = 0; i < OBJECTS; i++) {
        CHECK(OID_IS_NULL(root->oids[i]) == !there);
        for (unsigned word = 0; there && word < bytes_of(i) / 8; word++) {
            uint64_t wanted = kind_of(done) == ALLOCATE ? 0 : word == 0 ? i : UINT64_MAX;
            CHECK(((uint64_t *)pmemobj_direct(root->oids[i]))[word] == wanted);
        }
    }
    uint64_t last = done;
    while (last > 0 && kind_of(last) != PUBLISH)
        last--;
    CHECK(root->published == last);
    for (unsigned i = 0; last > 0 && i < words_of(last); i++)
        CHECK(root->words[i] == last + i);
}

int main(int count, char **arguments)
{
    root = open_for_cuts(count, arguments, sizeof(struct root), &pool);
    if (count == 6) {
        uint64_t operations = strtoull(arguments[5], NULL, 10);
        if (strcmp(arguments[3], "work") == 0) {
            for (uint64_t i = 0; i < operations; i++) {
                perform(root->counter + 1);
                CHECK(write(STDOUT_FILENO, ".", 1) == 1);
            }
        } else {
            CHECK(root->counter == operations || root->counter == operations + 1);
            check_contents();
            for (unsigned i = 0; i < KINDS; i++) {
                perform(root->counter + 1);
                check_contents();
            }
        }
    }
    pmemobj_close(pool);
    return 0;
}
