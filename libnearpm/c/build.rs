//! Gives the shared library the name that programs ask the loader for.

fn main() {
    // `sim/c-card` has this file as well, which lies elsewhere from there.
    println!("cargo:rerun-if-env-changed=CARGO_PKG_VERSION_MAJOR");
    let variable = |name| std::env::var(name).expect("cargo sets it");
    if variable("CARGO_CFG_TARGET_OS") == "linux" {
        // One number for all versions whose C interface is compatible.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libnearpm.so.{}", variable("CARGO_PKG_VERSION_MAJOR"));
    }
}
