/* Transactions, objects and persists on a direct pool, cut or killed somewhere: see cut.h. The way
 * is a mode or a mechanism. */
#include "cut.h"

#define ACCOUNTS 16
#define SLOTS 6
#define LARGEST 5000

struct object {
    uint64_t number, bytes;
    unsigned char data[];
};

struct root {
    int64_t accounts[ACCOUNTS];
    uint64_t words[ACCOUNTS];
    uint64_t slots[SLOTS];
};

struct model {
    int64_t accounts[ACCOUNTS];
    uint64_t words[ACCOUNTS];
    uint64_t numbers[SLOTS]; /* 0: no object */
    uint64_t bytes[SLOTS];
};

enum kind { TRANSFER, REPLACE, ABORTED, TOGGLE, WORD, KINDS };

struct operation {
    enum kind kind;
    unsigned from, to, slot;
    uint64_t number, bytes;
};

static struct nearpm_pool *pool;
static struct root *root;

static struct operation operation(uint64_t seed, uint64_t index)
{
    struct random random = draws(seed, index);
    struct operation op;
    op.kind = (enum kind)draw(&random, KINDS);
    op.from = (unsigned)draw(&random, ACCOUNTS);
    op.to = (unsigned)draw(&random, ACCOUNTS);
    op.slot = (unsigned)draw(&random, SLOTS);
    op.number = index + 1;
    op.bytes = draw(&random, 8) == 0 ? draw(&random, LARGEST) : draw(&random, 100);
    return op;
}

static void advance(struct model *model, uint64_t seed, uint64_t index)
{
    struct operation op = operation(seed, index);
    switch (op.kind) {
    case TRANSFER:
        model->accounts[op.from] -= 7;
        model->accounts[op.to] += 7;
        break;
    case REPLACE:
        model->numbers[op.slot] = op.number;
        model->bytes[op.slot] = op.bytes;
        break;
    case TOGGLE:
        model->numbers[op.slot] = model->numbers[op.slot] ? 0 : op.number;
        model->bytes[op.slot] = op.bytes;
        break;
    case WORD: model->words[op.from] = op.number; break;
    case ABORTED:
    case KINDS: break;
    }
}

static void fill(struct object *object, const struct operation *op)
{
    object->number = op->number;
    object->bytes = op->bytes;
    for (uint64_t i = 0; i < op->bytes; i++)
        object->data[i] = (unsigned char)(op->number + i);
}

static void replace(const struct operation *op, int commit)
{
    struct nearpm_tx *tx;
    void *object;
    OK(nearpm_tx_begin(pool, &tx));
    OK(nearpm_tx_add(tx, &root->slots[op->slot], sizeof root->slots[0]));
    if (root->slots[op->slot])
        OK(nearpm_tx_free(tx, nearpm_direct(pool, root->slots[op->slot])));
    OK(nearpm_tx_alloc(tx, sizeof(struct object) + op->bytes, &object));
    fill((struct object *)object, op);
    root->slots[op->slot] = nearpm_offset(pool, object);
    OK(commit ? nearpm_tx_commit(tx) : nearpm_tx_abort(tx));
}

static void perform(const struct model *model, uint64_t seed, uint64_t index)
{
    struct operation op = operation(seed, index);
    struct nearpm_tx *tx;
    union {
        struct object object;
        unsigned char bytes[sizeof(struct object) + LARGEST];
    } contents;
    switch (op.kind) {
    case TRANSFER: {
        const struct nearpm_range ranges[] = {{&root->accounts[op.from], 8}, {&root->accounts[op.to], 8}};
        OK(nearpm_tx_begin(pool, &tx));
        OK(nearpm_tx_add_all(tx, ranges, 2));
        root->accounts[op.from] -= 7;
        root->accounts[op.to] += 7;
        OK(nearpm_tx_commit(tx));
        break;
    }
    case REPLACE:
    case ABORTED: replace(&op, op.kind == REPLACE); break;
    case TOGGLE:
        if (model->numbers[op.slot]) {
            OK(nearpm_free(pool, &root->slots[op.slot]));
        } else {
            fill(&contents.object, &op);
            OK(nearpm_alloc(pool, sizeof(struct object) + op.bytes, &contents, &root->slots[op.slot]));
        }
        break;
    case WORD:
        root->words[op.from] = op.number;
        OK(nearpm_persist(pool, &root->words[op.from], 8));
        break;
    case KINDS: break;
    }
}

static const char *difference(const struct model *model)
{
    unsigned objects = 1, found = 0;
    void *object = NULL;
    if (memcmp(root->accounts, model->accounts, sizeof root->accounts) != 0)
        return "accounts";
    if (memcmp(root->words, model->words, sizeof root->words) != 0)
        return "words";
    for (unsigned i = 0; i < SLOTS; i++) {
        const struct object *slot = (const struct object *)nearpm_direct(pool, root->slots[i]);
        if ((slot != NULL) != (model->numbers[i] != 0))
            return "which slots are full";
        if (slot == NULL)
            continue;
        objects++;
        if (slot->number != model->numbers[i] || slot->bytes != model->bytes[i])
            return "head of an object";
        for (uint64_t k = 0; k < slot->bytes; k++)
            if (slot->data[k] != (unsigned char)(slot->number + k))
                return "bytes of an object";
    }
    do {
        OK(nearpm_next(pool, object, &object));
        found += object != NULL;
    } while (object != NULL);
    return found == objects ? NULL : "number of objects";
}

static uint64_t commands(void)
{
    struct nearpm_statistics statistics;
    OK(nearpm_get_statistics(pool, &statistics, sizeof statistics));
    return statistics.commands;
}

int main(int count, char **arguments)
{
    static struct model model;
    struct nearpm_options options = options_of(count, arguments);
    if (strcmp(arguments[3], "prepare") == 0)
        OK(nearpm_create(arguments[1], 8 << 20, &options, &pool));
    else
        OK(nearpm_open(arguments[1], &options, &pool));
    OK(nearpm_root(pool, sizeof *root, (void **)&root));
    run(&model, count, arguments);
    OK(nearpm_close(pool));
    return 0;
}
