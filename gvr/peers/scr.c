/* Checkpoints by SCR (github.com/LLNL/scr) of 16 MiB a rank, beside
 * `nearpm gvr bench --only durable`: how long the program waits for one, the best of several, and
 * that a restart brings the bytes back. SCR gives places for files and copies these; the program
 * writes them. docs/gvr.md says how it is built. The second run in the same folder is the
 * restart. */
#include <fcntl.h>
#include <mpi.h>
#include <scr.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORDS = 1 << 21, ROUNDS = 12 };

static uint64_t word(uint64_t at, uint64_t round)
{
    return (at + round) * 0x9e3779b97f4a7c15;
}

/* All bytes to a file, or from it; 1 if that was so. */
static int moved(const char *path, uint64_t *data, int writes)
{
    size_t bytes = WORDS * sizeof *data, at = 0;
    int file = open(path, writes ? O_CREAT | O_TRUNC | O_WRONLY : O_RDONLY, 0600);
    while (file >= 0 && at < bytes) {
        ssize_t now = writes ? write(file, (char *)data + at, bytes - at) : read(file, (char *)data + at, bytes - at);
        if (now <= 0) break;
        at += now;
    }
    return file >= 0 && close(file) == 0 && at == bytes;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (SCR_Init() != SCR_SUCCESS) return 1;
    int rank, ranks, restart = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    uint64_t *data = malloc(WORDS * sizeof *data);
    char name[SCR_MAX_FILENAME], own[SCR_MAX_FILENAME], path[SCR_MAX_FILENAME];
    SCR_Have_restart(&restart, name);
    if (restart) {
        double start = MPI_Wtime();
        if (SCR_Start_restart(name) != SCR_SUCCESS) return 1;
        snprintf(own, sizeof own, "%s/rank_%d", name, rank);
        int good = SCR_Route_file(own, path) == SCR_SUCCESS && moved(path, data, 0);
        if (SCR_Complete_restart(good) != SCR_SUCCESS || !good) return 1;
        double spent = MPI_Wtime() - start;
        uint64_t round = ROUNDS - 1;
        for (uint64_t at = 0; at < WORDS; at++)
            if (data[at] != word(at, round)) return 1;
        if (rank == 0) printf("recovered %s; %.0f MB/s a rank\n", name, WORDS * 8 / spent / 1e6);
        SCR_Finalize();
        return MPI_Finalize();
    }
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        for (uint64_t at = 0; at < WORDS; at++) data[at] = word(at, round);
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        snprintf(name, sizeof name, "round_%d", round);
        snprintf(own, sizeof own, "%s/rank_%d", name, rank);
        if (SCR_Start_output(name, SCR_FLAG_CHECKPOINT) != SCR_SUCCESS) return 1;
        int good = SCR_Route_file(own, path) == SCR_SUCCESS && moved(path, data, 1);
        if (SCR_Complete_output(good) != SCR_SUCCESS || !good) return 1;
        double spent = MPI_Wtime() - start;
        if (spent < best) best = spent;
    }
    if (rank == 0) printf("%d ranks, SCR: a checkpoint of 16 MiB a rank blocks for %.1f ms\n", ranks, best * 1e3);
    SCR_Finalize();
    return MPI_Finalize();
}
