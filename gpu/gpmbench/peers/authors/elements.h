// Looks at a checkpoint of the authors' library: the newest copy of each element of a group in PM,
// word by word, beside what the GPU has.
#pragma once
#include <cstring>
#include <vector>

static void wrong_words(const gpmcp *cp, int group) {
    size_t offset = cp->part_byte_size[group] + (cp->index[group] ? cp->cp->size : 0), words = 0, wrong = 0;
    for (long long element = 0; element < cp->part_elem_size[group]; element++) {
        size_t bytes = cp->node_size[element + cp->elements * group];
        std::vector<unsigned> there(bytes / 4);
        cudaMemcpy(there.data(), cp->node_addr[element + cp->elements * group], bytes, cudaMemcpyDeviceToHost);
        const unsigned *stored = (const unsigned *)((const char *)cp->start + offset);
        for (size_t i = 0; i < bytes / 4; i++) wrong += stored[i] != there[i];
        words += bytes / 4;
        offset += bytes + 128 - bytes % 128;
    }
    printf("words of the checkpoint in PM that are wrong: %zu of %zu, %s\n", wrong, words, cudaGetErrorString(cudaGetLastError()));
}
