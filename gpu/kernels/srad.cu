// SRAD: speckle-reducing anisotropic diffusion of an image, with native persistence: each
// iteration's image is stored to PM as it is made, in the buffer that the one before it does not
// use, and counts when the host has noted the iteration.
#include "nearpm_gpm.cuh"

// Sums of a block's values and squares, in an order that does not change: partial[2 * block],
// partial[2 * block + 1]. Blocks of 256 threads.
extern "C" __global__ void srad_sums(const float *image, gpm_u32 n, float *partial) {
    __shared__ float sums[256], squares[256];
    float sum = 0.0f, square = 0.0f;
    gpm_u32 step = gridDim.x * blockDim.x;
    for (gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        sum += image[i];
        square += image[i] * image[i];
    }
    sums[threadIdx.x] = sum;
    squares[threadIdx.x] = square;
    __syncthreads();
    for (gpm_u32 half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            sums[threadIdx.x] += sums[threadIdx.x + half];
            squares[threadIdx.x] += squares[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        partial[2 * blockIdx.x] = sums[0];
        partial[2 * blockIdx.x + 1] = squares[0];
    }
}

// Diffusion coefficients; `scale` is the image's squared coefficient of variation.
extern "C" __global__ void srad_coefficients(const float *image, float *coefficients, gpm_u32 rows, gpm_u32 columns, float scale) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * columns) return;
    gpm_u32 row = i / columns, column = i % columns;
    float here = image[i];
    float north = (row > 0 ? image[i - columns] : here) - here;
    float south = (row + 1 < rows ? image[i + columns] : here) - here;
    float west = (column > 0 ? image[i - 1] : here) - here;
    float east = (column + 1 < columns ? image[i + 1] : here) - here;
    float gradient = (north * north + south * south + west * west + east * east) / (here * here);
    float laplace = (north + south + west + east) / here;
    float below = 1.0f + 0.25f * laplace;
    float q = (0.5f * gradient - 0.0625f * laplace * laplace) / (below * below);
    float c = 1.0f / (1.0f + (q - scale) / (scale * (1.0f + scale)));
    coefficients[i] = fminf(fmaxf(c, 0.0f), 1.0f);
}

// The next image, in the GPU's memory and, persisted, in PM.
extern "C" __global__ void srad_update(const float *image, const float *coefficients, float *next, float *persistent, gpm_u32 rows,
                                       gpm_u32 columns, float lambda) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * columns) return;
    gpm_u32 row = i / columns, column = i % columns;
    float here = image[i], c = coefficients[i];
    float north = (row > 0 ? image[i - columns] : here) - here;
    float south = (row + 1 < rows ? image[i + columns] : here) - here;
    float west = (column > 0 ? image[i - 1] : here) - here;
    float east = (column + 1 < columns ? image[i + 1] : here) - here;
    float c_south = row + 1 < rows ? coefficients[i + columns] : c;
    float c_east = column + 1 < columns ? coefficients[i + 1] : c;
    float value = here + 0.25f * lambda * (c * north + c_south * south + c * west + c_east * east);
    next[i] = value;
    persistent[i] = value;
    gpm_persist();
}
