// Design N with mistakes that can be planted, for tests: see nearpm_gphash.cuh.
#define GPH_HOLES
#include "gphash_n.cuh"
