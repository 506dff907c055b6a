// Design P with a cache: see gphash_p_cache.cuh.
#define GPH_CACHE
#include "gphash_p.cuh"
