#!/usr/bin/env bash
# Builds the authors' programs (GPMBench of github.com/csl-iisc/GPM-ASPLOS22, at bb743e0) for memory
# of the kind that our regions are in:
#
#     build.sh CHECKOUT TARGET
#
# It makes TARGET/kvs_gpm, db_gpm, checkpoint_gpm, cfd_gpm, hs_gpm, blk_gpm, ps_gpm, srad_gpm,
# bfs_gpm; dnn_gpm where CUDNN names the folders, divided by a colon, that have the headers of cuDNN
# and cuBLAS. CHECKOUT is a clone; nothing of it comes into this repository. It needs nvcc of CUDA
# 13; as wheels: pip install 'nvidia-cuda-nvcc==13.0.*' 'nvidia-cuda-crt==13.0.*'
# 'nvidia-nvvm==13.0.*' 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cccl==13.0.*', and
# CUDA=.../site-packages/nvidia/cu13.
#
# What is put in their place: libpmem by memfds (libpmem.h), the register of the root port by
# nothing (change-ddio.h), the watch of the bandwidth by nothing (nvml.h), the map of the USA's
# roads by the graph that ours searches (roads.h), the missile's mesh by ours (mesh.h), a chip's
# temperatures (chip.h) and pictures of digits (digits.cpp) by made ones. patch.py mends what does
# not run any more, adds what tells the time of the kernels alone, and looks at what was stored
# (elements.h, rows.h).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
checkout=$(cd "$1" && pwd)
mkdir -p "$2"
target=$(cd "$2" && pwd)
cuda=${CUDA:-/usr/local/cuda}
export PATH=$cuda/bin:$PATH

# One file of the repository cannot be had, so that it may be a clone without a work tree: what is
# compiled is taken path by path.
sources=$target/sources
git -C "$checkout" ls-tree -r --name-only HEAD GPMBench/libgpm GPMBench/native GPMBench/checkpointing GPMBench/transactional |
    grep -E '\.(cu|cuh|h|cpp)$' | grep -v /lib/ | while read -r path; do
    mkdir -p "$sources/$(dirname "$path")"
    git -C "$checkout" show "HEAD:$path" > "$sources/$path"
done
python3 "$here/patch.py" "$sources/GPMBench"
# An included file is looked for beside the one that includes it first.
cp "$here/change-ddio.h" "$sources/GPMBench/libgpm/include/"

bench=$sources/GPMBench
flags=(-std=c++17 -O3 -arch=sm_90 -w -Xcompiler -fopenmp -I"$here" -I"$bench/libgpm/include" -I"$bench/libgpm/util" -DNVM_ALLOC_CPU -DCP_ITER=10)
link() {
    nvcc "${flags[@]}" -L"$cuda/lib" -cudart static "${@:2}" -o "$target/$1"
    strip "$target/$1"
}
link kvs_gpm "$bench/transactional/gpKVS/src/insert_test.cu"
link checkpoint_gpm "$here/checkpoint.cu"
link ps_gpm -DEMULATE_NVM -rdc=true "$bench/native/PS/src/PS.cu"
link srad_gpm -rdc=true "$bench/native/SRAD/src/srad.cu"
link bfs_gpm -rdc=true "$bench/native/BFS/src/main.cu" "$bench/native/BFS/src/kernel.cu"
link blk_gpm "$bench/checkpointing/BLK/src/blackScholes.cu" "$bench/checkpointing/BLK/src/blackScholes_gold.cpp"
link hs_gpm "$bench/checkpointing/HS/src/hotspot.cu"
link cfd_gpm "$bench/checkpointing/CFD/src/CFD.cu"

# Their table is a library of many files, of which one is compiled twice.
table=$bench/transactional/gpDB/src
objects=()
object() {
    local made=$target/objects/$(echo "${1#"$table/"}" | tr / _)$2.o
    nvcc "${flags[@]}" -I"$table" -I"$table/sql" -x cu -dc "${@:3}" "$1" -o "$made"
    objects+=("$made")
}
mkdir -p "$target/objects"
while read -r path; do object "$path" ""; done < <(find "$table" -name '*.cpp' -o -name '*.cu' | sort)
object "$table/vm/virginia.cpp" -single -D__SINGLE
object "$table/../db/generate.cu" ""
object "$here/results.cpp" ""
link db_gpm -rdc=true "${objects[@]}"

# What is linked has the names of the libraries and of what is called of them: they are looked for
# when it is run.
if [ -n "${CUDNN:-}" ]; then
    dnn=$bench/checkpointing/DNN/src made=$target/objects/lenet.o
    nvcc "${flags[@]}" ${CUDNN:+-I${CUDNN%%:*} -I${CUDNN##*:}} -I"$dnn" -c "$dnn/lenet.cu" -o "$made"
    stub() {
        nm -u "$made" | sed -n "s/^ *U \\($1[A-Za-z0-9_]*\\)\$/void \\1(void) {}/p" | gcc -shared "-Wl,-soname,$2" -x c - -o "$target/objects/$2"
    }
    stub cudnn libcudnn.so.9
    stub cublas libcublas.so.13
    link dnn_gpm -I"$dnn" "$made" "$here/digits.cpp" -Xlinker "$target/objects/libcudnn.so.9" -Xlinker "$target/objects/libcublas.so.13"
fi
