//! Where results are kept, and under which name.

use crate::Error;
use crate::error::IoContext;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Folders from which the workspace is searched upwards: where the program runs, and the package
/// that cargo runs it for.
pub(crate) fn search_roots() -> Vec<PathBuf> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    std::env::current_dir().ok().into_iter().chain(package).collect()
}

/// The folder that holds all results.
pub(crate) fn folder() -> PathBuf {
    let named = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    if let Some(folder) = named("NEARPM_VERILATE_CACHE") {
        return folder;
    }
    let target = named("CARGO_TARGET_DIR").or_else(|| {
        let roots = search_roots();
        let mut above = roots.iter().flat_map(|r| r.ancestors());
        above.find(|a| a.join("Cargo.lock").is_file()).map(|a| a.join("target"))
    });
    target.unwrap_or_else(std::env::temp_dir).join("verilated")
}

/// Folder for the counts of coverage, where the environment asks for them by `NEARPM_COVERAGE`.
pub(crate) fn coverage_folder() -> Option<PathBuf> {
    std::env::var_os("NEARPM_COVERAGE").filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// Whether models count their coverage, as the environment says: then what is built has to be the
/// hardware's own text.
pub fn counts_coverage() -> bool {
    coverage_folder().is_some()
}

/// Names a result by all that went into it: 128-bit FNV-1a, with the lengths mixed in so that parts
/// cannot run into each other.
pub(crate) fn key<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let mut hash = BASIS;
    for part in parts {
        let length = (part.len() as u64).to_le_bytes();
        for byte in length.iter().chain(part.as_bytes()) {
            hash = (hash ^ u128::from(*byte)).wrapping_mul(PRIME);
        }
    }
    format!("{hash:032x}")
}

/// Gives the folder `name` of the cache, made by `make` in a scratch folder if it is not there yet.
///
/// The scratch folder is renamed only when `make` succeeded, so a folder that exists is complete. A
/// file lock keeps others from doing the same work at the same time.
pub(crate) fn entry(name: &str, make: impl FnOnce(&Path) -> Result<(), Error>) -> Result<PathBuf, Error> {
    let cache = folder();
    let done = cache.join(name);
    if done.is_dir() {
        return Ok(done);
    }
    fs::create_dir_all(&cache).context("create the folder", &cache)?;
    let lock_path = cache.join(format!("{name}.lock"));
    let lock = File::create(&lock_path).context("create the lock", &lock_path)?;
    lock.lock().context("take the lock", &lock_path)?;
    if done.is_dir() {
        return Ok(done);
    }
    // Whatever is left here is from a build that died while it held the lock.
    let scratch = cache.join(format!("{name}.tmp"));
    if scratch.exists() {
        fs::remove_dir_all(&scratch).context("clear", &scratch)?;
    }
    fs::create_dir_all(&scratch).context("create the folder", &scratch)?;
    make(&scratch)?;
    fs::rename(&scratch, &done).context("move into place", &scratch)?;
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::key;

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(key(["ab", "c"]), key(["a", "bc"]));
        assert_eq!(key(["ab", "c"]), key(["ab", "c"]));
        assert_eq!(key(["x"]).len(), 32);
    }
}
