/* What the floor does not have: programs of calls are linked with it like all others, and never run
 * with it. The header is left out, whose declarations say more. */
#include <stdlib.h>

#define ABSENT(name) \
    void name(void); \
    void name(void) \
    { \
        abort(); \
    }

ABSENT(_pobj_debug_notice)
ABSENT(pmemobj_alloc_usable_size)
ABSENT(pmemobj_drain)
ABSENT(pmemobj_first)
ABSENT(pmemobj_flush)
ABSENT(pmemobj_list_insert_new)
ABSENT(pmemobj_list_remove)
ABSENT(pmemobj_mutex_lock)
ABSENT(pmemobj_mutex_unlock)
ABSENT(pmemobj_next)
ABSENT(pmemobj_oid)
ABSENT(pmemobj_open)
ABSENT(pmemobj_pool_by_ptr)
ABSENT(pmemobj_publish)
ABSENT(pmemobj_realloc)
ABSENT(pmemobj_reserve)
ABSENT(pmemobj_set_value)
ABSENT(pmemobj_tx_abort)
ABSENT(pmemobj_type_num)
ABSENT(pmemobj_zalloc)
