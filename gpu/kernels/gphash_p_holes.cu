// Design P with the holes of the paper's table, for tests: see nearpm_gphash.cuh.
#define GPH_HOLES
#define GPH_CACHE
#include "gphash_p.cuh"
