//! The designs' kernels, as they are and with holes that can be planted.

use std::sync::LazyLock;

use nearpm_gpu::Module;

macro_rules! modules {
    ($( $(#[doc = $doc:literal])* $name:ident, $file:literal; )*) => {$(
        $(#[doc = $doc])*
        pub fn $name() -> &'static Module {
            static MODULE: LazyLock<Module> = LazyLock::new(|| {
                Module::new($file, include_str!(concat!("../../kernels/ptx/", $file, ".ptx")))
            });
            &MODULE
        }
    )*};
}

modules! {
    /// `gpu/kernels/gphash_p.cu`: the paper's design, repaired.
    level_kernels, "gphash_p";
    /// The same with the holes of the paper's table, each of which can be planted ([`crate::Table::plant`]): for tests.
    level_kernels_with_holes, "gphash_p_holes";
    /// `gpu/kernels/gphash_n.cu`: our design.
    tag_kernels, "gphash_n";
    /// The same with mistakes that can be planted: for tests.
    tag_kernels_with_holes, "gphash_n_holes";
}
