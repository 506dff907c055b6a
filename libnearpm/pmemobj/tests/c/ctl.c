/* pmemobj_ctl_*, and the configuration by the environment: the runner sets PMEMOBJ_CONF as
 * `configured` expects it. */
#include "check.h"

#include <stdint.h>

static PMEMobjpool *pool;

static int get_int(PMEMobjpool *of, const char *name)
{
    int value = -1;
    CHECK(pmemobj_ctl_get(of, name, &value) == 0);
    return value;
}

static int64_t get_long(const char *name)
{
    int64_t value = -1;
    CHECK(pmemobj_ctl_get(pool, name, &value) == 0);
    return value;
}

static void refused(PMEMobjpool *of, const char *name)
{
    int64_t value = 0;
    errno = 0;
    CHECK(pmemobj_ctl_get(of, name, &value) == -1 && errno == EINVAL);
    CHECK(strstr(pmemobj_errormsg(), name) != NULL);
}

static void globals(void)
{
    int value = 1;
    CHECK(get_int(NULL, "prefault.at_open") == 0);
    CHECK(pmemobj_ctl_set(NULL, "prefault.at_open", &value) == 0 && get_int(NULL, "prefault.at_open") == 1);
    CHECK(get_int(pool, "prefault.at_open") == 1);
    value = 0;
    CHECK(pmemobj_ctl_set(NULL, "sds.at_create", &value) == 0 && get_int(NULL, "sds.at_create") == 0);
    CHECK(get_int(NULL, "copy_on_write.at_open") == 0);
    CHECK(get_int(NULL, "fallocate.at_create") == 1);
    CHECK(pmemobj_ctl_set(NULL, "fallocate.at_create", &value) == 0 && get_int(pool, "fallocate.at_create") == 0);
    CHECK(get_int(NULL, "heap.arenas_assignment_type") == POBJ_ARENAS_ASSIGNMENT_THREAD_KEY);
    CHECK(get_int(NULL, "heap.arenas_default_max") > 0);
    refused(NULL, "tx.cache.size");
    refused(NULL, "no.such.entry");
    refused(pool, "no.such.entry");
}

static void transactions(void)
{
    int64_t value = 1 << 20;
    CHECK(pmemobj_ctl_set(pool, "tx.cache.size", &value) == 0 && get_long("tx.cache.size") == 1 << 20);
    value = -5;
    errno = 0;
    CHECK(pmemobj_ctl_set(pool, "tx.cache.size", &value) == -1 && errno == EINVAL);
    CHECK(get_long("tx.cache.size") == 1 << 20);
    value = 100;
    CHECK(pmemobj_ctl_set(pool, "tx.cache.threshold", &value) == 0);
    CHECK(pmemobj_ctl_set(pool, "tx.post_commit.queue_depth", &value) == 0);
    CHECK(pmemobj_ctl_get(pool, "tx.post_commit.worker", &value) == 0);
    int yes = 1;
    CHECK(get_int(pool, "tx.debug.skip_expensive_checks") == 0);
    CHECK(pmemobj_ctl_set(pool, "tx.debug.skip_expensive_checks", &yes) == 0);
    CHECK(get_int(pool, "tx.debug.skip_expensive_checks") == 1);
    CHECK(get_int(pool, "tx.debug.verify_user_buffers") == 0);
}

static void arenas(void)
{
    unsigned automatic = (unsigned)get_int(pool, "heap.narenas.automatic"), made = 0;
    CHECK(automatic > 0 && (unsigned)get_int(pool, "heap.narenas.total") == automatic);
    CHECK(get_int(pool, "heap.narenas.max") == 1024);
    CHECK(get_int(pool, "heap.thread.arena_id") > 0);
    CHECK(pmemobj_ctl_exec(pool, "heap.arena.create", &made) == 0 && made == automatic + 1);
    CHECK((unsigned)get_int(pool, "heap.narenas.total") == automatic + 1);
    CHECK(get_int(pool, "heap.arena.1.automatic") == 1);
    CHECK(get_long("heap.arena.1.size") >= 0);
    int64_t size;
    errno = 0;
    CHECK(pmemobj_ctl_get(pool, "heap.arena.0.size", &size) == -1 && errno == ERANGE);
    PMEMoid oid;
    CHECK(pmemobj_xalloc(pool, &oid, 100, 1, POBJ_ARENA_ID(made), NULL, NULL) == 0);
    pmemobj_free(&oid);
}

static void sizes(void)
{
    int64_t value = 5;
    CHECK(get_long("heap.size.granularity") == 128 << 20);
    CHECK(pmemobj_ctl_set(pool, "heap.size.granularity", &value) == -1);
    value = PMEMOBJ_MIN_PART;
    CHECK(pmemobj_ctl_set(pool, "heap.size.granularity", &value) == 0);
    CHECK(pmemobj_ctl_exec(pool, "heap.size.extend", &value) == -1);
}

static void classes(void)
{
    struct pobj_alloc_class_desc class = {.unit_size = 4000, .units_per_block = 100, .header_type = POBJ_HEADER_COMPACT};
    CHECK(pmemobj_ctl_set(pool, "heap.alloc_class.new.desc", &class) == 0);
    errno = 0;
    CHECK(pmemobj_ctl_set(pool, "heap.alloc_class.new.desc", &class) == -1 && errno == EINVAL);
    PMEMoid oid;
    CHECK(pmemobj_xalloc(pool, &oid, 5000, 3, POBJ_CLASS_ID(class.class_id), NULL, NULL) == 0);
    CHECK(pmemobj_alloc_usable_size(oid) == 2 * 4000 - 16 && pmemobj_type_num(oid) == 3);
    pmemobj_free(&oid);

    struct pobj_alloc_class_desc aligned = {.unit_size = 1024, .alignment = 512, .units_per_block = 100,
                                            .header_type = POBJ_HEADER_COMPACT};
    CHECK(pmemobj_ctl_set(pool, "heap.alloc_class.201.desc", &aligned) == 0);
    PMEMoid oids[50];
    for (unsigned i = 0; i < 50; i++) {
        CHECK(pmemobj_xalloc(pool, &oids[i], 1000, i, POBJ_CLASS_ID(201), NULL, NULL) == 0);
        CHECK((uintptr_t)pmemobj_direct(oids[i]) % 512 == 0 && pmemobj_type_num(oids[i]) == i);
        memset(pmemobj_direct(oids[i]), (int)i, 1000);
    }
    CHECK(count_objects(pool) == 50);
    for (unsigned i = 0; i < 50; i++) {
        CHECK(*((char *)pmemobj_direct(oids[i]) + 999) == (char)i);
        pmemobj_free(&oids[i]);
    }
    CHECK(count_objects(pool) == 0);

    struct pobj_alloc_class_desc none = {.unit_size = 128, .alignment = 64, .units_per_block = 1000,
                                         .header_type = POBJ_HEADER_NONE}, read;
    CHECK(pmemobj_ctl_set(pool, "heap.alloc_class.200.desc", &none) == 0);
    errno = 0;
    CHECK(pmemobj_ctl_set(pool, "heap.alloc_class.200.desc", &none) == -1 && errno == EEXIST);
    CHECK(pmemobj_ctl_set(pool, "heap.alloc_class.5.desc", &none) == -1 && errno == EEXIST);
    CHECK(pmemobj_ctl_get(pool, "heap.alloc_class.200.desc", &read) == 0);
    CHECK(read.unit_size == 128 && read.alignment == 64 && read.header_type == POBJ_HEADER_NONE);
    CHECK(pmemobj_ctl_get(pool, "heap.alloc_class.222.desc", &read) == -1 && errno == ENOENT);
    TX_BEGIN(pool) {
        oid = pmemobj_tx_xalloc(100, 3, POBJ_CLASS_ID(200));
    } TX_ONABORT {
        CHECK(0);
    } TX_END
    CHECK(pmemobj_alloc_usable_size(oid) == 128 && pmemobj_type_num(oid) == 0);
    CHECK((uintptr_t)pmemobj_direct(oid) % 64 == 0);
    pmemobj_free(&oid);
    errno = 0;
    CHECK(pmemobj_xalloc(pool, &oid, 129, 3, POBJ_CLASS_ID(200), NULL, NULL) == -1 && errno == EINVAL);
    CHECK(strcmp(pmemobj_errormsg(), "allocation class not suitable for size 129 bytes") == 0);
    CHECK(pmemobj_xalloc(pool, &oid, 129, 3, POBJ_CLASS_ID(222), NULL, NULL) == -1 && errno == EINVAL);
    CHECK(strcmp(pmemobj_errormsg(), "no allocation class for size 129 bytes") == 0);
}

/* PMDK's own classes, by what it says of them. */
static void built_in_classes(void)
{
    struct pobj_alloc_class_desc class;
    char name[64];
    size_t classes = 0, bytes = 0, units = 0;
    for (int id = 0; id < 54; id++) {
        snprintf(name, sizeof(name), "heap.alloc_class.%d.desc", id);
        CHECK(pmemobj_ctl_get(pool, name, &class) == 0);
        CHECK(class.class_id == (unsigned)id && class.header_type == POBJ_HEADER_COMPACT && class.alignment == 0);
        classes++;
        bytes += class.unit_size * (size_t)(id + 1);
        units += class.units_per_block * (size_t)(id + 1);
    }
    CHECK(classes == 54 && bytes == 123981696 && units == 192232);
    CHECK(pmemobj_ctl_get(pool, "heap.alloc_class.0x5.desc", &class) == 0);
    CHECK(class.class_id == 5 && class.unit_size == 704 && class.units_per_block == 372);
    errno = 0;
    CHECK(pmemobj_ctl_get(pool, "heap.alloc_class.120.desc", &class) == -1 && errno == ENOENT);
    CHECK(pmemobj_ctl_get(pool, "heap.alloc_class.255.desc", &class) == -1 && errno == ERANGE);
    CHECK(pmemobj_ctl_get(pool, "heap.alloc_class.-1.desc", &class) == -1 && errno == ERANGE);
    struct pobj_alloc_class_desc same = {.unit_size = 128, .units_per_block = 1000, .header_type = POBJ_HEADER_COMPACT};
    CHECK(pmemobj_ctl_set(pool, "heap.alloc_class.new.desc", &same) == -1 && errno == EINVAL);
    PMEMoid oid;
    CHECK(pmemobj_xalloc(pool, &oid, 100, 3, POBJ_CLASS_ID(5), NULL, NULL) == 0);
    CHECK(pmemobj_alloc_usable_size(oid) == 688 && pmemobj_type_num(oid) == 3);
    pmemobj_free(&oid);
}

/* What is counted depends on what is enabled, and goes on from what was counted when the pool was
 * closed. */
static void counted(const char *path)
{
    int enabled = POBJ_STATS_ENABLED_TRANSIENT;
    PMEMoid first, second, third;
    CHECK(pmemobj_ctl_set(pool, "stats.enabled", &enabled) == 0);
    int64_t before = get_long("stats.heap.curr_allocated");
    CHECK(pmemobj_alloc(pool, &first, 1000, 1, NULL, NULL) == 0);
    CHECK(get_long("stats.heap.curr_allocated") == before);
    enabled = POBJ_STATS_ENABLED_PERSISTENT;
    CHECK(pmemobj_ctl_set(pool, "stats.enabled", &enabled) == 0);
    CHECK(pmemobj_alloc(pool, &second, 1000, 1, NULL, NULL) == 0);
    int64_t one = (int64_t)pmemobj_alloc_usable_size(second) + 16;
    CHECK(get_long("stats.heap.curr_allocated") == before + one);
    TX_BEGIN(pool) {
        third = pmemobj_tx_alloc(1000, 1);
        pmemobj_tx_free(second);
        pmemobj_tx_alloc(1000, 1);
        pmemobj_tx_abort(1);
    } TX_END
    CHECK(get_long("stats.heap.curr_allocated") == before + one);
    TX_BEGIN(pool) {
        third = pmemobj_tx_alloc(1000, 1);
        pmemobj_tx_free(pmemobj_tx_alloc(500, 1));
    } TX_ONABORT {
        CHECK(0);
    } TX_END
    CHECK(get_long("stats.heap.curr_allocated") == before + 2 * one);
    struct pobj_action action;
    CHECK(!OID_IS_NULL(pmemobj_reserve(pool, &action, 1000, 1)));
    CHECK(get_long("stats.heap.curr_allocated") == before + 2 * one);
    CHECK(pmemobj_publish(pool, &action, 1) == 0);
    CHECK(get_long("stats.heap.curr_allocated") == before + 3 * one);
    pmemobj_free(&third);
    pool = reopen(pool, path);
    CHECK(get_int(pool, "stats.enabled") == POBJ_STATS_ENABLED_TRANSIENT);
    CHECK(get_long("stats.heap.curr_allocated") == before + 2 * one);
    pmemobj_free(&first);
    CHECK(get_long("stats.heap.curr_allocated") == before + 2 * one);
    pmemobj_free(&second);
    PMEMoid last = pmemobj_first(pool);
    pmemobj_free(&last);
    CHECK(count_objects(pool) == 0);
}

static void statistics(void)
{
    int both = POBJ_STATS_ENABLED_BOTH;
    CHECK(get_int(pool, "stats.enabled") == POBJ_STATS_ENABLED_TRANSIENT);
    CHECK(pmemobj_ctl_set(pool, "stats.enabled", &both) == 0);
    int64_t before = get_long("stats.heap.curr_allocated"), run = get_long("stats.heap.run_allocated");
    PMEMoid oids[100];
    for (unsigned i = 0; i < 100; i++)
        CHECK(pmemobj_alloc(pool, &oids[i], 1000, 1, NULL, NULL) == 0);
    CHECK(get_long("stats.heap.curr_allocated") >= before + 100 * 1000);
    CHECK(get_long("stats.heap.run_allocated") >= run + 100 * 1000);
    CHECK(get_long("stats.heap.run_active") >= get_long("stats.heap.run_allocated"));
    for (unsigned i = 0; i < 100; i++)
        pmemobj_free(&oids[i]);
    CHECK(get_long("stats.heap.curr_allocated") == before);
}

static void pattern(void)
{
    int byte = 0xab;
    PMEMoid oid;
    CHECK(get_int(pool, "debug.heap.alloc_pattern") == -1);
    CHECK(pmemobj_ctl_set(pool, "debug.heap.alloc_pattern", &byte) == 0);
    CHECK(pmemobj_alloc(pool, &oid, 64, 1, NULL, NULL) == 0);
    CHECK(((unsigned char *)pmemobj_direct(oid))[63] == 0xab);
    pmemobj_free(&oid);
    CHECK(pmemobj_zalloc(pool, &oid, 64, 1) == 0 && ((unsigned char *)pmemobj_direct(oid))[63] == 0);
    pmemobj_free(&oid);
    byte = -1;
    CHECK(pmemobj_ctl_set(pool, "debug.heap.alloc_pattern", &byte) == 0);
}

static void configured(void)
{
    struct pobj_alloc_class_desc class;
    CHECK(get_int(NULL, "prefault.at_create") == 1 && get_long("tx.cache.size") == 65536);
    CHECK(pmemobj_ctl_get(pool, "heap.alloc_class.150.desc", &class) == 0);
    CHECK(class.unit_size == 5000 && class.header_type == POBJ_HEADER_COMPACT);
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    pool = new_pool(arguments[1], 32);
    if (getenv("PMEMOBJ_CONF") != NULL) {
        configured();
    } else {
        globals();
        transactions();
        arenas();
        sizes();
        classes();
        built_in_classes();
        statistics();
        pattern();
        counted(arguments[1]);
    }
    pmemobj_close(pool);
    return 0;
}
