/* A persistent list of numbers that stays sorted.
 *
 *     cc list.c $(pkg-config --cflags --libs nearpm) -o list
 *     ./list a.pool add 5 3 8      adds numbers, each in a transaction
 *     ./list a.pool remove 3       removes them
 *     ./list a.pool show           prints the list
 *     ./list a.pool crash 4        dies in the middle of adding: the next run does not find it
 */
#include <inttypes.h>
#include <nearpm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* References in a pool are offsets, since addresses change from run to run. */
struct node {
    uint64_t value;
    uint64_t next;
};

struct list {
    uint64_t first;
    uint64_t length;
};

static struct nearpm_pool *pool;
static struct list *list;

static void check(int code, const char *what) {
    if (code != NEARPM_OK) {
        fprintf(stderr, "%s: error %d: %s\n", what, code, nearpm_errormsg());
        exit(1);
    }
}

static struct node *node_at(uint64_t offset) {
    return (struct node *)nearpm_direct(pool, offset);
}

/* The place that holds the offset of the first node that is not below the value. */
static uint64_t *find(uint64_t value) {
    uint64_t *place = &list->first;
    while (*place && node_at(*place)->value < value) place = &node_at(*place)->next;
    return place;
}

static void add(uint64_t value, int crash) {
    struct nearpm_tx *tx;
    struct node *node;
    uint64_t *place = find(value);
    check(nearpm_tx_begin(pool, &tx), "begin");
    /* What is there is named before it is changed; a new object need not be. */
    check(nearpm_tx_alloc(tx, sizeof *node, (void **)&node), "alloc");
    check(nearpm_tx_add(tx, place, sizeof *place), "add");
    check(nearpm_tx_add(tx, &list->length, sizeof list->length), "add");
    node->value = value;
    node->next = *place;
    *place = nearpm_offset(pool, node);
    if (crash) {
        fprintf(stderr, "dying in the middle\n");
        _Exit(3);
    }
    list->length++;
    check(nearpm_tx_commit(tx), "commit");
}

static void remove_value(uint64_t value) {
    struct nearpm_tx *tx;
    uint64_t *place = find(value);
    struct node *node = node_at(*place);
    if (!node || node->value != value) {
        fprintf(stderr, "%" PRIu64 " is not in the list\n", value);
        exit(1);
    }
    check(nearpm_tx_begin(pool, &tx), "begin");
    check(nearpm_tx_add(tx, place, sizeof *place), "add");
    check(nearpm_tx_add(tx, &list->length, sizeof list->length), "add");
    *place = node->next;
    list->length--;
    check(nearpm_tx_free(tx, node), "free");
    check(nearpm_tx_commit(tx), "commit");
}

static void show(void) {
    uint64_t count = 0;
    for (uint64_t at = list->first; at; at = node_at(at)->next) {
        printf("%s%" PRIu64, count ? " " : "", node_at(at)->value);
        count++;
    }
    printf("\n");
    if (count != list->length) {
        fprintf(stderr, "the list says %" PRIu64 " and has %" PRIu64 "\n", list->length, count);
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "usage: list POOL add|remove|show|crash [NUMBER...]\n"), 2;
    int code = nearpm_open(argv[1], NULL, &pool);
    if (code == NEARPM_ENOENT) code = nearpm_create(argv[1], 8 << 20, NULL, &pool);
    check(code, "open");
    check(nearpm_root(pool, sizeof *list, (void **)&list), "root");
    for (int i = 3; i < argc; i++) {
        uint64_t value = strtoull(argv[i], NULL, 10);
        if (strcmp(argv[2], "remove") == 0) remove_value(value);
        else add(value, strcmp(argv[2], "crash") == 0);
    }
    if (strcmp(argv[2], "show") == 0) show();
    check(nearpm_close(pool), "close");
    return 0;
}
