/*
 * A sequence of operations whose power is cut somewhere: transactions, allocation outside of them,
 * reserve and publish, lists, persists. Three processes:
 *
 *     power_cut POOL LIBRARY prepare
 *     power_cut POOL LIBRARY work SEED OPERATIONS     prints a dot when an operation has returned
 *     power_cut POOL LIBRARY verify SEED DOTS
 *
 * Each operation is atomic. What is found must be what a model has after as many operations as were
 * acknowledged, or one more. With NEARPM_DURABILITY=asynchronous it may be what the model has after
 * fewer, down to the last operation that is durable when it returns whatever the environment says:
 * those outside of transactions. How many are missing is printed.
 */
#include "check.h"

#include <unistd.h>

#define ACCOUNTS 8
#define SLOTS 8
#define LISTED 8
#define LARGEST 3000

struct item;
POBJ_LAYOUT_BEGIN(cut);
POBJ_LAYOUT_TOID(cut, struct item);
POBJ_LAYOUT_END(cut);

struct item {
    uint64_t number;
    POBJ_LIST_ENTRY(struct item) entry;
};

POBJ_LIST_HEAD(items, struct item);

struct object {
    uint64_t number;
    unsigned char data[];
};

struct root {
    int64_t accounts[ACCOUNTS];
    uint64_t words[ACCOUNTS];
    PMEMoid slots[SLOTS];
    uint64_t counter;
    struct items lists[2];
};

struct model {
    int64_t accounts[ACCOUNTS];
    uint64_t words[ACCOUNTS];
    uint64_t numbers[SLOTS]; /* 0: no object */
    size_t bytes[SLOTS];
    uint64_t counter;
    uint64_t listed[2][LISTED];
    unsigned length[2];
};

enum kind { TRANSFER, REPLACE, ABORTED, TOGGLE, PUBLISH, LIST_TOGGLE, LIST_MOVE, WORD, REALLOC, DEFRAG, KINDS };

struct operation {
    enum kind kind;
    uint64_t number;
    unsigned slot, other, list, to, at;
    int head;
    size_t bytes;
};

static PMEMobjpool *pool;
static struct root *root;
static uint64_t seed;

static struct operation operation(uint64_t index)
{
    uint64_t x = seed * 0x9E3779B97F4A7C15u + index * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 31) * 0x94D049BB133111EBu;
    x ^= x >> 29;
    uint64_t y = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u >> 8;
    return (struct operation){
        .kind = (enum kind)(x % KINDS), .number = index + 1, .slot = x / 16 % SLOTS, .other = x / 256 % ACCOUNTS,
        .list = x / 4096 % 2, .to = x / 8192 % 2, .at = x / 16384 % LISTED, .head = x / 262144 % 2,
        .bytes = y % 8 == 0 ? y / 8 % LARGEST : y / 8 % 100,
    };
}

/* What an operation does to the model. */
static void remove_at(struct model *model, unsigned list, unsigned at)
{
    model->length[list]--;
    memmove(&model->listed[list][at], &model->listed[list][at + 1], (model->length[list] - at) * sizeof(uint64_t));
}

static void insert_end(struct model *model, unsigned list, int head, uint64_t number)
{
    if (head)
        memmove(&model->listed[list][1], &model->listed[list][0], model->length[list] * sizeof(uint64_t));
    model->listed[list][head ? 0 : model->length[list]] = number;
    model->length[list]++;
}

static int fills_again(const struct model *model, const struct operation *op)
{
    return model->numbers[op->slot] == 0 || op->number % 2 == 1;
}

static int grows(const struct model *model, const struct operation *op)
{
    return model->length[op->list] < LISTED / 2 + op->number % (LISTED / 2);
}

static int can_move(const struct model *model, const struct operation *op)
{
    return op->at < model->length[op->list] && (op->list == op->to || model->length[op->to] < LISTED);
}

static void fill_slot(struct model *model, const struct operation *op, int full)
{
    model->numbers[op->slot] = full ? op->number : 0;
    model->bytes[op->slot] = op->bytes;
}

static void advance(struct model *model, const struct operation *op)
{
    uint64_t number;
    switch (op->kind) {
    case TRANSFER:
        model->accounts[op->slot] -= 7;
        model->accounts[op->other] += 7;
        break;
    case REPLACE: fill_slot(model, op, fills_again(model, op)); break;
    case TOGGLE: fill_slot(model, op, model->numbers[op->slot] == 0); break;
    case PUBLISH:
        fill_slot(model, op, 1);
        model->counter++;
        break;
    case LIST_TOGGLE:
        if (grows(model, op))
            insert_end(model, op->list, op->head, op->number);
        else
            remove_at(model, op->list, op->head ? 0 : model->length[op->list] - 1);
        break;
    case LIST_MOVE:
        if (can_move(model, op)) {
            number = model->listed[op->list][op->at];
            remove_at(model, op->list, op->at);
            insert_end(model, op->to, op->head, number);
        }
        break;
    case WORD: model->words[op->slot] = op->number; break;
    case REALLOC:
        if (model->numbers[op->slot] != 0 && op->bytes < model->bytes[op->slot])
            model->bytes[op->slot] = op->bytes;
        break;
    case ABORTED:
    case DEFRAG:
    case KINDS: break;
    }
}

/* What it does to the pool. */
static int construct(PMEMobjpool *of, void *at, void *argument)
{
    const struct operation *op = argument;
    struct object *object = at;
    object->number = op->number;
    for (size_t i = 0; i < op->bytes; i++)
        object->data[i] = (unsigned char)(op->number + i);
    pmemobj_persist(of, object, sizeof(*object) + op->bytes);
    return 0;
}

static int construct_item(PMEMobjpool *of, void *at, void *argument)
{
    struct item *item = at;
    item->number = ((const struct operation *)argument)->number;
    pmemobj_persist(of, &item->number, sizeof(item->number));
    return 0;
}

static void transfer(struct operation *op)
{
    TX_BEGIN(pool) {
        TX_ADD_DIRECT(&root->accounts[op->slot]);
        root->accounts[op->slot] -= 7;
        TX_BEGIN(pool) {
            TX_ADD_DIRECT(&root->accounts[op->other]);
            root->accounts[op->other] += 7;
        } TX_END
    } TX_ONABORT {
        CHECK(0);
    } TX_END
}

static void replace(const struct model *model, struct operation *op, int abort)
{
    PMEMoid *slot = &root->slots[op->slot];
    TX_BEGIN(pool) {
        TX_ADD_DIRECT(slot);
        pmemobj_tx_free(*slot);
        *slot = OID_NULL;
        if (fills_again(model, op)) {
            *slot = pmemobj_tx_alloc(sizeof(struct object) + op->bytes, 1);
            construct(pool, pmemobj_direct(*slot), op);
        }
        if (abort)
            pmemobj_tx_abort(EPERM);
    } TX_ONABORT {
        CHECK(abort);
    } TX_END
}

static void publish(struct operation *op)
{
    struct pobj_action actions[5];
    PMEMoid *slot = &root->slots[op->slot];
    unsigned count = 4;
    PMEMoid oid = pmemobj_reserve(pool, &actions[0], sizeof(struct object) + op->bytes, 1);
    CHECK(!OID_IS_NULL(oid));
    construct(pool, pmemobj_direct(oid), op);
    pmemobj_set_value(pool, &actions[1], &slot->pool_uuid_lo, oid.pool_uuid_lo);
    pmemobj_set_value(pool, &actions[2], &slot->off, oid.off);
    pmemobj_set_value(pool, &actions[3], &root->counter, root->counter + 1);
    if (!OID_IS_NULL(*slot))
        pmemobj_defer_free(pool, *slot, &actions[count++]);
    CHECK(pmemobj_publish(pool, actions, count) == 0);
}

/* Each object moves by itself, and what the slots hold stays the same. */
static void defrag(void)
{
    PMEMoid *names[SLOTS];
    for (unsigned i = 0; i < SLOTS; i++)
        names[i] = &root->slots[i];
    CHECK(pmemobj_defrag(pool, names, SLOTS, NULL) == 0);
}

static PMEMoid item_at(struct items *list, unsigned at)
{
    TOID(struct item) item = POBJ_LIST_FIRST(list);
    while (at-- > 0)
        item = POBJ_LIST_NEXT(item, entry);
    return item.oid;
}

static void list_toggle(const struct model *model, struct operation *op)
{
    struct items *list = &root->lists[op->list];
    size_t entry = offsetof(struct item, entry);
    if (grows(model, op)) {
        CHECK(!OID_IS_NULL(pmemobj_list_insert_new(pool, entry, list, OID_NULL, op->head, sizeof(struct item), 2,
                                                   construct_item, op)));
    } else {
        PMEMoid oid = item_at(list, op->head ? 0 : model->length[op->list] - 1);
        CHECK(pmemobj_list_remove(pool, entry, list, oid, 1) == 0);
    }
}

static void perform(const struct model *model, struct operation *op)
{
    PMEMoid *slot = &root->slots[op->slot];
    size_t entry = offsetof(struct item, entry), bytes = sizeof(struct object) + op->bytes;
    switch (op->kind) {
    case TRANSFER: transfer(op); break;
    case REPLACE: replace(model, op, 0); break;
    case ABORTED: replace(model, op, 1); break;
    case TOGGLE:
        if (OID_IS_NULL(*slot))
            CHECK(pmemobj_alloc(pool, slot, bytes, 1, construct, op) == 0);
        else
            pmemobj_free(slot);
        break;
    case PUBLISH: publish(op); break;
    case DEFRAG: defrag(); break;
    case LIST_TOGGLE: list_toggle(model, op); break;
    case LIST_MOVE:
        if (can_move(model, op))
            CHECK(pmemobj_list_move(pool, entry, &root->lists[op->list], entry, &root->lists[op->to], OID_NULL, op->head,
                                    item_at(&root->lists[op->list], op->at)) == 0);
        break;
    case WORD:
        root->words[op->slot] = op->number;
        pmemobj_persist(pool, &root->words[op->slot], sizeof(uint64_t));
        break;
    case REALLOC:
        if (!OID_IS_NULL(*slot))
            CHECK(pmemobj_realloc(pool, slot, bytes, 1) == 0);
        break;
    case KINDS: break;
    }
}

/* Whether the pool holds what the model says; the first difference if not. */
static const char *difference(const struct model *model)
{
    if (memcmp(root->accounts, model->accounts, sizeof(model->accounts)) != 0)
        return "accounts";
    if (memcmp(root->words, model->words, sizeof(model->words)) != 0 || root->counter != model->counter)
        return "words";
    unsigned objects = 0;
    for (unsigned i = 0; i < SLOTS; i++) {
        const struct object *object = pmemobj_direct(root->slots[i]);
        if ((object == NULL) != (model->numbers[i] == 0))
            return "which slots are full";
        if (object == NULL)
            continue;
        objects++;
        if (object->number != model->numbers[i])
            return "number of an object";
        if (pmemobj_type_num(root->slots[i]) != 1 ||
            pmemobj_alloc_usable_size(root->slots[i]) < sizeof(*object) + model->bytes[i])
            return "header of an object";
        for (size_t k = 0; k < model->bytes[i]; k++)
            if (object->data[k] != (unsigned char)(object->number + k))
                return "bytes of an object";
    }
    for (unsigned list = 0; list < 2; list++) {
        unsigned at = 0;
        TOID(struct item) item;
        POBJ_LIST_FOREACH(item, &root->lists[list], entry) {
            if (at >= model->length[list] || D_RO(item)->number != model->listed[list][at++])
                return "list";
        }
        if (at != model->length[list])
            return "length of a list";
        POBJ_LIST_FOREACH_REVERSE(item, &root->lists[list], entry) {
            if (at == 0 || D_RO(item)->number != model->listed[list][--at])
                return "list, backwards";
        }
        objects += model->length[list];
    }
    return count_objects(pool) == objects ? NULL : "number of objects";
}

static void work(uint64_t operations)
{
    struct model model = {.counter = 0};
    for (uint64_t index = 0; index < operations; index++) {
        struct operation op = operation(index);
        perform(&model, &op);
        advance(&model, &op);
        CHECK(write(STDOUT_FILENO, ".", 1) == 1);
    }
}

/* Whether an operation is durable when it returns, and with it all before it, also where
 * transactions are not. */
static int is_durable_by_itself(const struct model *model, const struct operation *op)
{
    switch (op->kind) {
    case TOGGLE:
    case PUBLISH:
    case LIST_TOGGLE:
    case WORD: return 1;
    case LIST_MOVE: return can_move(model, op);
    case REALLOC: return model->numbers[op->slot] != 0;
    default: return 0;
    }
}

/* The model after so many operations; the number of those that may not be missing, if asked for. */
static struct model model_after(uint64_t operations, uint64_t *durable)
{
    struct model model = {.counter = 0};
    for (uint64_t index = 0; index < operations; index++) {
        struct operation op = operation(index);
        if (durable != NULL && is_durable_by_itself(&model, &op))
            *durable = index + 1;
        advance(&model, &op);
    }
    return model;
}

static void verify(uint64_t acknowledged)
{
    const char *durability = getenv("NEARPM_DURABILITY");
    uint64_t least = 0;
    struct model model = model_after(acknowledged, &least);
    const char *before = difference(&model);
    if (durability != NULL && strcmp(durability, "asynchronous") == 0) {
        uint64_t found = acknowledged;
        struct model fewer = model, more = model;
        struct operation next = operation(acknowledged);
        advance(&more, &next);
        if (difference(&more) == NULL)
            fewer = more;
        while (difference(&fewer) != NULL && found > least)
            fewer = model_after(--found, NULL);
        if (difference(&fewer) == NULL) {
            printf("lost %llu\n", (unsigned long long)(acknowledged - found));
            model = fewer;
            before = NULL;
        }
    }
    if (before != NULL) {
        struct operation op = operation(acknowledged);
        advance(&model, &op);
        const char *after = difference(&model);
        if (after != NULL) {
            fprintf(stderr, "after %llu operations: %s; with the next one (kind %d): %s\n",
                    (unsigned long long)acknowledged, before, op.kind, after);
            exit(1);
        }
    }
    /* New objects lie apart from those that there are. */
    PMEMoid oids[50];
    for (unsigned i = 0; i < 50; i++) {
        CHECK(pmemobj_alloc(pool, &oids[i], 1 + i * 53 % LARGEST, 3, NULL, NULL) == 0);
        memset(pmemobj_direct(oids[i]), 0xff, pmemobj_alloc_usable_size(oids[i]));
    }
    for (unsigned i = 0; i < 50; i++)
        pmemobj_free(&oids[i]);
    CHECK(difference(&model) == NULL);
}

int main(int count, char **arguments)
{
    root = open_for_cuts(count, arguments, sizeof(struct root), &pool);
    if (count == 6) {
        seed = strtoull(arguments[4], NULL, 10);
        uint64_t operations = strtoull(arguments[5], NULL, 10);
        if (strcmp(arguments[3], "work") == 0)
            work(operations);
        else
            verify(operations);
    }
    pmemobj_close(pool);
    return 0;
}
