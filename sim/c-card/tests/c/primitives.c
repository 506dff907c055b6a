/* The primitives of the paper's Table 2, cut or killed somewhere: see cut.h. The way is "card", or
 * "cpu" for the processor. */
#include "cut.h"

#define WORDS 512
#define PAGE 4096

struct root {
    uint64_t checkpoint[2 * WORDS];
    uint64_t undo[WORDS];
    uint64_t redo[WORDS];
    uint64_t words[8];
    uint64_t shadow; /* offset of a page */
    uint64_t unused[WORDS - 9];
};

struct model {
    uint64_t checkpoint[2 * WORDS], undo[WORDS], redo[WORDS], words[8], shadow[WORDS];
};

enum kind { UNDO, UNDO_ABORTED, REDO, REDO_ABORTED, CHECKPOINT, CHECKPOINT_ABORTED, SHADOW, WORD, KINDS };

struct operation {
    enum kind kind;
    unsigned from, to, count;
    uint64_t number;
};

static uint32_t pool;
static struct root *root;

#define DONE(call) CHECK((call) == 0)

static struct operation operation(uint64_t seed, uint64_t index)
{
    struct random random = draws(seed, index);
    struct operation op;
    op.kind = (enum kind)draw(&random, KINDS);
    op.from = (unsigned)draw(&random, WORDS / 2);
    op.to = WORDS / 2 + (unsigned)draw(&random, WORDS / 4);
    op.count = 1 + (unsigned)draw(&random, draw(&random, 4) == 0 ? WORDS / 4 : 8);
    op.number = index + 1;
    return op;
}

/* What an operation does to words: two runs of them change. */
static void change(uint64_t *words, const struct operation *op)
{
    for (unsigned i = 0; i < op->count; i++) {
        words[op->from + i] = op->number + i;
        words[op->to + i] ^= op->number << 32;
    }
}

/* To two pages: a run in each. */
static void change_pages(uint64_t *words, const struct operation *op)
{
    for (unsigned i = 0; i < op->count; i++) {
        words[op->from + i] = op->number + i;
        words[WORDS + op->from + i] ^= op->number << 32;
    }
}

static void advance(struct model *model, uint64_t seed, uint64_t index)
{
    struct operation op = operation(seed, index);
    switch (op.kind) {
    case UNDO: change(model->undo, &op); break;
    case REDO: change(model->redo, &op); break;
    case CHECKPOINT: change_pages(model->checkpoint, &op); break;
    case SHADOW: change(model->shadow, &op); break;
    case WORD: model->words[op.from % 8] = op.number; break;
    case UNDO_ABORTED:
    case REDO_ABORTED:
    case CHECKPOINT_ABORTED:
    case KINDS: break;
    }
}

static void redo(const struct operation *op, int commit)
{
    uint64_t next[WORDS];
    uint64_t bytes = op->count * sizeof *next;
    memcpy(next, root->redo, sizeof next);
    change(next, op);
    void *first = NearPM_redolog_create(pool, 1, &root->redo[op->from], &next[op->from], bytes);
    CHECK(first != NULL);
    void *second = NearPM_redolog_create(pool, 1, &root->redo[op->to], &next[op->to], bytes);
    CHECK(second != NULL);
    if (!commit) {
        DONE(NearPM_abort_log(pool, 1));
        return;
    }
    DONE(NearPM_applylog(pool, 1, first, bytes));
    DONE(NearPM_applylog(pool, 1, second, bytes));
    DONE(NearPM_commit_log(pool, 1));
}

static void perform(const struct model *model, uint64_t seed, uint64_t index)
{
    struct operation op = operation(seed, index);
    uint64_t bytes = op.count * sizeof(uint64_t), *copy;
    (void)model;
    switch (op.kind) {
    case UNDO:
    case UNDO_ABORTED:
        DONE(NearPM_undolog_create(pool, 0, &root->undo[op.from], bytes));
        DONE(NearPM_undolog_create(pool, 0, &root->undo[op.to], bytes));
        change(root->undo, &op);
        DONE(op.kind == UNDO ? NearPM_commit_log(pool, 0) : NearPM_abort_log(pool, 0));
        break;
    case REDO:
    case REDO_ABORTED: redo(&op, op.kind == REDO); break;
    case CHECKPOINT:
    case CHECKPOINT_ABORTED:
        DONE(NearPM_ckpoint_create(pool, 2, &root->checkpoint[op.from], bytes));
        DONE(NearPM_ckpoint_create(pool, 2, &root->checkpoint[WORDS + op.from], bytes));
        change_pages(root->checkpoint, &op);
        DONE(op.kind == CHECKPOINT ? NearPM_commit_log(pool, 2) : NearPM_abort_log(pool, 2));
        break;
    case SHADOW:
        copy = (uint64_t *)NearPM_shadowcpy(pool, 0, NearPM_direct(pool, root->shadow), PAGE);
        CHECK(copy != NULL);
        change(copy, &op);
        DONE(NearPM_persist(pool, copy, PAGE));
        DONE(NearPM_switch_page(pool, &root->shadow, copy));
        break;
    case WORD:
        root->words[op.from % 8] = op.number;
        DONE(NearPM_persist(pool, &root->words[op.from % 8], sizeof(uint64_t)));
        break;
    case KINDS: break;
    }
}

static const char *difference(const struct model *model)
{
    const uint64_t *shadow = (const uint64_t *)NearPM_direct(pool, root->shadow);
    CHECK(shadow != NULL);
    if (memcmp(root->undo, model->undo, sizeof model->undo) != 0)
        return "undo log";
    if (memcmp(root->redo, model->redo, sizeof model->redo) != 0)
        return "redo log";
    if (memcmp(root->checkpoint, model->checkpoint, sizeof model->checkpoint) != 0)
        return "checkpoint";
    if (memcmp(shadow, model->shadow, sizeof model->shadow) != 0)
        return "shadow page";
    return memcmp(root->words, model->words, sizeof model->words) == 0 ? NULL : "persisted words";
}

static uint64_t commands(void)
{
    struct nearpm_statistics statistics;
    DONE(NearPM_get_statistics(pool, &statistics, sizeof statistics));
    return statistics.commands;
}

int main(int count, char **arguments)
{
    static struct model model;
    CHECK(count >= 4);
    DONE(NearPM_init_device(strcmp(arguments[2], "cpu") == 0 ? "cpu" : NULL));
    if (strcmp(arguments[3], "prepare") == 0) {
        DONE(NearPM_pool_create(arguments[1], 8 << 20, &pool));
        root = (struct root *)NearPM_alloc(pool, sizeof *root);
        void *page = NearPM_alloc(pool, PAGE);
        CHECK(root != NULL && page != NULL);
        root->shadow = NearPM_offset(pool, page);
        DONE(NearPM_persist(pool, &root->shadow, sizeof root->shadow));
        DONE(NearPM_set_root(pool, root));
    } else {
        DONE(NearPM_pool_open(arguments[1], &pool));
        root = (struct root *)NearPM_root(pool);
        CHECK(root != NULL);
    }
    run(&model, count, arguments);
    DONE(NearPM_pool_close(pool));
    return 0;
}
