//! The `nearpm` command-line program.
fn main() {}
