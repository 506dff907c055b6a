// The same for keys of more than 8 bytes: see nearpm_gphash.cuh.
#define GPH_ALONE
#define GPH_WIDE
#include "gphash_p.cuh"
