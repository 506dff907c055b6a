// HS: temperatures of a chip, one step: an explicit five-point difference with heat sources. The
// host checkpoints.
#include "nearpm_gpm.cuh"

// Cells beyond the edge have the edge's temperature. Host: `hotspot.rs`, operation by operation.
extern "C" __global__ void hotspot_step(const float *from, const float *power, float *to, gpm_u32 rows, gpm_u32 columns) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * columns) return;
    gpm_u32 row = i / columns, column = i % columns;
    float here = from[i];
    float north = row > 0 ? from[i - columns] : here;
    float south = row + 1 < rows ? from[i + columns] : here;
    float west = column > 0 ? from[i - 1] : here;
    float east = column + 1 < columns ? from[i + 1] : here;
    float flow = (north + south - 2.0f * here) * 0.1f + (east + west - 2.0f * here) * 0.1f;
    to[i] = here + 0.5f * (power[i] + flow + (80.0f - here) * 0.0005f);
}
