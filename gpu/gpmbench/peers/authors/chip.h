// The chip that HS computes on, made instead of read, and a part of it as the processor has it.
#pragma once
#include <cmath>
#include <vector>

#include "pattern.h"

static void chip(float *temperatures, float *power, size_t cells) {
#pragma omp parallel for
    for (size_t cell = 0; cell < cells; cell++) {
        temperatures[cell] = 60.0f + 20.0f * unit(cell, 1);
        power[cell] = unit(cell / 64, 2) > 0.7f ? 0.01f * unit(cell, 3) : 0.0f;
    }
}

// Cells of a square in the chip's middle whose temperature after `steps` steps differs from the
// processor's by more than 1 in 10 000.
static void wrong_cells(const float *before, const float *power, const float *after_on_card, int side, int steps, float by, float rx, float ry, float rz) {
    const int part = 256, from = side / 2 - part / 2;
    int low = from - steps, width = part + 2 * steps;
    std::vector<double> now(width * width), next;
    std::vector<float> found(part);
    for (int row = 0; row < width; row++)
        for (int column = 0; column < width; column++) now[row * width + column] = before[(size_t)(low + row) * side + low + column];
    for (int step = 0; step < steps; step++) {
        next = now;
        for (int row = 1; row + 1 < width; row++)
            for (int column = 1; column + 1 < width; column++) {
                int at = row * width + column;
                next[at] = now[at] + by * (power[(size_t)(low + row) * side + low + column] + (now[at + width] + now[at - width] - 2 * now[at]) / ry +
                                           (now[at + 1] + now[at - 1] - 2 * now[at]) / rx + (80.0 - now[at]) / rz);
            }
        now = next;
    }
    int wrong = 0;
    for (int row = 0; row < part; row++) {
        cudaMemcpy(found.data(), after_on_card + (size_t)(from + row) * side + from, part * sizeof(float), cudaMemcpyDeviceToHost);
        for (int column = 0; column < part; column++) {
            double expected = now[(row + steps) * width + column + steps];
            wrong += !(std::fabs(found[column] - expected) <= 1e-4 * expected);
        }
    }
    printf("cells of %d x %d that are not the processor's after %d steps: %d\n", part, part, steps, wrong);
}
