//! The designs' kernels, as they are and with holes that can be planted.

use std::sync::LazyLock;

use nearpm_gpu::Module;

use crate::layout::{Design, Keys, Layout};

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
    /// The same with the holes of the paper's table, each of which can be planted
    /// ([`crate::Table::plant`]): for tests.
    level_kernels_with_holes, "gphash_p_holes";
    /// The same for wide keys.
    level_kernels_wide, "gphash_p_wide";
    /// The same with a cache.
    level_kernels_cached, "gphash_p_cached";
    /// The same with a thread an operation instead of a warp: what the paper's warps are compared
    /// with.
    level_kernels_alone, "gphash_p_alone";
    /// The same for wide keys.
    level_kernels_alone_wide, "gphash_p_alone_wide";
    /// `gpu/kernels/gphash_n.cu`: our design.
    tag_kernels, "gphash_n";
    /// The same for wide keys.
    tag_kernels_wide, "gphash_n_wide";
    /// The same with a cache.
    tag_kernels_cached, "gphash_n_cached";
    /// The same with mistakes that can be planted: for tests.
    tag_kernels_with_holes, "gphash_n_holes";
}

/// Kernels for tables of a layout.
pub(crate) fn kernels_of(layout: &Layout, cached: bool) -> &'static Module {
    match (layout.design, layout.keys, cached) {
        (Design::Levels, Keys::Words, false) => level_kernels(),
        (Design::Levels, Keys::Words, true) => level_kernels_cached(),
        (Design::Levels, ..) => level_kernels_wide(),
        (Design::Tags, Keys::Words, false) => tag_kernels(),
        (Design::Tags, Keys::Words, true) => tag_kernels_cached(),
        (Design::Tags, ..) => tag_kernels_wide(),
    }
}
