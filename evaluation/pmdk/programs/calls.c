/*
 * Single calls of the interface, one kind a run: `--variant` says which, of `--bytes` where that
 * means something. What a call has left is checked twice: in the pool as it is, and in the pool
 * that was closed and opened again.
 *
 * With `--steps` many kinds, one after the other in one pool, as a program that does all of them
 * meets them. Each prints its line, and is checked in the pool as it is; behind it the pool is as
 * it was, but for the objects that the last ones visit, close and open.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"

#define TYPE_OBJECT 1
/* Places that operations take in turn, and what they have of a session's pool at most. */
#define PLACES 100
#define SESSION_PLACES 1000
#define SESSION_PLACES_BYTES ((size_t)512 << 10)
#define LINE 64
/* Of an object. */
#define HEADER 16
/* What copies are made of in turn. */
#define SOURCES 4
/* Lines that are flushed before one drain. */
#define FLUSHED 8
/* Words that are set by one publication. */
#define WORDS 4
/* Objects that live at the same time when what they hold is checked. */
#define LIVE 16
/* Objects that are in the list when it is checked. */
#define LISTED 3

POBJ_LAYOUT_BEGIN(calls);
POBJ_LAYOUT_TOID(calls, struct element);
POBJ_LAYOUT_END(calls);

struct element {
    uint64_t value;
    POBJ_LIST_ENTRY(struct element) links;
};

/* The root object; the places follow at the next line. */
struct root {
    PMEMoid object;
    PMEMmutex mutex;
    POBJ_LIST_HEAD(elements, struct element) list;
    uint64_t words[WORDS];
    uint64_t counter;
};

struct calls {
    const struct options *options;
    const struct variant *variant;
    PMEMobjpool *pool;
    struct root *root;
    char *places;
    uint64_t count; /* of places */
    char *source;
    PMEMoid first;
};

struct variant {
    const char *name;
    /* The operations, between the marks of the clock where it does not set them itself. */
    void (*work)(struct calls *);
    /* Fails unless everything is as the operations left it. */
    void (*check)(struct calls *);
    bool own_marks;
    /* What it leaves is there for the next step. */
    bool stays;
};

static unsigned char filling(uint64_t op)
{
    return (unsigned char)(op % 251 + 1);
}

static void wants(const char *what, const void *found, int byte, size_t bytes)
{
    for (size_t at = 0; at < bytes; at++)
        if (((const unsigned char *)found)[at] != (unsigned char)byte)
            fail("%s: byte %zu is %d, not %d", what, at, ((const unsigned char *)found)[at], byte);
}

static char *place(const struct calls *calls, uint64_t op)
{
    return calls->places + op % calls->count * calls->options->bytes;
}

/* The last operation that was at a place; UINT64_MAX for none. */
static uint64_t last_at(const struct calls *calls, uint64_t index)
{
    uint64_t ops = calls->options->ops;
    return index >= ops ? UINT64_MAX : index + (ops - 1 - index) / calls->count * calls->count;
}

static void check_places(const struct calls *calls, unsigned char (*wanted)(uint64_t))
{
    for (uint64_t index = 0; index < calls->count; index++) {
        uint64_t op = last_at(calls, index);
        wants("a place", place(calls, index), op == UINT64_MAX ? 0 : wanted(op), calls->options->bytes);
    }
}

static uint64_t visit(struct calls *calls)
{
    uint64_t count = 0;
    PMEMoid object;
    POBJ_FOREACH (calls->pool, object)
        count++;
    return count;
}

/* What was freed is gone, and nothing else. */
static void check_objects(struct calls *calls, uint64_t wanted)
{
    uint64_t count = visit(calls);
    if (count != wanted)
        fail("there are %zu objects, not %zu", (size_t)count, (size_t)wanted);
}

/* Objects */

static void must(int code)
{
    if (code != 0)
        fail("a call failed: %s", pmemobj_errormsg());
}

static void alloc_one(struct calls *calls)
{
    must(pmemobj_alloc(calls->pool, &calls->root->object, calls->options->bytes, TYPE_OBJECT, NULL, NULL));
}

static void alloc(struct calls *calls)
{
    for (uint64_t op = 0; op < calls->options->ops; op++) {
        alloc_one(calls);
        pmemobj_free(&calls->root->object);
    }
}

static void zalloc_one(struct calls *calls)
{
    must(pmemobj_zalloc(calls->pool, &calls->root->object, calls->options->bytes, TYPE_OBJECT));
}

static void zalloc(struct calls *calls)
{
    for (uint64_t op = 0; op < calls->options->ops; op++) {
        zalloc_one(calls);
        pmemobj_free(&calls->root->object);
    }
}

/* Objects hold what was stored to them, none the bytes of another; and memory that others have
 * filled is zeros again where it was asked for so. */
static void check_made(struct calls *calls, PMEMoid (*make)(struct calls *), bool zeroed)
{
    PMEMoid objects[LIVE];
    check_objects(calls, 0);
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < LIVE; i++) {
            objects[i] = make(calls);
            if (zeroed)
                wants("a zeroed object", pmemobj_direct(objects[i]), 0, calls->options->bytes);
            pmemobj_memset_persist(calls->pool, pmemobj_direct(objects[i]), i + 1, calls->options->bytes);
        }
        for (int i = 0; i < LIVE; i++) {
            wants("an object", pmemobj_direct(objects[i]), i + 1, calls->options->bytes);
            pmemobj_free(&objects[i]);
        }
    }
    check_objects(calls, 0);
}

static PMEMoid take_allocated(struct calls *calls)
{
    alloc_one(calls);
    return calls->root->object;
}

static void check_alloc(struct calls *calls)
{
    check_made(calls, take_allocated, false);
}

static PMEMoid take_zeroed(struct calls *calls)
{
    zalloc_one(calls);
    return calls->root->object;
}

static void check_zalloc(struct calls *calls)
{
    check_made(calls, take_zeroed, true);
}

static PMEMoid tx_make(struct calls *calls, PMEMoid (*make)(size_t, uint64_t))
{
    PMEMoid object = OID_NULL, *to = &object;
    TX_BEGIN(calls->pool) {
        *to = make(calls->options->bytes, TYPE_OBJECT);
    } TX_ONABORT {
        fail("a transaction was aborted: %s", pmemobj_errormsg());
    } TX_END
    return *to;
}

static PMEMoid tx_alloc_one(struct calls *calls)
{
    return tx_make(calls, pmemobj_tx_alloc);
}

static PMEMoid tx_zalloc_one(struct calls *calls)
{
    return tx_make(calls, pmemobj_tx_zalloc);
}

static void tx_free_one(struct calls *calls, PMEMoid object)
{
    TX_BEGIN(calls->pool) {
        pmemobj_tx_free(object);
    } TX_ONABORT {
        fail("a transaction was aborted: %s", pmemobj_errormsg());
    } TX_END
}

static void tx_alloc(struct calls *calls)
{
    for (uint64_t op = 0; op < calls->options->ops; op++)
        tx_free_one(calls, tx_alloc_one(calls));
}

static void check_tx_alloc(struct calls *calls)
{
    check_made(calls, tx_alloc_one, false);
}

static void tx_zalloc(struct calls *calls)
{
    for (uint64_t op = 0; op < calls->options->ops; op++)
        tx_free_one(calls, tx_zalloc_one(calls));
}

static void check_tx_zalloc(struct calls *calls)
{
    check_made(calls, tx_zalloc_one, true);
}

static int fill(PMEMobjpool *pool, void *object, void *argument)
{
    const struct calls *calls = argument;
    memset(object, 7, calls->options->bytes);
    pmemobj_persist(pool, object, calls->options->bytes);
    return 0;
}

static void construct_one(struct calls *calls)
{
    must(pmemobj_alloc(calls->pool, &calls->root->object, calls->options->bytes, TYPE_OBJECT, fill, calls));
}

static void construct(struct calls *calls)
{
    for (uint64_t op = 0; op < calls->options->ops; op++) {
        construct_one(calls);
        pmemobj_free(&calls->root->object);
    }
    construct_one(calls);
}

static void check_constructed(struct calls *calls)
{
    wants("a constructed object", pmemobj_direct(calls->root->object), 7, calls->options->bytes);
    check_objects(calls, 1);
}

/* Between one length and its double, which it has at the end. */
static void resize(struct calls *calls)
{
    construct_one(calls);
    bench_begin(calls->options);
    for (uint64_t op = 0; op < calls->options->ops; op++)
        must(pmemobj_realloc(calls->pool, &calls->root->object, calls->options->bytes * (1 + (calls->options->ops - op) % 2), TYPE_OBJECT));
    bench_end(calls->options);
}

static void check_resized(struct calls *calls)
{
    check_constructed(calls);
    if (pmemobj_alloc_usable_size(calls->root->object) < 2 * calls->options->bytes)
        fail("the object is shorter than it was made");
}

/* Taken and filled before it is published; the last one stays. */
static void reserve(struct calls *calls)
{
    for (uint64_t op = 0; op < calls->options->ops; op++) {
        pmemobj_free(&calls->root->object);
        struct pobj_action actions[3];
        PMEMoid object = pmemobj_reserve(calls->pool, &actions[0], calls->options->bytes, TYPE_OBJECT);
        if (OID_IS_NULL(object))
            fail("nothing was reserved: %s", pmemobj_errormsg());
        uint64_t *word = pmemobj_direct(object);
        *word = op;
        pmemobj_persist(calls->pool, word, sizeof *word);
        pmemobj_set_value(calls->pool, &actions[1], &calls->root->object.pool_uuid_lo, object.pool_uuid_lo);
        pmemobj_set_value(calls->pool, &actions[2], &calls->root->object.off, object.off);
        must(pmemobj_publish(calls->pool, actions, 3));
    }
}

static void check_reserved(struct calls *calls)
{
    const uint64_t *word = pmemobj_direct(calls->root->object);
    if (word == NULL || *word != calls->options->ops - 1)
        fail("the published object is not the last one");
    check_objects(calls, 1);
}

/* Published without a place that names it, and freed by its identifier: all but the last. */
static void publish(struct calls *calls)
{
    for (uint64_t op = 0; op < calls->options->ops; op++) {
        struct pobj_action action;
        PMEMoid object = pmemobj_reserve(calls->pool, &action, calls->options->bytes, TYPE_OBJECT);
        if (OID_IS_NULL(object))
            fail("nothing was reserved: %s", pmemobj_errormsg());
        uint64_t *word = pmemobj_direct(object);
        *word = op;
        pmemobj_persist(calls->pool, word, sizeof *word);
        must(pmemobj_publish(calls->pool, &action, 1));
        if (op + 1 < calls->options->ops)
            pmemobj_free(&object);
    }
}

static void check_published(struct calls *calls)
{
    check_objects(calls, 1);
    const uint64_t *word = pmemobj_direct(pmemobj_first(calls->pool));
    if (word == NULL || *word != calls->options->ops - 1)
        fail("the published object is not the last one");
}

static void set_values(struct calls *calls)
{
    for (uint64_t op = 0; op < calls->options->ops; op++) {
        struct pobj_action actions[WORDS];
        for (int i = 0; i < WORDS; i++)
            pmemobj_set_value(calls->pool, &actions[i], &calls->root->words[i], op + (uint64_t)i);
        must(pmemobj_publish(calls->pool, actions, WORDS));
    }
}

static void check_values(struct calls *calls)
{
    for (int i = 0; i < WORDS; i++)
        if (calls->root->words[i] != calls->options->ops - 1 + (uint64_t)i)
            fail("word %d is not what was published last", i);
}

static void insert(struct calls *calls)
{
    PMEMoid made = POBJ_LIST_INSERT_NEW_HEAD(calls->pool, &calls->root->list, links, sizeof(struct element), NULL, NULL);
    if (OID_IS_NULL(made))
        fail("nothing was inserted: %s", pmemobj_errormsg());
}

static void list(struct calls *calls)
{
    for (uint64_t op = 0; op < calls->options->ops; op++) {
        insert(calls);
        must(POBJ_LIST_REMOVE_FREE(calls->pool, &calls->root->list, POBJ_LIST_FIRST(&calls->root->list), links));
    }
    for (uint64_t i = 0; i < LISTED; i++) {
        insert(calls);
        struct element *element = D_RW(POBJ_LIST_FIRST(&calls->root->list));
        element->value = i;
        pmemobj_persist(calls->pool, &element->value, sizeof element->value);
    }
}

static void check_list(struct calls *calls)
{
    uint64_t left = LISTED;
    TOID(struct element) element;
    POBJ_LIST_FOREACH (element, &calls->root->list, links)
        if (left-- == 0 || D_RO(element)->value != left)
            fail("the list has other elements");
    if (left != 0)
        fail("the list lacks elements");
    check_objects(calls, LISTED);
}

/* Bytes */

/* The first line of a place is stored to, and all of it is named, as programs do with whole
 * structures. */
static void persist(struct calls *calls)
{
    size_t bytes = calls->options->bytes, changed = bytes < LINE ? bytes : LINE;
    for (uint64_t op = 0; op < calls->options->ops; op++) {
        memset(place(calls, op), filling(op), changed);
        pmemobj_persist(calls->pool, place(calls, op), bytes);
    }
}

static void check_persisted(struct calls *calls)
{
    size_t bytes = calls->options->bytes, changed = bytes < LINE ? bytes : LINE;
    for (uint64_t index = 0; index < calls->count; index++) {
        uint64_t op = last_at(calls, index);
        wants("a place", place(calls, index), op == UINT64_MAX ? 0 : filling(op), changed);
        wants("what no operation changed", place(calls, index) + changed, 0, bytes - changed);
    }
}

/* A word is loaded and stored: on processors whose write-backs drop the line from the cache, the
 * load misses where the program loads what was written back. */
static void increment(struct calls *calls)
{
    for (uint64_t op = 0; op < calls->options->ops; op++) {
        ++*(uint64_t *)place(calls, op);
        pmemobj_persist(calls->pool, place(calls, op), calls->options->bytes);
    }
}

static void increment_drain(struct calls *calls)
{
    for (uint64_t op = 0; op < calls->options->ops; op++) {
        if (op % FLUSHED == 0 && op != 0)
            pmemobj_drain(calls->pool);
        ++*(uint64_t *)place(calls, op);
        pmemobj_flush(calls->pool, place(calls, op), calls->options->bytes);
    }
    pmemobj_drain(calls->pool);
}

static void check_incremented(struct calls *calls)
{
    for (uint64_t index = 0; index < calls->count; index++) {
        uint64_t ops = calls->options->ops, wanted = index >= ops ? 0 : (ops - 1 - index) / calls->count + 1;
        uint64_t found = *(uint64_t *)place(calls, index);
        if (found != wanted)
            fail("a word was incremented %zu times, not %zu", (size_t)found, (size_t)wanted);
    }
}

/* Few sources, which stay in a near cache. */
static unsigned char copied(uint64_t op)
{
    return filling(op % SOURCES);
}

static void memcpy_persist(struct calls *calls)
{
    size_t bytes = calls->options->bytes;
    for (uint64_t op = 0; op < calls->options->ops; op++)
        pmemobj_memcpy_persist(calls->pool, place(calls, op), calls->source + op % SOURCES * bytes, bytes);
}

static void check_copied(struct calls *calls)
{
    check_places(calls, copied);
}

static void memset_persist(struct calls *calls)
{
    for (uint64_t op = 0; op < calls->options->ops; op++)
        pmemobj_memset_persist(calls->pool, place(calls, op), filling(op), calls->options->bytes);
}

static void flush_drain(struct calls *calls)
{
    size_t bytes = calls->options->bytes;
    for (uint64_t op = 0; op < calls->options->ops; op++) {
        if (op % FLUSHED == 0 && op != 0)
            pmemobj_drain(calls->pool);
        memset(place(calls, op), filling(op), bytes);
        pmemobj_flush(calls->pool, place(calls, op), bytes);
    }
    pmemobj_drain(calls->pool);
}

static void check_filled(struct calls *calls)
{
    check_places(calls, filling);
}

static void tx_memcpy_one(struct calls *calls, uint64_t op)
{
    TX_BEGIN(calls->pool) {
        TX_MEMCPY(place(calls, op), calls->source + op % 251 * calls->options->bytes, calls->options->bytes);
    } TX_ONABORT {
        fail("a transaction was aborted: %s", pmemobj_errormsg());
    } TX_END
}

static void tx_memcpy(struct calls *calls)
{
    for (uint64_t op = 0; op < calls->options->ops; op++)
        tx_memcpy_one(calls, op);
}

static void add_one(struct calls *calls, uint64_t op)
{
    TX_BEGIN(calls->pool) {
        pmemobj_tx_add_range_direct(place(calls, op), calls->options->bytes);
        memset(place(calls, op), filling(op), calls->options->bytes);
    } TX_ONABORT {
        fail("a transaction was aborted: %s", pmemobj_errormsg());
    } TX_END
}

static void add(struct calls *calls)
{
    for (uint64_t op = 0; op < calls->options->ops; op++)
        add_one(calls, op);
}

static void abort_one(struct calls *calls, uint64_t op)
{
    TX_BEGIN(calls->pool) {
        pmemobj_tx_add_range_direct(place(calls, op), calls->options->bytes);
        memset(place(calls, op), filling(op), calls->options->bytes);
        pmemobj_tx_abort(ECANCELED);
    } TX_ONABORT {
        if (pmemobj_tx_errno() != ECANCELED)
            fail("a transaction was aborted too early: %s", pmemobj_errormsg());
    } TX_ONCOMMIT {
        fail("an aborted transaction was committed");
    } TX_END
}

static void abort_all(struct calls *calls)
{
    for (uint64_t op = 0; op < calls->options->ops; op++)
        abort_one(calls, op);
}

static void check_untouched(struct calls *calls)
{
    wants("what was taken back", calls->places, 0, calls->count * calls->options->bytes);
}

static void tx_lock_one(struct calls *calls)
{
    TX_BEGIN_PARAM(calls->pool, TX_PARAM_MUTEX, &calls->root->mutex, TX_PARAM_NONE) {
        pmemobj_tx_add_range_direct(&calls->root->counter, sizeof calls->root->counter);
        calls->root->counter++;
    } TX_ONABORT {
        fail("a transaction was aborted: %s", pmemobj_errormsg());
    } TX_END
}

static void tx_lock(struct calls *calls)
{
    for (uint64_t op = 0; op < calls->options->ops; op++)
        tx_lock_one(calls);
}

static void check_counter(struct calls *calls)
{
    if (calls->root->counter != calls->options->ops)
        fail("the counter is at %zu", (size_t)calls->root->counter);
}

/* Calls that change nothing: what they give is summed up, so that none is left out. Behind them the
 * places are as they were. */

static void mutex(struct calls *calls)
{
    for (uint64_t op = 0; op < calls->options->ops; op++) {
        must(pmemobj_mutex_lock(calls->pool, &calls->root->mutex));
        must(pmemobj_mutex_unlock(calls->pool, &calls->root->mutex));
    }
}

/* Compares a number that every one of the operations adds. */
static void sums_to(const struct calls *calls, uint64_t sum, uint64_t each)
{
    if (sum != calls->options->ops * each)
        fail("%s gave other answers", calls->options->variant);
}

static void direct(struct calls *calls)
{
    uint64_t sum = 0;
    /* Loaded each time, or the header's inline function would be called once. */
    volatile uint64_t offset = calls->first.off;
    for (uint64_t op = 0; op < calls->options->ops; op++)
        sum += (uintptr_t)pmemobj_direct((PMEMoid){calls->first.pool_uuid_lo, offset});
    sums_to(calls, sum, (uintptr_t)calls->root);
}

static void oid(struct calls *calls)
{
    uint64_t sum = 0, at = 0;
    for (uint64_t op = 0; op < calls->options->ops; op++) {
        at += op % PLACES;
        sum += pmemobj_oid((char *)calls->root + op % PLACES).off - calls->first.off;
    }
    if (sum != at)
        fail("pmemobj_oid gave other offsets");
}

static void type_num(struct calls *calls)
{
    uint64_t sum = 0;
    zalloc_one(calls);
    PMEMoid object = calls->root->object;
    bench_begin(calls->options);
    for (uint64_t op = 0; op < calls->options->ops; op++)
        sum += pmemobj_type_num(object);
    bench_end(calls->options);
    sums_to(calls, sum, TYPE_OBJECT);
}

static void pool_by_ptr(struct calls *calls)
{
    uint64_t sum = 0;
    for (uint64_t op = 0; op < calls->options->ops; op++)
        sum += (uintptr_t)pmemobj_pool_by_ptr(calls->root);
    sums_to(calls, sum, (uintptr_t)calls->pool);
}

/* As many objects as operations: one is a step from one to the next. */
static void foreach (struct calls *calls)
{
    for (uint64_t op = 0; op < calls->options->ops; op++)
        must(pmemobj_alloc(calls->pool, NULL, calls->options->bytes, TYPE_OBJECT, NULL, NULL));
    bench_begin(calls->options);
    uint64_t count = visit(calls);
    bench_end(calls->options);
    sums_to(calls, count, 1);
}

static void check_visited(struct calls *calls)
{
    sums_to(calls, visit(calls), 1);
}

/* Opening and closing */

static void find(struct calls *calls)
{
    calls->first = pmemobj_root(calls->pool, 0);
    calls->root = pmemobj_direct(calls->first);
    if (calls->root == NULL)
        fail("no root object: %s", pmemobj_errormsg());
    calls->places = (char *)(((uintptr_t)(calls->root + 1) + LINE - 1) / LINE * LINE);
    /* As objects lie of programs that align none. */
    if (calls->options->steps != NULL)
        calls->places += HEADER;
}

static void open_again(struct calls *calls)
{
    calls->pool = pmemobj_open(calls->options->pool, POOL_LAYOUT);
    if (calls->pool == NULL)
        fail("the pool cannot be opened: %s", pmemobj_errormsg());
}

/* Each time after bytes were stored, which the next one finds. */
static void close_and_open(struct calls *calls, bool opens)
{
    for (uint64_t op = 0; op < calls->options->ops; op++) {
        tx_lock_one(calls);
        if (!opens)
            bench_begin(calls->options);
        pmemobj_close(calls->pool);
        if (!opens)
            bench_end(calls->options);
        if (opens)
            bench_begin(calls->options);
        open_again(calls);
        if (opens)
            bench_end(calls->options);
        find(calls);
        if (calls->root->counter != op + 1)
            fail("the pool that was opened again lacks what was stored");
    }
}

static void close_pool(struct calls *calls)
{
    close_and_open(calls, false);
}

static void open_pool(struct calls *calls)
{
    close_and_open(calls, true);
}

static const struct variant VARIANTS[] = {
    {"alloc", alloc, check_alloc, false, false},
    {"zalloc", zalloc, check_zalloc, false, false},
    {"tx-alloc", tx_alloc, check_tx_alloc, false, false},
    {"tx-zalloc", tx_zalloc, check_tx_zalloc, false, false},
    {"construct", construct, check_constructed, false, false},
    {"realloc", resize, check_resized, true, false},
    {"reserve", reserve, check_reserved, false, false},
    {"publish", publish, check_published, false, false},
    {"set-value", set_values, check_values, false, false},
    {"list", list, check_list, false, false},
    {"persist", persist, check_persisted, false, false},
    {"increment", increment, check_incremented, false, false},
    {"increment-drain", increment_drain, check_incremented, false, false},
    {"memcpy", memcpy_persist, check_copied, false, false},
    {"memset", memset_persist, check_filled, false, false},
    {"flush-drain", flush_drain, check_filled, false, false},
    {"tx-memcpy", tx_memcpy, check_filled, false, false},
    {"add", add, check_filled, false, false},
    {"abort", abort_all, check_untouched, false, false},
    {"tx-lock", tx_lock, check_counter, false, false},
    {"mutex", mutex, check_untouched, false, false},
    {"direct", direct, check_untouched, false, false},
    {"oid", oid, check_untouched, false, false},
    {"type-num", type_num, check_untouched, true, false},
    {"pool-by-ptr", pool_by_ptr, check_untouched, false, false},
    {"foreach", foreach, check_visited, true, true},
    {"close", close_pool, check_counter, true, true},
    {"open", open_pool, check_counter, true, true},
};

static const struct variant *variant_named(const char *name)
{
    for (size_t i = 0; i < sizeof VARIANTS / sizeof *VARIANTS; i++)
        if (strcmp(VARIANTS[i].name, name) == 0)
            return &VARIANTS[i];
    fail("no variant %s", name);
}

static void work(void *context)
{
    struct calls *calls = context;
    calls->variant->work(calls);
}

/* Does the operations of one kind and checks what they have left, in the pool as it is. */
static void run_kind(struct calls *calls)
{
    size_t bytes = calls->options->bytes;
    calls->source = malloc(251 * bytes);
    if (calls->source == NULL)
        fail("no memory");
    for (uint64_t op = 0; op < 251; op++)
        memset(calls->source + op * bytes, filling(op), bytes);
    if (calls->variant->own_marks)
        work(calls);
    else
        bench_run(calls->options, work, (void *[]){calls});
    calls->variant->check(calls);
    free(calls->source);
}

static void report(const struct options *options)
{
    pool_report("calls", options->ops, "\"variant\":\"%s\",\"bytes\":%zu", options->variant, options->bytes);
}

static void make_root(struct calls *calls, size_t bytes_of_places)
{
    if (OID_IS_NULL(pmemobj_root(calls->pool, sizeof(struct root) + LINE + HEADER + bytes_of_places)))
        fail("no root object: %s", pmemobj_errormsg());
    find(calls);
}

/* Everything as it was before the step: but for objects that the next one is to find. */
static void clear(struct calls *calls)
{
    PMEMoid object, next;
    if (!calls->variant->stays)
        POBJ_FOREACH_SAFE (calls->pool, object, next)
            pmemobj_free(&object);
    struct root *root = calls->root;
    root->object = OID_NULL;
    memset(&root->list, 0, sizeof root->list);
    memset(root->words, 0, sizeof root->words);
    root->counter = 0;
    pmemobj_persist(calls->pool, root, sizeof *root);
    pmemobj_memset_persist(calls->pool, calls->places, 0, calls->count * calls->options->bytes);
}

/* Takes the next of `KIND:BYTES:OPS,...` off the list; false where there is none. */
static bool next_step(char **steps, struct options *step)
{
    char *text = strsep(steps, ",");
    if (text == NULL)
        return false;
    char *kind = strsep(&text, ":"), *bytes = strsep(&text, ":"), *ops = text;
    if (bytes == NULL || ops == NULL)
        fail("--steps takes KIND:BYTES:OPS,...");
    step->variant = kind;
    step->bytes = number("steps", bytes, 8, 1 << 24);
    step->ops = number("steps", ops, 1, UINT32_MAX);
    return true;
}

static void session(struct calls *calls)
{
    struct options step = *calls->options;
    char *list = strdup(step.steps), *steps = list;
    if (list == NULL)
        fail("no memory");
    calls->options = &step;
    make_root(calls, SESSION_PLACES_BYTES);
    while (next_step(&steps, &step)) {
        calls->variant = variant_named(step.variant);
        calls->count = SESSION_PLACES_BYTES / step.bytes;
        if (calls->count > SESSION_PLACES)
            calls->count = SESSION_PLACES;
        bench_reset();
        run_kind(calls);
        report(&step);
        clear(calls);
    }
    pmemobj_close(calls->pool);
    free(list);
}

static void single(struct calls *calls)
{
    calls->variant = variant_named(calls->options->variant);
    make_root(calls, PLACES * calls->options->bytes);
    run_kind(calls);
    pmemobj_close(calls->pool);
    open_again(calls);
    find(calls);
    calls->variant->check(calls);
    pmemobj_close(calls->pool);
    report(calls->options);
}

int main(int argc, char **argv)
{
    struct options options = options_read(argc, argv);
    struct calls calls = {.options = &options, .count = PLACES, .pool = pool_create(&options)};
    if (options.steps != NULL)
        session(&calls);
    else
        single(&calls);
    return 0;
}
