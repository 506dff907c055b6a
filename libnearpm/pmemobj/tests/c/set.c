/* Pool sets of one part, and sets that are malformed. What PMDK has beyond one part is refused by
 * the library under test, and named. */
#include "check.h"

#include <sys/stat.h>
#include <unistd.h>

static char set_path[4096], part_path[4096];

/* Writes a set; `@` stands for the path of the part. */
static void write_set(const char *text)
{
    unlink(part_path);
    FILE *file = fopen(set_path, "w");
    CHECK(file != NULL);
    for (; *text != '\0'; text++)
        CHECK(*text == '@' ? fputs(part_path, file) >= 0 : fputc(*text, file) != EOF);
    CHECK(fclose(file) == 0);
}

static void accepted(const char *text, off_t bytes)
{
    write_set(text);
    PMEMobjpool *pool = pmemobj_create(set_path, LAYOUT, 0, 0640);
    CHECK(pool != NULL);
    CHECK(!OID_IS_NULL(pmemobj_root(pool, 100)));
    pmemobj_close(pool);
    struct stat part;
    CHECK(stat(part_path, &part) == 0 && part.st_size == bytes && (part.st_mode & 0777) == 0640);
    pool = pmemobj_open(set_path, LAYOUT);
    CHECK(pool != NULL && pmemobj_root_size(pool) == 100);
    pmemobj_close(pool);
    CHECK(pmemobj_check(set_path, LAYOUT) == 1);
    /* The part alone is the pool as well; PMDK wants the option with it. */
    if (strstr(text, "OPTION") == NULL || !is_pmdk) {
        pool = pmemobj_open(part_path, LAYOUT);
        CHECK(pool != NULL && pmemobj_root_size(pool) == 100);
        pmemobj_close(pool);
    }
    errno = 0;
    CHECK(pmemobj_create(set_path, LAYOUT, 0, 0640) == NULL && errno == (is_pmdk ? errno : EEXIST));
}

static void refused(const char *text, int error, const char *message)
{
    write_set(text);
    errno = 0;
    CHECK(pmemobj_create(set_path, LAYOUT, 0, 0640) == NULL && errno == error);
    CHECK(strstr(pmemobj_errormsg(), message) != NULL);
    CHECK(access(part_path, F_OK) != 0);
    CHECK(pmemobj_open(set_path, LAYOUT) == NULL);
    CHECK(pmemobj_check(set_path, LAYOUT) == -1);
}

int main(int count, char **arguments)
{
    check_begin(count, arguments);
    snprintf(set_path, sizeof(set_path), "%s.set", arguments[1]);
    snprintf(part_path, sizeof(part_path), "%s.part", arguments[1]);
    accepted("PMEMPOOLSET\n16M @\n", 16 << 20);
    accepted("PMEMPOOLSET\n# one part\n\n16MB\t@ # here\n", 16000000);
    accepted("PMEMPOOLSET\nOPTION SINGLEHDR\n8388608 @\n", 8 << 20);

    write_set("PMEMPOOLSET\n16M @\n");
    errno = 0;
    CHECK(pmemobj_create(set_path, LAYOUT, 16 << 20, 0640) == NULL && errno == EEXIST);
    CHECK(pmemobj_open(set_path, LAYOUT) == NULL && errno == ENOENT);

    refused("PMEMPOOLSET", EINVAL, "[the first line must be exactly 'PMEMPOOLSET':1]");
    refused("PMEMPOOLSET\n", EINVAL, "[no pool set parts:");
    refused("PMEMPOOLSET\n16M part\n", EINVAL, "[incorrect path (must be an absolute one):2]");
    refused("PMEMPOOLSET\n16M\n", EINVAL, "[invalid token found in the current line:2]");
    refused("PMEMPOOLSET\n16X @\n", EINVAL, "[incorrect format of size:2]");
    refused("PMEMPOOLSET\nOPTION WHAT\n16M @\n", EINVAL, "[unknown option:2]");
    refused("PMEMPOOLSET\nOPTION\n16M @\n", EINVAL, "[missing option name:2]");
    refused("PMEMPOOLSET\nOPTION NOHDRS\n16M @\n", EINVAL, "the NOHDRS poolset option is not supported for local poolsets");
    refused("PMEMPOOLSET\n4M @\n", EINVAL, "smaller than 8388608");
    write_set("PMEMPOOLSET\n16M @\n");
    CHECK(fclose(fopen(part_path, "w")) == 0 && truncate(part_path, 20 << 20) == 0);
    errno = 0;
    CHECK(pmemobj_create(set_path, LAYOUT, 0, 0640) == NULL && errno == EINVAL);
    CHECK(strstr(pmemobj_errormsg(), "file size does not match config") != NULL);
    if (!is_pmdk) {
        refused("PMEMPOOLSET\n16M @\n16M @2\n", ENOTSUP, "a pool of several parts is not supported");
        refused("PMEMPOOLSET\n16M @\nREPLICA\n16M @2\n", ENOTSUP, "a replica is not supported");
        refused("PMEMPOOLSET\n16M @\nREPLICA host a.set\n", ELIBACC, "a remote replica is not supported");
        refused("PMEMPOOLSET\nOPTION SINGLEHDR\n16M /\n", ENOTSUP, "a directory as a part");
        refused("PMEMPOOLSET\nAUTO @\n", ENOTSUP, "device DAX");
    }
    return 0;
}
