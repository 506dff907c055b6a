/* A persistent hash map from words to numbers.
 *
 *     cc map.c $(pkg-config --cflags --libs nearpm) -o map
 *     ./map a.pool count apple pear apple    adds one to the number of each word, at once
 *     ./map a.pool show                      prints the map
 *     ./map a.pool run                       counts the words "a" and "b" for ever, in turns of one
 *                                            transaction, and says how often: kill it at any
 *                                            moment, and see what `show` finds
 */
#include <inttypes.h>
#include <nearpm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1024 };

struct entry {
    uint64_t next;
    uint64_t number;
    char word[]; /* ends with a zero */
};

struct map {
    uint64_t buckets[BUCKETS];
    uint64_t entries;
};

static struct nearpm_pool *pool;
static struct map *map;

static void check(int code, const char *what) {
    if (code != NEARPM_OK) {
        fprintf(stderr, "%s: error %d: %s\n", what, code, nearpm_errormsg());
        exit(1);
    }
}

static struct entry *entry_at(uint64_t offset) {
    return (struct entry *)nearpm_direct(pool, offset);
}

static uint64_t *bucket(const char *word) {
    uint64_t hash = 14695981039346656037u;
    for (; *word; word++) hash = (hash ^ (unsigned char)*word) * 1099511628211u;
    return &map->buckets[hash % BUCKETS];
}

/* Adds one to the number of a word, as part of a transaction. */
static void count(struct nearpm_tx *tx, const char *word) {
    uint64_t *first = bucket(word);
    struct entry *entry = entry_at(*first);
    while (entry && strcmp(entry->word, word) != 0) entry = entry_at(entry->next);
    if (!entry) {
        check(nearpm_tx_alloc(tx, sizeof *entry + strlen(word) + 1, (void **)&entry), "alloc");
        const struct nearpm_range ranges[] = {{first, sizeof *first}, {&map->entries, sizeof map->entries}};
        check(nearpm_tx_add_all(tx, ranges, 2), "add");
        strcpy(entry->word, word);
        entry->number = 0;
        entry->next = *first;
        *first = nearpm_offset(pool, entry);
        map->entries++;
    }
    check(nearpm_tx_add(tx, &entry->number, sizeof entry->number), "add");
    entry->number++;
}

static void count_all(char **words, int words_count) {
    struct nearpm_tx *tx;
    check(nearpm_tx_begin(pool, &tx), "begin");
    for (int i = 0; i < words_count; i++) count(tx, words[i]);
    check(nearpm_tx_commit(tx), "commit");
}

static void show(void) {
    uint64_t found = 0;
    for (int i = 0; i < BUCKETS; i++)
        for (struct entry *entry = entry_at(map->buckets[i]); entry; entry = entry_at(entry->next)) {
            printf("%s %" PRIu64 "\n", entry->word, entry->number);
            found++;
        }
    if (found != map->entries) {
        fprintf(stderr, "the map says %" PRIu64 " and has %" PRIu64 "\n", map->entries, found);
        exit(1);
    }
}

static void run(void) {
    char a[] = "a", b[] = "b";
    char *words[] = {a, b};
    for (uint64_t times = 1;; times++) {
        count_all(words, 2);
        /* The transaction is durable: now the world may know. */
        printf("%" PRIu64 "\n", times);
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "usage: map POOL count|show|run [WORD...]\n"), 2;
    int code = nearpm_open(argv[1], NULL, &pool);
    if (code == NEARPM_ENOENT) code = nearpm_create(argv[1], 8 << 20, NULL, &pool);
    check(code, "open");
    check(nearpm_root(pool, sizeof *map, (void **)&map), "root");
    if (strcmp(argv[2], "run") == 0) run();
    if (strcmp(argv[2], "count") == 0) count_all(argv + 3, argc - 3);
    if (strcmp(argv[2], "show") == 0) show();
    check(nearpm_close(pool), "close");
    return 0;
}
