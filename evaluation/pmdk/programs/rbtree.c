/*
 * Red-black tree with a sentinel below the leaves and a head above the top. Single fields are
 * snapshotted where a node is recoloured or linked, both nodes as a whole where they rotate.
 */
#include "maps.h"

enum color { BLACK, RED };
enum side { LEFT, RIGHT };

struct node {
    uint64_t key;
    PMEMoid value;
    enum color color;
    PMEMoid parent;
    PMEMoid children[2];
};

struct tree {
    PMEMoid sentinel;
    PMEMoid head; /* its left child is the top */
};

_Static_assert(sizeof(struct node) == 80, "a node is as large as that of PMDK's example");

static struct node *node_at(PMEMoid oid)
{
    return pmemobj_direct(oid);
}

static struct tree *tree_at(PMEMoid oid)
{
    return pmemobj_direct(oid);
}

static PMEMoid parent_of(PMEMoid oid)
{
    return node_at(oid)->parent;
}

static enum color color_of(PMEMoid oid)
{
    return node_at(oid)->color;
}

/* On which side of its parent a node hangs. */
static enum side side_of(PMEMoid oid)
{
    return OID_EQUALS(node_at(parent_of(oid))->children[RIGHT], oid) ? RIGHT : LEFT;
}

static void set_color(PMEMoid oid, enum color color)
{
    SET(node_at(oid)->color, color);
}

static PMEMoid create(void)
{
    PMEMoid map = pmemobj_tx_zalloc(sizeof(struct tree), TYPE_MAP);
    PMEMoid sentinel = pmemobj_tx_zalloc(sizeof(struct node), TYPE_NODE);
    PMEMoid head = pmemobj_tx_zalloc(sizeof(struct node), TYPE_NODE);
    *node_at(sentinel) = (struct node){.color = BLACK, .parent = sentinel, .children = {sentinel, sentinel}};
    *node_at(head) = (struct node){.color = BLACK, .parent = sentinel, .children = {sentinel, sentinel}};
    *tree_at(map) = (struct tree){sentinel, head};
    return map;
}

/* Turns a node down to one side; its child of the other side takes its place. */
static void rotate(PMEMoid sentinel, PMEMoid down, enum side side)
{
    PMEMoid up = node_at(down)->children[!side];
    pmemobj_tx_add_range(down, 0, sizeof(struct node));
    pmemobj_tx_add_range(up, 0, sizeof(struct node));
    PMEMoid moved = node_at(up)->children[side];
    node_at(down)->children[!side] = moved;
    if (!OID_EQUALS(moved, sentinel))
        SET(node_at(moved)->parent, down);
    PMEMoid above = parent_of(down);
    enum side place = side_of(down);
    node_at(up)->parent = above;
    SET(node_at(above)->children[place], up);
    node_at(up)->children[side] = down;
    node_at(down)->parent = up;
}

/* Hangs a new node below a leaf. */
static void hang(PMEMoid map, PMEMoid fresh)
{
    PMEMoid sentinel = tree_at(map)->sentinel, parent = tree_at(map)->head;
    PMEMoid *place = &node_at(parent)->children[LEFT];
    uint64_t key = node_at(fresh)->key;
    node_at(fresh)->children[LEFT] = sentinel;
    node_at(fresh)->children[RIGHT] = sentinel;
    while (!OID_EQUALS(*place, sentinel)) {
        parent = *place;
        place = &node_at(parent)->children[key > node_at(parent)->key ? RIGHT : LEFT];
    }
    SET(node_at(fresh)->parent, parent);
    SET(*place, fresh);
    node_at(fresh)->color = RED;
}

/* Repairs a red node below a red parent; gives the node where the next such pair may be. */
static PMEMoid repair(PMEMoid sentinel, PMEMoid at)
{
    PMEMoid parent = parent_of(at), above = parent_of(parent);
    enum side side = side_of(parent);
    PMEMoid uncle = node_at(above)->children[!side];
    if (color_of(uncle) == RED) {
        set_color(uncle, BLACK);
        set_color(parent, BLACK);
        set_color(above, RED);
        return above;
    }
    if (side_of(at) != side) {
        at = parent;
        rotate(sentinel, at, side);
    }
    set_color(parent_of(at), BLACK);
    set_color(above, RED);
    rotate(sentinel, above, !side);
    return at;
}

static void insert_node(PMEMoid map, uint64_t key, PMEMoid value)
{
    PMEMoid at = pmemobj_tx_zalloc(sizeof(struct node), TYPE_NODE);
    node_at(at)->key = key;
    node_at(at)->value = value;
    hang(map, at);
    while (color_of(parent_of(at)) == RED)
        at = repair(tree_at(map)->sentinel, at);
    set_color(node_at(tree_at(map)->head)->children[LEFT], BLACK);
}

static void insert(PMEMobjpool *pool, PMEMoid map, uint64_t key, PMEMoid value)
{
    TX_BEGIN(pool) {
        insert_node(map, key, value);
    } TX_END
}

static PMEMoid find(PMEMoid map, uint64_t key)
{
    PMEMoid sentinel = tree_at(map)->sentinel, at = node_at(tree_at(map)->head)->children[LEFT];
    while (!OID_EQUALS(at, sentinel)) {
        const struct node *node = node_at(at);
        if (node->key == key)
            return node->value;
        at = node->children[key > node->key ? RIGHT : LEFT];
    }
    return OID_NULL;
}

const struct map_kind rbtree = {"rbtree", create, insert, find};
