//! Maps, and what the link does.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::rc::Rc;

use nearpm_gpm::table2;
use nearpm_gpu::{LinkState, ObjectKind, PmRegion};

use crate::error::{Refusal, call, status};
use crate::library::{Library, Map, path, unknown, with};

/// Name of what C sees of a region.
const OBJECT: &str = "gpm";
/// Bytes of a region beside that: head, directory, rounding.
const ROOM: u64 = 1 << 16;

fn create(library: &Library, path: &Path, size: u64) -> Result<PmRegion, Refusal> {
    if size == 0 {
        return Err(Refusal("persistent memory has at least 1 byte".to_owned()));
    }
    let room = size.checked_add(ROOM).ok_or_else(|| Refusal(format!("{size} bytes are too many")))?;
    let region = table2::gpm_map(library.device.clone(), path, room, true)?;
    region.add(OBJECT, ObjectKind::Data, size, |_| Ok(()))?;
    Ok(region)
}

/// Maps persistent memory.
///
/// # Safety
/// `name` is null or a string that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpm_map(name: *const c_char, size: usize, new: c_int) -> *mut c_void {
    call(std::ptr::null_mut(), || {
        // SAFETY: as the caller says.
        let path = unsafe { path(name) }?;
        with(|library| {
            let region = match new {
                0 => table2::gpm_map(library.device.clone(), path, 0, false)?,
                _ => create(library, path, size as u64)?,
            };
            let object = region.find(OBJECT, ObjectKind::Data)?;
            if object.bytes < size as u64 {
                return Err(Refusal(format!(
                    "{} has {} bytes of persistent memory, {size} were asked for",
                    path.display(),
                    object.bytes
                )));
            }
            let address = region.address(object.offset);
            let map = Map { region, path: path.to_owned(), offset: object.offset, bytes: object.bytes };
            library.maps.insert(address, map);
            Ok(std::ptr::with_exposed_provenance_mut(address as usize))
        })
    })
}

/// Unmaps it.
///
/// # Safety
/// As for [`gpm_map`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpm_unmap(name: *const c_char, address: *mut c_void, size: usize) -> c_int {
    status(|| {
        // SAFETY: as the caller says.
        let path = unsafe { path(name) }?;
        with(|library| {
            let address = address as u64;
            let map = library.maps.get(&address).ok_or_else(|| unknown(address, "map"))?;
            if map.path != path || (size as u64) > map.bytes {
                let (there, bytes) = (map.path.display(), map.bytes);
                return Err(Refusal(format!("what is mapped there is {there}, of {bytes} bytes")));
            }
            match library.maps.remove(&address) {
                Some(map) => Ok(table2::gpm_unmap(map.region)?),
                None => Err(unknown(address, "map")),
            }
        })
    })
}

fn state(library: &Library) -> c_int {
    let of = |map: &Map| match table2::gpm_persist_begin(&map.region) {
        LinkState::NotNeeded => 0,
        LinkState::SavedByPower => 2,
        LinkState::NotSwitchable => 1,
    };
    // The worst of all that are mapped: what waits in caches first.
    let states: Vec<c_int> = library.maps.values().map(of).collect();
    if states.contains(&1) { 1 } else { states.into_iter().max().unwrap_or(0) }
}

/// Says whether what kernels persist goes past the processor's caches.
#[unsafe(no_mangle)]
pub extern "C" fn gpm_persist_begin() -> c_int {
    call(-1, || with(|library| Ok(state(library))))
}

/// The same: nothing was switched, so that nothing is switched back.
#[unsafe(no_mangle)]
pub extern "C" fn gpm_persist_end() -> c_int {
    gpm_persist_begin()
}

/// The device's name.
#[unsafe(no_mangle)]
pub extern "C" fn gpm_device() -> *const c_char {
    call(std::ptr::null(), || with(|library| Ok(library.name.as_ptr())))
}

/// Copies within the map that holds an address, or else in the device's memory.
pub(crate) fn copy_in(library: &Library, address: u64, bytes: &[u8]) -> Result<(), Refusal> {
    match map_of(library, address, bytes.len() as u64) {
        Some((map, offset)) => Ok(map.region.write(offset, bytes)?),
        None => Ok(Rc::clone(&library.device).upload(address, bytes)?),
    }
}

pub(crate) fn copy_out(library: &Library, address: u64, bytes: &mut [u8]) -> Result<(), Refusal> {
    match map_of(library, address, bytes.len() as u64) {
        Some((map, offset)) => Ok(map.region.read(offset, bytes)?),
        None => Ok(library.device.download(address, bytes)?),
    }
}

fn map_of(library: &Library, address: u64, bytes: u64) -> Option<(&Map, u64)> {
    library.maps.iter().find_map(|(&start, map)| {
        let at = address.checked_sub(start)?;
        (at.checked_add(bytes)? <= map.bytes).then_some((map, map.offset + at))
    })
}
