/* Transactions that add ranges and then modify all of each: an operation is one transaction with
 * `--adds` of `--bytes`. */
#include <string.h>

#include "pool.h"

/* Ranges are apart, or a library could log two as one. */
#define GAP 64

struct ranges {
    const struct options *options;
    PMEMobjpool *pool;
    char *first;
    size_t apart;
};

/* What operation `op` fills range `i` with. */
static unsigned char filling(uint64_t op, unsigned i)
{
    return (unsigned char)(op * 31 + i + 1);
}

static void transaction(const struct ranges *ranges, uint64_t op)
{
    TX_BEGIN(ranges->pool) {
        for (unsigned i = 0; i < ranges->options->adds; i++) {
            char *range = ranges->first + i * ranges->apart;
            pmemobj_tx_add_range_direct(range, ranges->options->bytes);
            memset(range, filling(op, i), ranges->options->bytes);
        }
    } TX_ONABORT {
        fail("a transaction was aborted: %s", pmemobj_errormsg());
    } TX_END
}

static void work(void *context)
{
    const struct ranges *ranges = context;
    for (uint64_t op = 0; op < ranges->options->ops; op++)
        transaction(ranges, op);
}

static void verify(const struct ranges *ranges)
{
    for (unsigned i = 0; i < ranges->options->adds; i++) {
        const char *range = ranges->first + i * ranges->apart;
        unsigned char wanted = filling(ranges->options->ops - 1, i);
        for (size_t at = 0; at < ranges->apart; at++)
            if ((unsigned char)range[at] != (at < ranges->options->bytes ? wanted : 0))
                fail("byte %zu of range %u is not what was stored last", at, i);
    }
}

int main(int argc, char **argv)
{
    struct options options = options_read(argc, argv);
    PMEMobjpool *pool = pool_create(&options);
    size_t apart = (options.bytes + GAP - 1) / GAP * GAP + GAP;
    PMEMoid root = pmemobj_root(pool, apart * (options.adds + 1));
    if (OID_IS_NULL(root))
        fail("no root object: %s", pmemobj_errormsg());
    uintptr_t start = ((uintptr_t)pmemobj_direct(root) + GAP - 1) / GAP * GAP;
    struct ranges ranges = {&options, pool, (char *)start, apart};
    bench_run(&options, work, (void *[]){&ranges});
    verify(&ranges);
    pmemobj_close(pool);
    pool_report("adds", options.ops, "\"adds\":%u,\"bytes\":%zu", options.adds, options.bytes);
    return 0;
}
