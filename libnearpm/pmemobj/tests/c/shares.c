/* How many objects of a size a pool of 64 MiB has room for: a line "BYTES TENTHS_OF_A_PERCENT" for
 * each size. */

#include "check.h"

#define POOL_BYTES (64 << 20)

int main(int argc, char **argv)
{
    (void)argc;
    /* Also such as fill a class of PMDK's allocator with its header of 16 bytes. */
    static const size_t sizes[] = {16,      48,      64,      112,      128,      240,      256,
                                   512,     1008,    1 << 10, 2 << 10,  4 << 10,  8 << 10,  16 << 10,
                                   32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20};
    for (size_t at = 0; at < sizeof sizes / sizeof *sizes; at++) {
        remove(argv[1]);
        PMEMobjpool *pool = pmemobj_create(argv[1], "shares", POOL_BYTES, 0600);
        CHECK(pool != NULL);
        size_t objects = 0;
        PMEMoid object;
        while (pmemobj_alloc(pool, &object, sizes[at], 0, NULL, NULL) == 0)
            objects++;
        printf("%zu %zu\n", sizes[at], objects * sizes[at] * 1000 / POOL_BYTES);
        pmemobj_close(pool);
    }
    return 0;
}
