//! Whether the power supply saves even the processors' caches (eADR).

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// Where Linux shows the regions of persistent memory.
const DEVICES: &str = "/sys/bus/nd/devices";

/// Whether lines need not be written back on this machine: every region of persistent memory says
/// that its persistence domain includes the caches. The answer of a machine with several kinds is
/// that of the weakest, since a file does not tell its region.
pub fn includes_caches() -> bool {
    static ANSWER: LazyLock<bool> = LazyLock::new(|| all_regions_include_caches(Path::new(DEVICES)));
    *ANSWER
}

/// A folder that cannot be read, a region that does not say, and no region at all mean no.
fn all_regions_include_caches(devices: &Path) -> bool {
    let Ok(entries) = fs::read_dir(devices) else { return false };
    let regions: Vec<_> = entries.flatten().filter(|e| e.file_name().to_string_lossy().starts_with("region")).collect();
    let includes = |region: &fs::DirEntry| {
        fs::read_to_string(region.path().join("persistence_domain")).is_ok_and(|domain| domain.trim() == "cpu_cache")
    };
    !regions.is_empty() && regions.iter().all(includes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weakest_region_decides() {
        let folder = tempfile::tempdir().unwrap();
        let devices = folder.path();
        let answer = || all_regions_include_caches(devices);
        let region = |name: &str, domain: &str| {
            fs::create_dir_all(devices.join(name)).unwrap();
            fs::write(devices.join(name).join("persistence_domain"), domain).unwrap();
        };
        assert!(!answer(), "no region");
        region("region0", "cpu_cache\n");
        region("namespace0.0", "nonsense");
        assert!(answer());
        region("region1", "memory_controller\n");
        assert!(!answer());
        region("region1", "cpu_cache");
        assert!(answer());
        fs::create_dir(devices.join("region2")).unwrap();
        assert!(!answer(), "a region that does not say");
        assert!(!all_regions_include_caches(Path::new("/nowhere/at/all")));
    }
}
