//! Parses PTX files and lists their kernels: `cargo run -p nearpm-ptx --example check file.ptx ...`

use nearpm_ptx::Module;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        match Module::parse(&std::fs::read_to_string(&path)?) {
            Ok(module) => {
                for entry in module.entries() {
                    println!("{path}: {} with {} parameters", entry.name(), entry.parameters().len());
                }
            }
            Err(error) => println!("{path}: {error}"),
        }
    }
    Ok(())
}
