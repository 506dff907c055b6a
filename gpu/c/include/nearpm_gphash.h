/*
 * Hash tables that kernels of a GPU keep in persistent memory, in C (nearpm-gphash in Rust). What
 * kernels call is in gphash_calls.cuh: the argument of their gph_find and the like is the table's
 * handle.
 *
 * Devices, threads and errors are those of nearpm_gpm.h: gpm_error says why a call was refused.
 */
#ifndef NEARPM_GPHASH_H
#define NEARPM_GPHASH_H

#include "nearpm_gpm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An open table. The processor does not look inside; for kernels it is the description of the
 * table. */
typedef struct gph_table gph_table;

/* Designs. */
#define GPH_IN_LEVELS 0  /* the paper's (GPHash, FAST 2025), with its holes closed */
#define GPH_IN_WINDOWS 1 /* ours: the faster one */

/* A table to be made. */
typedef struct gph_layout {
    uint32_t design;
    uint32_t value_bytes;   /* 16 to 65536, a multiple of 16 */
    uint64_t slots;         /* pairs that it has room for, about a fifth more than are to be in it */
    uint32_t key_bytes;     /* 0: keys are words of 8 bytes; else they have so many bytes, at most 1024 */
    uint32_t variable_keys; /* not 0: keys have up to so many bytes */
    uint32_t growths;       /* how often it may double; its file has room for that */
    uint32_t seed;          /* of its hash functions */
} gph_layout;

/* Operations. */
#define GPH_GET 0
#define GPH_INSERT 1 /* if the key is not there */
#define GPH_UPDATE 2 /* if it is */
#define GPH_PUT 3    /* either */
#define GPH_DELETE 4
#define GPH_RMW 5 /* get, then update */

/* Outcomes. */
#define GPH_DONE 1
#define GPH_ABSENT 2
#define GPH_EXISTS 3
#define GPH_FULL 4     /* there is no slot for the key */
#define GPH_NO_CELL 5  /* there is no spare cell for the value */
#define GPH_COLLIDES 7 /* wide keys: another one has the same 64 bits */

/* Makes a table in a new file, or opens the one of a file and recovers it: what had been answered
 * is there. `cached` is how many values, or buckets of a table in levels, are kept in the GPU's
 * memory; 0 for none. */
gph_table *gph_create(const char *path, const gph_layout *layout);
gph_table *gph_open(const char *path, uint32_t cached);
int gph_close(gph_table *table);

/* An operation of a batch. */
typedef struct gph_request {
    uint32_t op;
    uint32_t key_bytes; /* of a wide key; a word has 8 */
    const void *key;
    const void *value; /* the layout's bytes, where one is put; else not looked at */
    void *found;       /* room for a value that is read, or NULL */
    uint32_t outcome;  /* is stored here, by the call */
} gph_request;

/* Runs operations, which all happen at the same time, in any order, and waits: answers are durable
 * then. Gives how many were not done for want of a slot or cell, or -1 where nothing was done: a
 * reserved key, say. */
int64_t gph_batch(gph_table *table, gph_request *requests, size_t count);

/* Lets a table grow by up to so many windows, or by a level. */
int gph_grow(gph_table *table, uint32_t windows);
/* A turn of the cache: what has become popular is put in beside the batches behind it. */
int gph_turn(gph_table *table);
/* Begins an epoch for a program's own kernels, with up to `cells` inserts and updates: the number
 * is for their `epoch`. */
int gph_begin_epoch(gph_table *table, uint64_t cells, uint32_t *epoch);

/* What is known of a table. */
typedef struct gph_stats {
    uint64_t pairs;        /* when it was opened */
    uint64_t slots;        /* in use, without a stash */
    uint64_t media_bytes;  /* of persistent memory */
    uint64_t device_bytes; /* of the GPU's memory, besides a cache */
    uint32_t value_bytes;
    uint32_t faults; /* slots that a look at all of them, in this call, found damaged */
} gph_stats;
int gph_stat(gph_table *table, gph_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
