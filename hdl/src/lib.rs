//! The NearPM card in rust-hdl
