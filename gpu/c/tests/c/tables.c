/* Hash tables of nearpm_gphash.h. Argument: a folder. */
#include <nearpm_gphash.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define VALUE 32
#define MOST 400

static const char *folder;
static uint64_t keys[MOST];
static unsigned char values[MOST][VALUE], found[MOST][VALUE];
static gph_request requests[MOST];

static const char *file(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* The same operation on keys 1 to `count`; values are the key and `salt`. */
static int64_t each(gph_table *table, uint32_t op, unsigned count, unsigned salt)
{
    memset(found, 0, sizeof found);
    for (unsigned i = 0; i < count; i++) {
        keys[i] = (i + 1) * UINT64_C(0x100000001);
        memset(values[i], (int)((i + salt) & 0xff), VALUE);
        requests[i].op = op;
        requests[i].key_bytes = 8;
        requests[i].key = &keys[i];
        requests[i].value = values[i];
        requests[i].found = found[i];
        requests[i].outcome = 0;
    }
    return gph_batch(table, requests, count);
}

static unsigned with_outcome(unsigned count, uint32_t outcome)
{
    unsigned with = 0;
    for (unsigned i = 0; i < count; i++) with += requests[i].outcome == outcome;
    return with;
}

static void used(uint32_t design, const char *name)
{
    gph_layout layout = {design, VALUE, 300, 0, 0, 1, 7};
    gph_table *table = gph_create(file(name), &layout);
    CHECK(table);
    REFUSED(gph_create(file(name), &layout) == NULL);
    CHECK(each(table, GPH_INSERT, 100, 1) == 0 && with_outcome(100, GPH_DONE) == 100);
    CHECK(each(table, GPH_INSERT, 101, 2) == 0 && with_outcome(101, GPH_EXISTS) == 100);
    CHECK(each(table, GPH_GET, 102, 1) == 0 && with_outcome(102, GPH_ABSENT) == 1);
    CHECK(memcmp(found, values, 100 * VALUE) == 0);
    CHECK(each(table, GPH_UPDATE, 50, 3) == 0 && with_outcome(50, GPH_DONE) == 50);
    CHECK(each(table, GPH_DELETE, 10, 0) == 0 && with_outcome(10, GPH_DONE) == 10);

    /* A reserved key, and an operation that there is not: nothing of the batch is done. */
    CHECK(each(table, GPH_GET, 2, 0) == 0);
    keys[1] = 0;
    requests[0].op = GPH_DELETE;
    REFUSED(gph_batch(table, requests, 2) == -1);
    keys[1] = 99;
    requests[1].op = 77;
    REFUSED(gph_batch(table, requests, 2) == -1);
    requests[1].op = GPH_PUT;
    requests[1].value = NULL;
    REFUSED(gph_batch(table, requests, 2) == -1);
    REFUSED(gph_batch(table, NULL, 2) == -1);

    /* More than it holds, though it grows: all others are there. */
    uint32_t epoch = 0;
    CHECK(gph_begin_epoch(table, 1, &epoch) == 0 && epoch > 0);
    REFUSED(gph_begin_epoch(table, 1, NULL) == -1);
    gph_stats stats;
    CHECK(gph_stat(table, &stats) == 0 && stats.faults == 0 && stats.value_bytes == VALUE);

    /* Opened again, with a cache. */
    CHECK(gph_close(table) == 0);
    REFUSED(gph_close(table) == -1);
    REFUSED(gph_batch(table, requests, 1) == -1);
    table = gph_open(file(name), 16);
    CHECK(table && gph_stat(table, &stats) == 0 && stats.pairs == 91 && stats.slots >= 300);
    for (int turn = 0; turn < 3; turn++) CHECK(each(table, GPH_GET, 50, 3) == 0 && gph_turn(table) == 0);
    CHECK(with_outcome(50, GPH_ABSENT) == 10 && memcmp(found[10], values[10], 40 * VALUE) == 0);
    CHECK(gph_grow(table, 1) == 0);
    CHECK(each(table, GPH_GET, 50, 3) == 0 && memcmp(found[10], values[10], 40 * VALUE) == 0);
    CHECK(gph_close(table) == 0);
}

/* A table that is full refuses what does not fit, says how much that is, and keeps everything
 * else. */
static void full(void)
{
    gph_layout layout = {GPH_IN_LEVELS, VALUE, 24, 0, 0, 0, 1};
    gph_table *table = gph_create(file("full"), &layout);
    CHECK(table);
    int64_t undone = each(table, GPH_PUT, 60, 5);
    CHECK(undone > 0 && with_outcome(60, GPH_FULL) == (unsigned)undone);
    unsigned char fits[60];
    for (int i = 0; i < 60; i++) fits[i] = requests[i].outcome == GPH_DONE;
    CHECK(each(table, GPH_GET, 60, 5) == 0);
    for (int i = 0; i < 60; i++) CHECK((requests[i].outcome == GPH_DONE) == fits[i]);
    REFUSED(gph_grow(table, 1) == -1);
    CHECK(gph_close(table) == 0);
}

static void wide(void)
{
    gph_layout layout = {GPH_IN_WINDOWS, VALUE, 64, 0, 24, 0, 1};
    gph_table *table = gph_create(file("wide"), &layout);
    CHECK(table && each(table, GPH_PUT, 3, 0) >= 0);
    requests[0].key = "pear";
    requests[0].key_bytes = 4;
    requests[1].key = "a pear of twenty-four...";
    requests[1].key_bytes = 24;
    CHECK(gph_batch(table, requests, 2) == 0 && with_outcome(2, GPH_DONE) == 2);
    requests[1].key_bytes = 25;
    REFUSED(gph_batch(table, requests, 2) == -1);
    CHECK(gph_close(table) == 0);
    /* Parameters that make no table leave no file. */
    layout.value_bytes = 17;
    REFUSED(gph_create(file("none"), &layout) == NULL && gph_open(file("none"), 0) == NULL);
    layout.value_bytes = 16;
    layout.key_bytes = 8;
    REFUSED(gph_create(file("none"), &layout) == NULL);
    layout.design = 2;
    REFUSED(gph_create(file("none"), &layout) == NULL);
    REFUSED(gph_create(NULL, &layout) == NULL);
    REFUSED(gph_create(file("none"), NULL) == NULL);
    REFUSED(gph_open(file("none"), 0) == NULL);
}

int main(int count, char **arguments)
{
    CHECK(count == 2);
    folder = arguments[1];
    used(GPH_IN_LEVELS, "levels");
    used(GPH_IN_WINDOWS, "windows");
    full();
    wide();
    puts("as it should be");
    return 0;
}
