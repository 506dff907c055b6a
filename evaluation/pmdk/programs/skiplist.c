/* Skip list of four levels. Every link that changes is snapshotted by itself. */
#include "maps.h"

#include "common.h"

#define LEVELS 4

struct node {
    PMEMoid next[LEVELS];
    uint64_t key;
    PMEMoid value;
};

_Static_assert(sizeof(struct node) == 88, "a node is as large as that of PMDK's example");

static struct node *node_at(PMEMoid oid)
{
    return pmemobj_direct(oid);
}

/* The map is a node before the first. */
static PMEMoid create(void)
{
    return pmemobj_tx_zalloc(sizeof(struct node), TYPE_NODE);
}

/* On each level the last node whose key is less. */
static void path_to(PMEMoid map, uint64_t key, PMEMoid path[LEVELS])
{
    PMEMoid at = map;
    for (int level = LEVELS - 1; level >= 0; level--) {
        PMEMoid next;
        while (next = node_at(at)->next[level], !OID_IS_NULL(next) && node_at(next)->key < key)
            at = next;
        path[level] = at;
    }
}

/* A node is on each further level with probability one half, drawn from its key so that every run
 * is the same. */
static int height(uint64_t key)
{
    int levels = 1;
    for (uint64_t bits = sequence(key, 0); levels < LEVELS && (bits & 1) == 0; bits >>= 1)
        levels++;
    return levels;
}

static void insert(PMEMobjpool *pool, PMEMoid map, uint64_t key, PMEMoid value)
{
    TX_BEGIN(pool) {
        PMEMoid path[LEVELS];
        PMEMoid fresh = pmemobj_tx_zalloc(sizeof(struct node), TYPE_NODE);
        struct node *node = node_at(fresh);
        node->key = key;
        node->value = value;
        path_to(map, key, path);
        for (int level = 0; level < height(key); level++) {
            PMEMoid *link = &node_at(path[level])->next[level];
            node->next[level] = *link;
            SET(*link, fresh);
        }
    } TX_END
}

static PMEMoid find(PMEMoid map, uint64_t key)
{
    PMEMoid path[LEVELS];
    path_to(map, key, path);
    PMEMoid found = node_at(path[0])->next[0];
    return !OID_IS_NULL(found) && node_at(found)->key == key ? node_at(found)->value : OID_NULL;
}

const struct map_kind skiplist = {"skiplist", create, insert, find};
