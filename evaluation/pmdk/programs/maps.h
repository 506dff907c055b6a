/* Maps in a pool, from 8-byte keys to objects, each with the algorithm and the snapshots of the
 * like example of PMDK. */
#ifndef BENCH_MAPS_H
#define BENCH_MAPS_H

#include <libpmemobj.h>

/* Type numbers of objects; libpmemobj keeps them with each object. */
enum type_number { TYPE_VALUE = 1, TYPE_MAP, TYPE_NODE, TYPE_TABLE };

struct map_kind {
    const char *name;
    /* Makes an empty map, in the transaction that runs. */
    PMEMoid (*create)(void);
    /* Inserts a key that is not there yet, in a transaction of its own inside that of the
     * caller. */
    void (*insert)(PMEMobjpool *pool, PMEMoid map, uint64_t key, PMEMoid value);
    /* The value of a key, or OID_NULL. */
    PMEMoid (*find)(PMEMoid map, uint64_t key);
};

extern const struct map_kind btree, rbtree, skiplist, hashmap;

/* Stores a value after its old content is in the transaction's log. */
#define SET(place, value)                                        \
    do {                                                         \
        pmemobj_tx_add_range_direct(&(place), sizeof(place));    \
        (place) = (value);                                       \
    } while (0)

#endif
