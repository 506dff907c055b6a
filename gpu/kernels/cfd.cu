// CFD: the Euler equations of a gas around a body, by finite volumes on a mesh of tetrahedra, with
// steps of three stages (Runge-Kutta). The host checkpoints. Host: `cfd.rs`, operation by
// operation.
#include "nearpm_gpm.cuh"

#define GAMMA 1.4f
#define FACES 4u
// Neighbours of a cell that are none: the body's surface, and the gas far away.
#define BODY (-1)
#define FAR (-2)

// Rows of `variables` and `fluxes`, of a number a cell.
#define DENSITY 0u
#define MOMENTUM 1u
#define ENERGY 4u
#define VARIABLES 5u

struct state {
    float value[VARIABLES];  // density, momentum, energy
    float velocity[3];
    float pressure;
    float wave;  // speed of the gas and of sound in it
};

static __device__ __forceinline__ state state_of(const float *values, gpm_u64 stride, gpm_u64 at) {
    state s;
#pragma unroll
    for (gpm_u32 v = 0; v < VARIABLES; v++) s.value[v] = values[v * stride + at];
#pragma unroll
    for (gpm_u32 a = 0; a < 3; a++) s.velocity[a] = s.value[MOMENTUM + a] / s.value[DENSITY];
    float squared = s.velocity[0] * s.velocity[0] + s.velocity[1] * s.velocity[1] + s.velocity[2] * s.velocity[2];
    s.pressure = (GAMMA - 1.0f) * (s.value[ENERGY] - 0.5f * s.value[DENSITY] * squared);
    s.wave = sqrtf(squared) + sqrtf(GAMMA * s.pressure / s.value[DENSITY]);
    return s;
}

// Step of each cell over its volume: `surface` is the area of its faces.
extern "C" __global__ void cfd_steps(const float *variables, const float *surface, float *steps, gpm_u32 n) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    steps[i] = 0.5f / (surface[i] * state_of(variables, n, i).wave);
}

// What flows through a face of area vector `normal`, which points inward: half of what both sides
// carry.
static __device__ __forceinline__ void add_flow(float *flux, const state &s, const float *normal) {
#pragma unroll
    for (gpm_u32 a = 0; a < 3; a++) {
        float half = 0.5f * normal[a];
        flux[DENSITY] += half * s.value[MOMENTUM + a];
#pragma unroll
        for (gpm_u32 b = 0; b < 3; b++)
            flux[MOMENTUM + b] += half * (s.velocity[b] * s.value[MOMENTUM + a] + (a == b ? s.pressure : 0.0f));
        flux[ENERGY] += half * (s.velocity[a] * (s.value[ENERGY] + s.pressure));
    }
}

// Fluxes into each cell through its faces. `far` has the gas far away: a number a variable.
extern "C" __global__ void cfd_fluxes(const float *variables, const int *neighbours, const float *normals, const float *far,
                                      float *fluxes, gpm_u32 n) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    state here = state_of(variables, n, i);
    float flux[VARIABLES] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
    for (gpm_u32 face = 0; face < FACES; face++) {
        int neighbour = neighbours[(gpm_u64)face * n + i];
        float normal[3];
#pragma unroll
        for (gpm_u32 a = 0; a < 3; a++) normal[a] = normals[((gpm_u64)face * 3 + a) * n + i];
        if (neighbour == BODY) {
#pragma unroll
            for (gpm_u32 a = 0; a < 3; a++) flux[MOMENTUM + a] += normal[a] * here.pressure;
            continue;
        }
        state there = neighbour == FAR ? state_of(far, 1, 0) : state_of(variables, n, (gpm_u64)neighbour);
        if (neighbour != FAR) {
            // Viscosity that damps what the differences cannot follow.
            float area = sqrtf(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]);
            float damping = 0.5f * area * (here.wave + there.wave);
#pragma unroll
            for (gpm_u32 v = 0; v < VARIABLES; v++) flux[v] += damping * 0.5f * (there.value[v] - here.value[v]);
        }
        add_flow(flux, here, normal);
        add_flow(flux, there, normal);
    }
#pragma unroll
    for (gpm_u32 v = 0; v < VARIABLES; v++) fluxes[(gpm_u64)v * n + i] = flux[v];
}

// A stage: from the values before the step, by the fluxes of the stage before.
extern "C" __global__ void cfd_advance(const float *before, const float *fluxes, const float *steps, float *variables, gpm_u32 n,
                                       float parts) {
    gpm_u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float step = steps[i] / parts;
#pragma unroll
    for (gpm_u32 v = 0; v < VARIABLES; v++) {
        gpm_u64 at = (gpm_u64)v * n + i;
        variables[at] = before[at] + step * fluxes[at];
    }
}
