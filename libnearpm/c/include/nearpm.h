/* NearPM: crash-consistent pools of persistent memory for programs that store through pointers.
 *
 * Made from the library's source. Do not edit.
 *
 * nearpm(7) is the introduction, and each function has a page. Compile with $(pkg-config --cflags --libs nearpm).
 */

#ifndef NEARPM_H
#define NEARPM_H

#include <stddef.h>
#include <stdint.h>

// What the program's stores go to.
enum nearpm_mode {
    // A volatile copy of the pool: a private mapping of the file. What a commit names is logged,
    // durable with one fence.
    NEARPM_WORKING_COPY = 0,
    // Persistent memory itself: each range is durable in the log before the program may store. Not
    // on ordinary files.
    NEARPM_IN_PLACE = 1,
};

// How a commit of a working copy goes home.
enum nearpm_mechanism {
    // By one record of new bytes, which the processor writes and brings home later.
    NEARPM_BY_RECORD = 0,
    // Old bytes are logged, then the new ones are stored. On a card one command logs each range.
    NEARPM_BY_UNDO = 1,
    // New bytes are logged and then applied. On a card commands apply them.
    NEARPM_BY_REDO = 2,
    // Pages of 4 KiB are copied before they are stored to. On a card commands copy them.
    NEARPM_BY_CHECKPOINT = 3,
    // Pages of 4 KiB are copied aside and stored to there, and all references switch at once. On a
    // card commands copy and switch. The pool has pages to spare, an eighth of its heap, if it is
    // created with this; the working copy is of all bytes in use.
    NEARPM_BY_SHADOW = 4,
};

// Who makes the copies that a mechanism needs.
enum nearpm_executor {
    // The card that the pool lies on; the processor for pools elsewhere.
    NEARPM_AUTO = 0,
    // The processor.
    NEARPM_CPU = 1,
    // The card that the pool lies on. With a mechanism it is refused for pools elsewhere.
    NEARPM_CARD = 2,
};

// What a commit waits for.
enum nearpm_durability {
    // A commit that has returned survives.
    NEARPM_DURABLE = 0,
    // A commit that has returned survives from the next `nearpm_wait_durable` on; until then a
    // crash takes back the newest ones. For working copies of ordinary files and those with a
    // mechanism, elsewhere as `NEARPM_DURABLE`.
    NEARPM_ASYNCHRONOUS = 1,
};

// What a pool on an ordinary file survives. A pool on a DAX file system survives power cuts in any
// case.
enum nearpm_survives {
    // A power cut: what must be durable is synchronised with the medium.
    NEARPM_POWER_CUT = 0,
    // A crash of the process alone: nothing is synchronised.
    NEARPM_PROCESS_CRASH = 1,
    // A power cut, if the program is right that the file lies in persistent memory although the
    // system does not say so.
    NEARPM_AS_PERSISTENT_MEMORY = 2,
    // As `NEARPM_AS_PERSISTENT_MEMORY`, where the power supply saves the processors' caches as
    // well (eADR): nothing is written back.
    NEARPM_AS_PERSISTENT_CACHES = 3,
};

// Error codes.
enum NearPM_code {
    // No error.
    NEARPM_OK = 0,
    // An argument makes no sense: a null pointer, a size of zero, a bad name or option, a handle
    // that is none.
    NEARPM_EINVAL = 1,
    // The pool does not exist, or no pool has this identifier.
    NEARPM_ENOENT = 2,
    // Something with this name exists already.
    NEARPM_EEXIST = 3,
    // The pool is open already, or is still in use.
    NEARPM_EBUSY = 4,
    // The pool may not be written.
    NEARPM_EACCES = 5,
    // No space on the medium, or no free space in the pool.
    NEARPM_ENOSPC = 6,
    // The pool is foreign, unfinished, newer, truncated or corrupt.
    NEARPM_EBADPOOL = 7,
    // A range leaves the pool, is not aligned, or is not an allocated object.
    NEARPM_ERANGE = 8,
    // The log of the thread is full, or there is none.
    NEARPM_ELOG = 9,
    // The card failed or has gone.
    NEARPM_EDEVICE = 10,
    // An earlier failure: close and open the pool.
    NEARPM_EPOISONED = 11,
    // The operating system refused.
    NEARPM_ESYSTEM = 12,
    // A fault of this library.
    NEARPM_EINTERNAL = 13,
};

// An open direct pool. It names the pool and is no address.
struct nearpm_pool;

// An open transaction. It names the transaction and is no address.
struct nearpm_tx;

// How a pool is created and opened. Zeros are the defaults: `struct nearpm_options options = {0};`
struct nearpm_options {
    // A value of `enum nearpm_mode`.
    uint32_t mode;
    // A value of `enum nearpm_durability`.
    uint32_t durability;
    // A value of `enum nearpm_survives`.
    uint32_t survives;
    // 1: every page gets its memory at open, so that no transaction pays for a page fault; of a
    // working copy that takes as much memory as the pool has bytes.
    uint32_t prefault;
    // At creation: the identifier of the pool; 0: a random one.
    uint32_t id;
    // At opening, 1: for reading, together with other processes that do, and without changing the
    // file. A store ends the process.
    uint32_t read_only;
    // 1: faults of the program are looked for and printed to standard error: stores that are not
    // made durable, not added, or made durable twice. It takes twice the memory of the pool, and
    // time.
    uint32_t lint;
    // A value of `enum nearpm_mechanism`.
    uint32_t mechanism;
    // A value of `enum nearpm_executor`.
    uint32_t executor;
    // Zeros, for what a later library may know.
    uint32_t reserved[7];
};

// A range of bytes in a pool.
struct nearpm_range {
    // Its first byte.
    const void *address;
    // Bytes, not 0.
    uint64_t bytes;
};

// What an open direct pool is.
struct nearpm_info {
    // Where the program sees offset 0.
    void *base;
    // Bytes of the pool.
    uint64_t bytes;
    // First offset that an object may have.
    uint64_t heap_start;
    // Offset behind the last object.
    uint64_t heap_end;
    // Bytes that are free, in pieces.
    uint64_t free_bytes;
    // Identifier of the pool.
    uint32_t id;
    // A value of `enum nearpm_mode`.
    uint32_t mode;
};

// What a direct pool has done since it was opened.
struct nearpm_statistics {
    // Transactions that were committed, read-only ones and the library's own for `nearpm_alloc`
    // and the like included.
    uint64_t transactions;
    // Transactions that were taken back.
    uint64_t aborts;
    // Transactions whose commit was durable when it returned.
    uint64_t acknowledged;
    // Records in the log.
    uint64_t log_entries;
    // Bytes of them: heads, data and what fills up lines.
    uint64_t log_bytes;
    // Fences and synchronisations.
    uint64_t fences;
    // Lines of 64 bytes whose write-back was asked for.
    uint64_t lines_written_back;
    // Commands that were posted to the card; 0 where the processor makes all copies.
    uint64_t commands;
};

// The allocator of a direct pool. What open transactions have allocated counts as objects.
struct nearpm_heap {
    // Objects.
    uint64_t objects;
    // Bytes of all objects, as large as their places are.
    uint64_t used_bytes;
    // Free bytes: whole chunks, and places in chunks of small objects.
    uint64_t free_bytes;
    // The largest object that fits.
    uint64_t largest_free_bytes;
    // Bytes that the log has taken.
    uint64_t log_bytes;
};

// What the recovery at open found and did.
struct nearpm_recovery {
    // Log records that were rolled back.
    uint64_t undone;
    // Log records that were applied again.
    uint64_t redone;
    // Bytes that both wrote.
    uint64_t bytes;
    // Log records that were not whole, or belong to a transaction that is not.
    uint64_t torn;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Creates a direct pool in a file, or on a card, and opens it.
//
// The file must not exist, and is gone again when the call fails. With `bytes` 0 the pool fills a
// file that exists and whose first page is blank. A pool on a card has `card:NAME/POOL` instead of
// a path, where NAME is that of `NearPM_init_device`; while the environment names a simulated card
// (`NEARPM_CARD`, in the library that has one), new pools at paths lie there, too. `options` may
// be `NULL`, for a working copy with durable commits that survive power cuts. `*pool` names the
// pool until `nearpm_close`, for all threads; it is `NULL` after a failure.
//
// # Returns
// `NEARPM_OK`, or the code of the failure.
//
// # Errors
// - `NEARPM_EINVAL`: a null pointer, a path that is not UTF-8, an option that makes no sense or
//   that this file cannot have, or fewer bytes than a pool needs.
// - `NEARPM_EEXIST`: there is something at this path.
// - `NEARPM_ENOENT`: no card has this name.
// - `NEARPM_ENOSPC`: the medium has not that many bytes free.
// - `NEARPM_EDEVICE`: the card failed, is in another process, or `NEARPM_CARD` is set and this
//   library has none.
// - `NEARPM_EACCES`, `NEARPM_ESYSTEM`: the system refused.
//
// # Safety
// `path` is `NULL` or a string, `options` is `NULL` or readable, `pool` is `NULL` or writable.
//
// # Example
// ```c
// struct nearpm_options options = {.mode = NEARPM_WORKING_COPY, .survives = NEARPM_PROCESS_CRASH};
// int code = nearpm_create("/tmp/a.pool", 64 << 20, &options, &pool);
// ```
int nearpm_create(const char *path, uint64_t bytes, const struct nearpm_options *options, struct nearpm_pool **pool);

// Opens a direct pool, recovering it first.
//
// What transactions committed is there, what others did is not. A pool is open once at a time, in
// one process, unless all open it for reading. `options` may be `NULL` and may differ from those
// at creation. `*pool` is `NULL` after a failure.
//
// # Returns
// `NEARPM_OK`, or the code of the failure.
//
// # Errors
// - `NEARPM_ENOENT`: there is nothing at this path, or no card has this name.
// - `NEARPM_EDEVICE`: the card failed, is in another process, or `NEARPM_CARD` is set, the pool on
//   a card, and this library has none.
// - `NEARPM_EBUSY`: the pool is open already; the message says in which process.
// - `NEARPM_EBADPOOL`: the file is no pool, or a newer, truncated or corrupt one; nothing was
//   changed.
// - `NEARPM_EINVAL`: a null pointer, or an option that makes no sense or that this file cannot
//   have.
// - `NEARPM_EACCES`, `NEARPM_ESYSTEM`: the system refused.
//
// # Safety
// `path` is `NULL` or a string, `options` is `NULL` or readable, `pool` is `NULL` or writable.
int nearpm_open(const char *path, const struct nearpm_options *options, struct nearpm_pool **pool);

// Closes a direct pool.
//
// What was stored and never made durable becomes durable as well. Pointers into the pool are
// invalid from then on. After a failure of the medium the pool is closed all the same, and
// recovered when it is opened again. A process that ends without closing loses nothing that was
// committed.
//
// # Returns
// `NEARPM_OK`, or the code of the failure.
//
// # Errors
// - `NEARPM_EINVAL`: no open pool.
// - `NEARPM_EBUSY`: a transaction is open on it, or another thread is in a call: the pool stays
//   open.
// - `NEARPM_ESYSTEM`: the medium refused.
int nearpm_close(struct nearpm_pool *pool);

// Begins a transaction on a direct pool.
//
// It belongs to the calling thread, and ends with `nearpm_tx_commit` or `nearpm_tx_abort`; one
// that is open when its thread ends is taken back. A thread may have several, also on one pool;
// two open transactions must not add the same bytes.
//
// # Returns
// `NEARPM_OK` with the transaction in `*tx`, or the code of the failure with `NULL` there.
//
// # Errors
// - `NEARPM_EINVAL`: no open pool, or a null pointer.
// - `NEARPM_EACCES`: the pool was opened for reading.
// - `NEARPM_EPOISONED`: an earlier failure.
//
// # Safety
// `tx` is `NULL` or writable.
//
// # Example
// ```c
// uint64_t *counter;
// if (nearpm_root(pool, sizeof *counter, (void **)&counter) != NEARPM_OK) return;
// if (nearpm_tx_begin(pool, &tx) != NEARPM_OK) return;
// if (nearpm_tx_add(tx, counter, sizeof *counter) == NEARPM_OK) {
//     *counter += 1;
//     nearpm_tx_commit(tx);
// } else {
//     nearpm_tx_abort(tx);
// }
// ```
int nearpm_tx_begin(struct nearpm_pool *pool, struct nearpm_tx **tx);

// Tells that the program is about to change a range.
//
// Must be called before the program stores there. An abort or a crash gives the bytes back as they
// are now; a commit makes them durable as they are then. Bytes that were added before, or that
// belong to an object that the transaction allocated, cost nothing.
//
// # Returns
// `NEARPM_OK`, or the code of the failure: the range was not added, and the transaction goes on.
//
// # Errors
// - `NEARPM_EINVAL`: no open transaction of this thread, or no bytes.
// - `NEARPM_ERANGE`: the range leaves the part of the pool that objects lie in.
// - `NEARPM_ENOSPC`: no room for the log.
int nearpm_tx_add(struct nearpm_tx *tx, const void *address, uint64_t bytes);

// Tells that the program is about to change several ranges.
//
// As `nearpm_tx_add` of each of them, all or none, and in place with one fence for all.
//
// # Returns
// `NEARPM_OK`, or the code of the failure: no range was added, and the transaction goes on.
//
// # Errors
// - `NEARPM_EINVAL`: no open transaction of this thread, no ranges, or one without bytes.
// - `NEARPM_ERANGE`: a range leaves the part of the pool that objects lie in.
// - `NEARPM_ENOSPC`: no room for the log.
//
// # Safety
// `ranges` is `NULL` or points to `count` ranges.
//
// # Example
// ```c
// uint64_t *words;
// if (nearpm_root(pool, 4096, (void **)&words) != NEARPM_OK) return;
// const struct nearpm_range ranges[] = {{&words[0], 8}, {&words[500], 8}};
// int code = nearpm_tx_add_all(tx, ranges, 2);
// ```
int nearpm_tx_add_all(struct nearpm_tx *tx, const struct nearpm_range *ranges, size_t count);

// Makes a range durable with the commit, and keeps no old bytes.
//
// For bytes that nobody reads if the transaction does not commit: after an abort or a crash they
// may be old or new.
//
// # Returns
// `NEARPM_OK`, or the code of the failure: the range was not added, and the transaction goes on.
//
// # Errors
// - `NEARPM_EINVAL`: no open transaction of this thread, or no bytes.
// - `NEARPM_ERANGE`: the range leaves the part of the pool that objects lie in.
int nearpm_tx_add_new(struct nearpm_tx *tx, const void *address, uint64_t bytes);

// Allocates an object, with the commit.
//
// Its bytes are what the space held before; what they are at the commit becomes durable with it.
// It need not be added. A size that is a multiple of 16, 64 or 4096 gives an address that is one.
//
// # Returns
// `NEARPM_OK` with the address in `*object`, or the code of the failure: nothing was allocated,
// and the transaction goes on.
//
// # Errors
// - `NEARPM_EINVAL`: no open transaction of this thread, no bytes, or a null pointer.
// - `NEARPM_ENOSPC`: the pool has no room.
//
// # Safety
// `object` is `NULL` or writable.
int nearpm_tx_alloc(struct nearpm_tx *tx, uint64_t bytes, void **object);

// Allocates an object of zeros, with the commit.
//
// Otherwise as `nearpm_tx_alloc`.
//
// # Returns
// `NEARPM_OK` with the address in `*object`, or the code of the failure: nothing was allocated,
// and the transaction goes on.
//
// # Errors
// - `NEARPM_EINVAL`: no open transaction of this thread, no bytes, or a null pointer.
// - `NEARPM_ENOSPC`: the pool has no room.
//
// # Safety
// `object` is `NULL` or writable.
int nearpm_tx_zalloc(struct nearpm_tx *tx, uint64_t bytes, void **object);

// Frees an object, with the commit.
//
// Also one that the same transaction allocated. Until the commit its bytes stay as they are. The
// root can only be freed after `nearpm_tx_set_root` of another one.
//
// # Returns
// `NEARPM_OK`, or the code of the failure: nothing was freed, and the transaction goes on.
//
// # Errors
// - `NEARPM_EINVAL`: no open transaction of this thread, or the object is the root.
// - `NEARPM_ERANGE`: the address is not that of an object (freed twice, or never allocated).
int nearpm_tx_free(struct nearpm_tx *tx, void *object);

// Makes an object the root, with the commit.
//
// `NULL`: there is no root from then on. The former root stays allocated.
//
// # Returns
// `NEARPM_OK`, or the code of the failure: the root stays as it was, and the transaction goes on.
//
// # Errors
// - `NEARPM_EINVAL`: no open transaction of this thread.
// - `NEARPM_ERANGE`: the address is not that of an object that this transaction or a committed one
//   allocated.
int nearpm_tx_set_root(struct nearpm_tx *tx, void *object);

// Commits a transaction: all of it becomes durable, and the transaction has ended.
//
// # Returns
// `NEARPM_OK`, or the code of the failure: all of it was taken back, and the transaction has ended
// as well.
//
// # Errors
// - `NEARPM_EINVAL`: no open transaction of this thread.
// - `NEARPM_ENOSPC`: no room for the log.
// - `NEARPM_ESYSTEM`, `NEARPM_EPOISONED`: the medium refused; whether the transaction survives
//   shows when the pool is opened again.
int nearpm_tx_commit(struct nearpm_tx *tx);

// Takes a transaction back, and ends it.
//
// Ranges get the bytes that they had when they were added, objects that were allocated are gone,
// objects that were freed are there.
//
// # Returns
// `NEARPM_OK`, or the code of the failure: the transaction has ended, and the pool must be opened
// again.
//
// # Errors
// - `NEARPM_EINVAL`: no open transaction of this thread.
// - `NEARPM_ESYSTEM`, `NEARPM_EPOISONED`: the medium refused.
int nearpm_tx_abort(struct nearpm_tx *tx);

// Gives the address of an offset in a direct pool.
//
// Addresses change from run to run, offsets do not: references in a pool are offsets. Offset 0 is
// the null pointer. A program may as well add to `base` of `struct nearpm_info`.
//
// # Returns
// The address; `NULL` for 0 and after a failure.
//
// # Errors
// - `NEARPM_EINVAL`: no open pool.
// - `NEARPM_ERANGE`: the offset is not in the pool.
void *nearpm_direct(const struct nearpm_pool *pool, uint64_t offset);

// Gives the offset of an address in a direct pool.
//
// # Returns
// The offset; 0 for `NULL` and after a failure.
//
// # Errors
// - `NEARPM_EINVAL`: no open pool.
// - `NEARPM_ERANGE`: the address does not point into the pool.
uint64_t nearpm_offset(const struct nearpm_pool *pool, const void *address);

// Gives the root of a direct pool: the object from which the program finds all others.
//
// If there is none and `bytes` is not 0, an object of so many zeros is made and becomes the root,
// atomically and durably. With `bytes` 0 the root is given as it is.
//
// # Returns
// `NEARPM_OK` with the address in `*root` (`NULL` if there is no root and `bytes` is 0), or the
// code of the failure.
//
// # Errors
// - `NEARPM_EINVAL`: no open pool, or a null pointer.
// - `NEARPM_ERANGE`: the root has fewer bytes.
// - `NEARPM_EACCES`: there is no root, and the pool was opened for reading.
// - `NEARPM_ENOSPC`: the pool has no room.
//
// # Safety
// `root` is `NULL` or writable.
//
// # Example
// ```c
// struct list { uint64_t first, length; } *list;
// int code = nearpm_root(pool, sizeof *list, (void **)&list);
// ```
int nearpm_root(struct nearpm_pool *pool, uint64_t bytes, void **root);

// Allocates an object and stores its offset, atomically and durably.
//
// `contents` becomes what the object holds; `NULL`: zeros. If `*place` lies in the pool, a crash
// leaves both the object and its offset there, or neither, so that no object is lost; it may also
// lie in ordinary memory. Inside of a transaction that has added or changed `*place` use
// `nearpm_tx_alloc`: this call is a transaction of its own.
//
// # Returns
// `NEARPM_OK` with the object's offset in `*place`, or the code of the failure: nothing was
// allocated or stored.
//
// # Errors
// - `NEARPM_EINVAL`: no open pool, a null pointer, or no bytes.
// - `NEARPM_ERANGE`: `place` is not a multiple of 8.
// - `NEARPM_ENOSPC`: the pool has no room.
// - `NEARPM_EACCES`: the pool was opened for reading.
// - `NEARPM_ESYSTEM`, `NEARPM_EPOISONED`: the medium refused.
//
// # Safety
// `contents` is `NULL` or has `bytes` readable bytes, `place` is `NULL` or writable.
//
// # Example
// ```c
// struct list { uint64_t first, length; } *list;
// if (nearpm_root(pool, sizeof *list, (void **)&list) != NEARPM_OK) return;
// int code = nearpm_alloc(pool, 6, "hello", &list->first);
// if (code == NEARPM_OK) puts(nearpm_direct(pool, list->first));
// ```
int nearpm_alloc(struct nearpm_pool *pool, uint64_t bytes, const void *contents, uint64_t *place);

// Frees the object whose offset is in `*place`, and stores 0 there, atomically and durably.
//
// If `*place` is 0 nothing is done. It may lie in the pool or in ordinary memory. The root can
// only be freed after `nearpm_tx_set_root` of another one.
//
// # Returns
// `NEARPM_OK`, or the code of the failure: nothing was freed or stored.
//
// # Errors
// - `NEARPM_EINVAL`: no open pool, a null pointer, or the object is the root.
// - `NEARPM_ERANGE`: the offset is not that of an object (freed twice, or never allocated), or
//   `place` is not a multiple of 8.
// - `NEARPM_EACCES`: the pool was opened for reading.
// - `NEARPM_ESYSTEM`, `NEARPM_EPOISONED`: the medium refused.
//
// # Safety
// `place` is `NULL` or readable and writable.
int nearpm_free(struct nearpm_pool *pool, uint64_t *place);

// Gives the bytes that an object has, at least those that were asked for.
//
// # Returns
// `NEARPM_OK` with the size in `*bytes`, or the code of the failure.
//
// # Errors
// - `NEARPM_EINVAL`: no open pool, or a null pointer.
// - `NEARPM_ERANGE`: the address is not that of an object.
//
// # Safety
// `bytes` is `NULL` or writable.
int nearpm_usable_size(const struct nearpm_pool *pool, const void *object, uint64_t *bytes);

// Gives the object that follows another one, in the order of addresses.
//
// `NULL` for `after`: the first. The root is among them; what open transactions have allocated is
// not.
//
// # Returns
// `NEARPM_OK` with the address in `*object`, `NULL` behind the last one; or the code of the
// failure.
//
// # Errors
// - `NEARPM_EINVAL`: no open pool, or a null pointer.
// - `NEARPM_ERANGE`: `after` does not point into the pool.
//
// # Safety
// `object` is `NULL` or writable.
//
// # Example
// ```c
// void *object = NULL;
// while (nearpm_next(pool, object, &object) == NEARPM_OK && object)
//     printf("object at offset %llu\n", (unsigned long long)nearpm_offset(pool, object));
// ```
int nearpm_next(const struct nearpm_pool *pool, const void *after, void **object);

// Makes a range durable that the program has stored outside of transactions.
//
// From a working copy a range of up to 64 KiB becomes durable all together or not at all. Bytes
// that an open transaction has added become durable with its commit, without this call.
//
// # Returns
// `NEARPM_OK`, or the code of the failure.
//
// # Errors
// - `NEARPM_EINVAL`: no open pool, or no bytes.
// - `NEARPM_ERANGE`: the range leaves the part of the pool that objects lie in.
// - `NEARPM_ENOSPC`: no room for the log.
// - `NEARPM_EACCES`: the pool was opened for reading.
// - `NEARPM_ESYSTEM`, `NEARPM_EPOISONED`: the medium refused.
int nearpm_persist(struct nearpm_pool *pool, const void *address, uint64_t bytes);

// Makes several ranges durable that the program has stored outside of transactions.
//
// As `nearpm_persist` of each of them, with one fence for all. From a working copy they become
// durable all together or not at all, unless one of them has more than 64 KiB.
//
// # Returns
// `NEARPM_OK`, or the code of the failure.
//
// # Errors
// - `NEARPM_EINVAL`: no open pool, no ranges, or one without bytes.
// - `NEARPM_ERANGE`: a range leaves the part of the pool that objects lie in; none was made
//   durable.
// - `NEARPM_ENOSPC`: no room for the log.
// - `NEARPM_EACCES`: the pool was opened for reading.
// - `NEARPM_ESYSTEM`, `NEARPM_EPOISONED`: the medium refused.
//
// # Safety
// `ranges` is `NULL` or points to `count` ranges.
int nearpm_persist_all(struct nearpm_pool *pool, const struct nearpm_range *ranges, size_t count);

// Waits until every asynchronous commit that has returned is durable.
//
// # Returns
// `NEARPM_OK`, or the code of the failure.
//
// # Errors
// - `NEARPM_EINVAL`: no open pool.
// - `NEARPM_ESYSTEM`, `NEARPM_EPOISONED`: the medium refused.
int nearpm_wait_durable(struct nearpm_pool *pool);

// Says what an open direct pool is.
//
// `size` is `sizeof *info`: fields that the library does not know become 0.
//
// # Returns
// `NEARPM_OK`, or the code of the failure.
//
// # Errors
// - `NEARPM_EINVAL`: no open pool, a null pointer, or no bytes.
//
// # Safety
// `info` is `NULL` or has `size` writable bytes.
//
// # Example
// ```c
// struct nearpm_info info;
// if (nearpm_get_info(pool, &info, sizeof info) == NEARPM_OK)
//     printf("%llu of %llu bytes are free\n", (unsigned long long)info.free_bytes, (unsigned long long)info.bytes);
// ```
int nearpm_get_info(const struct nearpm_pool *pool, struct nearpm_info *info, size_t size);

// Says what a direct pool has done since it was opened.
//
// `size` is `sizeof *statistics`: fields that the library does not know become 0. Counting costs
// nothing and cannot be turned off.
//
// # Returns
// `NEARPM_OK`, or the code of the failure.
//
// # Errors
// - `NEARPM_EINVAL`: no open pool, a null pointer, or no bytes.
//
// # Safety
// `statistics` is `NULL` or has `size` writable bytes.
int nearpm_get_statistics(const struct nearpm_pool *pool, struct nearpm_statistics *statistics, size_t size);

// Says how full a direct pool is, and in which pieces.
//
// `size` is `sizeof *heap`: fields that the library does not know become 0. The whole index of the
// pool is looked through, which takes time in large pools.
//
// # Returns
// `NEARPM_OK`, or the code of the failure.
//
// # Errors
// - `NEARPM_EINVAL`: no open pool, a null pointer, or no bytes.
//
// # Safety
// `heap` is `NULL` or has `size` writable bytes.
int nearpm_get_heap(const struct nearpm_pool *pool, struct nearpm_heap *heap, size_t size);

// Says what the recovery found and did when a direct pool was opened.
//
// `size` is `sizeof *recovery`: fields that the library does not know become 0. All zeros: the
// pool had been closed in order, or nothing was under way.
//
// # Returns
// `NEARPM_OK`, or the code of the failure.
//
// # Errors
// - `NEARPM_EINVAL`: no open pool, a null pointer, or no bytes.
//
// # Safety
// `recovery` is `NULL` or has `size` writable bytes.
int nearpm_get_recovery(const struct nearpm_pool *pool, struct nearpm_recovery *recovery, size_t size);

// Gives the code of this thread's last failure.
//
// Calls that succeed leave it as it was. Functions that give a code give the same one; this is for
// those that give a pointer or an offset.
//
// # Returns
// A value of `enum NearPM_code`, `NEARPM_OK` if no call of this thread has failed.
//
// # Errors
// None.
int nearpm_errno(void);

// Gives the text of this thread's last failure: what went wrong, where, and what to do.
//
// # Returns
// A text that is valid until the next failure of this thread; an empty one if no call of this
// thread has failed.
//
// # Errors
// None.
//
// # Example
// ```c
// if (nearpm_open("/mnt/pmem/a.pool", NULL, &pool) != NEARPM_OK)
//     fprintf(stderr, "%s\n", nearpm_errormsg());
// ```
const char *nearpm_errormsg(void);

// Gives the version of the library.
//
// # Returns
// A text such as `0.1.0`, valid as long as the program runs.
//
// # Errors
// None.
const char *nearpm_version(void);

// Initialises a device.
//
// `"vfio:ADDRESS"` is a card of this machine that is bound to vfio-pci, `"vfio-user:SOCKET"` one
// that another process serves. It stays open until the process ends, and pools of either kind are
// named `card:card/POOL` on it; with `"NAME=vfio:ADDRESS"` and the like, `card:NAME/POOL`. Options
// of an address follow behind commas: `window=uncached`, `wc` or `wb`, `wait=polling` or
// `interrupts`. A card makes the copies for pools that lie on it.
//
// `NULL`: nothing is opened; the processor makes the copies for pools in files. `"cpu"`: likewise,
// and pools for primitives that are created or opened from then on have the processor make them on
// a card, too.
//
// # Returns
// 0, or -1 after a failure.
//
// # Errors
// - `NEARPM_EDEVICE`: the path is none of these, there is no such card, it does not start, or this
//   library is for a machine on which it reaches none.
// - `NEARPM_EEXIST`: a card has this name already.
//
// # Safety
// `device_path` is `NULL` or a string.
//
// # Example
// ```c
// uint32_t id;
// if (NearPM_init_device("vfio:0000:01:00.0") == 0)
//     NearPM_pool_create("card:card/counters", 8 << 20, &id);
// ```
int NearPM_init_device(const char *device_path);

// Creates a pool for primitives in a file, or on a card, and opens it.
//
// `*pool_id` names it from then on. The file must not exist, and is gone again when the call
// fails. On a card (`card:NAME/POOL`, as with `nearpm_create`) the program's addresses are those
// of a copy: what it stores goes to the card when `NearPM_persist`, `NearPM_commit_log` or
// `NearPM_switch_page` need it there, or when the pool is closed.
//
// # Returns
// 0, or -1 after a failure.
//
// # Errors
// - `NEARPM_EINVAL`: a null pointer, a bad path, or fewer bytes than a pool needs.
// - `NEARPM_EEXIST`: there is something at this path.
// - `NEARPM_ENOENT`: no card has this name.
// - `NEARPM_EDEVICE`: the card failed, is in another process, or `NEARPM_CARD` is set and this
//   library has none.
// - `NEARPM_ENOSPC`: the medium has not that many bytes free.
// - `NEARPM_EACCES`, `NEARPM_ESYSTEM`: the system refused.
//
// # Safety
// `location` is `NULL` or a string, `pool_id` is `NULL` or writable.
int NearPM_pool_create(const char *location, uint64_t bytes, uint32_t *pool_id);

// Opens a pool for primitives, recovering it first.
//
// `*pool_id` names it from then on.
//
// # Returns
// 0, or -1 after a failure.
//
// # Errors
// - `NEARPM_EINVAL`: a null pointer or a bad path.
// - `NEARPM_ENOENT`: there is nothing at this path, or no card has this name.
// - `NEARPM_EDEVICE`: the card failed, is in another process, or `NEARPM_CARD` is set, the pool on
//   a card, and this library has none.
// - `NEARPM_EBUSY`: the pool is open already.
// - `NEARPM_EBADPOOL`: the file is no pool, or a newer, truncated or corrupt one.
// - `NEARPM_EACCES`, `NEARPM_ESYSTEM`: the system refused.
//
// # Safety
// `location` is `NULL` or a string, `pool_id` is `NULL` or writable.
int NearPM_pool_open(const char *location, uint32_t *pool_id);

// Closes a pool for primitives.
//
// What was stored and never made durable becomes durable as well. What an open log covers is taken
// back when it is opened the next time.
//
// # Returns
// 0, or -1 after a failure.
//
// # Errors
// - `NEARPM_ENOENT`: no pool with this identifier is open.
// - `NEARPM_EBUSY`: another thread is in a call on it; it stays open.
// - `NEARPM_ESYSTEM`: the medium refused.
int NearPM_pool_close(uint32_t pool_id);

// Gives the address of an offset in a pool for primitives.
//
// Addresses change from run to run, offsets do not: references in a pool are offsets. Offset 0 is
// the null pointer.
//
// # Returns
// The address; `NULL` for 0 and after a failure.
//
// # Errors
// - `NEARPM_ENOENT`: no pool with this identifier is open.
// - `NEARPM_ERANGE`: the offset is not in the pool.
void *NearPM_direct(uint32_t pool_id, uint64_t at);

// Gives the offset of an address in a pool for primitives.
//
// # Returns
// The offset; 0 after a failure.
//
// # Errors
// - `NEARPM_ENOENT`: no pool with this identifier is open.
// - `NEARPM_ERANGE`: the address does not point into the pool.
uint64_t NearPM_offset(uint32_t pool_id, const void *address);

// Allocates zeroed bytes, atomically and durably.
//
// A size that is a multiple of 64 or 4096 gives an address that is one.
//
// # Returns
// The address, or `NULL` after a failure.
//
// # Errors
// - `NEARPM_ENOENT`: no pool with this identifier is open.
// - `NEARPM_EINVAL`: no bytes.
// - `NEARPM_ENOSPC`: the pool has no room.
// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
void *NearPM_alloc(uint32_t pool_id, uint64_t size);

// Frees what `NearPM_alloc` gave, atomically and durably.
//
// # Returns
// 0, or -1 after a failure.
//
// # Errors
// - `NEARPM_ENOENT`: no pool with this identifier is open.
// - `NEARPM_ERANGE`: the address is not that of an object (freed twice, or never allocated).
// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
int NearPM_free(uint32_t pool_id, void *address);

// Gives the object from which the program finds all others.
//
// # Returns
// The address; `NULL` where none was set and after a failure.
//
// # Errors
// - `NEARPM_ENOENT`: no pool with this identifier is open.
void *NearPM_root(uint32_t pool_id);

// Makes an object the root, atomically and durably.
//
// `NULL`: there is none from then on.
//
// # Returns
// 0, or -1 after a failure.
//
// # Errors
// - `NEARPM_ENOENT`: no pool with this identifier is open.
// - `NEARPM_ERANGE`: the address is not that of an object.
// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
int NearPM_set_root(uint32_t pool_id, void *address);

// Makes stores to a range durable.
//
// # Returns
// 0, or -1 after a failure.
//
// # Errors
// - `NEARPM_ENOENT`: no pool with this identifier is open.
// - `NEARPM_ERANGE`: the range leaves the pool's heap.
// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
int NearPM_persist(uint32_t pool_id, const void *address, uint64_t size);

// Undo logging: logs the old value of a range.
//
// The program may then store to it; `NearPM_commit_log` makes what it stored durable and keeps it,
// and until then a power cut restores the old value. The log of a `thread_id` is used by one
// thread at a time, and two open logs must not cover the same bytes.
//
// # Returns
// 0, or -1 after a failure.
//
// # Errors
// - `NEARPM_ENOENT`: no pool with this identifier is open.
// - `NEARPM_ERANGE`: the range leaves the pool's heap.
// - `NEARPM_EINVAL`: no bytes.
// - `NEARPM_ELOG`: no log for this thread number, its log is full, or holds something else.
// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
int NearPM_undolog_create(uint32_t pool_id, uint16_t thread_id, const void *old_data_ptr, uint64_t size);

// Redo logging: puts a new value into the log.
//
// Several may follow each other. `destination` is where `NearPM_applylog` will store it.
//
// # Returns
// The log entry, or `NULL` after a failure.
//
// # Errors
// - `NEARPM_ENOENT`: no pool with this identifier is open.
// - `NEARPM_ERANGE`: the range leaves the pool's heap.
// - `NEARPM_EINVAL`: a null pointer, or no bytes.
// - `NEARPM_ELOG`: no log for this thread number, its log is full, or holds something else.
// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
//
// # Safety
// `new_data` is `NULL` or points to `size` readable bytes.
void *NearPM_redolog_create(uint32_t pool_id,
                            uint16_t thread_id,
                            const void *destination,
                            const void *new_data,
                            uint64_t size);

// Redo logging: applies an entry of the log.
//
// The first call commits every value in the log of the thread, all or none. The destinations must
// not be touched until `NearPM_commit_log`.
//
// # Returns
// 0, or -1 after a failure.
//
// # Errors
// - `NEARPM_ENOENT`: no pool with this identifier is open.
// - `NEARPM_ERANGE`: no entry of this log, or not of this size.
// - `NEARPM_ELOG`: no log for this thread number, its log is full, or holds something else.
// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
int NearPM_applylog(uint32_t pool_id, uint16_t thread_id, const void *redolog_ptr, uint64_t size);

// Ends the log of a thread, durably.
//
// What its old values covered is kept as it is now, and its new values are in place.
//
// # Returns
// 0, or -1 after a failure.
//
// # Errors
// - `NEARPM_ENOENT`: no pool with this identifier is open.
// - `NEARPM_ELOG`: no log for this thread number, its log is full, or holds something else.
// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
int NearPM_commit_log(uint32_t pool_id, uint16_t thread_id);

// Ends the log of a thread, and takes back what it covers.
//
// What its old values covered is restored, and new values that were not applied are dropped.
//
// # Returns
// 0, or -1 after a failure.
//
// # Errors
// - `NEARPM_ENOENT`: no pool with this identifier is open.
// - `NEARPM_ELOG`: no log for this thread number, its log is full, or holds something else.
// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
int NearPM_abort_log(uint32_t pool_id, uint16_t thread_id);

// Checkpointing: saves the 4 KiB pages that a range touches.
//
// Each once until `NearPM_commit_log`. Otherwise like `NearPM_undolog_create`.
//
// # Returns
// 0, or -1 after a failure.
//
// # Errors
// - `NEARPM_ENOENT`: no pool with this identifier is open.
// - `NEARPM_ERANGE`: the range leaves the pool's heap.
// - `NEARPM_EINVAL`: no bytes.
// - `NEARPM_ELOG`: no log for this thread number, its log is full, or holds something else.
// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
int NearPM_ckpoint_create(uint32_t pool_id, uint16_t thread_id, const void *old_data_ptr, uint64_t size);

// Shadow paging: copies whole 4 KiB pages to new ones.
//
// The program stores to the copy, persists it, and switches the reference to it by
// `NearPM_switch_page`.
//
// # Returns
// The copy, or `NULL` after a failure.
//
// # Errors
// - `NEARPM_ENOENT`: no pool with this identifier is open.
// - `NEARPM_ERANGE`: not whole pages of the pool's heap.
// - `NEARPM_ENOSPC`: the pool has no room.
// - `NEARPM_ELOG`: no log for this thread number, its log is full, or holds something else.
// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
void *NearPM_shadowcpy(uint32_t pool_id, uint16_t thread_id, const void *page_ptr, uint64_t size);

// Shadow paging: makes a reference name the copy.
//
// `*reference`, an offset in the pool, becomes that of `copy`, and what it named before is freed;
// both or neither, and durably.
//
// # Returns
// 0, or -1 after a failure.
//
// # Errors
// - `NEARPM_ENOENT`: no pool with this identifier is open.
// - `NEARPM_ERANGE`: the reference does not lie in the pool, is not a multiple of 8, or names no
//   object, or the copy is none.
// - `NEARPM_EPOISONED`, `NEARPM_ESYSTEM`: an earlier failure, or the medium refused.
int NearPM_switch_page(uint32_t pool_id, uint64_t *reference, void *copy);

// Gives what a pool for primitives has done since it was opened.
//
// `size` is `sizeof *statistics`: a library that knows fewer fields fills the rest with zeros.
//
// # Returns
// 0, or -1 after a failure.
//
// # Errors
// - `NEARPM_ENOENT`: no pool with this identifier is open.
// - `NEARPM_EINVAL`: a null pointer, or no bytes.
//
// # Safety
// `statistics` is `NULL` or has `size` writable bytes.
int NearPM_get_statistics(uint32_t pool_id, struct nearpm_statistics *statistics, size_t size);

// Gives the code of this thread's last failure: the same as `nearpm_errno`.
//
// # Returns
// A value of `enum NearPM_code`, `NEARPM_OK` if no call of this thread has failed.
//
// # Errors
// None.
int NearPM_errno(void);

// Gives the text of this thread's last failure: the same as `nearpm_errormsg`.
//
// # Returns
// A text that is valid until the next failure of this thread; an empty one if no call of this
// thread has failed.
//
// # Errors
// None.
const char *NearPM_errormsg(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NEARPM_H */
