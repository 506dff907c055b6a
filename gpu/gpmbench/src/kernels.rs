//! The programs' kernels.

use std::sync::LazyLock;

use nearpm_gpu::Module;

macro_rules! modules {
    ($( $(#[doc = $doc:literal])* $name:ident, $file:literal; )*) => {$(
        $(#[doc = $doc])*
        pub fn $name() -> &'static Module {
            static MODULE: LazyLock<Module> = LazyLock::new(|| {
                Module::new(stringify!($name), include_str!(concat!("../../kernels/ptx/", $file, ".ptx")))
            });
            &MODULE
        }
    )*};
}

modules! {
    /// `gpu/kernels/micro.cu`: streams, logs, random persists.
    micro, "micro";
    /// `gpu/kernels/kvs.cu`: the key-value store.
    kvs, "kvs";
    /// `gpu/kernels/txn.cu`: transactions over cells.
    txn, "txn";
    /// `gpu/kernels/prefix.cu`: prefix sums.
    prefix, "prefix";
    /// `gpu/kernels/hotspot.cu`: HS.
    hotspot, "hotspot";
    /// `gpu/kernels/blackscholes.cu`: BLK.
    blackscholes, "blackscholes";
    /// `gpu/kernels/srad.cu`: SRAD.
    srad, "srad";
    /// `gpu/kernels/bfs.cu`: BFS.
    bfs, "bfs";
    /// `gpu/kernels/cfd.cu`: CFD.
    cfd, "cfd";
    /// `gpu/kernels/dnn.cu`: DNN.
    dnn, "dnn";
    /// `gpu/kernels/db.cu`: gpDB.
    db, "db";
}
