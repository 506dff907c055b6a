// The SBRP programs for a GPU of today.
#define SBRP_LOWERING_CARD
#include "sbrp_programs.cuh"
