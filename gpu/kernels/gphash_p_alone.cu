// Design P with a thread an operation: what the paper's warps are compared with
// (gphash_p_alone.cuh).
#define GPH_ALONE
#include "gphash_p.cuh"
