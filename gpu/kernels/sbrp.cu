// The SBRP programs for hardware that knows SBRP: what the simulator runs under every model but
// GPM.
#include "sbrp_programs.cuh"
