// Design P with the holes of the paper's table, for tests: see nearpm_gphash.cuh.
#define GPH_HOLES
#include "gphash_p.cuh"
