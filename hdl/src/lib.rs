//! The NearPM card in rust-hdl.

pub mod bundles;
