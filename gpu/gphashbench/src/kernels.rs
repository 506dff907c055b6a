//! Kernels of the measurements.

use std::sync::LazyLock;

use nearpm_gpu::Module;

/// `gpu/kernels/gphash_bench.cu`, compiled.
pub fn bench() -> &'static Module {
    static BENCH: LazyLock<Module> =
        LazyLock::new(|| Module::new("gphash_bench", include_str!("../../kernels/ptx/gphash_bench.ptx")));
    &BENCH
}
