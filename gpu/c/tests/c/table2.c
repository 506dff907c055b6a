/* Every call of table 2: those of the processor directly, those of kernels through kernels.
 * Arguments: a folder, the library's kernels of transactions as PTX. */
#include <nearpm_gpm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define BLOCKS 2
#define THREADS 40
#define CELLS (BLOCKS * THREADS)

static char *ptx;
static const char *folder;

static const char *file(const char *name)
{
    static char paths[4][4096];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static char *contents(const char *path)
{
    FILE *stream = fopen(path, "rb");
    char *text = (char *)calloc(1, 1 << 20);
    CHECK(stream && text && fread(text, 1, (1 << 20) - 1, stream) > 0);
    fclose(stream);
    return text;
}

static gpm_argument pointer(const void *address)
{
    gpm_argument argument = {GPM_POINTER, {0}};
    argument.value.pointer = address;
    return argument;
}

static gpm_argument word(uint32_t value)
{
    gpm_argument argument = {GPM_U32, {0}};
    argument.value.u32 = value;
    return argument;
}

static int update(const char *kernel, gpmlog *log, void *cells, uint32_t seed)
{
    gpm_argument arguments[] = {pointer(log), pointer(cells), word(1), word(seed)};
    return gpm_launch(ptx, kernel, BLOCKS, THREADS, arguments, 4);
}

static int undo(const char *kernel, gpmlog *log, void *cells)
{
    gpm_argument arguments[] = {pointer(log), pointer(cells)};
    return gpm_launch(ptx, kernel, BLOCKS, THREADS, arguments, 2);
}

/* Updates cells with one kernel and gives them back with another: gpmlog_insert, _read and _remove
 * in kernels. */
static void logged(gpmlog *log, const char *name, const char *insert, const char *remove, int64_t entries)
{
    uint64_t first[CELLS], then[CELLS];
    void *cells = gpm_map(file("cells"), sizeof first, 0);
    CHECK(cells && gpm_read(first, cells, sizeof first) == 0);
    CHECK(update(insert, log, cells, 2) == 0 && gpmlog_check(log) == 0);
    CHECK(gpmlog_count(log) == entries);
    CHECK(gpm_read(then, cells, sizeof then) == 0 && memcmp(first, then, sizeof first) != 0);
    /* Opened again, it has what it had. */
    CHECK(gpmlog_close(log) == 0);
    REFUSED(gpmlog_close(log) == -1);
    log = gpmlog_open(file(name));
    CHECK(log && gpmlog_count(log) == entries);
    CHECK(undo(remove, log, cells) == 0 && gpmlog_count(log) == 0);
    CHECK(gpm_read(then, cells, sizeof then) == 0 && memcmp(first, then, sizeof first) == 0);
    CHECK(update(insert, log, cells, 3) == 0 && gpmlog_clear_all(log) == 0 && gpmlog_count(log) == 0);
    CHECK(gpm_write(cells, first, sizeof first) == 0);
    CHECK(gpmlog_close(log) == 0);
    CHECK(gpm_unmap(file("cells"), cells, sizeof first) == 0);
}

static void maps(void)
{
    uint64_t cells[CELLS], found[CELLS];
    for (int i = 0; i < CELLS; i++) cells[i] = 7u * (unsigned)i;
    void *mapped = gpm_map(file("cells"), sizeof cells, 1);
    CHECK(mapped && gpm_write(mapped, cells, sizeof cells) == 0);
    CHECK(gpm_persist_begin() == GPM_LINK_NOT_NEEDED && gpm_persist_end() == GPM_LINK_NOT_NEEDED);
    REFUSED(gpm_map(file("cells"), sizeof cells, 1) == NULL);
    REFUSED(gpm_unmap(file("other"), mapped, sizeof cells) == -1);
    CHECK(gpm_unmap(file("cells"), mapped, sizeof cells) == 0);
    REFUSED(gpm_unmap(file("cells"), mapped, sizeof cells) == -1);
    REFUSED(gpm_map(file("cells"), sizeof cells + 1, 0) == NULL);
    mapped = gpm_map(file("cells"), sizeof cells, 0);
    CHECK(mapped && gpm_read(found, mapped, sizeof found) == 0 && memcmp(cells, found, sizeof found) == 0);
    CHECK(gpm_unmap(file("cells"), mapped, sizeof cells) == 0);
}

static void checkpoints(void)
{
    float weights[100], found[100];
    gpmcp *cp = gpmcp_create(file("checkpoint"), sizeof weights, 2, 1);
    void *memory = gpm_alloc(sizeof weights);
    CHECK(cp && memory);
    REFUSED(gpmcp_checkpoint(cp, 0) == -1);
    CHECK(gpmcp_register(cp, memory, sizeof weights, 0) == 0 && gpmcp_restore(cp, 0) == 1);
    REFUSED(gpmcp_register(cp, memory, sizeof weights, 1) == -1);
    for (int i = 0; i < 100; i++) weights[i] = 0.5f * (float)i;
    CHECK(gpm_write(memory, weights, sizeof weights) == 0 && gpmcp_checkpoint(cp, 0) == 0);
    memset(found, 0, sizeof found);
    CHECK(gpm_write(memory, found, sizeof found) == 0 && gpmcp_close(cp) == 0);
    REFUSED(gpmcp_checkpoint(cp, 0) == -1);
    cp = gpmcp_open(file("checkpoint"));
    CHECK(cp && gpmcp_register(cp, memory, sizeof weights, 0) == 0 && gpmcp_restore(cp, 0) == 0);
    CHECK(gpm_read(found, memory, sizeof found) == 0 && memcmp(weights, found, sizeof found) == 0);
    CHECK(gpmcp_close(cp) == 0 && gpm_free(memory) == 0);
    REFUSED(gpm_free(memory) == -1);
}

static void refusals(void)
{
    REFUSED(gpm_map(NULL, 1, 1) == NULL);
    REFUSED(gpm_map(file("empty"), 0, 1) == NULL);
    REFUSED(gpm_map(file("none"), 1, 0) == NULL);
    REFUSED(gpmlog_open(file("none")) == NULL);
    REFUSED(gpmlog_create_hcl(file("log"), 1, -1, 32, 8) == NULL);
    REFUSED(gpmlog_create_hcl(file("log"), 1, 1, 2000, 8) == NULL);
    REFUSED(gpmlog_create_conv(file("log"), 0, 0) == NULL);
    REFUSED(gpmcp_create(file("cp"), 1, 1, 0) == NULL);
    REFUSED(gpmlog_count(NULL) == -1);
    REFUSED(gpm_read(NULL, (void *)64, 8) == -1);
    REFUSED(gpm_launch("nonsense", "kernel", 1, 1, NULL, 0) == -1);
    REFUSED(gpm_launch(ptx, "no_such_kernel", 1, 1, NULL, 0) == -1);
    REFUSED(gpm_launch(ptx, "update_sealed", 1, 1, NULL, 4) == -1);
}

int main(int count, char **arguments)
{
    CHECK(count == 3);
    folder = arguments[1];
    ptx = contents(arguments[2]);
    CHECK(strlen(gpm_device()) > 0);
    maps();
    logged(gpmlog_create_hcl(file("hcl"), 4096, BLOCKS, THREADS, 12), "hcl", "update_sealed", "undo_sealed", CELLS);
    logged(gpmlog_create_conv(file("conv"), 4096, 4), "conv", "update_conv", "undo_conv", 3 * CELLS);
    checkpoints();
    refusals();
    free(ptx);
    puts("table 2: as it should be");
    return 0;
}
