// Design P: see gphash_p.cuh.
#include "gphash_p.cuh"
