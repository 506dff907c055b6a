/* A pool of 8 MiB that may grow: by itself when it is full, and when it is asked to. Run with
 * NEARPM_GROWTH. */
#include "check.h"

#include <stdint.h>

#define BYTES (8 << 20)
#define OBJECT 1000

static PMEMobjpool *pool;
static PMEMoid root;

/* One more object of type 7, counted in the root. */
static void make(int fill)
{
    TX_BEGIN(pool) {
        PMEMoid object = pmemobj_tx_alloc(OBJECT, 7);
        memset(pmemobj_direct(object), fill, OBJECT);
        pmemobj_tx_add_range(root, 0, 8);
        *(uint64_t *)pmemobj_direct(root) += 1;
    } TX_ONABORT {
        CHECK(!"it has room");
    } TX_END
}

int main(int argc, char **argv)
{
    check_begin(argc, argv);
    pool = pmemobj_create(argv[1], "growth", BYTES, 0600);
    CHECK(pool != NULL);
    root = pmemobj_root(pool, 16);
    size_t made = 0;
    while (made * OBJECT < 3 * (size_t)BYTES) {
        make((int)(made % 251));
        made++;
    }
    PMEMoid large;
    CHECK(pmemobj_alloc(pool, &large, BYTES, 8, NULL, NULL) == 0);
    CHECK(pmemobj_pool_by_ptr((char *)pmemobj_direct(large) + BYTES - 1) == pool);
    CHECK(pmemobj_pool_by_oid(large) == pool);
    memset(pmemobj_direct(large), 1, BYTES);
    pmemobj_persist(pool, pmemobj_direct(large), BYTES);
    uint64_t more = 4 << 20;
    CHECK(pmemobj_ctl_exec(pool, "heap.size.extend", &more) == 0);
    more = (uint64_t)1 << 40;
    CHECK(pmemobj_ctl_exec(pool, "heap.size.extend", &more) == -1);
    /* Its most is an end: what is asked for then is refused, and nothing else happens. */
    PMEMoid none;
    CHECK(pmemobj_alloc(pool, &none, 256 << 20, 9, NULL, NULL) == -1 && errno == ENOMEM);
    pmemobj_close(pool);

    CHECK(pmemobj_check(argv[1], "growth") == 1);
    pool = pmemobj_open(argv[1], "growth");
    CHECK(pool != NULL);
    root = pmemobj_root(pool, 16);
    CHECK(*(uint64_t *)pmemobj_direct(root) == made);
    size_t found = 0;
    PMEMoid object;
    POBJ_FOREACH(pool, object) {
        if (pmemobj_type_num(object) != 7)
            continue;
        const unsigned char *bytes = pmemobj_direct(object);
        for (size_t at = 1; at < OBJECT; at++)
            CHECK(bytes[at] == bytes[0]);
        found++;
    }
    CHECK(found == made);
    pmemobj_close(pool);
    return 0;
}
