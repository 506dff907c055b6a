/* Checkpoints by VELOC (github.com/ECP-VeloC/VELOC) of 16 MiB a rank, beside
 * `nearpm gvr bench --only durable`: how long the program waits for one, when it has been moved to
 * the persistent folder, the best of several, and that a restart brings the bytes back. docs/gvr.md
 * says how it is built. Arguments: the configuration; the second run of the same folders is the
 * restart. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <veloc.h>

enum { WORDS = 1 << 21, ROUNDS = 12 };

static uint64_t word(uint64_t at, uint64_t round)
{
    return (at + round) * 0x9e3779b97f4a7c15;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc < 2 || VELOC_Init(MPI_COMM_WORLD, argv[1]) != VELOC_SUCCESS) return 1;
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    uint64_t *data = malloc(WORDS * sizeof *data), round = 0;
    VELOC_Mem_protect(0, &round, 1, sizeof round);
    VELOC_Mem_protect(1, data, WORDS, sizeof *data);
    int version = VELOC_Restart_test("peer", 0);
    if (version > 0) {
        double start = MPI_Wtime();
        if (VELOC_Restart("peer", version) != VELOC_SUCCESS) return 1;
        double spent = MPI_Wtime() - start;
        for (uint64_t at = 0; at < WORDS; at++)
            if (data[at] != word(at, round)) return 1;
        if (rank == 0) printf("recovered round %d; %.0f MB/s a rank\n", (int)round, WORDS * 8 / spent / 1e6);
        VELOC_Finalize(0);
        return MPI_Finalize();
    }
    double waits = 1e9, moved = 1e9;
    for (round = 0; round < ROUNDS; round++) {
        for (uint64_t at = 0; at < WORDS; at++) data[at] = word(at, round);
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        if (VELOC_Checkpoint("peer", (int)round + 1) != VELOC_SUCCESS) return 1;
        double spent = MPI_Wtime() - start;
        if (spent < waits) waits = spent;
        if (VELOC_Checkpoint_wait() != VELOC_SUCCESS) return 1;
        spent = MPI_Wtime() - start;
        if (spent < moved) moved = spent;
    }
    if (rank == 0)
        printf("%d ranks, VELOC: a checkpoint of 16 MiB a rank blocks for %.1f ms, and is persistent after %.1f ms\n", ranks, waits * 1e3,
               moved * 1e3);
    VELOC_Finalize(0);
    return MPI_Finalize();
}
