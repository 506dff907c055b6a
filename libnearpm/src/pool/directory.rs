//! The table of pools on a card.
//!
//! Two copies lie one after the other. A change writes the copy that does not count, with a higher
//! generation: first a blank first word, then everything else, then the first word, each durable
//! before the next. A cut at any moment leaves the other copy whole and this one blank or whole;
//! what is neither was damaged by something else.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nearpm_driver::Card;
use nearpm_driver::pci::Caching;
use nearpm_driver::sharing::TableLock;
use nearpm_interface::geometry::{DIRECTORY_BASE, DIRECTORY_BYTES, LINE, LINE_U64, POOLS_BASE};
use nearpm_interface::media::{
    DIRECTORY_COPIES, DIRECTORY_COPY_BYTES, DIRECTORY_ENTRIES, DIRECTORY_MAGIC, DIRECTORY_VERSION, DirectoryEntry,
    DirectoryHead, PAGE_BYTES,
};
use nearpm_interface::seal;

use crate::error::{Error, Problem};
use crate::memory::{Backing, CardMemory};

/// One pool of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardPool {
    /// Name, 1 to 32 bytes.
    pub name: String,
    /// Device address.
    pub base: u64,
    /// Bytes.
    pub bytes: u64,
    /// Identifier.
    pub id: u32,
}

/// The part of a head that is stored by one atomic store.
const WORD: usize = 8;

/// One change at a time in this process. Processes that share a card take its lock, too.
static CHANGES: Mutex<()> = Mutex::new(());

/// The table of one card, locked.
pub(crate) struct Directory {
    memory: Backing,
    location: String,
    pm_bytes: u64,
    generation: u64,
    /// Copy that counts.
    copy: u64,
    pub pools: Vec<CardPool>,
    _shared: Option<TableLock>,
    _lock: MutexGuard<'static, ()>,
}

impl Directory {
    /// Reads the table; a card whose table is blank has no pools. `location` is for messages.
    pub fn load(card: &Arc<Card>, location: &str) -> Result<Directory, Error> {
        let lock = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = card.lock_table()?;
        // Uncached: it is small, and nothing has to be written back or dropped.
        let memory = CardMemory::map(card.clone(), None, DIRECTORY_BASE, DIRECTORY_BYTES, Caching::Uncached)?;
        let mut directory = Directory {
            memory: Backing::Other(Box::new(memory)),
            location: location.to_owned(),
            pm_bytes: card.pm_bytes(),
            generation: 0,
            copy: DIRECTORY_COPIES - 1,
            pools: Vec::new(),
            _shared: shared,
            _lock: lock,
        };
        let mut blank = true;
        for copy in 0..DIRECTORY_COPIES {
            match directory.read(copy)? {
                Copy::Valid(generation, pools) if generation > directory.generation => {
                    (directory.generation, directory.copy, directory.pools) = (generation, copy, pools);
                }
                Copy::Valid(..) | Copy::Blank => {}
                Copy::Bad => blank = false,
            }
        }
        // A card that has gone reads all ones: what was read counts if it is still there.
        card.push(0)?;
        if directory.generation == 0 && !blank {
            let what = "both copies of the card's table of pools";
            return Err(Problem::Corrupt { what, offset: DIRECTORY_BASE }.at(location));
        }
        Ok(directory)
    }

    fn read(&self, copy: u64) -> Result<Copy, Error> {
        let start = copy * DIRECTORY_COPY_BYTES;
        let mut line = [0; LINE];
        self.memory.load(start, &mut line);
        if line[..WORD].iter().all(|&b| b == 0) {
            return Ok(Copy::Blank);
        }
        let head = DirectoryHead::from_bytes(&line);
        if head.magic != DIRECTORY_MAGIC || usize::from(head.entries) > DIRECTORY_ENTRIES {
            return Ok(Copy::Bad);
        }
        let mut body = vec![0; usize::from(head.entries) * LINE];
        self.memory.load(start + LINE_U64, &mut body);
        if !seal::is_sealed(&body, &line) {
            return Ok(Copy::Bad);
        }
        if head.version > DIRECTORY_VERSION {
            let (found, supported) = (head.version.into(), DIRECTORY_VERSION.into());
            return Err(Problem::Newer { found, supported }.at(&self.location));
        }
        let pools: Option<Vec<CardPool>> = body.chunks_exact(LINE).map(|e| self.decode(e)).collect();
        Ok(pools.map_or(Copy::Bad, |pools| Copy::Valid(head.generation, pools)))
    }

    fn decode(&self, bytes: &[u8]) -> Option<CardPool> {
        let entry = DirectoryEntry::from_bytes(bytes.try_into().ok()?);
        let length = entry.name.iter().position(|&b| b == 0).unwrap_or(entry.name.len());
        let name = std::str::from_utf8(&entry.name[..length]).ok()?.to_owned();
        let end = entry.base.checked_add(entry.bytes)?;
        let sound = entry.base >= POOLS_BASE && entry.base.is_multiple_of(PAGE_BYTES) && end <= self.pm_bytes;
        sound.then_some(CardPool { name, base: entry.base, bytes: entry.bytes, id: entry.pool })
    }

    /// The pool of a name.
    pub fn find(&self, name: &str) -> Option<&CardPool> {
        self.pools.iter().find(|p| p.name == name)
    }

    /// A free range of `bytes` bytes, the lowest that is large enough.
    pub fn place(&self, bytes: u64) -> Result<u64, Problem> {
        if self.pools.len() >= DIRECTORY_ENTRIES {
            return Err(Problem::DirectoryFull { limit: DIRECTORY_ENTRIES });
        }
        let mut taken: Vec<_> = self.pools.iter().map(|p| (p.base, p.base + p.bytes)).collect();
        taken.sort_unstable();
        let no_space = Problem::NoSpace { needed: bytes };
        let mut at = POOLS_BASE;
        for (start, end) in taken.into_iter().chain([(self.pm_bytes, self.pm_bytes)]) {
            if at.checked_add(bytes).is_some_and(|free| free <= start) {
                return Ok(at);
            }
            at = at.max(end.next_multiple_of(PAGE_BYTES));
        }
        Err(no_space)
    }

    /// Adds a pool, durably.
    pub fn add(&mut self, pool: CardPool) -> Result<(), Error> {
        self.pools.push(pool);
        self.write()
    }

    /// Removes a pool, durably.
    pub fn remove(&mut self, name: &str) -> Result<(), Error> {
        self.pools.retain(|p| p.name != name);
        self.write()
    }

    fn write(&mut self) -> Result<(), Error> {
        let mut body = Vec::with_capacity(self.pools.len() * LINE);
        for pool in &self.pools {
            let mut entry =
                DirectoryEntry { base: pool.base, bytes: pool.bytes, pool: pool.id, ..DirectoryEntry::default() };
            entry.name[..pool.name.len()].copy_from_slice(pool.name.as_bytes());
            body.extend_from_slice(&entry.to_bytes());
        }
        let head = DirectoryHead {
            magic: DIRECTORY_MAGIC,
            version: DIRECTORY_VERSION,
            entries: self.pools.len() as u16,
            generation: self.generation + 1,
            ..DirectoryHead::default()
        };
        let mut line = head.to_bytes();
        seal::seal(&body, &mut line);
        let copy = (self.copy + 1) % DIRECTORY_COPIES;
        let start = copy * DIRECTORY_COPY_BYTES;
        self.memory.store(start, &[0; WORD]);
        self.memory.drain()?;
        self.memory.store(start + LINE_U64, &body);
        self.memory.store(start + WORD as u64, &line[WORD..]);
        self.memory.drain()?;
        self.memory.store(start, &line[..WORD]);
        self.memory.drain()?;
        (self.generation, self.copy) = (head.generation, copy);
        Ok(())
    }
}

enum Copy {
    Valid(u64, Vec<CardPool>),
    Blank,
    Bad,
}

/// Checks a pool's name.
pub(crate) fn check_name(name: &str) -> Result<(), Problem> {
    let sound = (1..=32).contains(&name.len()) && !name.contains(['/', ':', '\0']);
    if sound {
        Ok(())
    } else {
        Err(Problem::BadName { rule: "a pool on a card has 1 to 32 bytes of UTF-8 without '/', ':' and zero" })
    }
}
