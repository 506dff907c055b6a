/* A client of gds.h, in the manner of public ones: every rank puts its rows, versions are made,
 * read back and restored. */
#include <stdio.h>
#include <string.h>
#include <threads.h>

#include "gds.h"

#define CHECK(call)                                                                                   \
    do {                                                                                              \
        GDS_status_t status_ = (call);                                                                \
        if (status_ != GDS_STATUS_OK) {                                                               \
            fprintf(stderr, "rank %d: line %d: status %d: %s\n", gvr_rank(), __LINE__, status_, gvr_message()); \
            return 1;                                                                                 \
        }                                                                                             \
    } while (0)
#define WANT(condition)                                                                               \
    do {                                                                                              \
        if (!(condition)) {                                                                           \
            fprintf(stderr, "rank %d: line %d: %s does not hold\n", gvr_rank(), __LINE__, #condition); \
            return 1;                                                                                 \
        }                                                                                             \
    } while (0)

static int in_memory(int rank, int ranks)
{
    GDS_size_t counts[2] = {(GDS_size_t)ranks, 6}, chunks[2] = {0, 0}, number;
    GDS_gds_t gds;
    CHECK(GDS_alloc(2, counts, chunks, GDS_DATA_DBL, GDS_PRIORITY_HIGH, GDS_COMM_WORLD, MPI_INFO_NULL, &gds));
    GDS_size_t lo[2] = {(GDS_size_t)rank, 0}, hi[2] = {(GDS_size_t)rank, 5};
    for (int round = 0; round < 3; round++) {
        double row[6];
        for (int at = 0; at < 6; at++) row[at] = 100 * round + 10 * rank + at;
        CHECK(GDS_put(row, NULL, lo, hi, gds));
        CHECK(GDS_wait(gds));
        char label[16];
        int length = snprintf(label, sizeof label, "round %d", round);
        CHECK(GDS_version_inc(gds, 1, label, (size_t)length));
    }
    /* Two columns of all rows, into a buffer whose rows are four elements apart. */
    double part[64 * 4];
    memset(part, 0, sizeof part);
    GDS_size_t ld[1] = {4}, from[2] = {0, 2}, to[2] = {(GDS_size_t)ranks - 1, 3};
    CHECK(GDS_get(part, ld, from, to, gds));
    CHECK(GDS_wait_local(gds));
    for (int r = 0; r < ranks; r++) WANT(part[4 * r] == 202 + 10 * r && part[4 * r + 1] == 203 + 10 * r && part[4 * r + 2] == 0);
    CHECK(GDS_version_dec(gds, 2));
    CHECK(GDS_get_version_number(gds, &number));
    char label[64];
    CHECK(GDS_get_version_label(gds, label, sizeof label));
    WANT(number == 1 && strcmp(label, "round 1") == 0);
    CHECK(GDS_get(part, ld, from, to, gds));
    WANT(part[0] == 102);
    WANT(GDS_put(part, ld, from, to, gds) == GDS_STATUS_INVALID);
    CHECK(GDS_move_to_prev(gds));
    CHECK(GDS_get(part, ld, from, to, gds));
    WANT(part[0] == 2);
    WANT(GDS_move_to_prev(gds) == GDS_STATUS_INVALID);
    CHECK(GDS_move_to_newest(gds));
    CHECK(gvr_restore(gds, 0));
    double one = 1;
    GDS_size_t origin[2] = {0, 0};
    CHECK(GDS_acc(&one, NULL, origin, origin, GDS_OP_SUM, gds));
    CHECK(GDS_fence(gds));
    CHECK(GDS_get(part, NULL, origin, origin, gds));
    WANT(part[0] == ranks);
    GDS_size_t outside[2] = {(GDS_size_t)ranks, 0};
    WANT(GDS_get(part, NULL, origin, outside, gds) == GDS_STATUS_RANGE && strlen(gvr_message()) > 20);
    CHECK(GDS_resume_local(gds, NULL));
    CHECK(GDS_free(&gds));
    WANT(gds == NULL && GDS_free(&gds) == GDS_STATUS_INVALID);
    return 0;
}

/* Rank r has the elements r, r + ranks, ... of an array of 4 for each rank. */
static void place(GDS_size_t local, GDS_size_t global[])
{
    global[0] = (GDS_size_t)gvr_rank() + local * (GDS_size_t)gvr_ranks();
}

/* Arrays from a program's buffers, a second handle, attributes, lent buffers, and elements that are
 * read and changed at once. */
static int handles(int rank, int ranks)
{
    GDS_size_t counts[1] = {4 * (GDS_size_t)ranks}, lo[1] = {0}, hi[1] = {counts[0] - 1}, number = 0, out[1] = {counts[0]};
    GDS_gds_t gds, clone;
    GDS_access_handle_t lent;
    GDS_comm_t comm = 9;
    int64_t mine[4], *buffer, one[4 * 64], was[4 * 64];
    int flag = 0;
    char tag;
    void *kept = NULL;
    for (int at = 0; at < 4; at++) mine[at] = 100 * (rank + at * ranks);
    CHECK(GDS_create(1, counts, GDS_DATA_LONG, NULL, place, mine, 4, GDS_PRIORITY_HIGH, GDS_COMM_WORLD, MPI_INFO_NULL, &gds));
    CHECK(GDS_access(gds, lo, hi, GDS_ACCESS_BUFFER_ANY, (void **)&buffer, &lent));
    for (GDS_size_t at = 0; at < counts[0]; at++) WANT(buffer[at] == 100 * (int64_t)at);
    CHECK(GDS_fence(gds));
    /* Each changes an element of its own in a buffer of all, and keeps those of the others. */
    buffer[rank] += 7;
    CHECK(GDS_release(&lent));
    WANT(lent == NULL && GDS_release(&lent) == GDS_STATUS_INVALID);
    WANT(GDS_access(gds, lo, out, GDS_ACCESS_BUFFER_COPY, (void **)&buffer, &lent) == GDS_STATUS_RANGE);
    WANT(GDS_access(gds, lo, hi, GDS_ACCESS_BUFFER_DIRECT, (void **)&buffer, &lent) == GDS_STATUS_INVALID);
    CHECK(GDS_resume_local(gds, NULL));
    CHECK(GDS_fence(gds));
    CHECK(GDS_get(one, NULL, lo, hi, gds));
    for (int at = 0; at < 4 * ranks; at++) WANT(one[at] == 100 * at + (at < ranks ? 7 : 0));
    CHECK(GDS_version_inc(gds, 1, "made", 4));

    CHECK(GDS_descriptor_clone(gds, &clone));
    CHECK(GDS_version_dec(clone, 1));
    for (int at = 0; at < 4 * ranks; at++) one[at] = 1;
    CHECK(GDS_get_acc(one, NULL, was, NULL, lo, hi, GDS_OP_SUM, gds));
    WANT(was[0] >= 7 && was[0] < 7 + ranks);
    CHECK(GDS_fence(gds));
    CHECK(GDS_get(one, NULL, lo, lo, gds));
    CHECK(GDS_get(was, NULL, lo, lo, clone));
    WANT(one[0] == 7 + ranks && was[0] == 7);
    WANT(GDS_get_acc(one, NULL, was, NULL, lo, hi, GDS_OP_SUM, clone) == GDS_STATUS_INVALID);
    CHECK(GDS_access(clone, lo, lo, GDS_ACCESS_BUFFER_COPY, (void **)&buffer, &lent));
    buffer[0]++;
    WANT(GDS_release(&lent) == GDS_STATUS_INVALID);

    CHECK(GDS_get_comm(gds, &comm));
    CHECK(GDS_get_attr(gds, GDS_COUNT, &number, &flag));
    WANT(comm == GDS_COMM_WORLD && flag && number == counts[0]);
    CHECK(GDS_get_attr(gds, GVR_ATTR_APP, &kept, &flag));
    WANT(!flag && GDS_set_attr(gds, GDS_TYPE, &tag) == GDS_STATUS_INVALID);
    CHECK(GDS_set_attr(gds, GVR_ATTR_APP, &tag));
    CHECK(GDS_get_attr(clone, GVR_ATTR_APP, &kept, &flag));
    WANT(flag && kept == &tag);
    CHECK(GDS_free(&gds));
    CHECK(GDS_get(was, NULL, lo, lo, clone));
    CHECK(GDS_free(&clone));
    WANT(was[0] == 7);
    return 0;
}

static GDS_error_attr_key_t heat;
static int handled_local, handled_hot, handled_global, checked;

static GDS_status_t on_local(GDS_gds_t gds, GDS_error_t desc)
{
    int64_t index = -1, status = -1;
    int flag = 0;
    if (GDS_get_error_attr(desc, GDS_EATTR_GDS_INDEX, &index, &flag) || !flag || index != 1000) return GDS_STATUS_INVALID;
    if (GDS_get_error_attr(desc, GVR_EATTR_STATUS, &status, &flag) || !flag || status != GDS_STATUS_RANGE) return GDS_STATUS_INVALID;
    if (GDS_get_error_attr(desc, GDS_EATTR_APP, &status, &flag) || flag) return GDS_STATUS_INVALID;
    handled_local++;
    return GDS_resume_local(gds, desc);
}

static GDS_status_t on_hot(GDS_gds_t gds, GDS_error_t desc)
{
    double value = 0;
    int flag = 0;
    if (GDS_get_error_attr(desc, heat, &value, &flag) || !flag || value != 91.5) return GDS_STATUS_INVALID;
    handled_hot++;
    return GDS_resume_local(gds, desc);
}

/* Every rank handles it. */
static GDS_status_t on_global(GDS_gds_t gds, GDS_error_t desc)
{
    int64_t app = 0;
    int flag = 0;
    if (GDS_get_error_attr(desc, GDS_EATTR_APP, &app, &flag) || !flag || app < 7) return GDS_STATUS_INVALID;
    handled_global++;
    return GDS_resume_global(gds, desc);
}

/* Every rank but the first has found something. */
static GDS_status_t check(GDS_gds_t gds, GDS_priority_t priority)
{
    GDS_error_t desc;
    int64_t app = 7 + gvr_rank();
    checked++;
    if (priority != GDS_PRIORITY_HIGH) return GDS_STATUS_INVALID;
    if (gvr_rank() == 0) return GDS_STATUS_OK;
    if (GDS_create_error_descriptor(&desc) || GDS_add_error_attr(desc, GDS_EATTR_APP, &app)) return GDS_STATUS_INVALID;
    if (GDS_raise_global_error(gds, desc)) return GDS_STATUS_INVALID;
    return GDS_free_error_descriptor(&desc);
}

/* Handlers are called for the errors that their predicates choose, and no version is made of what
 * is not resumed. */
static int errors(int rank, int ranks)
{
    GDS_size_t counts[1] = {64}, out[1] = {1000}, in[1] = {3};
    GDS_gds_t gds;
    GDS_error_t desc;
    GDS_error_pred_t pred;
    GDS_error_pred_term_t term;
    double value = 1.0, hot = 91.5, range[2] = {90.0, 100.0}, cold = 12.0;
    int64_t app = 7;
    CHECK(GDS_alloc(1, counts, NULL, GDS_DATA_DBL, GDS_PRIORITY_HIGH, GDS_COMM_WORLD, MPI_INFO_NULL, &gds));
    CHECK(GDS_define_error_attr_key("heat", 4, GDS_EAVTYPE_FLOAT, &heat));

    /* A call that fails, for a handler that wants every error with an index. */
    CHECK(GDS_create_error_pred(&pred));
    CHECK(GDS_create_error_pred_term(GDS_EATTR_GDS_INDEX, GDS_EMEXP_ANY, NULL, &term));
    CHECK(GDS_add_error_pred_term(pred, term));
    CHECK(GDS_free_error_pred_term(&term));
    CHECK(GDS_register_local_error_handler(gds, pred, on_local));
    CHECK(GDS_free_error_pred(&pred));
    WANT(pred == NULL && term == NULL);
    WANT(GDS_put(&value, NULL, out, out, gds) == GDS_STATUS_RANGE && handled_local == 1);
    WANT(GDS_get(&value, NULL, out, out, gds) == GDS_STATUS_RANGE && handled_local == 2);

    /* An error of the program's own key: one in the range, one beside it, one without the key. */
    CHECK(GDS_create_error_pred(&pred));
    CHECK(GDS_create_error_pred_term(heat, GDS_EMEXP_RANGE, range, &term));
    CHECK(GDS_add_error_pred_term(pred, term));
    CHECK(GDS_free_error_pred_term(&term));
    CHECK(GDS_create_error_pred_term(GDS_EATTR_GDS_INDEX, GDS_EMEXP_NOT, NULL, &term));
    CHECK(GDS_add_error_pred_term(pred, term));
    CHECK(GDS_free_error_pred_term(&term));
    CHECK(GDS_register_local_error_handler(gds, pred, on_hot));
    CHECK(GDS_free_error_pred(&pred));
    CHECK(GDS_create_error_descriptor(&desc));
    CHECK(GDS_add_error_attr(desc, heat, &hot));
    CHECK(GDS_raise_local_error(gds, desc));
    WANT(handled_hot == 1 && handled_local == 2);
    CHECK(GDS_version_inc(gds, 1, "hot", 3));
    CHECK(GDS_add_error_attr(desc, heat, &cold));
    WANT(GDS_raise_local_error(gds, desc) == GDS_STATUS_INVALID && handled_hot == 1);
    WANT(GDS_version_inc(gds, 1, "cold", 4) == GDS_STATUS_RANK);
    WANT(strstr(gvr_message(), "raised and not resumed") != NULL);
    CHECK(GDS_resume_local(gds, desc));
    CHECK(GDS_version_inc(gds, 1, "cold", 4));
    CHECK(GDS_free_error_descriptor(&desc));

    /* Global errors reach every rank, by a check and by a version. */
    CHECK(GDS_create_error_pred(&pred));
    CHECK(GDS_create_error_pred_term(GDS_EATTR_APP, GDS_EMEXP_ANY, NULL, &term));
    CHECK(GDS_add_error_pred_term(pred, term));
    CHECK(GDS_register_global_error_handler(gds, pred, on_global));
    CHECK(GDS_free_error_pred_term(&term));
    CHECK(GDS_free_error_pred(&pred));
    CHECK(GDS_register_global_error_check(gds, check, GDS_PRIORITY_HIGH));
    CHECK(GDS_check_all_errors(gds));
    WANT(checked == 1 && handled_global == ranks - 1);
    if (rank == ranks - 1) {
        CHECK(GDS_create_error_descriptor(&desc));
        CHECK(GDS_add_error_attr(desc, GDS_EATTR_APP, &app));
        CHECK(GDS_raise_global_error(gds, desc));
        CHECK(GDS_free_error_descriptor(&desc));
    }
    CHECK(GDS_put(&value, NULL, in, in, gds));
    CHECK(GDS_version_inc(gds, 1, "global", 6));
    WANT(handled_global == ranks);

    /* One that no handler is for keeps all ranks from the next version, until it is resumed. */
    if (rank == 0) {
        CHECK(GDS_create_error_descriptor(&desc));
        CHECK(GDS_raise_global_error(gds, desc));
        CHECK(GDS_free_error_descriptor(&desc));
    }
    WANT(GDS_version_inc(gds, 1, NULL, 0) == GDS_STATUS_RANK);
    CHECK(GDS_resume_global(gds, NULL));
    CHECK(GDS_version_inc(gds, 1, NULL, 0));
    WANT(GDS_raise_local_error(gds, NULL) == GDS_STATUS_INVALID && GDS_add_error_attr(NULL, heat, &hot) == GDS_STATUS_INVALID);
    WANT(GDS_create_error_pred_term(99, GDS_EMEXP_ANY, NULL, &term) == GDS_STATUS_INVALID);
    WANT(GDS_register_local_error_handler(gds, NULL, NULL) == GDS_STATUS_INVALID);
    CHECK(GDS_free(&gds));
    return 0;
}

/* One life more of a counter; prints how many there were. */
static int durable(const char *folder, int rank, int ranks)
{
    GDS_size_t counts[1] = {16}, index[1] = {3};
    GDS_gds_t gds[2];
    WANT(gvr_version_wait() == GDS_STATUS_INVALID && gvr_scrub() == GDS_STATUS_INVALID);
    CHECK(gvr_open_job_with_partners(folder, 1 << 20));
    WANT(gvr_open_job(folder, 1 << 20) == GDS_STATUS_INVALID);
    CHECK(gvr_flush_in_background(1));
    CHECK(gvr_alloc_durable("lives", 1, counts, GDS_DATA_LONG, &gds[0]));
    CHECK(gvr_alloc_durable("ranks", 1, counts, GDS_DATA_LONG, &gds[1]));
    int64_t one = 1, lives = 0, seen = 0, all = ranks;
    if (rank == ranks - 1) CHECK(GDS_acc(&one, NULL, index, index, GDS_OP_SUM, gds[0]));
    CHECK(GDS_fence(gds[0]));
    if (rank == 0) {
        CHECK(GDS_get(&seen, NULL, index, index, gds[1]));
        int64_t sum = seen + all, before;
        CHECK(GDS_compare_and_swap(&seen, &sum, &before, index, gds[1]));
        WANT(before == seen);
    }
    CHECK(gvr_version_inc_all(gds, 2, "life", 4));
    CHECK(gvr_version_wait());
    CHECK(gvr_scrub());
    CHECK(GDS_get(&lives, NULL, index, index, gds[0]));
    CHECK(GDS_get(&seen, NULL, index, index, gds[1]));
    if (rank == 0) printf("life %lld, ranks %lld\n", (long long)lives, (long long)seen);
    CHECK(GDS_free(&gds[0]));
    CHECK(GDS_free(&gds[1]));
    return 0;
}

/* A second GDS_init is refused and changes nothing: ranks wait for one that is late, and do not
 * take it for gone. */
static int again(int *argc, char ***argv)
{
    GDS_thread_support_t provided;
    struct timespec late = {0, 300000000};
    WANT(GDS_init(argc, argv, GDS_THREAD_SINGLE, &provided) == GDS_STATUS_INVALID);
    if (gvr_rank() == 0) thrd_sleep(&late, NULL);
    CHECK(GDS_fence(NULL));
    return 0;
}

int main(int argc, char **argv)
{
    GDS_thread_support_t provided;
    if (gvr_rank() != -1 || GDS_finalize() == GDS_STATUS_OK) return 1;
    CHECK(GDS_init(&argc, &argv, GDS_THREAD_SINGLE, &provided));
    if (again(&argc, &argv)) return 1;
    if (in_memory(gvr_rank(), gvr_ranks())) return 1;
    if (handles(gvr_rank(), gvr_ranks())) return 1;
    if (errors(gvr_rank(), gvr_ranks())) return 1;
    if (argc > 1 && durable(argv[1], gvr_rank(), gvr_ranks())) return 1;
    CHECK(GDS_finalize());
    return 0;
}
