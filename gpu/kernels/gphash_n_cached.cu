// Design N with a cache: see gphash_n_cache.cuh.
#define GPH_CACHE
#include "gphash_n.cuh"
