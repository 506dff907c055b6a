/* Makes a pool and opens it again; the runner configures both by the environment. Fails if the
 * configuration is refused. */
#include "check.h"

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    PMEMobjpool *pool = reopen(new_pool(arguments[1], 16), arguments[1]);
    PMEMoid oid;
    CHECK(pmemobj_alloc(pool, &oid, 100, 1, NULL, NULL) == 0);
    pmemobj_free(&oid);
    pmemobj_close(pool);
    return 0;
}
