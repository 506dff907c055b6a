//! The table of names that a driver keeps in near persistent memory (section 3): name, place, size.
//! It is found again after a crash, also after one while a name was made or removed.
//!
//! The paper leaves the recovery of the table open. Here an entry is a line with a seal over the
//! rest of it, and an entry counts when its seal fits; a name is made by one persist of its line
//! and removed by one persist of its seal. The persistence domain takes a line whole, but nothing
//! here depends on that: a torn entry has no seal that fits.

use crate::LINE;

/// Bytes of the longest name.
pub const MOST_NAME: usize = 88;

const MAGIC: u64 = 0x6e61_6d65_7370_6163;

/// A region that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// Bytes from the start of persistent memory.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// What cannot be made or found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamespaceError {
    /// No such name.
    #[error("no region {0}")]
    Unknown(String),
    /// The name is taken.
    #[error("there is a region {0} already")]
    Taken(String),
    /// Empty, or too long.
    #[error("a name has 1 to {MOST_NAME} bytes, this one {0}")]
    Name(usize),
    /// No entry is free, or no room of that size.
    #[error("no room for {0} bytes under a new name")]
    Full(u64),
    /// The memory is too small for a table.
    #[error("{0} bytes cannot hold a table of names")]
    Small(usize),
}

/// One persist: bytes for a place. The driver makes it durable before the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePersist {
    /// Bytes from the start of persistent memory.
    pub offset: u64,
    /// What is stored there.
    pub bytes: Vec<u8>,
}

/// The table, as the driver reads it after power-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    slots: Vec<Option<Named>>,
    total: u64,
}

impl Namespace {
    /// Reads the table of `slots` entries at the start of persistent memory. Entries whose seal
    /// does not fit are free.
    ///
    /// # Errors
    /// Memory that is smaller than the table.
    pub fn open(memory: &[u8], slots: usize) -> Result<Self, NamespaceError> {
        let table = memory.get(..slots.saturating_mul(LINE as usize)).filter(|table| !table.is_empty());
        let table = table.ok_or(NamespaceError::Small(memory.len()))?;
        let total = memory.len() as u64;
        let slots = table.chunks_exact(LINE as usize).map(|line| decode(line, total)).collect();
        Ok(Self { slots, total })
    }

    /// All regions.
    pub fn list(&self) -> impl Iterator<Item = &Named> {
        self.slots.iter().flatten()
    }

    /// The region of a name.
    ///
    /// # Errors
    /// There is none.
    pub fn find(&self, name: &str) -> Result<&Named, NamespaceError> {
        self.list().find(|named| named.name == name).ok_or_else(|| NamespaceError::Unknown(name.to_string()))
    }

    /// Makes a region; it is there when the persist is durable.
    ///
    /// # Errors
    /// The name is taken or none, or there is no room.
    pub fn create(&mut self, name: &str, bytes: u64) -> Result<TablePersist, NamespaceError> {
        if name.is_empty() || name.len() > MOST_NAME {
            return Err(NamespaceError::Name(name.len()));
        }
        if self.find(name).is_ok() {
            return Err(NamespaceError::Taken(name.to_string()));
        }
        let slot = self.slots.iter().position(Option::is_none).ok_or(NamespaceError::Full(bytes))?;
        let offset = self.gap(bytes).ok_or(NamespaceError::Full(bytes))?;
        let named = Named { name: name.to_string(), offset, bytes };
        let persist = TablePersist { offset: slot as u64 * LINE, bytes: encode(&named) };
        self.slots[slot] = Some(named);
        Ok(persist)
    }

    /// Removes a name; it is gone when the persist is durable.
    ///
    /// # Errors
    /// There is none.
    pub fn remove(&mut self, name: &str) -> Result<TablePersist, NamespaceError> {
        let is = |slot: &Option<Named>| slot.as_ref().is_some_and(|named| named.name == name);
        let slot = self.slots.iter().position(is).ok_or_else(|| NamespaceError::Unknown(name.to_string()))?;
        self.slots[slot] = None;
        Ok(TablePersist { offset: slot as u64 * LINE, bytes: vec![0; 8] })
    }

    /// The first room of so many bytes, in whole lines, that no region has.
    fn gap(&self, bytes: u64) -> Option<u64> {
        let mut taken: Vec<(u64, u64)> = self.list().map(|named| (named.offset, named.bytes)).collect();
        taken.sort_unstable();
        let mut start = self.slots.len() as u64 * LINE;
        for (offset, bytes_there) in taken {
            if start.checked_add(bytes)? <= offset {
                return Some(start);
            }
            start = start.max(offset.checked_add(bytes_there)?.checked_next_multiple_of(LINE)?);
        }
        (start.checked_add(bytes)? <= self.total).then_some(start)
    }
}

/// FNV-1a over an entry but its seal: a table of some lines needs no more.
fn seal(rest: &[u8]) -> u64 {
    rest.iter().fold(MAGIC, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)) | 1
}

fn encode(named: &Named) -> Vec<u8> {
    let mut line = vec![0; LINE as usize];
    line[8..16].copy_from_slice(&named.offset.to_le_bytes());
    line[16..24].copy_from_slice(&named.bytes.to_le_bytes());
    line[24..32].copy_from_slice(&(named.name.len() as u64).to_le_bytes());
    line[40..40 + named.name.len()].copy_from_slice(named.name.as_bytes());
    let sealed = seal(&line[8..]);
    line[..8].copy_from_slice(&sealed.to_le_bytes());
    line
}

fn decode(line: &[u8], total: u64) -> Option<Named> {
    let word = |at: usize| line.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
    let (offset, bytes, length) = (word(8), word(16), usize::try_from(word(24)).ok()?);
    if word(0) != seal(&line[8..]) || length > MOST_NAME || offset.checked_add(bytes)? > total {
        return None;
    }
    let name = String::from_utf8(line.get(40..40 + length)?.to_vec()).ok()?;
    Some(Named { name, offset, bytes })
}
