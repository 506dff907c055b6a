/* Defragmentation: what moves, and the identifiers that follow. On PMDK the places differ, and what
 * they hold does not. */
#include "check.h"

#define COUNT 256
#define BYTES 1000
#define TYPE 7

struct node {
    PMEMoid next;
    PMEMoid self;
    uint64_t number;
    char text[BYTES];
};

struct root {
    PMEMoid first;
};

static PMEMobjpool *pool;

static struct node *at(PMEMoid oid)
{
    return pmemobj_direct(oid);
}

/* A ring of every fourth of many objects, so that there are gaps, and the numbers of the objects in
 * its order. */
static void make_ring(struct root *root)
{
    static PMEMoid made[COUNT];
    for (int i = 0; i < COUNT; i++) {
        CHECK(pmemobj_zalloc(pool, &made[i], sizeof(struct node), TYPE) == 0);
    }
    root->first = made[3];
    for (int i = 3; i < COUNT; i += 4) {
        struct node *node = at(made[i]);
        node->next = made[i + 4 < COUNT ? i + 4 : 3];
        node->self = made[i];
        node->number = i;
        memset(node->text, i, BYTES);
        pmemobj_persist(pool, node, sizeof *node);
    }
    pmemobj_persist(pool, root, sizeof *root);
    for (int i = 0; i < COUNT; i++) {
        if (i % 4 != 3) {
            pmemobj_free(&made[i]);
        }
    }
}

static void check_ring(const struct root *root)
{
    PMEMoid oid = root->first;
    for (int i = 3; i < COUNT; i += 4, oid = at(oid)->next) {
        struct node *node = at(oid);
        CHECK(node->number == (uint64_t)i && OID_EQUALS(node->self, oid) && pmemobj_type_num(oid) == TYPE);
        for (int j = 0; j < BYTES; j++) {
            CHECK(node->text[j] == (char)i);
        }
    }
    CHECK(OID_EQUALS(oid, root->first));
}

/* Every identifier of the ring, where it lies, and one outside of the pool. PMDK takes none
 * twice. */
static size_t name(struct root *root, PMEMoid **names, PMEMoid *outside)
{
    size_t count = 0;
    *outside = root->first;
    names[count++] = &root->first;
    names[count++] = outside;
    if (!is_pmdk) {
        names[count++] = outside;
    }
    PMEMoid oid = root->first;
    for (int i = 3; i < COUNT; i += 4, oid = at(oid)->next) {
        names[count++] = &at(oid)->next;
        names[count++] = &at(oid)->self;
    }
    return count;
}

static uint64_t sum_of_offsets(const struct root *root)
{
    uint64_t sum = 0;
    PMEMoid oid = root->first;
    for (int i = 3; i < COUNT; i += 4, oid = at(oid)->next) {
        sum += oid.off;
    }
    return sum;
}

/* Objects of a class that aligns stay aligned, wherever they are. */
static void aligned(void)
{
    struct pobj_alloc_class_desc class = {.unit_size = 512, .alignment = 512, .units_per_block = 100};
    CHECK(pmemobj_ctl_set(pool, "heap.alloc_class.new.desc", &class) == 0);
    PMEMoid made[32];
    for (int i = 0; i < 32; i++) {
        CHECK(pmemobj_xalloc(pool, &made[i], 400, TYPE, POBJ_CLASS_ID(class.class_id), NULL, NULL) == 0);
    }
    for (int i = 0; i < 16; i++) {
        pmemobj_free(&made[i]);
    }
    for (int i = 16; i < 32; i++) {
        PMEMoid *names[1] = {&made[i]};
        CHECK(pmemobj_defrag(pool, names, 1, NULL) == 0);
        CHECK((uintptr_t)pmemobj_direct(made[i]) % 512 == 0);
        pmemobj_free(&made[i]);
    }
}

int main(int argc, char **argv)
{
    check_begin(argc, argv);
    pool = new_pool(argv[1], 32);
    struct root *root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    make_ring(root);
    check_ring(root);

    static PMEMoid *names[COUNT], outside;
    size_t count = name(root, names, &outside);
    uint64_t before = sum_of_offsets(root);
    struct pobj_defrag_result result = {1, 1};
    CHECK(pmemobj_defrag(pool, names, count, &result) == 0);
    CHECK(result.total == COUNT / 4 && result.relocated > 0 && result.relocated <= result.total);
    CHECK(OID_EQUALS(outside, root->first) && sum_of_offsets(root) < before);
    check_ring(root);

    /* The objects are as many as before: each old place is free. */
    CHECK(count_objects(pool) == COUNT / 4);
    aligned();

    /* Nothing to do, and what is no object of the pool. */
    CHECK(pmemobj_defrag(pool, NULL, 0, &result) == 0 && result.total == 0 && result.relocated == 0);
    PMEMoid none = OID_NULL, foreign = {root->first.pool_uuid_lo + 1, root->first.off};
    PMEMoid *null[1] = {&none}, *other[2] = {&root->first, &foreign};
    CHECK(pmemobj_defrag(pool, null, 1, &result) == 0 && result.total == 0);
    CHECK(pmemobj_defrag(pool, other, 2, &result) == -1 && result.relocated == 0);
    check_ring(root);

    /* What has moved is durable. */
    pool = reopen(pool, argv[1]);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    check_ring(root);
    pmemobj_close(pool);
    return 0;
}
