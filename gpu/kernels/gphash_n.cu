// Design N: see gphash_n.cuh.
#include "gphash_n.cuh"
