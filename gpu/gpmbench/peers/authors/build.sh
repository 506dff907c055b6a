#!/usr/bin/env bash
# Builds the authors' programs (GPMBench of github.com/csl-iisc/GPM-ASPLOS22, at bb743e0) for memory of the kind that our regions are in:
#
#     build.sh CHECKOUT TARGET        TARGET/kvs_gpm, checkpoint_gpm, ps_gpm, srad_gpm, bfs_gpm
#
# CHECKOUT is a clone; nothing of it comes into this repository. It needs nvcc of CUDA 13; as wheels: pip install 'nvidia-cuda-nvcc==13.0.*'
# 'nvidia-cuda-crt==13.0.*' 'nvidia-nvvm==13.0.*' 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cccl==13.0.*', and CUDA=.../site-packages/nvidia/cu13.
#
# What is put in their place: libpmem by memfds (libpmem.h), the register of the root port by nothing (change-ddio.h), the watch of the bandwidth by
# nothing (nvml.h), the map of the USA's roads by the graph that ours searches (roads.h). patch.py adds what tells the time of the kernels alone, and
# looks at what was stored.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
checkout=$(cd "$1" && pwd)
mkdir -p "$2"
target=$(cd "$2" && pwd)
cuda=${CUDA:-/usr/local/cuda}
export PATH=$cuda/bin:$PATH

# One file of the repository cannot be had, so that it may be a clone without a work tree: what is compiled is taken path by path.
sources=$target/sources
git -C "$checkout" ls-tree -r --name-only HEAD GPMBench/libgpm GPMBench/native GPMBench/transactional/gpKVS |
    grep -E '\.(cu|cuh|h)$' | while read -r path; do
    mkdir -p "$sources/$(dirname "$path")"
    git -C "$checkout" show "HEAD:$path" > "$sources/$path"
done
python3 "$here/patch.py" "$sources/GPMBench"
# An included file is looked for beside the one that includes it first.
cp "$here/change-ddio.h" "$sources/GPMBench/libgpm/include/"

bench=$sources/GPMBench
compile() {
    nvcc -std=c++17 -O3 -arch=sm_90 -w -Xcompiler -fopenmp -I"$here" -I"$bench/libgpm/include" -I"$bench/libgpm/util" -L"$cuda/lib" \
        -cudart static -DNVM_ALLOC_CPU "${@:2}" -o "$target/$1"
    strip "$target/$1"
}
compile kvs_gpm "$bench/transactional/gpKVS/src/insert_test.cu"
compile checkpoint_gpm "$here/checkpoint.cu"
compile ps_gpm -DEMULATE_NVM -rdc=true "$bench/native/PS/src/PS.cu"
compile srad_gpm -rdc=true "$bench/native/SRAD/src/srad.cu"
compile bfs_gpm -rdc=true "$bench/native/BFS/src/main.cu" "$bench/native/BFS/src/kernel.cu"
