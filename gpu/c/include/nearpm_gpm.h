/*
 * GPM in C: the calls of the paper's table 2 that the processor makes, under their names (Pandey,
 * Kamath and Basu, ASPLOS 2022). What kernels call is in nearpm_gpm.cuh.
 *
 * The device is what the environment variable NEARPM_GPM_DEVICE names: "cuda" or "cuda:N" for a
 * GPU, "interpreter" for none. Without it, it is the first GPU where the library was built with the
 * feature "cuda", else the interpreter. On a GPU the library uses the primary context, so that a
 * program's own kernels and pointers of the CUDA runtime go with it.
 *
 * Pointers that these calls give are addresses of the device: they are arguments of kernels. On a
 * GPU the processor may follow those of gpm_map, too; on the interpreter it may not: gpm_read and
 * gpm_write work on both.
 *
 * A handle belongs to the thread that made it. Calls that give an int give 0, or -1 after a
 * refusal; those that give a pointer give NULL then. gpm_error says why. No call ends the process.
 */
#ifndef NEARPM_GPM_H
#define NEARPM_GPM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A log as kernels see it: the argument of their gpmlog_insert and the like. The processor does not
 * look inside. */
typedef struct gpmlog gpmlog;
/* Checkpoints. The processor does not look inside. */
typedef struct gpmcp gpmcp;

/* ---- Primitives ---- */

/* Maps persistent memory: makes a file with `size` bytes of it, or opens one, which has at least
 * `size`. The same address is given to kernels. The file holds a sealed head besides, and is on
 * tmpfs, hugetlbfs or devdax for a GPU. */
void *gpm_map(const char *path, size_t size, int create);
/* Unmaps it. Path and size are those of gpm_map. What is in it stays. */
int gpm_unmap(const char *path, void *address, size_t size);

/* Whether what kernels persist goes past the processor's caches. The paper's calls switch that, for
 * the whole machine; these say what is so, of everything that is mapped, and switch nothing. */
#define GPM_LINK_NOT_NEEDED 0     /* this memory does not survive a power failure anyway */
#define GPM_LINK_NOT_SWITCHABLE 1 /* the caches may catch the writes (DDIO): switch that in the firmware's set-up */
#define GPM_LINK_SAVED_BY_POWER 2 /* the power supply saves the caches (eADR) */
int gpm_persist_begin(void);
int gpm_persist_end(void);

/* ---- Logs ---- */

/* A conventional log of `partitions` partitions with a lock each, with room for `size` bytes. */
gpmlog *gpmlog_create_conv(const char *path, size_t size, int partitions);
/* A hierarchical coalesced log with room for `size` bytes, for launches of `blocks` blocks of
 * `threads` threads. The paper's learns the size of its entries from the first insert; this one has
 * `entry` bytes, a multiple of 4. */
gpmlog *gpmlog_create_hcl(const char *path, size_t size, int blocks, int threads, size_t entry);
/* Opens a log, of either kind. What is in it counts. */
gpmlog *gpmlog_open(const char *path);
/* Closes a log. What is in it stays. */
int gpmlog_close(gpmlog *log);

/* Entries of a hierarchical log, or words of 4 bytes in a conventional one; -1 after a refusal. */
int64_t gpmlog_count(gpmlog *log);
/* Removes everything from a log at once, durably, by one store. */
int gpmlog_clear_all(gpmlog *log);
/* Says what kernels did wrong with a log since the last call: it was full, had entries of another
 * size or launches of another shape. */
int gpmlog_check(gpmlog *log);

/* ---- Checkpoints ---- */

/* Checkpoints of `groups` groups, each of up to `elements` elements of together up to `size`
 * bytes. */
gpmcp *gpmcp_create(const char *path, size_t size, int elements, int groups);
gpmcp *gpmcp_open(const char *path);
int gpmcp_close(gpmcp *cp);
/* Adds memory of the device to a group: restored in the order of their registration. */
int gpmcp_register(gpmcp *cp, void *address, size_t size, int group);
/* Takes a checkpoint of a group; it is durable when this returns. */
int gpmcp_checkpoint(gpmcp *cp, int group);
/* Restores a group from its newest checkpoint. 1, and nothing is changed, where there is none. */
int gpmcp_restore(gpmcp *cp, int group);

/* ---- What the paper takes from the CUDA runtime, for programs on the interpreter, too ---- */

/* Memory of the device, zeroed. */
void *gpm_alloc(size_t size);
int gpm_free(void *address);
/* Copies to and from memory of the device or persistent memory, after the work before it; what is
 * copied to persistent memory is durable when this returns. */
int gpm_write(void *to, const void *from, size_t size);
int gpm_read(void *to, const void *from, size_t size);

/* An argument of a kernel. */
typedef struct gpm_argument {
    int kind; /* one of the following */
    union {
        uint32_t u32;
        uint64_t u64;
        float f32;
        const void *pointer;
    } value;
} gpm_argument;
#define GPM_U32 0
#define GPM_U64 1
#define GPM_F32 2
#define GPM_POINTER 3

/* Runs a kernel of a module of PTX, which ends with a zero, and waits for it. */
int gpm_launch(const char *ptx, const char *kernel, unsigned blocks, unsigned threads, const gpm_argument *arguments,
               size_t count);

/* The device's name. */
const char *gpm_device(void);
/* Why this thread's last call was refused; empty where none was. It stays until the thread's next
 * call. */
const char *gpm_error(void);

#ifdef __cplusplus
}
#endif

#endif
