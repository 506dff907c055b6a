// SRAD: speckle-reducing anisotropic diffusion of an image. A pixel's diffusion coefficient is
// durable before the pixel is.
#pragma once

#define SBRP_NO_PIXEL 0xffffffffu

// First step. Recovery is native: a pixel that is there has its coefficient, and is left. `scale`
// is the squared coefficient of variation of the image.
extern "C" __global__ void sbrp_srad_noise(const float *image, float *noise, float *kept, sbrp_u32 rows, sbrp_u32 columns, float scale) {
    sbrp_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * columns || __float_as_uint(kept[i]) != SBRP_NO_PIXEL) return;
    sbrp_u32 row = i / columns, column = i % columns;
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
    noise[i] = fminf(fmaxf(c, 0.0f), 1.0f);
    oFence();
    kept[i] = here;
}

// Second step, from what the first has kept.
extern "C" __global__ void sbrp_srad_update(const float *kept, const float *noise, float *next, sbrp_u32 rows, sbrp_u32 columns, float lambda) {
    sbrp_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * columns || __float_as_uint(next[i]) != SBRP_NO_PIXEL) return;
    sbrp_u32 row = i / columns, column = i % columns;
    float here = kept[i], c = noise[i];
    float north = (row > 0 ? kept[i - columns] : here) - here;
    float south = (row + 1 < rows ? kept[i + columns] : here) - here;
    float west = (column > 0 ? kept[i - 1] : here) - here;
    float east = (column + 1 < columns ? kept[i + 1] : here) - here;
    float c_south = row + 1 < rows ? noise[i + columns] : c;
    float c_east = column + 1 < columns ? noise[i + 1] : c;
    next[i] = here + 0.25f * lambda * (c * north + c_south * south + c * west + c_east * east);
}
