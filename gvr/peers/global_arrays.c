/* Puts, gets and accumulates of Global Arrays (github.com/GlobalArrays/ga) as `nearpm gvr bench`
 * measures them: rank 0 on the part of the last rank, the best of many batches, nanoseconds each;
 * and a copy of the array, which is what a version costs there. What was put is read back and
 * compared first. docs/gvr.md says how it is built. */
#include <armci.h>
#include <ga.h>
#include <macdecls.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 1 << 17, ROUNDS = 30 };

static double now(void)
{
    return MPI_Wtime() * 1e9;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    GA_Initialize();
    MA_init(C_DBL, 1 << 16, 1 << 16);
    int rank = GA_Nodeid(), ranks = GA_Nnodes();
    int dims[1] = {PART * ranks}, chunk[1] = {PART};
    int a = NGA_Create(C_DBL, 1, dims, "a", chunk), copy = GA_Duplicate(a, "copy");
    double *data = malloc(8192 * sizeof *data), *back = malloc(8192 * sizeof *back), one = 1, version = 1e18;
    if (rank == 0) printf("%d ranks, Global Arrays over MPI; ns, best of %d batches\n%8s %12s %12s %12s\n", ranks, ROUNDS, "bytes", "put", "get", "acc");
    for (int words = 1; words <= 8192; words *= words < 1024 ? 32 : 8) {
        int stride = words < 16 ? 16 : words, count = PART / stride < 2048 ? PART / stride : 2048, ld[1] = {1};
        double put = 1e18, get = 1e18, acc = 1e18;
        for (int round = 0; round < ROUNDS; round++) {
            for (int at = 0; at < words; at++) data[at] = round * 10000.0 + at;
            GA_Zero(a);
            GA_Sync();
            if (rank == 0) {
                int end = PART * ranks - PART;
                double start = now();
                for (int at = 0; at < count; at++) {
                    int lo[1] = {end + at * stride}, hi[1] = {lo[0] + words - 1};
                    NGA_Put(a, lo, hi, data, ld);
                    ARMCI_AllFence();
                }
                put = least(put, (now() - start) / count);
                start = now();
                for (int at = 0; at < count; at++) {
                    int lo[1] = {end + at * stride}, hi[1] = {lo[0] + words - 1};
                    NGA_Get(a, lo, hi, back, ld);
                }
                get = least(get, (now() - start) / count);
                if (memcmp(data, back, words * sizeof *data)) GA_Error("a get does not bring what was put", round);
                start = now();
                for (int at = 0; at < count; at++) {
                    int lo[1] = {end + at * stride}, hi[1] = {lo[0] + words - 1};
                    NGA_Acc(a, lo, hi, data, ld, &one);
                    ARMCI_AllFence();
                }
                acc = least(acc, (now() - start) / count);
            }
            GA_Sync();
            double start = now();
            GA_Copy(a, copy);
            version = least(version, now() - start);
        }
        if (rank == 0) printf("%8d %12.0f %12.0f %12.0f\n", words * 8, put, get, acc);
    }
    if (rank == 0) printf("a copy of 1 MiB a rank: %.0f ns\n", version);
    GA_Destroy(a);
    GA_Destroy(copy);
    GA_Terminate();
    return MPI_Finalize();
}
