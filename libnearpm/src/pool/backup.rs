//! What a repair overwrites, in a file beside the pool.
//!
//! The file is written under another name, synchronised and only then named `POOL.repair`: it is
//! whole wherever it is found. While it is there the pool may be half changed, and is not opened;
//! its bytes take the change back. When the change is durable it is kept as `POOL.before-repair`.
//!
//! Layout, little-endian: magic, bytes of the pool, number of entries; per entry offset, length and
//! bytes; CRC-32C of all this.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use nearpm_newfile::{Durability, NewFile, sync_folder};

use crate::error::{Error, Problem};

const MAGIC: u64 = u64::from_le_bytes(*b"NearRepr");

/// Bytes of the pool, as they are before or behind a change.
pub(crate) type Piece = (u64, Vec<u8>);

/// A path with something behind its name: that of the file itself, by whatever link it is reached.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    // What is not there yet is no link.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut name = path.into_os_string();
    name.push(suffix);
    name.into()
}

/// The backup of a repair that is under way.
pub(crate) fn path_of(pool: &Path) -> PathBuf {
    beside(pool, ".repair")
}

/// A free name for a backup that is kept.
fn kept_path(pool: &Path) -> PathBuf {
    let numbered = (2..).map(|number| beside(pool, &format!(".before-repair-{number}")));
    let mut names = [beside(pool, ".before-repair")].into_iter().chain(numbered);
    names.find(|name| !name.exists()).expect("there is always another number")
}

fn encode(pool_bytes: u64, pieces: &[Piece]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [MAGIC, pool_bytes, pieces.len() as u64] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    for (offset, data) in pieces {
        bytes.extend_from_slice(&offset.to_le_bytes());
        bytes.extend_from_slice(&(data.len() as u64).to_le_bytes());
        bytes.extend_from_slice(data);
    }
    let sum = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8], pool_bytes: u64) -> Option<Vec<Piece>> {
    let (body, sum) = bytes.split_last_chunk::<4>()?;
    let mut rest = body;
    let mut word = || {
        let (word, behind) = rest.split_first_chunk::<8>()?;
        rest = behind;
        Some(u64::from_le_bytes(*word))
    };
    if crc32c::crc32c(body) != u32::from_le_bytes(*sum) || word()? != MAGIC || word()? != pool_bytes {
        return None;
    }
    let count = word()?;
    let mut pieces = Vec::new();
    for _ in 0..count {
        let (head, behind) = rest.split_first_chunk::<16>()?;
        let offset = u64::from_le_bytes(head[..8].try_into().ok()?);
        let length = u64::from_le_bytes(head[8..].try_into().ok()?);
        let end = offset.checked_add(length).filter(|&end| end <= pool_bytes)?;
        let data = behind.get(..(end - offset) as usize)?;
        rest = &behind[data.len()..];
        pieces.push((offset, data.to_vec()));
    }
    rest.is_empty().then_some(pieces)
}

/// The bytes that an interrupted repair has overwritten; `None` where there was none.
pub(crate) fn read(pool: &Path, pool_bytes: u64) -> Result<Option<Vec<Piece>>, Error> {
    let path = path_of(pool);
    match std::fs::read(&path) {
        Ok(bytes) => {
            let what = "the backup of an interrupted repair";
            let damaged = || Problem::Corrupt { what, offset: 0 }.at(path.display());
            decode(&bytes, pool_bytes).ok_or_else(damaged).map(Some)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::system(format!("read {}", path.display()), error)),
    }
}

/// Writes a backup, durable before it has its name. Whoever may not read the pool may not read what
/// it held.
pub(crate) fn write(pool: &Path, file: &File, pool_bytes: u64, pieces: &[Piece]) -> Result<(), Error> {
    let path = path_of(pool);
    let written = (|| {
        let new = NewFile::replace(&path)?;
        new.file().set_permissions(file.metadata()?.permissions())?;
        new.file().write_all(&encode(pool_bytes, pieces))?;
        new.publish(Durability::Durable)
    })();
    written.map(drop).map_err(|error| Error::system(format!("write {}", path.display()), error))
}

/// The repair is durable: the backup is kept under another name.
pub(crate) fn keep(pool: &Path, file: &File) -> Result<PathBuf, Error> {
    let (path, kept) = (path_of(pool), kept_path(pool));
    std::fs::rename(&path, &kept)
        .and_then(|()| sync_folder(&kept, file))
        .map_err(|error| Error::system(format!("rename {}", path.display()), error))?;
    Ok(kept)
}

/// The change was taken back: the backup is not needed any more.
pub(crate) fn remove(pool: &Path, file: &File) -> Result<(), Error> {
    let path = path_of(pool);
    std::fs::remove_file(&path)
        .and_then(|()| sync_folder(&path, file))
        .map_err(|error| Error::system(format!("remove {}", path.display()), error))
}

/// The lines in which two states of a pool differ, joined where they touch, as they are in the
/// first.
pub(crate) fn differing_lines(before: &[u8], behind: &[u8], line: usize) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (number, (one, other)) in before.chunks(line).zip(behind.chunks(line)).enumerate() {
        let start = number * line;
        match ranges.last_mut() {
            _ if one == other => {}
            Some(last) if last.end == start => last.end = start + one.len(),
            _ => ranges.push(start..start + one.len()),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_reads_back_and_a_damaged_one_does_not() {
        let pieces = vec![(64, vec![1; 64]), (4096, vec![2; 10])];
        let bytes = encode(8192, &pieces);
        assert_eq!(decode(&bytes, 8192), Some(pieces));
        assert_eq!(decode(&bytes, 8191), None, "of another pool");
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert_eq!(decode(&damaged, 8192), None);
            assert_eq!(decode(&bytes[..at], 8192), None);
        }
    }

    #[test]
    fn lines_that_touch_are_one_piece() {
        let (before, mut behind) = (vec![0; 300], vec![0; 300]);
        assert!(differing_lines(&before, &behind, 64).is_empty());
        (behind[70], behind[130], behind[299]) = (1, 1, 1);
        assert_eq!(differing_lines(&before, &behind, 64), [64..192, 256..300]);
    }
}
