/* NearPM: crash-consistent pools of persistent memory, and the primitives that make programs on them survive power cuts.
 *
 * A program maps a pool, stores to it through pointers, and tells the library before it overwrites what a crash must
 * not destroy. Functions that return int give 0, or -1 on failure; functions that return a pointer or an offset give NULL or 0. After a
 * failure NearPM_errno and NearPM_errormsg say what went wrong, where, and what to do; a call that fails has no
 * effect unless its message says so.
 *
 * Threads: calls may come from any thread. The log of a thread_id is used by one thread at a time, and two open logs must not
 * cover the same bytes. Pointers into a pool are valid until it is closed.
 *
 * Link with -lnearpm.
 */
#ifndef NEARPM_H
#define NEARPM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Error codes of NearPM_errno. */
enum NearPM_code {
    NEARPM_OK = 0,         /* No error. */
    NEARPM_EINVAL = 1,     /* An argument makes no sense: a null pointer, a size of zero, a bad name or option. */
    NEARPM_ENOENT = 2,     /* The pool does not exist, or no pool has this identifier. */
    NEARPM_EEXIST = 3,     /* Something with this name exists already. */
    NEARPM_EBUSY = 4,      /* The pool is open already. */
    NEARPM_EACCES = 5,     /* The pool may not be written. */
    NEARPM_ENOSPC = 6,     /* No space on the medium, or no free space in the pool. */
    NEARPM_EBADPOOL = 7,   /* The pool is foreign, unfinished, newer, truncated or corrupt. */
    NEARPM_ERANGE = 8,     /* A range leaves the pool, is not aligned, or is not an allocated object. */
    NEARPM_ELOG = 9,       /* The log of the thread is full, or there is none. */
    NEARPM_EDEVICE = 10,   /* The card failed or has gone. */
    NEARPM_EPOISONED = 11, /* An earlier failure: close and open the pool. */
    NEARPM_ESYSTEM = 12,   /* The operating system refused. */
    NEARPM_EINTERNAL = 13, /* A fault of this library. */
};

/* Code and text of this thread's last failure. The text is valid until the next failure of the thread. */
int NearPM_errno(void);
const char *NearPM_errormsg(void);

/* Initialises a device. NULL or "cpu": no card; the processor makes the copies. */
int NearPM_init_device(const char *device_path);

/* Creates a pool of so many bytes in a file, or opens one, recovering it first. *pool_id names it from then on. */
int NearPM_pool_create(const char *location, uint64_t bytes, uint32_t *pool_id);
int NearPM_pool_open(const char *location, uint32_t *pool_id);
/* Closes a pool. What an open log covers is taken back when it is opened the next time. */
int NearPM_pool_close(uint32_t pool_id);

/* Pointers change from run to run, offsets do not: references in a pool are offsets. Offset 0 is the null pointer. */
void *NearPM_direct(uint32_t pool_id, uint64_t offset);
uint64_t NearPM_offset(uint32_t pool_id, const void *address);

/* Allocates zeroed bytes, or frees what was allocated; each is atomic and durable. A size that is a multiple of 64 or 4096 gives an
 * address that is one. */
void *NearPM_alloc(uint32_t pool_id, uint64_t size);
int NearPM_free(uint32_t pool_id, void *address);
/* The object from which the program finds all others; NULL where none was set. */
void *NearPM_root(uint32_t pool_id);
int NearPM_set_root(uint32_t pool_id, void *address);

/* Makes stores to a range durable. */
int NearPM_persist(uint32_t pool_id, const void *address, uint64_t size);

/* Undo logging: logs the old value of a range. The program may then store to it; NearPM_commit_log makes
 * what it stored durable and keeps it, and until then a power cut restores the old value. */
int NearPM_undolog_create(uint32_t pool_id, uint16_t thread_id, const void *old_data_ptr, uint64_t size);

/* Redo logging: puts a new value into the log, and gives the log entry. Several may follow each other. */
void *NearPM_redolog_create(uint32_t pool_id, uint16_t thread_id, const void *destination, const void *new_data,
                            uint64_t size);
/* Applies the log. The first call commits every value in the log of the thread, all or none. The destinations must not be
 * touched until NearPM_commit_log. */
int NearPM_applylog(uint32_t pool_id, uint16_t thread_id, const void *redolog_ptr, uint64_t size);

/* Ends the log of a thread, durably: what its old values covered is kept as it is now, and its new values are in place. */
int NearPM_commit_log(uint32_t pool_id, uint16_t thread_id);
/* Ends the log of a thread: what its old values covered is restored, and new values that were not applied are dropped. */
int NearPM_abort_log(uint32_t pool_id, uint16_t thread_id);

/* Checkpointing: saves the 4 KiB pages that a range touches, each once until NearPM_commit_log. Otherwise like
 * NearPM_undolog_create. */
int NearPM_ckpoint_create(uint32_t pool_id, uint16_t thread_id, const void *old_data_ptr, uint64_t size);

/* Shadow paging: copies whole 4 KiB pages to new ones and gives the copy. The program stores to the copy, persists it, and
 * switches the reference to it. */
void *NearPM_shadowcpy(uint32_t pool_id, uint16_t thread_id, const void *page_ptr, uint64_t size);
/* Makes *reference, an offset in the pool, name the copy, and frees what it named before; both or neither, and durably. */
int NearPM_switch_page(uint32_t pool_id, uint64_t *reference, void *copy);

#ifdef __cplusplus
}
#endif

#endif
