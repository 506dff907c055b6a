/* Versioned global arrays in C, by the names of the Global View Resilience library (release 0.8 and
 * 1.0).
 *
 * The binary interface is this library's own: compile clients anew. Ranks are started by
 * `nearpm gvr run -n RANKS PROGRAM`; a program that is started alone is a world of one rank. All
 * calls of a process belong to one thread. Link with libnearpm_gvr.a -lpthread -ldl -lm -lgcc_s
 * (`cargo build --release -p nearpm-gvr` makes it in target/release).
 *
 * Indices: lo and hi are the first and the last one of each dimension, both included. ld is how
 * many elements lie between rows of the buffer in each dimension but the first; NULL: no more than
 * the range has.
 */
#ifndef GDS_H
#define GDS_H

#include <stddef.h>
#include <stdint.h>

/* Clients compiled by mpicc have MPI's own MPI_Info, whichever header comes first. */
#if !defined MPI_INFO_NULL && defined __has_include
#if __has_include(<mpi.h>)
#include <mpi.h>
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef size_t GDS_size_t;
/* An array. */
typedef struct gvr_array *GDS_gds_t;

/* What a call came to. gvr_message() says it in words. */
typedef enum {
    GDS_STATUS_OK = 0,
    GDS_STATUS_INVALID = 1,   /* an argument makes no sense; nothing was done */
    GDS_STATUS_RANGE = 2,     /* an index leaves the array */
    GDS_STATUS_NOMEM = 3,     /* no memory, or a full log */
    GDS_STATUS_TOO_OLD = 4,   /* a version that is not kept */
    GDS_STATUS_RANK = 5,      /* another rank is gone, or has had an error */
    GDS_STATUS_STORAGE = 6,   /* a pool is missing, damaged or full */
    GDS_STATUS_INTERNAL = 7
} GDS_status_t;

typedef enum { GDS_THREAD_SINGLE = 0, GDS_THREAD_FUNNELED = 1, GDS_THREAD_SERIALIZED = 2, GDS_THREAD_MULTIPLE = 3 } GDS_thread_support_t;
typedef enum { GDS_DATA_INT = 2, GDS_DATA_UINT = 3, GDS_DATA_LONG = 4, GDS_DATA_ULONG = 5, GDS_DATA_FLT = 6, GDS_DATA_DBL = 7, GDS_DATA_BYTE = 1 } GDS_datatype_t;
typedef enum { GDS_PRIORITY_LOW = 0, GDS_PRIORITY_MEDIUM = 1, GDS_PRIORITY_HIGH = 2 } GDS_priority_t;
typedef enum { GDS_OP_SUM = 0, GDS_OP_MIN = 1, GDS_OP_MAX = 2, GDS_OP_REPLACE = 3 } GDS_op_t;

/* There is one world, and no hints: both are taken and not looked at. */
typedef int GDS_comm_t;
#define GDS_COMM_WORLD 0
#ifndef MPI_INFO_NULL
typedef int MPI_Info;
#define MPI_INFO_NULL 0
#endif

/* Joins the world. One thread may call: *provided is GDS_THREAD_FUNNELED at most. */
GDS_status_t GDS_init(int *argc, char ***argv, GDS_thread_support_t requested, GDS_thread_support_t *provided);
/* Leaves it. All arrays must have been freed. */
GDS_status_t GDS_finalize(void);
/* Makes an array of zeros; all ranks call it alike. min_chunks and priority are taken and not
 * looked at. */
GDS_status_t GDS_alloc(GDS_size_t ndims, const GDS_size_t counts[], const GDS_size_t min_chunks[], GDS_datatype_t type,
                       GDS_priority_t priority, GDS_comm_t comm, MPI_Info info, GDS_gds_t *gds);
/* As GDS_alloc, of elements that the ranks have: local_to_global fills the indices of each of the
 * count elements of local_buffer, which are copied. The array lies in a log, so that the buffer is
 * the program's again when this returns; global_to_local is not looked at. */
typedef void (*GDS_global_to_local_func_t)(const GDS_size_t global_indices[], int *local_rank, GDS_size_t *local_offset);
typedef void (*GDS_local_to_global_func_t)(GDS_size_t local_offset, GDS_size_t global_indices[]);
GDS_status_t GDS_create(GDS_size_t ndims, const GDS_size_t counts[], GDS_datatype_t type, GDS_global_to_local_func_t global_to_local,
                        GDS_local_to_global_func_t local_to_global, void *local_buffer, GDS_size_t count, GDS_priority_t priority,
                        GDS_comm_t comm, MPI_Info info, GDS_gds_t *gds);
/* Another handle of the array, at the same version; handlers and attributes belong to all of them.
 * All ranks make and free theirs in the same order: the array goes with the last one. */
GDS_status_t GDS_descriptor_clone(GDS_gds_t gds, GDS_gds_t *clone);
/* Always GDS_COMM_WORLD. */
GDS_status_t GDS_get_comm(GDS_gds_t gds, GDS_comm_t *comm);
/* Attributes. GDS_get_attr stores a size_t (of GDS_COUNT one for each dimension), or what
 * GDS_set_attr was given, if *flag is not 0 then. */
typedef int GDS_attr_t;
enum {
    GDS_TYPE = 0,              /* a GDS_datatype_t */
    GDS_NUMBER_DIMENSIONS = 1,
    GDS_COUNT = 2,
    GDS_CHUNK_SIZE = 3,        /* bytes of a block */
    GVR_ATTR_APP = 100         /* from here on: the program's own */
};
GDS_status_t GDS_set_attr(GDS_gds_t gds, GDS_attr_t key, void *value);
GDS_status_t GDS_get_attr(GDS_gds_t gds, GDS_attr_t key, void *value, int *flag);
/* Gives it back; all ranks call it. */
GDS_status_t GDS_free(GDS_gds_t *gds);
/* Stores elements: there for all behind GDS_wait and a meeting of the ranks. */
GDS_status_t GDS_put(void *buf, GDS_size_t ld[], GDS_size_t lo[], GDS_size_t hi[], GDS_gds_t gds);
/* Reads elements, of the version that the handle is at. The buffer is filled when it returns. */
GDS_status_t GDS_get(void *buf, GDS_size_t ld[], GDS_size_t lo[], GDS_size_t hi[], GDS_gds_t gds);
/* Combines elements with those that are there, each atomically. */
GDS_status_t GDS_acc(void *buf, GDS_size_t ld[], GDS_size_t lo[], GDS_size_t hi[], GDS_op_t op, GDS_gds_t gds);
/* As GDS_acc, of elements of 8 bytes; result is what they were, each read and changed at once. */
GDS_status_t GDS_get_acc(void *buf, GDS_size_t buf_ld[], void *result, GDS_size_t result_ld[], GDS_size_t lo[], GDS_size_t hi[], GDS_op_t op,
                         GDS_gds_t gds);
/* Lends a buffer with the elements of a range, row by row; GDS_release stores those that were
 * changed. There is no direct access: blocks of a log move. *handle is null behind GDS_release, and
 * given back before GDS_free of the array. */
typedef enum { GDS_ACCESS_BUFFER_ANY = 0, GDS_ACCESS_BUFFER_DIRECT = 1, GDS_ACCESS_BUFFER_COPY = 2 } GDS_access_buffer_t;
typedef struct gvr_lent *GDS_access_handle_t;
GDS_status_t GDS_access(GDS_gds_t gds, GDS_size_t lo[], GDS_size_t hi[], GDS_access_buffer_t type, void **buffer, GDS_access_handle_t *handle);
GDS_status_t GDS_release(GDS_access_handle_t *handle);
/* Stores an element of 8 bytes if it is *expected; *result is what it was. */
GDS_status_t GDS_compare_and_swap(void *expected, void *replacement, void *result, GDS_size_t index[], GDS_gds_t gds);
/* Waits until this rank's puts are there; until its buffers may be used again. */
GDS_status_t GDS_wait(GDS_gds_t gds);
GDS_status_t GDS_wait_local(GDS_gds_t gds);
/* Waits for all ranks, and their puts to this array; NULL: for the ranks alone. */
GDS_status_t GDS_fence(GDS_gds_t gds);
/* Closes the current version; all ranks call it. inc is 1. */
GDS_status_t GDS_version_inc(GDS_gds_t gds, GDS_size_t inc, const char *label, size_t label_size);
/* Moves the handle dec versions back: from the current one, 1 is the newest that was closed. It
 * reads that version until it is moved. */
GDS_status_t GDS_version_dec(GDS_gds_t gds, GDS_size_t dec);
GDS_status_t GDS_move_to_newest(GDS_gds_t gds);
GDS_status_t GDS_move_to_prev(GDS_gds_t gds);
GDS_status_t GDS_move_to_next(GDS_gds_t gds);
/* Number of the version that the handle is at. */
GDS_status_t GDS_get_version_number(GDS_gds_t gds, GDS_size_t *number);
/* Its label, cut to size bytes with the zero behind it; that of the current one is empty. */
GDS_status_t GDS_get_version_label(GDS_gds_t gds, char *label, size_t size);
/* Errors.
 *
 * An error is described by attributes. One is raised by the program, or by a call of this rank that
 * fails (index, count, status and rank are then known). The newest handler is called whose
 * predicate holds of it. A local error is handled at once by the rank that raised it; a global one
 * by all ranks, when they next call GDS_check_all_errors or GDS_version_inc of the array. Until an
 * error that was raised is resumed, no rank makes a version of the array (GDS_STATUS_RANK). Values
 * of attributes are int64_t or double. Raising copies the descriptor; registering copies the
 * predicate, and adding a term to one the term: what was created is freed by its creator, handlers
 * apart, which get a descriptor to look at. */
typedef struct gvr_error *GDS_error_t;
typedef struct gvr_pred *GDS_error_pred_t;
typedef struct gvr_term *GDS_error_pred_term_t;
typedef int GDS_error_attr_key_t;
enum {
    GDS_EATTR_GDS_INDEX = 0,  /* first index */
    GDS_EATTR_GDS_COUNT = 1,  /* elements from there on; 0: not known */
    GDS_EATTR_APP = 2,        /* the program's own number */
    GVR_EATTR_STATUS = 3,     /* a GDS_status_t */
    GVR_EATTR_RANK = 4        /* who has found it */
};
typedef enum { GDS_EAVTYPE_INT = 0, GDS_EAVTYPE_FLOAT = 1 } GDS_error_attr_value_type_t;
/* Whether the attribute is there; is not; is a value; is one of two values or lies between them. */
typedef enum { GDS_EMEXP_ANY = 0, GDS_EMEXP_NOT = 1, GDS_EMEXP_EQUAL = 2, GDS_EMEXP_RANGE = 3 } GDS_error_match_expr_t;
/* A handler; it resumes the error, or answers something else than GDS_STATUS_OK. */
typedef GDS_status_t (*GDS_recovery_func_t)(GDS_gds_t gds, GDS_error_t desc);
/* Looks for errors, and raises what it finds. */
typedef GDS_status_t (*GDS_check_func_t)(GDS_gds_t gds, GDS_priority_t priority);

/* A key of the program's own; all ranks define theirs in the same order. */
GDS_status_t GDS_define_error_attr_key(const char *name, size_t name_len, GDS_error_attr_value_type_t type, GDS_error_attr_key_t *key);
GDS_status_t GDS_create_error_descriptor(GDS_error_t *desc);
GDS_status_t GDS_free_error_descriptor(GDS_error_t *desc);
GDS_status_t GDS_add_error_attr(GDS_error_t desc, GDS_error_attr_key_t key, const void *value);
/* *flag: whether the attribute is there. */
GDS_status_t GDS_get_error_attr(GDS_error_t desc, GDS_error_attr_key_t key, void *value, int *flag);
/* A predicate holds if all of its terms do; one without terms, and NULL, of every error. */
GDS_status_t GDS_create_error_pred(GDS_error_pred_t *pred);
GDS_status_t GDS_free_error_pred(GDS_error_pred_t *pred);
/* values: one, or two for GDS_EMEXP_RANGE; not looked at for GDS_EMEXP_ANY and GDS_EMEXP_NOT. */
GDS_status_t GDS_create_error_pred_term(GDS_error_attr_key_t key, GDS_error_match_expr_t expr, const void *values, GDS_error_pred_term_t *term);
GDS_status_t GDS_free_error_pred_term(GDS_error_pred_term_t *term);
GDS_status_t GDS_add_error_pred_term(GDS_error_pred_t pred, GDS_error_pred_term_t term);
GDS_status_t GDS_register_local_error_handler(GDS_gds_t gds, GDS_error_pred_t pred, GDS_recovery_func_t handler);
GDS_status_t GDS_register_global_error_handler(GDS_gds_t gds, GDS_error_pred_t pred, GDS_recovery_func_t handler);
/* Checks are called by GDS_check_all_errors, those of the highest priority first. */
GDS_status_t GDS_register_local_error_check(GDS_gds_t gds, GDS_check_func_t check, GDS_priority_t priority);
GDS_status_t GDS_register_global_error_check(GDS_gds_t gds, GDS_check_func_t check, GDS_priority_t priority);
GDS_status_t GDS_raise_local_error(GDS_gds_t gds, GDS_error_t desc);
GDS_status_t GDS_raise_global_error(GDS_gds_t gds, GDS_error_t desc);
/* All ranks call it: their checks, then the global errors of all. */
GDS_status_t GDS_check_all_errors(GDS_gds_t gds);
/* This rank's errors were acted upon: the next version is made in spite of them. desc may be
 * NULL. */
GDS_status_t GDS_resume_local(GDS_gds_t gds, GDS_error_t desc);
GDS_status_t GDS_resume_global(GDS_gds_t gds, GDS_error_t desc);

/* What GVR does not have. */

/* This rank, and how many there are; -1 before GDS_init. */
int gvr_rank(void);
int gvr_ranks(void);
/* What the last call that failed said. Stays until the next one fails. */
const char *gvr_message(void);
/* From here on arrays are durable, in pools of so many bytes a rank in a folder: a job that is
 * there is opened, on any number of ranks. */
GDS_status_t gvr_open_job(const char *folder, uint64_t pool_bytes);
/* The same; a job that is made has a second copy of each rank's versions in a pool of the next
 * rank: a pool may be lost. */
GDS_status_t gvr_open_job_with_partners(const char *folder, uint64_t pool_bytes);
/* Not 0: versions of the job are made durable in the background, and GDS_version_inc returns when
 * they are closed in memory. One is durable when the next GDS_version_inc returns, or
 * gvr_version_wait. 0, as at the beginning: before GDS_version_inc returns. All ranks call it. */
GDS_status_t gvr_flush_in_background(int yes);
/* Waits until the newest version of the job is durable on all ranks; all ranks call it. */
GDS_status_t gvr_version_wait(void);
/* Reads every block of the job, in memory and in its pools, and mends what is damaged from another
 * copy; all ranks call it, between GDS_version_inc and the next put. */
GDS_status_t gvr_scrub(void);
/* As GDS_alloc, of a name in the job: one that is there is opened as of its newest version. */
GDS_status_t gvr_alloc_durable(const char *name, GDS_size_t ndims, const GDS_size_t counts[], GDS_datatype_t type, GDS_gds_t *gds);
/* Makes the current version what an old one was; all ranks call it. */
GDS_status_t gvr_restore(GDS_gds_t gds, GDS_size_t number);
/* Closes the versions of several arrays in one cut; all ranks call it. */
GDS_status_t gvr_version_inc_all(GDS_gds_t gds[], GDS_size_t count, const char *label, size_t label_size);

#ifdef __cplusplus
}
#endif
#endif
