#!/usr/bin/env bash
# Builds other people's hash tables, to be measured beside ours:
#
#     build.sh FOLDER TARGET        TARGET/slabhash, hierarchicalkv
#
# FOLDER has clones: SlabHash (owensgroup/SlabHash at eec7135) and SlabAlloc (owensgroup/SlabAlloc
# at d655028), HierarchicalKV (NVIDIA-Merlin/HierarchicalKV at ae24eec). Nothing of them comes into
# this repository. It needs nvcc of CUDA 13, at CUDA; gpu/gpmbench/peers/authors/build.sh says which
# wheels have it. patch.py changes SlabHash as slabhash.cu says.
#
#     TARGET/slabhash persistent 0.8 16777216 1048576
#     TARGET/hierarchicalkv 16777216 1048576
#
# Each prints a line of results/peers-h200.json, when everything was looked at.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(cd "$1" && pwd)
mkdir -p "$2"
target=$(cd "$2" && pwd)
cuda=${CUDA:-/usr/local/cuda}
export PATH=$cuda/bin:$PATH

sources=$target/sources
rm -rf "$sources"
mkdir -p "$sources"
cp -r "$folder"/SlabHash/src/. "$folder"/SlabAlloc/src/*.cuh "$sources"
python3 "$here/patch.py" "$sources"
build() {
    nvcc -std=c++17 -O3 -arch=sm_90 -w -I"$here" -L"$cuda/lib" -cudart static -Xcompiler -static-libstdc++,-static-libgcc "${@:2}" "$here/$1.cu" -o "$target/$1"
    strip "$target/$1"
}
build slabhash -I"$sources"
build hierarchicalkv -I"$folder/HierarchicalKV/include" --expt-relaxed-constexpr --extended-lambda
