//! Pools on a card: finding the card and the place, claiming it, and what a process that died may
//! have left in the processor's cache.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use nearpm_driver::Card;
use nearpm_driver::pci::Caching;
use nearpm_interface::geometry::LINE;
use nearpm_interface::media::{PAGE_BYTES, POOL_OPENED, PoolHead};
use nearpm_interface::seal;

use super::directory::{CardPool, Directory};
use super::format;
use crate::cards;
use crate::error::{Error, Problem};
use crate::memory::{Backing, CardMemory, Medium};
use crate::process::Process;

/// Card pools that are open in this process: address of the card and identifier of the pool.
static OPEN_ON_CARDS: Mutex<BTreeSet<(usize, u32)>> = Mutex::new(BTreeSet::new());

/// Stands between the names of the cards of a striped pool.
pub(crate) const CARDS_JOINED_BY: char = '+';

/// Says that a card pool is open, as long as it lives: in this process, and to others that share
/// the card.
struct OpenOnCard {
    card: Arc<Card>,
    key: (usize, u32),
    /// Who opened it: in a child of `fork` it stays what it is to its parent.
    process: Process,
}

impl OpenOnCard {
    fn claim(card: &Arc<Card>, id: u32, range: Range<u64>, location: &str) -> Result<OpenOnCard, Error> {
        let key = (Arc::as_ptr(card) as usize, id);
        let fresh = OPEN_ON_CARDS.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
        if !fresh {
            return Err(Problem::InUse { process: Some(std::process::id()) }.at(location));
        }
        let open = OpenOnCard { card: card.clone(), key, process: Process::current() };
        if card.claim_pool(id, range)? { Ok(open) } else { Err(Problem::InUse { process: None }.at(location)) }
    }
}

impl Drop for OpenOnCard {
    fn drop(&mut self) {
        if !self.process.is_current() {
            return;
        }
        // A broker that has gone has no claims; one that refused this has none of this process.
        let _ = self.card.give_pool_back(self.key.1);
        OPEN_ON_CARDS.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

/// Whether a pool with this identifier is open on another card than these.
pub(super) fn is_open_elsewhere(cards: &[Arc<Card>], id: u32) -> bool {
    let own = |at: usize| cards.iter().any(|card| Arc::as_ptr(card) as usize == at);
    let open = OPEN_ON_CARDS.lock().unwrap_or_else(PoisonError::into_inner);
    open.iter().any(|&(at, open)| open == id && !own(at))
}

/// `card:NAME/POOL`, taken apart.
pub(crate) struct Name<'a> {
    /// Name of the card.
    pub card: &'a str,
    /// Name of the pool.
    pub pool: &'a str,
    /// All of it, for messages.
    pub location: &'a str,
}

impl Name<'_> {
    pub fn card(&self) -> Result<Arc<Card>, Error> {
        find_card(self.card, self.location)
    }
}

/// How the processor reaches a pool on a card.
#[derive(Clone, Copy)]
pub(crate) struct Reach {
    /// How its memory is cached.
    pub caching: Caching,
    /// Whether commands work on it.
    pub commands: bool,
}

impl Reach {
    fn map(self, card: &Arc<Card>, pool: u32, base: u64, bytes: u64) -> Result<Backing, Error> {
        let memory = CardMemory::map(card.clone(), Some(pool), base, bytes, self.caching)?;
        Ok(Backing::Other(Box::new(if self.commands { memory } else { memory.without_commands() })))
    }
}

/// The card of an open pool, and where the pool is on it.
pub(crate) struct OnCard {
    pub card: Arc<Card>,
    /// Device address.
    pub base: u64,
    caching: Caching,
    _open: OpenOnCard,
}

/// A pool on a card that nobody else in this process has open.
pub(crate) struct Claimed {
    pub medium: Medium,
    pub head: PoolHead,
    pub on_card: OnCard,
}

impl OnCard {
    /// Finds a place for a new pool and claims it. `chosen` says that the program has chosen the
    /// identifier.
    fn place(
        name: &Name<'_>,
        head: &mut PoolHead,
        chosen: bool,
        reach: Reach,
    ) -> Result<(Directory, Backing, OnCard), Error> {
        let (card, location) = (name.card()?, name.location);
        let directory = Directory::load(&card, location)?;
        if directory.find(name.pool).is_some() {
            return Err(Problem::Exists.at(location));
        }
        // Identifiers are unique on a card, which tells its pools apart by them.
        let taken: BTreeSet<u32> = directory.pools.iter().map(|p| p.id).collect();
        if chosen && taken.contains(&head.pool) {
            let what = "another pool of the card has this identifier; choose another";
            return Err(Problem::BadOption { what }.at(location));
        }
        while taken.contains(&head.pool) || head.pool == 0 {
            head.pool = head.pool.wrapping_add(1);
        }
        let base = directory.place(head.bytes).map_err(|p| p.at(location))?;
        let open = OpenOnCard::claim(&card, head.pool, base..base + head.bytes, location)?;
        let memory = reach.map(&card, head.pool, base, head.bytes)?;
        // Lines of a pool that was there before, of a process that died.
        memory.invalidate(0, head.bytes);
        memory.fence()?;
        Ok((directory, memory, OnCard { card, base, caching: reach.caching, _open: open }))
    }

    /// Enters an unfinished member of a striped pool into the card's table.
    pub fn create_member(name: &Name<'_>, head: &mut PoolHead, reach: Reach) -> Result<(Backing, OnCard), Error> {
        let (mut directory, memory, on_card) = Self::place(name, head, true, reach)?;
        memory.store(0, &[0; LINE]);
        memory.write_back(0, LINE as u64);
        memory.drain()?;
        let (name, base) = (name.pool.to_owned(), on_card.base);
        directory.add(CardPool { name, base, bytes: head.bytes, id: head.pool })?;
        Ok((memory, on_card))
    }

    /// Finds a place for a new pool, writes it there, enters it into the card's table and starts
    /// it. Nothing is left behind when that fails. `chosen` says that the program has chosen the
    /// identifier; `fill` stores what the pool has from the start, before it has its name.
    pub fn create<P>(
        name: &Name<'_>,
        mut head: PoolHead,
        chosen: bool,
        reach: Reach,
        fill: impl FnOnce(&Medium) -> Result<(), Error>,
        start: impl FnOnce(Claimed) -> Result<P, Error>,
    ) -> Result<P, Error> {
        let (mut directory, memory, on_card) = Self::place(name, &mut head, chosen, reach)?;
        let (card, base) = (on_card.card.clone(), on_card.base);
        let medium = Medium::new(memory);
        let head = format::write(&medium, head)?;
        fill(&medium)?;
        directory.add(CardPool { name: name.pool.to_owned(), base, bytes: head.bytes, id: head.pool })?;
        let started = ask_first(&card, start(Claimed { medium, head, on_card }));
        if started.is_err() {
            directory.remove(name.pool)?;
        }
        started
    }

    /// The pool's memory once more, as the processor reaches it beside commands. Both go through
    /// the same cache.
    pub fn for_commands(&self, head: &PoolHead) -> Result<Backing, Error> {
        Reach { caching: self.caching, commands: true }.map(&self.card, head.pool, self.base, head.bytes)
    }

    /// Finds a pool that nobody else in this process has open.
    pub fn find(name: &Name<'_>, reach: Reach) -> Result<(Backing, OnCard), Error> {
        let (card, location) = (name.card()?, name.location);
        let directory = Directory::load(&card, location)?;
        let entry = directory.find(name.pool).cloned().ok_or_else(|| Problem::NotFound.at(location))?;
        let open = OpenOnCard::claim(&card, entry.id, entry.base..entry.base + entry.bytes, location)?;
        // Held until here: the pool must not be removed, and its place given away, before it is
        // claimed.
        drop(directory);
        let memory = reach.map(&card, entry.id, entry.base, entry.bytes)?;
        Ok((memory, OnCard { card, base: entry.base, caching: reach.caching, _open: open }))
    }

    /// Finds a pool, reads its head and starts it.
    pub fn open<P>(name: &Name<'_>, reach: Reach, start: impl FnOnce(Claimed) -> Result<P, Error>) -> Result<P, Error> {
        let (memory, on_card) = Self::find(name, reach)?;
        memory.invalidate(0, PAGE_BYTES);
        memory.fence()?;
        let medium = Medium::new(memory);
        let head = format::read(&medium).map_err(|p| p.at(name.location));
        let card = on_card.card.clone();
        ask_first(&card, head.and_then(|head| start(Claimed { medium, head, on_card })))
    }

    /// Drops what a process that died on this boot of the host left in the processor's caches, and
    /// notes that the pool is open.
    ///
    /// Lines that commands wrote behind the caches may be there as they were before; lines that the
    /// process stored to may be dirty, and would be evicted over what commands write later.
    /// Dropping a dirty line writes it back, which is right: no command has written it since,
    /// because commands write only lines that were dropped before and not stored to until they were
    /// done.
    pub fn drop_left_lines(&self, medium: &Medium, head: &PoolHead) -> Result<(), Error> {
        let boot = self.card.function().host_boot().unwrap_or(0);
        let word = medium.load_word(POOL_OPENED);
        let elsewhere = seal::open_word(word).is_some_and(|then| then != 0 && boot != 0 && then != boot);
        if word != 0 && !elsewhere {
            medium.invalidate(head.ring(0), head.end() - head.ring(0));
            medium.fence()?;
        }
        medium.put_word(POOL_OPENED, seal::seal_word(boot));
        Ok(())
    }

    /// The pool is closed, and no line of it is dirty: who opens it next need not drop any. A
    /// process that has stored around the cache leaves the word as it is: lines of those before it
    /// may be in there, and are old now.
    pub fn note_closed(&self, medium: &Medium) {
        if self.caching == Caching::WriteBack {
            medium.put_word(POOL_OPENED, 0);
        }
    }
}

/// A card that has gone reads all ones, which looks like damage: before a pool is blamed the card
/// is asked.
fn ask_first<P>(card: &Card, opened: Result<P, Error>) -> Result<P, Error> {
    opened.map_err(|error| match error {
        Error::Pool { .. } => card.push(0).err().map_or(error, Error::from),
        other => other,
    })
}

fn find_card(name: &str, location: &str) -> Result<Arc<Card>, Error> {
    if name.contains(CARDS_JOINED_BY) {
        let what = "a pool over several cards is opened by Options, and not by what you use";
        return Err(Problem::BadOption { what }.at(location));
    }
    cards::find(name).ok_or_else(|| Problem::UnknownCard { name: name.to_owned() }.at(location))
}

/// The bytes of a pool that nobody has open.
pub(crate) fn read(name: &Name<'_>) -> Result<Vec<u8>, Error> {
    let (memory, _on_card) = OnCard::find(name, Reach { caching: Caching::WriteBack, commands: false })?;
    // What a process that died has left in the caches is written back, or was overwritten by the
    // card.
    memory.invalidate(0, memory.bytes());
    memory.fence()?;
    let mut bytes = vec![0; memory.bytes() as usize];
    memory.load(0, &mut bytes);
    memory.alive()?;
    Ok(bytes)
}

/// Removes a pool that is not open, and that is not a member of another one.
pub(crate) fn remove(name: &Name<'_>) -> Result<(), Error> {
    let (memory, on_card) = OnCard::find(name, Reach { caching: Caching::Uncached, commands: false })?;
    let medium = Medium::new(memory);
    if let Err(alone @ Problem::MemberAlone { .. }) = format::read(&medium) {
        return Err(alone.at(name.location));
    }
    on_card.card.push(0)?;
    forget(&on_card.card, name)
}

/// Takes a pool out of the card's table.
pub(crate) fn forget(card: &Arc<Card>, name: &Name<'_>) -> Result<(), Error> {
    Directory::load(card, name.location)?.remove(name.pool)
}

/// The pools of a card.
pub fn list(card: &str) -> Result<Vec<CardPool>, Error> {
    let location = format!("card:{card}");
    Ok(Directory::load(&find_card(card, &location)?, &location)?.pools.clone())
}
