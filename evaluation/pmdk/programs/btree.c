/* B-tree of order 8 that splits full nodes on the way down. A changed node is snapshotted as a
 * whole, 304 B. */
#include <string.h>

#include "maps.h"

#define ORDER 8
#define MEDIAN (ORDER / 2 - 1)

struct item {
    uint64_t key;
    PMEMoid value;
};

struct node {
    int32_t count;
    struct item items[ORDER - 1];
    PMEMoid children[ORDER];
};

struct tree {
    PMEMoid top;
};

_Static_assert(sizeof(struct node) == 304, "a node is as large as that of PMDK's example");

static struct node *node_at(PMEMoid oid)
{
    return pmemobj_direct(oid);
}

static struct tree *tree_at(PMEMoid oid)
{
    return pmemobj_direct(oid);
}

static PMEMoid create(void)
{
    return pmemobj_tx_zalloc(sizeof(struct tree), TYPE_MAP);
}

/* Where the key is or belongs among a node's items. */
static int position(const struct node *node, uint64_t key)
{
    int i = 0;
    while (i < node->count && node->items[i].key < key)
        i++;
    return i;
}

/* Opens a gap among a snapshotted node's items and puts one there. */
static void put(struct node *node, int at, struct item item)
{
    memmove(&node->items[at + 1], &node->items[at], (size_t)(node->count - at) * sizeof item);
    node->items[at] = item;
    node->count++;
}

/* Moves the upper half of a full node into a new one; the median belongs to neither. */
static PMEMoid split(PMEMoid full, struct item *median)
{
    PMEMoid upper = pmemobj_tx_zalloc(sizeof(struct node), TYPE_NODE);
    pmemobj_tx_add_range(full, 0, sizeof(struct node));
    struct node *from = node_at(full), *to = node_at(upper);
    *median = from->items[MEDIAN];
    to->count = ORDER - 2 - MEDIAN;
    memcpy(to->items, &from->items[MEDIAN + 1], (size_t)to->count * sizeof *median);
    memcpy(to->children, &from->children[MEDIAN + 1], (size_t)(to->count + 1) * sizeof(PMEMoid));
    memset(&from->items[MEDIAN], 0, (ORDER - 1 - MEDIAN) * sizeof *median);
    memset(&from->children[MEDIAN + 1], 0, (ORDER - 1 - MEDIAN) * sizeof(PMEMoid));
    from->count = MEDIAN;
    return upper;
}

/* Splits the full child at a place of a node that is not full. */
static void split_child(PMEMoid parent, int at)
{
    struct item median;
    PMEMoid upper = split(node_at(parent)->children[at], &median);
    pmemobj_tx_add_range(parent, 0, sizeof(struct node));
    struct node *node = node_at(parent);
    memmove(&node->children[at + 2], &node->children[at + 1], (size_t)(node->count - at) * sizeof upper);
    node->children[at + 1] = upper;
    put(node, at, median);
}

/* Splits a full top: the tree grows by a level. */
static void grow(PMEMoid map)
{
    struct item median;
    PMEMoid old = tree_at(map)->top, upper = split(old, &median);
    PMEMoid top = pmemobj_tx_zalloc(sizeof(struct node), TYPE_NODE);
    struct node *node = node_at(top);
    node->count = 1;
    node->items[0] = median;
    node->children[0] = old;
    node->children[1] = upper;
    SET(tree_at(map)->top, top);
}

static void insert_item(PMEMoid map, struct item item)
{
    if (OID_IS_NULL(tree_at(map)->top))
        SET(tree_at(map)->top, pmemobj_tx_zalloc(sizeof(struct node), TYPE_NODE));
    if (node_at(tree_at(map)->top)->count == ORDER - 1)
        grow(map);
    PMEMoid at = tree_at(map)->top;
    while (!OID_IS_NULL(node_at(at)->children[0])) {
        int i = position(node_at(at), item.key);
        if (node_at(node_at(at)->children[i])->count == ORDER - 1) {
            split_child(at, i);
            i += node_at(at)->items[i].key < item.key;
        }
        at = node_at(at)->children[i];
    }
    pmemobj_tx_add_range(at, 0, sizeof(struct node));
    put(node_at(at), position(node_at(at), item.key), item);
}

static void insert(PMEMobjpool *pool, PMEMoid map, uint64_t key, PMEMoid value)
{
    TX_BEGIN(pool) {
        insert_item(map, (struct item){key, value});
    } TX_END
}

static PMEMoid find(PMEMoid map, uint64_t key)
{
    PMEMoid at = tree_at(map)->top;
    while (!OID_IS_NULL(at)) {
        const struct node *node = node_at(at);
        int i = position(node, key);
        if (i < node->count && node->items[i].key == key)
            return node->items[i].value;
        at = node->children[i];
    }
    return OID_NULL;
}

const struct map_kind btree = {"btree", create, insert, find};
