#!/usr/bin/env python3
"""Changes the authors' programs where they do not compile any more, tell no time of their kernels alone, or do not look at what they stored."""

import pathlib
import sys

BENCH = pathlib.Path(sys.argv[1])


def change(path, *changes, behind=""):
    """Replaces each text, which has to be there, once, behind another one."""
    place = BENCH / path
    text = place.read_text(errors="surrogateescape")
    start = text.index(behind)
    for old, new in changes:
        if old not in text[start:]:
            sys.exit(f"patch.py: {path} has no {old!r}: it is of another version")
        text = text[:start] + text[start:].replace(old, new)
    place.write_text(text, errors="surrogateescape")


# Fields that CUDA 13 no longer has; nothing here depends on them.
change("libgpm/util/helper_cuda.h", ("deviceProp.computeMode", "0"), ("deviceProp.clockRate", "1000000"))

# A batch makes and maps its log anew, which is told apart from its kernels.
change(
    "transactional/gpKVS/src/gpu_hash.h",
    ("    logDummy<<<1, 1>>>(dlog, 0);", "    cudaDeviceSynchronize(); auto kernels = TIME_NOW;\n    logDummy<<<1, 1>>>(dlog, 0);"),
    (
        "    gpmlog_close(dlog);\n\toperation_time",
        "    cudaDeviceSynchronize();\n"
        '    printf("kernels of a batch: %f ms\\n", time_val(TIME_NOW - kernels).count() / 1e6);\n'
        "    gpmlog_close(dlog);\n\toperation_time",
    ),
    behind="/* num_blks is the array size of blk_input and blk_output */",
)

change(
    "native/PS/src/PS.cu",
    (
        '    printf("Successful? %s; "',
        "    long long wrong = 0, all = n_elements * n_arrays;\n"
        "    for (long long i = 0; i < all; i++) wrong += pm_data[i] != (int)(i % n_elements) + 1;\n"
        '    printf("sums in PM that are wrong: %lld of %lld\\n", wrong, all);\n'
        '    printf("Successful? %s; "',
    ),
)

# The image is copied to the GPU before it is made: without the second copy all of its pixels are no numbers. Before an iteration each pixel is -1.
change(
    "native/SRAD/src/srad.cu",
    (
        "        J[k] = (float)exp(I[k]);\n    }\n",
        "        J[k] = (float)exp(I[k]);\n    }\n    cudaMemcpy(J_cuda, J, sizeof(float) * size_I, cudaMemcpyHostToDevice);\n",
    ),
    (
        '        printf("Operation time: %f ms\\n", (double)kernel_time);',
        "        long long wrong = 0;\n"
        "        for (long long i = 0; i < size_I; i++) wrong += !(J_cuda_out[i] >= 0);\n"
        '        printf("pixels in PM that were not stored, or are no numbers: %lld of %lld\\n", wrong, size_I);\n'
        '        printf("Operation time: %f ms\\n", (double)kernel_time);',
    ),
)

change(
    "native/BFS/src/main.cu",
    ("void read_input_size(long long", "void file_input_size(long long"),
    ("void read_input(int &source, Node", "void file_input(int &source, Node"),
    (
        "const bool recovery = false;",
        '#include "roads.h"\n'
        "void read_input_size(long long &nodes, long long &edges, const Params &) {\n"
        "    roads();\n"
        "    nodes = road_starts().size() - 1;\n"
        "    edges = road_targets().size();\n"
        "}\n"
        "void read_input(int &source, Node *&nodes, Edge *&edges, const Params &) {\n"
        "    auto &starts = road_starts(), &targets = road_targets();\n"
        "    source = 0;\n"
        "    for (size_t n = 0; n + 1 < starts.size(); n++) nodes[n].x = starts[n], nodes[n].y = starts[n + 1] - starts[n];\n"
        "    for (size_t e = 0; e < targets.size(); e++) edges[e].x = targets[e], edges[e].y = 1;\n"
        "}\n"
        "const bool recovery = false;",
    ),
    ("// Verify answer", "wrong_levels(h_cost, source, INF);\n// Verify answer"),
)
