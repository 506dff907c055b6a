/* Pools: create, open, check, their errors; the root object; iteration; pools by object and
 * address. */
#include "check.h"

#include <sys/stat.h>
#include <unistd.h>

static void errors(const char *path)
{
    errno = 0;
    CHECK(pmemobj_open("/no/such/folder/pool", LAYOUT) == NULL && errno == ENOENT);
    CHECK(pmemobj_errormsg()[0] != 0);
    for (int i = 0; i < 3; i++) {
        const char *folder = i == 0 ? "/" : i == 1 ? "//" : "/tmp";
        errno = 0;
        CHECK(pmemobj_open(folder, LAYOUT) == NULL && errno == EINVAL);
        errno = 0;
        CHECK(pmemobj_create(folder, LAYOUT, 0, 0600) == NULL && errno == EINVAL);
        errno = 0;
        CHECK(pmemobj_check(folder, LAYOUT) == -1 && errno == EINVAL);
        CHECK(pmemobj_create(folder, LAYOUT, PMEMOBJ_MIN_POOL, 0600) == NULL && errno == EEXIST);
    }
    errno = 0;
    CHECK(pmemobj_create(path, LAYOUT, 4096, 0600) == NULL && errno == EINVAL);
    CHECK(strstr(pmemobj_errormsg(), "size 4096 smaller than 8388608") != NULL);
    CHECK(pmemobj_create(path, LAYOUT, 1ull << 63, 0600) == NULL && errno == EFBIG);
    char layout[PMEMOBJ_MIN_PART / 1024];
    memset(layout, 'x', sizeof(layout));
    layout[sizeof(layout) - 1] = 0;
    errno = 0;
    CHECK(pmemobj_create(path, layout, PMEMOBJ_MIN_POOL, 0600) == NULL && errno == EINVAL);
    CHECK(strcmp(pmemobj_errormsg(), "Layout too long") == 0);
    CHECK(access(path, F_OK) != 0);

    PMEMobjpool *pool = new_pool(path, 16);
    struct stat status;
    CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == 0600);
    errno = 0;
    CHECK(pmemobj_create(path, LAYOUT, PMEMOBJ_MIN_POOL, 0600) == NULL && errno == EEXIST);
    errno = 0;
    CHECK(pmemobj_open(path, LAYOUT) == NULL && errno == EWOULDBLOCK);
    pmemobj_close(pool);

    errno = 0;
    CHECK(pmemobj_open(path, "other") == NULL && errno == EINVAL);
    CHECK(strcmp(pmemobj_errormsg(), "wrong layout (\"other\"), pool created with layout \"" LAYOUT "\"") == 0);
    pool = pmemobj_open(path, NULL);
    CHECK(pool != NULL);
    pmemobj_close(pool);
    CHECK(pmemobj_check(path, LAYOUT) == 1);
    CHECK(pmemobj_check(path, "other") == -1);
    CHECK(pmemobj_check("/no/such/pool", LAYOUT) == -1);
    CHECK(unlink(path) == 0);
}

/* A file that exists and has a size becomes a pool of that size. */
static void existing_file(const char *path)
{
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && ftruncate(fileno(file), PMEMOBJ_MIN_POOL * 2) == 0 && fclose(file) == 0);
    PMEMobjpool *pool = pmemobj_create(path, LAYOUT, 0, 0600);
    CHECK(pool != NULL);
    pool = reopen(pool, path);
    pmemobj_close(pool);
    CHECK(unlink(path) == 0);
}

static int fill(PMEMobjpool *pool, void *object, void *argument)
{
    (void)pool;
    memset(object, *(int *)argument, 64);
    return *(int *)argument == 0;
}

static void root(const char *path)
{
    PMEMobjpool *pool = new_pool(path, 16);
    errno = 0;
    CHECK(OID_IS_NULL(pmemobj_root(pool, 0)) && errno == EINVAL);
    CHECK(pmemobj_root_size(pool) == 0);
    CHECK(OID_IS_NULL(pmemobj_root(pool, PMEMOBJ_MAX_ALLOC_SIZE + 1)) && errno == ENOMEM);
    int byte = 0;
    errno = 0;
    CHECK(OID_IS_NULL(pmemobj_root_construct(pool, 64, fill, &byte)) && errno == ECANCELED);
    byte = 7;
    PMEMoid oid = pmemobj_root_construct(pool, 64, fill, &byte);
    char *data = pmemobj_direct(oid);
    CHECK(data != NULL && data[0] == 7 && data[63] == 7 && pmemobj_root_size(pool) == 64);
    CHECK(OID_EQUALS(pmemobj_root(pool, 10), oid) && OID_EQUALS(pmemobj_root(pool, 0), oid));
    pmemobj_persist(pool, data, 64);

    oid = pmemobj_root(pool, 10000);
    data = pmemobj_direct(oid);
    CHECK(pmemobj_root_size(pool) == 10000 && data[0] == 7 && data[63] == 7 && data[64] == 0 && data[9999] == 0);
    CHECK(count_objects(pool) == 0 && pmemobj_type_num(oid) == 0);

    pool = reopen(pool, path);
    CHECK(pmemobj_root_size(pool) == 10000);
    data = pmemobj_direct(pmemobj_root(pool, 10000));
    CHECK(data[0] == 7 && data[9999] == 0);
    pmemobj_close(pool);
    CHECK(unlink(path) == 0);
}

static void iteration(const char *path)
{
    PMEMobjpool *pool = new_pool(path, 256);
    CHECK(OID_IS_NULL(pmemobj_first(pool)));
    pmemobj_root(pool, 100);
    PMEMoid oids[200];
    for (unsigned i = 0; i < 200; i++)
        CHECK(pmemobj_zalloc(pool, &oids[i], 1 + i * i * 5, i) == 0);
    CHECK(count_objects(pool) == 200);
    for (unsigned i = 0; i < 200; i += 2)
        pmemobj_free(&oids[i]);
    pool = reopen(pool, path);
    unsigned long seen = 0;
    for (PMEMoid oid = pmemobj_first(pool); !OID_IS_NULL(oid); oid = pmemobj_next(oid)) {
        uint64_t type = pmemobj_type_num(oid);
        CHECK(type % 2 == 1 && OID_EQUALS(oid, oids[type]));
        CHECK(pmemobj_alloc_usable_size(oid) >= 1 + type * type * 5);
        seen += type;
    }
    CHECK(seen == 100 * 100);
    CHECK(OID_IS_NULL(POBJ_FIRST_TYPE_NUM(pool, 2)) && !OID_IS_NULL(POBJ_FIRST_TYPE_NUM(pool, 3)));
    pmemobj_close(pool);
    CHECK(pmemobj_check(path, LAYOUT) == 1);
    CHECK(unlink(path) == 0);
}

static void addresses(const char *path)
{
    char other_path[1024];
    snprintf(other_path, sizeof(other_path), "%s.other", path);
    PMEMobjpool *pool = new_pool(path, 16), *other = new_pool(other_path, 16);
    PMEMoid one = pmemobj_root(pool, 64), two = pmemobj_root(other, 64);
    CHECK(one.pool_uuid_lo != two.pool_uuid_lo && one.pool_uuid_lo != 0);
    for (unsigned i = 0; i < 3; i++) {
        CHECK(pmemobj_pool_by_oid(one) == pool && pmemobj_pool_by_oid(two) == other);
        CHECK(pmemobj_pool_by_ptr(pmemobj_direct(one)) == pool);
        CHECK(pmemobj_pool_by_ptr((char *)pmemobj_direct(two) + 63) == other);
        CHECK(OID_EQUALS(pmemobj_oid(pmemobj_direct(two)), two));
        CHECK((char *)pmemobj_direct(one) == (char *)pool + one.off);
    }
    CHECK(pmemobj_pool_by_ptr(path) == NULL && OID_IS_NULL(pmemobj_oid(path)));
    CHECK(pmemobj_pool_by_oid(OID_NULL) == NULL && pmemobj_direct(OID_NULL) == NULL);
    pmemobj_set_user_data(pool, &one);
    CHECK(pmemobj_get_user_data(pool) == &one && pmemobj_get_user_data(other) == NULL);
    pmemobj_close(pool);
    CHECK(pmemobj_direct(one) == NULL && pmemobj_direct(two) != NULL && pmemobj_pool_by_oid(one) == NULL);
    pool = pmemobj_open(path, LAYOUT);
    CHECK(pool != NULL && OID_EQUALS(pmemobj_root(pool, 64), one) && pmemobj_direct(one) != NULL);
    CHECK(pmemobj_get_user_data(pool) == NULL);
    pmemobj_close(other);
    pmemobj_close(pool);
    CHECK(unlink(path) == 0 && unlink(other_path) == 0);
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    CHECK(pmemobj_check_version(PMEMOBJ_MAJOR_VERSION, PMEMOBJ_MINOR_VERSION) == NULL);
    CHECK(strcmp(pmemobj_check_version(3, 0), "libpmemobj major version mismatch (need 3, found 2)") == 0);
    CHECK(strcmp(pmemobj_check_version(2, 99), "libpmemobj minor version mismatch (need 99, found 4)") == 0);
    pmemobj_set_funcs(malloc, free, realloc, strdup);
    errors(arguments[1]);
    existing_file(arguments[1]);
    root(arguments[1]);
    iteration(arguments[1]);
    addresses(arguments[1]);
    return 0;
}
