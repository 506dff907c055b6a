// Pictures of digits, made instead of read: a stroke pattern a class, with noise. Their program
// tells how many of those that it has not seen it finds.
#include "readubyte.h"

#include <cstring>

#include "pattern.h"

size_t ReadUByteDataset(const char *images, const char *, uint8_t *data, uint8_t *labels, size_t &width, size_t &height) {
    const bool training = strstr(images, "train") != nullptr;
    const size_t count = training ? 60000 : 2000;
    width = height = 28;
    if (!data || !labels) return count;
    for (size_t image = 0; image < count; image++) {
        unsigned number = image + (training ? 0 : 1u << 20);
        labels[image] = pattern(number, 11) % 10;
        for (unsigned pixel = 0; pixel < 28 * 28; pixel++) {
            // Squares of 4 x 4 that are inked, by class; a fifth of the pixels is noise.
            unsigned square = pixel / 28 / 4 * 7 + pixel % 28 / 4;
            bool inked = pattern(square * 16 + labels[image], 12) % 3 == 0;
            unsigned noise = pattern(number * 1024u + pixel, 13);
            data[image * 28 * 28 + pixel] = noise % 5 == 0 ? noise >> 24 : inked ? 220 : 10;
        }
    }
    return count;
}
