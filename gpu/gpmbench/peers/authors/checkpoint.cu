// The authors' checkpoint (libgpmcp) of elements of 256 MiB in all, looked at word by word.
#include <stdio.h>
#include "libgpmcp.cuh"
#include <algorithm>
#include <vector>
__global__ void fill(unsigned *to, size_t words, unsigned seed) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < words; i += gridDim.x * (size_t)blockDim.x) to[i] = (unsigned)i * 2654435761u ^ seed;
}
int main() {
    for (int elements : {1, 8, 64}) {
        size_t bytes = (256u << 20) / elements;
        std::string path = "cp" + std::to_string(elements);
        gpmcp *cp = gpmcp_create(path.c_str(), (256u << 20) + 256 * elements, elements, 1);
        std::vector<unsigned *> memory(elements);
        for (auto &part : memory) { cudaMalloc(&part, bytes); gpmcp_register(cp, part, bytes, 0); }
        cudaDeviceSynchronize();
        std::vector<double> times;
        for (unsigned round = 0; round < 6; round++) {
            for (int e = 0; e < elements; e++) fill<<<132, 1024>>>(memory[e], bytes / 4, round * 131 + e);
            cudaDeviceSynchronize();
            auto start = std::chrono::high_resolution_clock::now();
            gpmcp_checkpoint(cp, 0);
            times.push_back(std::chrono::duration<double, std::milli>(std::chrono::high_resolution_clock::now() - start).count());
        }
        size_t wrong = 0, offset = cp->part_byte_size[0] + (cp->index[0] ? cp->cp->size : 0);
        for (int e = 0; e < elements; e++) {
            const unsigned *stored = (const unsigned *)((char *)cp->start + offset);
            for (size_t i = 0; i < bytes / 4; i++) wrong += stored[i] != ((unsigned)i * 2654435761u ^ (5 * 131 + e));
            offset += bytes + 128 - bytes % 128;
        }
        cudaError_t error = cudaGetLastError();
        times.erase(times.begin());
        std::sort(times.begin(), times.end());
        printf("checkpoint of 256 MiB, %d elements: %.2f ms, %zu words wrong, %s\n", elements, times[times.size() / 2], wrong, cudaGetErrorString(error));
        for (auto part : memory) cudaFree(part);
    }
}
