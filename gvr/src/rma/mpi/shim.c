/* The few calls of MPI that the backend needs, with numbers for MPI's handles and constants: these
 * are macros, and differ between implementations. Each returns MPI's error code, 0 for none. A
 * process has one window. */
#include <mpi.h>
#include <stdint.h>
#include <string.h>

static MPI_Comm comm = MPI_COMM_NULL;
static MPI_Win window = MPI_WIN_NULL;
static int started_here;

/* Numbers of nearpm_gvr::rma::Kind, from 1, and Op, from 0. */
static MPI_Datatype type_of(int kind)
{
    const MPI_Datatype types[] = {MPI_UINT64_T, MPI_UINT8_T, MPI_INT32_T, MPI_UINT32_T, MPI_INT64_T, MPI_UINT64_T, MPI_FLOAT, MPI_DOUBLE};
    return types[kind];
}

static MPI_Op op_of(int op)
{
    const MPI_Op ops[] = {MPI_SUM, MPI_MIN, MPI_MAX, MPI_REPLACE, MPI_BOR, MPI_NO_OP};
    return ops[op];
}

/* How many ranks can share memory with this one. */
static int count_near(int *near)
{
    MPI_Comm node;
    int error = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    if (error)
        return error;
    MPI_Comm_size(node, near);
    return MPI_Comm_free(&node);
}

/* threads: whether several threads of a process may call MPI at the same time. near: ranks that can
 * share memory with this one. base: this rank's window. all: that of rank 0, if the windows of all
 * lie one behind the other in shared memory, or else NULL. */
int gvr_mpi_join(uint64_t bytes, int *rank, int *ranks, int *threads, int *near, void **base, void **all)
{
    int known = 0, level = 0, unit, error;
    MPI_Aint size;
    if ((error = MPI_Initialized(&known)))
        return error;
    if (!known && (error = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level)))
        return error;
    if ((error = MPI_Query_thread(&level)))
        return error;
    *threads = level == MPI_THREAD_MULTIPLE;
    started_here = !known;
    if ((error = MPI_Comm_dup(MPI_COMM_WORLD, &comm)) || (error = MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)))
        return error;
    MPI_Comm_rank(comm, rank);
    MPI_Comm_size(comm, ranks);
    if ((error = count_near(near)))
        return error;
    /* Atomics of different operations meet on one word, and readers use MPI_NO_OP: nothing may be
     * assumed of them but that they are atomic. */
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "accumulate_ordering", "none");
    MPI_Info_set(info, "same_disp_unit", "true");
    *all = NULL;
    if (*near < *ranks)
        error = MPI_Win_allocate((MPI_Aint)bytes, 1, info, comm, base, &window);
    else if (!(error = MPI_Win_allocate_shared((MPI_Aint)bytes, 1, info, comm, base, &window)))
        error = MPI_Win_shared_query(window, 0, &size, &unit, all);
    MPI_Info_free(&info);
    if (error || (error = MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN)))
        return error;
    return MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
}

/* All ranks have come to their end. */
int gvr_mpi_leave(void)
{
    int error;
    if ((error = MPI_Win_unlock_all(window)) || (error = MPI_Win_free(&window)) || (error = MPI_Comm_free(&comm)))
        return error;
    return started_here ? MPI_Finalize() : 0;
}

int gvr_mpi_put(int rank, uint64_t at, const void *data, int bytes)
{
    int error = MPI_Put(data, bytes, MPI_BYTE, rank, (MPI_Aint)at, bytes, MPI_BYTE, window);
    return error ? error : MPI_Win_flush_local(rank, window);
}

int gvr_mpi_get(int rank, uint64_t at, void *data, int bytes)
{
    int error = MPI_Get(data, bytes, MPI_BYTE, rank, (MPI_Aint)at, bytes, MPI_BYTE, window);
    return error ? error : MPI_Win_flush_local(rank, window);
}

/* A read that gvr_mpi_flush_local ends. */
int gvr_mpi_begin_get(int rank, uint64_t at, void *data, int bytes)
{
    return MPI_Get(data, bytes, MPI_BYTE, rank, (MPI_Aint)at, bytes, MPI_BYTE, window);
}

int gvr_mpi_flush_local(int rank)
{
    return MPI_Win_flush_local(rank, window);
}

int gvr_mpi_accumulate(int rank, uint64_t at, const void *data, int count, int kind, int op)
{
    MPI_Datatype type = type_of(kind);
    int error = MPI_Accumulate(data, count, type, rank, (MPI_Aint)at, count, type, op_of(op), window);
    return error ? error : MPI_Win_flush_local(rank, window);
}

/* Words, changed by an operation; before: what they were. */
int gvr_mpi_words(int rank, uint64_t at, const uint64_t *words, uint64_t *before, int count, int op)
{
    int error;
    if (count == 1)
        error = MPI_Fetch_and_op(words, before, MPI_UINT64_T, rank, (MPI_Aint)at, op_of(op), window);
    else
        error = MPI_Get_accumulate(words, count, MPI_UINT64_T, before, count, MPI_UINT64_T, rank, (MPI_Aint)at, count,
                                   MPI_UINT64_T, op_of(op), window);
    return error ? error : MPI_Win_flush(rank, window);
}

int gvr_mpi_cas(int rank, uint64_t at, uint64_t expected, uint64_t new, uint64_t *before)
{
    int error = MPI_Compare_and_swap(&new, &expected, before, MPI_UINT64_T, rank, (MPI_Aint)at, window);
    return error ? error : MPI_Win_flush(rank, window);
}

int gvr_mpi_flush(int rank)
{
    int error = MPI_Win_flush(rank, window);
    return error ? error : MPI_Win_sync(window);
}

/* Meetings: begun here, tested by gvr_mpi_met. One at a time. */
static MPI_Request meeting = MPI_REQUEST_NULL;

int gvr_mpi_meet(const uint64_t *words, uint64_t *all, int count)
{
    if (count == 0)
        return MPI_Ibarrier(comm, &meeting);
    return MPI_Iallgather(words, count, MPI_UINT64_T, all, count, MPI_UINT64_T, comm, &meeting);
}

int gvr_mpi_met(int *done)
{
    int error = MPI_Test(&meeting, done, MPI_STATUS_IGNORE);
    return error || !*done ? error : MPI_Win_sync(window);
}

/* Lets MPI work on what others want of this rank. */
int gvr_mpi_progress(void)
{
    int flag;
    return MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, MPI_STATUS_IGNORE);
}

/* What an error is in words; text has room for MPI's longest. */
void gvr_mpi_say(int error, char *text, int room)
{
    char longest[MPI_MAX_ERROR_STRING];
    int length = 0;
    text[0] = 0;
    if (MPI_Error_string(error, longest, &length) == MPI_SUCCESS) {
        strncpy(text, longest, (size_t)room - 1);
        text[room - 1] = 0;
    }
}
