/*
 * A pool that holds something of everything: "make" fills a new one, "die" leaves a transaction of
 * it open, "verify" checks one that was made: on PMDK, or on this library when it was imported,
 * where it also goes on with it.
 */
#include "check.h"
#include <unistd.h>

#define OBJECTS 3000
#define HUGE 5
#define CLASSES 4
#define TYPES 7

struct object {
    PMEMoid next;
    PMEMoid inside; /* leads into the middle of the object before */
    uint64_t number;
    uint64_t bytes;
    unsigned char fill[];
};

struct root {
    char text[40];
    PMEMoid first;
    PMEMoid of_class[CLASSES];
    PMEMoid freed;
    PMEMmutex lock;
    uint64_t objects;
};

static uint64_t random_state = 88172645463325252;

static uint64_t draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static unsigned char fill_of(uint64_t number, uint64_t at)
{
    return (unsigned char)(number * 31 + at * 7 + (at >> 8));
}

static void fill(struct object *object, uint64_t number, uint64_t bytes)
{
    object->number = number;
    object->bytes = bytes;
    for (uint64_t at = 0; at < bytes; at++)
        object->fill[at] = fill_of(number, at);
}

static void verify(struct object *object)
{
    for (uint64_t at = 0; at < object->bytes; at++)
        CHECK(object->fill[at] == fill_of(object->number, at));
}

/* Bytes behind the head of object `number`: small ones mostly, some of several units, some of
 * several chunks. */
static uint64_t bytes_of(uint64_t number)
{
    if (number % (OBJECTS / HUGE) == 7)
        return 200000 + draw() % 900000;
    return draw() % (number % 16 == 0 ? 20000 : 300);
}

/* Allocation classes: aligned, without headers, with legacy headers. */
static unsigned new_class(PMEMobjpool *pool, size_t unit, size_t alignment, enum pobj_header_type header)
{
    struct pobj_alloc_class_desc class = {
        .unit_size = unit, .alignment = alignment, .units_per_block = 100, .header_type = header};
    CHECK(pmemobj_ctl_set(pool, "heap.alloc_class.new.desc", &class) == 0);
    return class.class_id;
}

static void make_of_classes(PMEMobjpool *pool, struct root *root)
{
    unsigned classes[CLASSES] = {
        new_class(pool, 1024, 0, POBJ_HEADER_NONE),
        new_class(pool, 1024, 512, POBJ_HEADER_NONE),
        new_class(pool, 4096, 2048, POBJ_HEADER_COMPACT),
        new_class(pool, 1088, 0, POBJ_HEADER_LEGACY),
    };
    for (int i = 0; i < CLASSES; i++) {
        for (int j = 0; j < 10; j++) {
            PMEMoid oid;
            uint64_t flags = POBJ_CLASS_ID(classes[i]);
            CHECK(pmemobj_xalloc(pool, &oid, 700, 3, flags, NULL, NULL) == 0);
            struct object *object = pmemobj_direct(oid);
            object->next = root->of_class[i];
            object->inside = OID_NULL;
            fill(object, i * 100 + j, 600);
            pmemobj_persist(pool, object, 700);
            root->of_class[i] = oid;
        }
    }
}

static void make(const char *path)
{
    PMEMobjpool *pool = new_pool(path, 64);
    PMEMoid oid = pmemobj_root(pool, sizeof(struct root));
    struct root *root = pmemobj_direct(oid);
    strcpy(root->text, "imported");
    CHECK(pmemobj_mutex_lock(pool, &root->lock) == 0);
    CHECK(pmemobj_mutex_unlock(pool, &root->lock) == 0);
    PMEMoid last = OID_NULL;
    for (uint64_t i = 0; i < OBJECTS; i++) {
        uint64_t bytes = bytes_of(i);
        CHECK(pmemobj_zalloc(pool, &oid, sizeof(struct object) + bytes, i % TYPES) == 0);
        struct object *object = pmemobj_direct(oid);
        object->next = last;
        if (!OID_IS_NULL(last))
            object->inside = (PMEMoid){last.pool_uuid_lo, last.off + offsetof(struct object, bytes)};
        fill(object, i, bytes);
        pmemobj_persist(pool, object, sizeof *object + bytes);
        last = oid;
        /* Holes between the objects. */
        if (i % 3 == 0) {
            CHECK(pmemobj_alloc(pool, &oid, 1 + draw() % 2000, 0, NULL, NULL) == 0);
            if (i == 300)
                root->freed = oid;
            pmemobj_free(&oid);
        }
    }
    root->first = last;
    root->objects = OBJECTS;
    make_of_classes(pool, root);
    /* A transaction with further logs, which are the library's own objects while it runs. */
    TX_BEGIN(pool) {
        for (oid = last; !OID_IS_NULL(oid); oid = ((struct object *)pmemobj_direct(oid))->next)
            pmemobj_tx_add_range(oid, 0, 24);
    } TX_END
    pmemobj_persist(pool, root, sizeof *root);
    pmemobj_close(pool);
}

static void check_contents(const char *path)
{
    PMEMobjpool *pool = pmemobj_open(path, LAYOUT);
    CHECK(pool != NULL);
    CHECK(pmemobj_root_size(pool) == sizeof(struct root));
    struct root *root = pmemobj_direct(pmemobj_root(pool, 0));
    CHECK(strcmp(root->text, "imported") == 0 && root->objects == OBJECTS);
    uint64_t number = OBJECTS;
    PMEMoid oid = root->first, last = OID_NULL;
    while (!OID_IS_NULL(oid)) {
        struct object *object = pmemobj_direct(oid);
        CHECK(object->number == --number && pmemobj_type_num(oid) == number % TYPES);
        CHECK(pmemobj_alloc_usable_size(oid) >= sizeof *object + object->bytes);
        verify(object);
        if (!OID_IS_NULL(object->inside)) {
            struct object *before = pmemobj_direct(object->next);
            CHECK(pmemobj_direct(object->inside) == &before->bytes);
        }
        last = oid;
        oid = object->next;
    }
    CHECK(number == 0);
    size_t alignment[CLASSES] = {16, 512, 2048, 16};
    for (int i = 0; i < CLASSES; i++) {
        number = 10;
        for (oid = root->of_class[i]; !OID_IS_NULL(oid); oid = ((struct object *)pmemobj_direct(oid))->next) {
            struct object *object = pmemobj_direct(oid);
            CHECK(object->number == i * 100 + --number && object->bytes == 600);
            CHECK((uintptr_t)object % alignment[i] == 0);
            verify(object);
        }
        CHECK(number == 0);
    }
    CHECK(count_objects(pool) == OBJECTS + CLASSES * 10);
    /* The last unlocked it; this run of the pool knows nothing of that. */
    CHECK(pmemobj_mutex_trylock(pool, &root->lock) == 0);
    CHECK(pmemobj_mutex_unlock(pool, &root->lock) == 0);
    if (!is_pmdk) {
        /* An object that is gone is of no pool. */
        CHECK(pmemobj_direct(root->freed) == NULL);
        /* The program goes on. */
        TX_BEGIN(pool) {
            pmemobj_tx_add_range_direct(root, sizeof *root);
            root->objects = OBJECTS - 1;
            oid = root->first;
            root->first = ((struct object *)pmemobj_direct(oid))->next;
            pmemobj_tx_free(oid);
        } TX_ONABORT {
            CHECK(!"aborted");
        } TX_END
        CHECK(count_objects(pool) == OBJECTS + CLASSES * 10 - 1);
        pmemobj_free(&last);
    }
    pmemobj_close(pool);
    CHECK(pmemobj_check(path, LAYOUT) == 1);
}

static void die(const char *path)
{
    PMEMobjpool *pool = pmemobj_open(path, LAYOUT);
    CHECK(pool != NULL);
    struct root *root = pmemobj_direct(pmemobj_root(pool, 0));
    TX_BEGIN(pool) {
        pmemobj_tx_add_range_direct(root, sizeof *root);
        root->objects = 1;
        _exit(0);
    } TX_END
}

int main(int count, char **arguments)
{
    CHECK(count == 4);
    check_begin(3, arguments);
    const char *verb = arguments[3];
    if (strcmp(verb, "make") == 0)
        make(arguments[1]);
    else if (strcmp(verb, "die") == 0)
        die(arguments[1]);
    else
        check_contents(arguments[1]);
    return 0;
}
