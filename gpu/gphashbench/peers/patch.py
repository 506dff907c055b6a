#!/usr/bin/env python3
"""Lets the memory of SlabHash's slabs come from the program that includes it, and its slabs be durable before they are linked.

    patch.py SOURCES        a folder with the headers of SlabHash and SlabAlloc, which are changed in place
"""

import pathlib
import re
import sys

SOURCES = pathlib.Path(sys.argv[1])


def change(name, *changes):
    """Replaces each pattern, which has to be there."""
    place = SOURCES / name
    text = place.read_text()
    for old, new in changes:
        text, times = re.subn(old, new, text)
        if times == 0:
            sys.exit(f"patch.py: {name} has no {old!r}: it is of another version")
    place.write_text(text)


# Bitmaps lie beside the slabs, at the same places of memory of their own, which is the GPU's
# whatever the slabs' is.
change(
    "slab_alloc.cuh",
    (r"cudaMalloc\(\(void\*\*\)&d_super_blocks_,", "peer_allocate((void**)&d_super_blocks_,"),
    (r"cudaMemset\(\s*d_super_blocks_ \+ i \* slab_alloc_context_\.SUPER_BLOCK_SIZE_ \+", "peer_memset(d_super_blocks_ + i * slab_alloc_context_.SUPER_BLOCK_SIZE_ +"),
    (r"cudaMemset\(\s*d_super_blocks_ \+", "cudaMemset(d_bitmaps_ +"),
    (r"cudaFree\(d_super_blocks_\)", "peer_free(d_super_blocks_)); CHECK_ERROR(cudaFree(d_bitmaps_)"),
    (r"d_super_blocks_\s*\+\s*(super_block_index_?)\s*\*\s*SUPER_BLOCK_SIZE_", r"d_bitmaps_ + \1 * SUPER_BLOCK_SIZE_"),
    (r"d_super_blocks_\s*\+\s*getSuperBlockIndex\(ptr\)", "d_bitmaps_ + getSuperBlockIndex(ptr)"),
    (r"( *)// a pointer to each super-block\n", r"\1uint32_t* d_bitmaps_;\n\1// a pointer to each super-block\n"),
    (r"d_super_blocks_\(nullptr\)", "d_bitmaps_(nullptr), d_super_blocks_(nullptr)"),
    (r"d_super_blocks_\(rhs\.d_super_blocks_\)", "d_bitmaps_(rhs.d_bitmaps_), d_super_blocks_(rhs.d_super_blocks_)"),
    (r"d_super_blocks_ = rhs\.d_super_blocks_;", "d_super_blocks_ = rhs.d_super_blocks_; d_bitmaps_ = rhs.d_bitmaps_;"),
    (
        r"initParameters\(uint32_t\* d_super_block, uint32_t hash_coef\) \{",
        "initParameters(uint32_t* d_super_block, uint32_t* bitmaps, uint32_t hash_coef) { d_bitmaps_ = bitmaps;",
    ),
    (r"initParameters\(d_super_blocks_, hash_coef_\)", "initParameters(d_super_blocks_, d_bitmaps_, hash_coef_)"),
    (
        r"( *)for \(int i = 0; i < slab_alloc_context_\.num_super_blocks_; i\+\+\) \{",
        r"\1CHECK_ERROR(cudaMalloc((void**)&d_bitmaps_, slab_alloc_context_.SUPER_BLOCK_SIZE_ * (uint64_t)slab_alloc_context_.num_super_blocks_ * sizeof(uint32_t)));"
        r"\n\1for (int i = 0; i < slab_alloc_context_.num_super_blocks_; i++) {",
    ),
)

change(
    "concurrent_map/cmap_class.cuh",
    (r"cudaMalloc\(\(void\*\*\)&d_table_,", "peer_allocate((void**)&d_table_,"),
    (r"cudaMemset\(d_table_,", "peer_memset(d_table_,"),
    (r"cudaFree\(d_table_\)", "peer_free(d_table_)"),
    (r"  std::string to_string\(\);", "  GpuSlabHashContext<KeyT, ValueT, SlabHashTypeT::ConcurrentMap>& context() { return gpu_context_; }\n  std::string to_string();"),
)

# What another thread has just stored is seen, whatever lies in the multiprocessor's cache; a link
# is durable before a pair behind it is answered.
LOADS = (r"\*\(getPointerFrom(Bucket|Slab)", r"*(volatile uint32_t*)(getPointerFrom\1")
change(
    "concurrent_map/warp/insert.cuh",
    LOADS,
    (r"freeSlab\(new_node_ptr\);\n( *)\}", r"freeSlab(new_node_ptr);\n\1}\n\1__threadfence_system();"),
)
change("concurrent_map/warp/delete.cuh", LOADS)
