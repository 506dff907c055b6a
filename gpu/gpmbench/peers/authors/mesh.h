// The mesh that ours computes on, made instead of read: `Mesh::around_a_rod` of
// gpu/gpmbench/src/programs/mesh.rs, in the authors' columns.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "pattern.h"

typedef std::array<unsigned, 3> MeshCorner;
typedef std::array<double, 3> MeshPoint;
static const unsigned MESH_CELLS = 232536;

static MeshPoint mesh_minus(MeshPoint a, MeshPoint b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
static MeshPoint mesh_cross(MeshPoint a, MeshPoint b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
static double mesh_dot(MeshPoint a, MeshPoint b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

// `stride` cells, of which those behind MESH_CELLS are the last one again. The square root of an
// area is taken by their kernel: it is the cell's surface.
static void mesh(int stride, float *areas, int *neighbours, float *normals) {
    unsigned cubes = MESH_CELLS / 6, side = 1;
    while (side * side * side <= cubes) side++;
    std::vector<MeshCorner> all;
    for (unsigned n = 0; n < side * side * side; n++) all.push_back({n % side, n / side % side, n / side / side});
    double middle = side / 2.0 - 0.5;
    auto from_rod = [&](const MeshCorner &cube) {
        double x = std::fabs(cube[0] - middle), y = std::fabs(cube[1] - middle), z = std::fabs(cube[2] - middle);
        return std::max(x / 8.0, std::hypot(y, z));
    };
    std::stable_sort(all.begin(), all.end(), [&](const MeshCorner &a, const MeshCorner &b) { return from_rod(a) > from_rod(b); });
    all.resize(cubes);
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    std::vector<std::array<MeshCorner, 4>> cells;
    for (auto &cube : all)
        for (auto &order : orders) {
            std::array<MeshCorner, 4> corners{cube, cube, cube, cube};
            for (int step = 0; step < 3; step++) corners[step + 1] = corners[step], corners[step + 1][order[step]]++;
            cells.push_back(corners);
        }
    for (size_t i = cells.size() - 1; i > 0; i--) std::swap(cells[i], cells[pattern(i, 4) % (i + 1)]);
    auto number = [&](const MeshCorner &at) { return at[0] + (side + 1) * (at[1] + (side + 1) * at[2]); };
    auto point = [&](const MeshCorner &at) {
        MeshPoint moved;
        for (unsigned axis = 0; axis < 3; axis++) moved[axis] = at[axis] + 0.25 * (unit(number(at), axis) - 0.5);
        return moved;
    };
    std::map<std::array<unsigned, 3>, size_t> open;
    for (size_t cell = 0; cell < cells.size(); cell++) {
        std::array<MeshPoint, 4> points;
        for (int corner = 0; corner < 4; corner++) points[corner] = point(cells[cell][corner]);
        float surface = 0;
        for (int face = 0; face < 4; face++) {
            auto on = [&](int n) { return (face + n) % 4; };
            MeshPoint area = mesh_cross(mesh_minus(points[on(2)], points[on(1)]), mesh_minus(points[on(3)], points[on(1)]));
            double half = mesh_dot(area, mesh_minus(points[face], points[on(1)])) < 0 ? -0.5 : 0.5;
            for (int axis = 0; axis < 3; axis++) area[axis] *= half, normals[cell + (face + axis * 4) * (size_t)stride] = (float)area[axis];
            surface += (float)std::sqrt(mesh_dot(area, area));
            std::array<unsigned, 3> key{number(cells[cell][on(1)]), number(cells[cell][on(2)]), number(cells[cell][on(3)])};
            std::sort(key.begin(), key.end());
            size_t place = face * (size_t)stride + cell;
            neighbours[place] = -1;
            auto found = open.find(key);
            if (found != open.end()) {
                neighbours[place] = found->second % stride, neighbours[found->second] = cell;
                open.erase(found);
                continue;
            }
            open[key] = place;
            for (int axis = 0; axis < 3; axis++) {
                unsigned first = cells[cell][on(1)][axis];
                bool same = cells[cell][on(2)][axis] == first && cells[cell][on(3)][axis] == first;
                if (same && (first == 0 || first == side)) neighbours[place] = -2;
            }
        }
        areas[cell] = surface * surface;
    }
    for (size_t cell = cells.size(), last = cell - 1; cell < (size_t)stride; cell++) {
        areas[cell] = areas[last];
        for (int face = 0; face < 4; face++) {
            neighbours[cell + face * (size_t)stride] = neighbours[last + face * (size_t)stride];
            for (int axis = 0; axis < 3; axis++)
                normals[cell + (face + axis * 4) * (size_t)stride] = normals[last + (face + axis * 4) * (size_t)stride];
        }
    }
}

// Looks at the flow: how many cells have a density or energy that is none.
static void wrong_flow(const float *variables, int cells, int stride) {
    int wrong = 0, moved = 0;
    for (int cell = 0; cell < cells; cell++) {
        float density = variables[cell], energy = variables[cell + 4 * (size_t)stride];
        wrong += !(density > 0 && energy > 0 && std::isfinite(density) && std::isfinite(energy));
        moved += variables[cell] != variables[0];
    }
    printf("cells whose gas is none: %d of %d; cells that differ from the first: %d\n", wrong, cells, moved);
}
