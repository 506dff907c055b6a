// The SBRP programs under GPM: each order is followed by a fence for volatile memory.
#define SBRP_LOWERING_GPM
#include "sbrp_programs.cuh"
