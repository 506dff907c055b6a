/*
 * Looks at a pool that another program has made:
 *
 *     checked POOL LIBRARY LAYOUT
 */
#include "check.h"

int main(int count, char **arguments)
{
    CHECK(count == 4);
    CHECK(pmemobj_check(arguments[1], arguments[3]) == 1);
    return 0;
}
