/*
 * Bytes that become durable outside of transactions, `--bytes` an operation: `--variant persist`
 * stores the first line of them and names all, as programs do with whole structures; `memcpy` and
 * `memset` write them all.
 */
#include <stdlib.h>
#include <string.h>

#include "pool.h"

/* Places that operations take in turn, so that no operation finds what the one before has just
 * written. */
#define PLACES 16
#define LINE 64

struct places {
    const struct options *options;
    PMEMobjpool *pool;
    char *first;
    /* A source for each filling that is in use. */
    char *sources;
};

static unsigned char filling(uint64_t op)
{
    return (unsigned char)(op % 251 + 1);
}

static char *place(const struct places *places, uint64_t op)
{
    return places->first + op % PLACES * places->options->bytes;
}

static size_t stored(const struct options *options)
{
    return strcmp(options->variant, "persist") == 0 && options->bytes > LINE ? LINE : options->bytes;
}

static void work(void *context)
{
    const struct places *places = context;
    size_t bytes = places->options->bytes, changed = stored(places->options);
    switch (places->options->variant[3]) {
    case 's': /* persist */
        for (uint64_t op = 0; op < places->options->ops; op++) {
            memset(place(places, op), filling(op), changed);
            pmemobj_persist(places->pool, place(places, op), bytes);
        }
        break;
    case 'c': /* memcpy */
        for (uint64_t op = 0; op < places->options->ops; op++)
            pmemobj_memcpy_persist(places->pool, place(places, op), places->sources + op % 251 % 4 * bytes, bytes);
        break;
    default: /* memset */
        for (uint64_t op = 0; op < places->options->ops; op++)
            pmemobj_memset_persist(places->pool, place(places, op), filling(op), bytes);
    }
}

static void verify(const struct places *places)
{
    const struct options *options = places->options;
    uint64_t first = options->ops > PLACES ? options->ops - PLACES : 0;
    for (uint64_t op = first; op < options->ops; op++) {
        unsigned char wanted = options->variant[3] == 'c' ? (unsigned char)(op % 251 % 4 + 1) : filling(op);
        for (size_t at = 0; at < options->bytes; at++)
            if ((unsigned char)place(places, op)[at] != (at < stored(options) ? wanted : 0))
                fail("byte %zu of operation %zu is not what it stored", at, (size_t)op);
    }
}

int main(int argc, char **argv)
{
    struct options options = options_read(argc, argv);
    if (strcmp(options.variant, "persist") && strcmp(options.variant, "memcpy") && strcmp(options.variant, "memset"))
        fail("no variant %s: there are persist, memcpy and memset", options.variant);
    PMEMobjpool *pool = pool_create(&options);
    PMEMoid root = pmemobj_root(pool, PLACES * options.bytes + LINE);
    if (OID_IS_NULL(root))
        fail("no root object: %s", pmemobj_errormsg());
    uintptr_t start = ((uintptr_t)pmemobj_direct(root) + LINE - 1) / LINE * LINE;
    struct places places = {&options, pool, (char *)start, malloc(4 * options.bytes)};
    if (places.sources == NULL)
        fail("no memory");
    for (int source = 0; source < 4; source++)
        memset(places.sources + source * options.bytes, source + 1, options.bytes);
    bench_run(&options, work, (void *[]){&places});
    verify(&places);
    free(places.sources);
    pmemobj_close(pool);
    pool_report("persists", options.ops, "\"variant\":\"%s\",\"bytes\":%zu", options.variant, options.bytes);
    return 0;
}
