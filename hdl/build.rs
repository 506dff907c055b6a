//! Takes the checksum of all that generated Verilog depends on, under which programs share it
//! (`nearpm_verilate::kept`).

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// This crate, the formats that it takes from `nearpm-interface`, and the versions of other
/// people's crates.
const SOURCES: [&str; 5] = ["build.rs", "src", "derive/src", "../interface/src", "../Cargo.lock"];

/// All files at or below a path, in the order of their names.
fn files(path: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    let mut entries = fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    entries.iter().try_for_each(|entry| files(entry, found))
}

fn main() -> io::Result<()> {
    let mut hasher = DefaultHasher::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        let mut found = Vec::new();
        files(Path::new(source), &mut found)?;
        for file in found {
            (&file, fs::read(&file)?).hash(&mut hasher);
        }
    }
    println!("cargo::rustc-env=NEARPM_HDL_SOURCES={:016x}", hasher.finish());
    Ok(())
}
