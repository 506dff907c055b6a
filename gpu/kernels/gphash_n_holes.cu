// Design N with mistakes that can be planted, for tests: see nearpm_gphash.cuh.
#define GPH_HOLES
#define GPH_CACHE
#include "gphash_n.cuh"
