// Runs on the GPGPU-Sim of the SBRP artifact (csl-iisc/SBRP-ASPLOS23) what `nearpm gpusim export`
// has written, and says how many words of persistent memory differ in the end from the
// interpreter's. The artifact is no part of this project; docs/gpusim.md says how it was built, and
// what it gave.
//
// With S its folder `simulator`, built, O the folder of its objects, and C a folder with CUDA's
// headers and bin/ptxas:
//
//     g++ -std=c++11 -DCUDART_VERSION=11040 -IC/include -IS/libcuda -IS/src -IO/cuda-sim -IO \
//         -c replay.cc
//     g++ -o replay replay.o O/libcuda/*.o O/cuda-sim/*.o O/cuda-sim/decuda_pred_table/*.o \
//         O/gpgpu-sim/*.o O/intersim2/*.o O/*.o -lm -lz -lGL -pthread
//     sed -i 's/^.version 9.0/.version 7.8/; s/^.target sm_90/.target sm_70/' FOLDER/kernels.ptx
//     cd models/sbrp_near
//     CUDA_INSTALL_PATH=C replay FOLDER | grep -e gpu_tot_sim_cycle -e REPLAY
//
// Behind the third of them nothing but the program's kernels is left in kernels.ptx.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <list>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#define __CUDA_RUNTIME_API_H__
#include "host_defines.h"
#include "builtin_types.h"
#include "driver_types.h"
#include "cuda_api.h"
#include "cuda_api_object.h"
#include "gpgpu_context.h"
#include "../src/cuda-sim/cuda-sim.h"
#include "../src/cuda-sim/ptx_ir.h"
#include "../src/gpgpu-sim/gpu-sim.h"

#define STATIC_ALLOC_LIMIT (0x100000000ULL - (1ULL << 28))

gpgpu_context *GPGPU_Context();
CUctx_st *GPGPUSim_Context(gpgpu_context *);
extern "C" {
cudaError_t cudaMalloc(void **, size_t);
cudaError_t cudaMallocPitch(void **, size_t *, size_t, size_t);
cudaError_t cudaMemcpy(void *, const void *, size_t, enum cudaMemcpyKind);
cudaError_t cudaThreadSynchronize(void);
}

static std::vector<char> file(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) {
        fprintf(stderr, "%s cannot be read\n", path.c_str());
        exit(2);
    }
    return std::vector<char>(std::istreambuf_iterator<char>(in), {});
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "replay FOLDER\n");
        return 2;
    }
    std::string folder = std::string(arguments[1]) + "/", ptx = folder + "kernels.ptx";
    gpgpu_context *context = GPGPU_Context();
    CUctx_st *cuda = GPGPUSim_Context(context);
    symbol_table *symbols = context->gpgpu_ptx_sim_load_ptx_from_filename(ptx.c_str());
    cuda->add_binary(symbols, 1);
    gpgpu_t *gpu = cuda->get_device()->get_gpgpu();
    context->api->load_static_globals(symbols, STATIC_ALLOC_LIMIT, 0xFFFFFFFF, gpu);
    context->api->load_constants(symbols, STATIC_ALLOC_LIMIT, gpu);
    context->gpgpu_ptx_info_load_from_filename(ptx.c_str(), 70);

    std::vector<char *> memory;
    std::vector<size_t> sizes;
    std::ifstream list(folder + "launches.txt");
    std::set<std::string> known;
    for (std::string line; std::getline(list, line);) {
        std::istringstream words(line);
        std::string kind;
        words >> kind;
        if (kind != "launch") {
            size_t bytes, pitch;
            std::string name;
            words >> bytes >> name;
            std::vector<char> content = file(folder + name);
            void *at = nullptr;
            if (kind == "pm")
                cudaMallocPitch(&at, &pitch, bytes, 1);
            else
                cudaMalloc(&at, bytes);
            cudaMemcpy(at, content.data(), bytes, cudaMemcpyHostToDevice);
            memory.push_back((char *)at);
            sizes.push_back(bytes);
            continue;
        }
        std::string kernel, word;
        unsigned blocks, threads;
        words >> kernel >> blocks >> threads;
        const char *key = known.insert(kernel).first->c_str();
        cuda->register_function(1, key, key);
        std::list<std::vector<char>> values;
        std::vector<void *> pointers;
        while (words >> word) {
            size_t colon = word.find(':'), plus = word.find('+');
            std::string type = word.substr(0, colon);
            uint64_t value = strtoull(word.c_str() + colon + 1, nullptr, 10);
            if (type == "memory") value = (uint64_t)(memory[value] + strtoull(word.c_str() + plus + 1, nullptr, 10));
            values.emplace_back((char *)&value, (char *)&value + (type == "u32" ? 4 : 8));
            pointers.push_back(values.back().data());
        }
        cuLaunchKernel((CUfunction)key, blocks, 1, 1, threads, 1, 1, 0, nullptr, pointers.data(), nullptr);
        cudaThreadSynchronize();
    }
    std::vector<char> expected = file(folder + "expected.bin"), found(expected.size());
    cudaMemcpy(found.data(), memory[0], found.size(), cudaMemcpyDeviceToHost);
    size_t other = 0;
    for (size_t word = 0; word + 4 <= found.size(); word += 4) other += memcmp(&found[word], &expected[word], 4) != 0;
    printf("\nREPLAY: %zu words of PM of %zu differ from the interpreter's\n", other, found.size() / 4);
    fflush(stdout);
    _Exit(0);
}
