//! The library's own kernels.

use std::sync::LazyLock;

use nearpm_gpu::Module;

/// `gpu/kernels/gpm.cu`, compiled.
pub fn library() -> &'static Module {
    static LIBRARY: LazyLock<Module> = LazyLock::new(|| Module::new("gpm", include_str!("../../kernels/ptx/gpm.ptx")));
    &LIBRARY
}

/// `gpu/kernels/sort.cu`, compiled: the radix sort.
pub fn sort() -> &'static Module {
    static SORT: LazyLock<Module> = LazyLock::new(|| Module::new("sort", include_str!("../../kernels/ptx/sort.ptx")));
    &SORT
}
