/* A pool that the project's tools made with a layout: it opens, and takes a root and typed
 * objects. */
#include "check.h"

struct list {
    PMEMoid first;
    char text[48];
};

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    CHECK(pmemobj_open(arguments[1], "another") == NULL && errno == EINVAL);
    PMEMobjpool *pool = pmemobj_open(arguments[1], "words");
    CHECK(pool != NULL);
    CHECK(pmemobj_root_size(pool) == 0);
    PMEMoid root = pmemobj_root(pool, sizeof(struct list));
    CHECK(!OID_IS_NULL(root));
    struct list *list = pmemobj_direct(root);
    for (int i = 0; i < 3; i++)
        CHECK(pmemobj_zalloc(pool, i == 0 ? &list->first : NULL, 40, i == 0 ? 7 : 9) == 0);
    strcpy(list->text, "a word of the program");
    pmemobj_persist(pool, list, sizeof *list);
    pmemobj_close(pool);
    CHECK(pmemobj_check(arguments[1], "words") == 1);
    return 0;
}
