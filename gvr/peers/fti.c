/* Checkpoints by FTI (github.com/leobago/fti) of 16 MiB a rank to the local level, beside
 * `nearpm gvr bench --only durable`: how long the program waits for one, the best of several, and
 * that a restart brings the bytes back. docs/gvr.md says how it is built. Arguments: the
 * configuration; the second run of the same folders is the restart. */
#include <fti.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 1 << 21, ROUNDS = 12 };

static uint64_t word(uint64_t at, uint64_t round)
{
    return (at + round) * 0x9e3779b97f4a7c15;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc < 2 || FTI_Init(argv[1], MPI_COMM_WORLD) != FTI_SCES) return 1;
    int rank, ranks;
    MPI_Comm_rank(FTI_COMM_WORLD, &rank);
    MPI_Comm_size(FTI_COMM_WORLD, &ranks);
    uint64_t *data = malloc(WORDS * sizeof *data), round = 0;
    FTI_Protect(0, &round, sizeof round, FTI_CHAR);
    FTI_Protect(1, data, WORDS * sizeof *data, FTI_CHAR);
    if (FTI_Status() != 0) {
        double start = MPI_Wtime();
        if (FTI_Recover() != FTI_SCES) return 1;
        double spent = MPI_Wtime() - start;
        for (uint64_t at = 0; at < WORDS; at++)
            if (data[at] != word(at, round)) return 1;
        if (rank == 0) printf("recovered round %d; %.0f MB/s a rank\n", (int)round, WORDS * 8 / spent / 1e6);
        FTI_Finalize();
        return MPI_Finalize();
    }
    double best = 1e9;
    for (round = 0; round < ROUNDS; round++) {
        for (uint64_t at = 0; at < WORDS; at++) data[at] = word(at, round);
        MPI_Barrier(FTI_COMM_WORLD);
        double start = MPI_Wtime();
        if (FTI_Checkpoint((int)round + 1, FTI_L1) != FTI_DONE) return 1;
        double spent = MPI_Wtime() - start;
        if (spent < best) best = spent;
    }
    if (rank == 0) printf("%d ranks, FTI, level 1: a checkpoint of 16 MiB a rank blocks for %.1f ms\n", ranks, best * 1e3);
    fflush(stdout);
    /* As after a crash: FTI keeps what is there. */
    MPI_Abort(MPI_COMM_WORLD, 0);
}
