//! Head and directory of a region as they lie in its medium: `nearpm_interface::region`.

use std::path::Path;

use nearpm_interface::geometry::LINE;
use nearpm_interface::media::{DirectoryEntry, DirectoryHead};
use nearpm_interface::region::{
    OBJECT_ALIGNMENT, ObjectKind, REGION_DATA, REGION_DIRECTORY, REGION_DIRECTORY_COPIES, REGION_DIRECTORY_COPY_BYTES,
    REGION_DIRECTORY_MAGIC, REGION_DIRECTORY_VERSION, REGION_MAGIC, REGION_OBJECTS, REGION_VERSION, RegionHead,
};
use nearpm_interface::seal;

use super::Object;
use crate::error::Error;
use crate::medium::Medium;

/// The objects of a region.
#[derive(Default)]
pub(super) struct Directory {
    pub generation: u64,
    /// Copy that counts.
    pub copy: u64,
    pub objects: Vec<Object>,
}

pub(super) fn check_bytes(bytes: u64) -> Result<(), Error> {
    let minimum = REGION_DATA + OBJECT_ALIGNMENT;
    if bytes < minimum || !bytes.is_multiple_of(OBJECT_ALIGNMENT) {
        let rule = format!("a region has at least {minimum} bytes, in whole pages of {OBJECT_ALIGNMENT}");
        return Err(Error::Invalid(format!("{bytes} is no size of a region: {rule}")));
    }
    Ok(())
}

/// Writes the head and the first directory of a new region.
pub(super) fn format(medium: &mut Medium) {
    use std::hash::{BuildHasher, RandomState};
    let id = (RandomState::new().hash_one(std::process::id()) as u32).max(1);
    let bytes = medium.bytes().len() as u64;
    let (head, _) = encode(1, &[]);
    let at = REGION_DIRECTORY as usize;
    medium.bytes_mut()[at..at + LINE].copy_from_slice(&head);
    let mut line =
        RegionHead { magic: REGION_MAGIC, version: REGION_VERSION, id, bytes, ..RegionHead::default() }.to_bytes();
    seal::seal(&[], &mut line);
    medium.bytes_mut()[..LINE].copy_from_slice(&line);
    crate::flush::persist(&medium.bytes()[..REGION_DATA as usize]);
}

/// A copy of the directory: head and body.
pub(super) fn encode(generation: u64, objects: &[Object]) -> ([u8; LINE], Vec<u8>) {
    let mut body = Vec::with_capacity(objects.len() * LINE);
    for object in objects {
        let (base, bytes, pool) = (object.offset, object.bytes, object.kind as u32);
        let mut entry = DirectoryEntry { base, bytes, pool, ..DirectoryEntry::default() };
        entry.name[..object.name.len()].copy_from_slice(object.name.as_bytes());
        body.extend_from_slice(&entry.to_bytes());
    }
    let (magic, version, entries) = (REGION_DIRECTORY_MAGIC, REGION_DIRECTORY_VERSION, objects.len() as u16);
    let mut head = DirectoryHead { magic, version, entries, generation, ..DirectoryHead::default() }.to_bytes();
    seal::seal(&body, &mut head);
    (head, body)
}

/// The head of a region, checked.
pub(super) fn read_head(path: &Path, bytes: &[u8]) -> Result<RegionHead, Error> {
    let path = path.to_owned();
    let found = bytes.len() as u64;
    let Some(line) = bytes.first_chunk::<LINE>() else {
        return Err(Error::Foreign { path, why: format!("it has {found} bytes") });
    };
    let head = RegionHead::from_bytes(line);
    if head.magic != REGION_MAGIC {
        let why = match line.iter().all(|&byte| byte == 0) {
            true => "its head is blank: its creation was interrupted, or it is another kind of file".to_owned(),
            false => format!("its magic number is {:#018x}, not {REGION_MAGIC:#018x}", head.magic),
        };
        return Err(Error::Foreign { path, why });
    }
    // The version first: a newer one may be sealed in another way.
    if head.version > REGION_VERSION {
        return Err(Error::Newer { path, found: head.version, supported: REGION_VERSION });
    }
    if !seal::is_sealed(&[], line) {
        return Err(Error::Corrupt { path, what: "the checksum of the head does not hold".to_owned(), offset: 0 });
    }
    if found < head.bytes {
        return Err(Error::Truncated { path, expected: head.bytes, found });
    }
    if head.bytes < REGION_DATA + OBJECT_ALIGNMENT || head.id == 0 {
        return Err(Error::Corrupt { path, what: "the head describes an impossible region".to_owned(), offset: 0 });
    }
    Ok(head)
}

/// The directory that counts: the valid copy with the highest generation.
pub(super) fn read_directory(path: &Path, bytes: &[u8]) -> Result<Directory, Error> {
    let copies = (0..REGION_DIRECTORY_COPIES).filter_map(|copy| read_copy(bytes, copy));
    copies.max_by_key(|directory| directory.generation).ok_or_else(|| {
        let what = "both copies of the directory of objects".to_owned();
        Error::Corrupt { path: path.to_owned(), what, offset: REGION_DIRECTORY }
    })
}

fn read_copy(bytes: &[u8], copy: u64) -> Option<Directory> {
    let start = (REGION_DIRECTORY + copy * REGION_DIRECTORY_COPY_BYTES) as usize;
    let line = bytes.get(start..)?.first_chunk::<LINE>()?;
    let head = DirectoryHead::from_bytes(line);
    let entries = usize::from(head.entries);
    let body = bytes.get(start + LINE..start + LINE + entries * LINE)?;
    let ours = head.magic == REGION_DIRECTORY_MAGIC && head.version == REGION_DIRECTORY_VERSION;
    if !ours || entries > REGION_OBJECTS || !seal::is_sealed(body, line) {
        return None;
    }
    let objects: Option<Vec<Object>> = body.chunks_exact(LINE).map(|entry| decode(entry, bytes.len() as u64)).collect();
    Some(Directory { generation: head.generation, copy, objects: objects? })
}

fn decode(bytes: &[u8], end: u64) -> Option<Object> {
    let entry = DirectoryEntry::from_bytes(bytes.try_into().ok()?);
    let length = entry.name.iter().position(|&byte| byte == 0).unwrap_or(entry.name.len());
    let name = std::str::from_utf8(&entry.name[..length]).ok()?.to_owned();
    let kind = ObjectKind::from_code(entry.pool)?;
    let inside = entry.base >= REGION_DATA && entry.base.checked_add(entry.bytes)? <= end;
    (inside && entry.base.is_multiple_of(OBJECT_ALIGNMENT)).then_some(Object {
        name,
        kind,
        offset: entry.base,
        bytes: entry.bytes,
    })
}
