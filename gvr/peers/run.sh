#!/bin/sh
# Ours and the peers that docs/gvr.md names, on two ranks, one after the other, as many times as the
# last argument says.
#
#   gvr/peers/run.sh NEARPM_GVR PREFIX [TIMES]
#
# NEARPM_GVR is a nearpm-gvr that was built with `--features mpi`; PREFIX is where SCR and VELOC
# were installed, and FTI below fti/. Files go to a new folder of /dev/shm (WORK names another
# place), which is removed.
set -eu
ours=$(realpath "$1") prefix=$(realpath "$2") times=${3:-2} here=$(dirname "$(realpath "$0")")
work=$(mktemp -d "${WORK:-/dev/shm}/gvr-peers.XXXXXX")
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH="$prefix/lib" PATH="$prefix/bin:$PATH"
# FTI's first run ends as a crash would, which is no error here; LIMIT: seconds of each program.
rank2() { timeout "${LIMIT:-120}" mpiexec -n 2 "$@" || echo "no end, or an error: $1"; }

cd "$work"
mpicc -O2 "$here/global_arrays.c" -o ga -lga-mpich -larmci-mpich -lscalapack-mpich -llapack -lblas -lgfortran -lm
mpicc -O2 -I"$prefix/fti/include" "$here/fti.c" -o fti "$prefix/fti/lib/libfti.a" -luuid -lz -lcrypto -lm -lpthread
mpicc -O2 -I"$prefix/include" "$here/scr.c" -o scr -L"$prefix/lib" -lscr
mpicc -O2 -I"$prefix/include" "$here/veloc.c" -o veloc -L"$prefix/lib" -lveloc-client

for _ in $(seq "$times"); do
    echo "== one-sided operations over MPI"
    rank2 ./ga
    rank2 "$ours" bench --backend mpi --only put --rounds 30
    echo "== 16 MiB a rank, durable; then read back"
    mkdir -p f/local f/global f/meta s/cache s/cntl s/prefix v/scratch v/kept ours
    cp "$here/fti.ini" f/run.ini
    (cd f && rank2 ../fti run.ini && rank2 ../fti run.ini) 2>&1 | grep -E 'FTI, level|recovered' || echo "no figure"
    export SCR_CACHE_BASE="$work/s/cache" SCR_CNTL_BASE="$work/s/cntl" SCR_PREFIX="$work/s/prefix" SCR_COPY_TYPE=SINGLE SCR_FLUSH=0 \
        SCR_CACHE_SIZE=2 SCR_JOB_ID=1 SCR_USER_NAME=peer
    (cd s/prefix && rank2 ../../scr && rank2 ../../scr) 2>&1 | grep -E 'SCR:|recovered' || echo "no figure"
    printf 'scratch = %s\npersistent = %s\nmode = sync\nmax_versions = 2\nscratch_versions = 2\n' "$work/v/scratch" "$work/v/kept" >v/run.cfg
    (cd v && rank2 ../veloc run.cfg && rank2 ../veloc run.cfg) 2>&1 | grep -E 'VELOC:|recovered' || echo "no figure"
    "$ours" bench --ranks 2 --only durable --rounds 24 --folder "$work/ours"
    rank2 "$ours" bench --backend mpi --only durable --rounds 24 --folder "$work/ours"
    rm -rf f s v ours
done
