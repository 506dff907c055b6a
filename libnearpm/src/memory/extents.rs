//! Which blocks of a file are only reserved.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Range;

/// Extents that are asked for at once.
#[cfg(target_os = "linux")]
const AT_ONCE: usize = 256;

/// `struct fiemap_extent` of `linux/fiemap.h`.
#[cfg(target_os = "linux")]
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

/// `struct fiemap` of `linux/fiemap.h`, with room for extents.
#[cfg(target_os = "linux")]
#[repr(C)]
struct Map {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [Extent; AT_ONCE],
}

/// The file system holds no data of the extent: it is not where it will be, or was never written.
#[cfg(target_os = "linux")]
const WITHOUT_DATA: u32 = 0x2 | 0x4 | 0x800; // FIEMAP_EXTENT_UNKNOWN, _DELALLOC, _UNWRITTEN

/// Asks for the extents from an offset on; the kernel sets the answer's fields.
#[cfg(target_os = "linux")]
fn ask(file: &File, range: &Range<u64>) -> io::Result<Box<Map>> {
    use std::os::fd::AsRawFd;
    // `_IOWR('f', 11, struct fiemap)`: 32 bytes without its extents.
    const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;
    let mut map = Box::new(Map {
        start: range.start,
        length: range.end - range.start,
        flags: 0,
        mapped: 0,
        count: AT_ONCE as u32,
        reserved: 0,
        extents: [Extent::default(); AT_ONCE],
    });
    // SAFETY: the descriptor is open; the structure is as the kernel wants it, and `count` says how
    // many extents have room in it.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut *map) };
    if done == 0 { Ok(map) } else { Err(io::Error::last_os_error()) }
}

/// The parts of a file of so many bytes whose blocks were never written, in rising order: a later
/// write to them changes the file system's tables.
///
/// # Errors
/// The file system does not tell.
#[cfg(target_os = "linux")]
pub(super) fn unwritten(file: &File, bytes: u64) -> io::Result<Vec<Range<u64>>> {
    let mut found = Vec::new();
    // What is written up to here, or was found unwritten.
    let mut known = 0;
    while known < bytes {
        let map = ask(file, &(known..bytes))?;
        let extents = &map.extents[..AT_ONCE.min(map.mapped as usize)];
        let before = known;
        for extent in extents {
            if extent.logical > known {
                found.push(known..bytes.min(extent.logical));
            }
            let end = extent.logical.saturating_add(extent.length);
            if extent.flags & WITHOUT_DATA != 0 && end > known {
                found.push(known.max(extent.logical)..bytes.min(end));
            }
            known = known.max(end);
        }
        // The last one, or a file system whose answers lead nowhere.
        if known == before {
            found.push(known..bytes);
            known = bytes;
        }
    }
    Ok(found)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn unwritten(_: &File, _: u64) -> io::Result<Vec<Range<u64>>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::memory::allocate;

    #[test]
    fn what_was_reserved_and_never_written_is_found() {
        let file = tempfile::tempfile().unwrap();
        allocate(&file, 1 << 20).unwrap();
        file.write_all_at(&[1; 8192], 64 << 10).unwrap();
        file.sync_all().unwrap();
        // Not every file system tells.
        let Ok(found) = unwritten(&file, 1 << 20) else { return };
        let holds = |at: u64| found.iter().any(|range| range.contains(&at));
        assert!(!holds(64 << 10) && !holds((72 << 10) - 1), "{found:?}");
        assert!(found.is_sorted_by_key(|range| range.start) && found.iter().all(|range| range.end <= 1 << 20));
        assert!(found.is_empty() || holds(0) && holds((1 << 20) - 1), "{found:?}");
    }

    #[test]
    fn more_extents_than_are_asked_for_at_once_are_found() {
        const EXTENTS: u64 = 3 * AT_ONCE as u64;
        let file = tempfile::tempfile().unwrap();
        allocate(&file, EXTENTS * 16384).unwrap();
        for extent in 0..EXTENTS {
            file.write_all_at(&[1; 4096], extent * 16384).unwrap();
        }
        file.sync_all().unwrap();
        let Ok(found) = unwritten(&file, EXTENTS * 16384) else { return };
        // A file system that keeps no unwritten extents has nothing to tell.
        assert!(found.is_empty() || found.len() as u64 >= EXTENTS / 2, "{} ranges", found.len());
        assert!(found.iter().all(|range| !range.contains(&(5 * 16384))));
    }
}
