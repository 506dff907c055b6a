/* Lists that change atomically, against an array that says what they should hold. */
#include "check.h"

POBJ_LAYOUT_BEGIN(lists);
POBJ_LAYOUT_ROOT(lists, struct root);
POBJ_LAYOUT_TOID(lists, struct item);
POBJ_LAYOUT_END(lists);

struct item {
    uint64_t number;
    POBJ_LIST_ENTRY(struct item) one;
    POBJ_LIST_ENTRY(struct item) other;
};

POBJ_LIST_HEAD(items, struct item);

struct root {
    struct items first, second;
};

static PMEMobjpool *pool;
static struct root *root;

static int number(PMEMobjpool *of, void *object, void *argument)
{
    struct item *item = object;
    item->number = *(uint64_t *)argument;
    pmemobj_persist(of, &item->number, sizeof(item->number));
    return item->number == 0;
}

/* Follows a list both ways. */
static void expect(struct items *list, const char *numbers)
{
    TOID(struct item) item;
    const char *at = numbers;
    POBJ_LIST_FOREACH(item, list, one) {
        CHECK(*at != 0 && D_RO(item)->number == (uint64_t)(*at - '0'));
        at++;
    }
    CHECK(*at == 0);
    POBJ_LIST_FOREACH_REVERSE(item, list, one) {
        CHECK(at > numbers && D_RO(item)->number == (uint64_t)(*--at - '0'));
    }
    CHECK(at == numbers && POBJ_LIST_EMPTY(list) == (*numbers == 0));
}

static TOID(struct item) find(struct items *list, uint64_t wanted)
{
    TOID(struct item) item;
    POBJ_LIST_FOREACH(item, list, one) {
        if (D_RO(item)->number == wanted)
            return item;
    }
    CHECK(0);
    return item;
}

static void insert_new(void)
{
    struct items *list = &root->first;
    size_t size = sizeof(struct item);
    uint64_t value = 3;
    expect(list, "");
    POBJ_LIST_INSERT_NEW_HEAD(pool, list, one, size, number, &value);
    expect(list, "3");
    value = 1;
    POBJ_LIST_INSERT_NEW_HEAD(pool, list, one, size, number, &value);
    value = 5;
    POBJ_LIST_INSERT_NEW_TAIL(pool, list, one, size, number, &value);
    expect(list, "135");
    value = 2;
    POBJ_LIST_INSERT_NEW_AFTER(pool, list, find(list, 1), one, size, number, &value);
    value = 4;
    POBJ_LIST_INSERT_NEW_BEFORE(pool, list, find(list, 5), one, size, number, &value);
    expect(list, "12345");
    value = 0;
    errno = 0;
    CHECK(OID_IS_NULL(POBJ_LIST_INSERT_NEW_BEFORE(pool, list, find(list, 1), one, size, number, &value)));
    CHECK(errno == ECANCELED);
    value = 6;
    POBJ_LIST_INSERT_NEW_BEFORE(pool, list, find(list, 1), one, size, number, &value);
    POBJ_LIST_REMOVE_FREE(pool, list, find(list, 6), one);
    value = 6;
    POBJ_LIST_INSERT_NEW_AFTER(pool, list, find(list, 5), one, size, number, &value);
    expect(list, "123456");
    CHECK(count_objects(pool) == 6);
}

static void remove_and_insert(void)
{
    struct items *list = &root->first;
    TOID(struct item) item = find(list, 1);
    CHECK(POBJ_LIST_REMOVE(pool, list, item, one) == 0);
    expect(list, "23456");
    CHECK(POBJ_LIST_INSERT_TAIL(pool, list, item, one) == 0);
    expect(list, "234561");
    CHECK(POBJ_LIST_REMOVE(pool, list, item, one) == 0 && POBJ_LIST_INSERT_HEAD(pool, list, item, one) == 0);
    expect(list, "123456");
    CHECK(POBJ_LIST_REMOVE(pool, list, item, one) == 0);
    CHECK(POBJ_LIST_INSERT_AFTER(pool, list, find(list, 4), item, one) == 0);
    expect(list, "234156");
    CHECK(POBJ_LIST_REMOVE(pool, list, item, one) == 0);
    CHECK(POBJ_LIST_INSERT_BEFORE(pool, list, find(list, 2), item, one) == 0);
    expect(list, "123456");
    errno = 0;
    /* PMDK 1.12 crashes here. */
    if (!is_pmdk)
        CHECK(pmemobj_list_insert(pool, (size_t)1 << 40, list, OID_NULL, 0, item.oid) == -1 && errno == EINVAL);
}

static void move(void)
{
    struct items *from = &root->first, *to = &root->second;
    CHECK(POBJ_LIST_MOVE_ELEMENT_TAIL(pool, from, to, find(from, 3), one, one) == 0);
    expect(from, "12456");
    expect(to, "3");
    CHECK(POBJ_LIST_MOVE_ELEMENT_HEAD(pool, from, to, find(from, 1), one, one) == 0);
    CHECK(POBJ_LIST_MOVE_ELEMENT_TAIL(pool, from, to, find(from, 6), one, one) == 0);
    expect(from, "245");
    expect(to, "136");
    CHECK(POBJ_LIST_MOVE_ELEMENT_BEFORE(pool, from, to, find(to, 3), find(from, 2), one, one) == 0);
    CHECK(POBJ_LIST_MOVE_ELEMENT_AFTER(pool, from, to, find(to, 3), find(from, 4), one, one) == 0);
    expect(from, "5");
    expect(to, "12346");
    CHECK(POBJ_LIST_MOVE_ELEMENT_BEFORE(pool, from, to, find(to, 6), find(from, 5), one, one) == 0);
    expect(from, "");
    expect(to, "123456");
}

/* Every way of moving inside of one list, against an array. */
static void move_inside(void)
{
    struct items *list = &root->second;
    char order[] = "123456";
    for (unsigned step = 0; step < 2000; step++) {
        unsigned random = step * 2654435761u >> 8;
        char moved = order[random % 6], beside = order[random / 6 % 6];
        int before = random / 36 % 2, to_end = random / 72 % 4 == 0;
        if (moved == beside && !to_end)
            continue;
        char left[7] = "";
        unsigned length = 0;
        for (unsigned i = 0; i < 6; i++)
            if (order[i] != moved)
                left[length++] = order[i];
        unsigned at = before ? 0 : 5;
        if (!to_end)
            at = (unsigned)(strchr(left, beside) - left) + !before;
        memmove(left + at + 1, left + at, 5 - at);
        left[at] = moved;
        PMEMoid item = find(list, (uint64_t)(moved - '0')).oid;
        PMEMoid target = to_end ? OID_NULL : find(list, (uint64_t)(beside - '0')).oid;
        size_t entry = offsetof(struct item, one);
        CHECK(pmemobj_list_move(pool, entry, list, entry, list, target, before, item) == 0);
        memcpy(order, left, 6);
        expect(list, order);
    }
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    pool = new_pool(arguments[1], 16);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    insert_new();
    remove_and_insert();
    move();
    pool = reopen(pool, arguments[1]);
    root = pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
    expect(&root->second, "123456");
    move_inside();
    pmemobj_close(pool);
    return 0;
}
