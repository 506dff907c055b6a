//! Making, opening and removing pools, wherever they are.

use std::path::Path;

use nearpm_interface::media::PoolHead;

use super::on_card::{Claimed, Name, OnCard, Reach};
use super::set::{self, Members, Memories, check_count};
use super::set_on_cards::Names;
use super::{Location, Pool, file, format, on_card};
use crate::error::{Error, Problem};
use crate::memory::{Backing, MappedMemory, Medium, Memory};
use crate::options::{Engine, PoolOptions};

/// Takes bytes for an offset of the copy, which is zero elsewhere.
pub(crate) type Put<'p> = dyn FnMut(u64, &[u8]) -> Result<(), Error> + 'p;

impl PoolOptions {
    /// Creates a pool of `bytes` bytes at a path or at `card:NAME/POOL`, and opens it. Nothing is left behind when that fails.
    pub fn create(&self, location: &str, bytes: u64) -> Result<Pool, Error> {
        self.refuse_read_only(location, WRITTEN)?;
        match Location::parse(location)? {
            Location::File(path) => {
                refuse_card(self.engine, location)?;
                let head = format::layout(self, bytes).map_err(|p| p.at(location))?;
                let (memory, unnamed) = file::create(&path, bytes, self.survives)?;
                let medium = Medium::new(self.mapped(memory));
                let head = format::write(&medium, head)?;
                let pool = Pool::start(self.clone(), medium, Members::single(head, None), location)?;
                unnamed.name()?;
                Ok(pool)
            }
            Location::Card { card, pool } => {
                let start = |medium, members| Pool::start(self.clone(), medium, members, location);
                if let Some(names) = Names::of(&card, &pool, location)? {
                    return names.create(self, bytes, self.reach(), start);
                }
                let head = format::layout(self, bytes).map_err(|p| p.at(location))?;
                let name = Name { card: &card, pool: &pool, location };
                let start = |claimed| self.start_on_card(claimed, location);
                OnCard::create(&name, head, self.id.is_some(), self.reach(), |_| Ok(()), start)
            }
        }
    }

    /// Creates a pool on a card with the head and the contents of another one, whose identifier it keeps.
    pub(crate) fn create_filled(
        &self,
        card: &str,
        pool: &str,
        head: PoolHead,
        location: &str,
        fill: impl FnOnce(&mut Put<'_>) -> Result<(), Error>,
    ) -> Result<Pool, Error> {
        let options = self.clone().id(head.pool);
        let fill = |medium: &Medium| {
            fill(&mut |offset, bytes| {
                medium.put(offset, bytes);
                Ok(())
            })?;
            medium.drain()
        };
        let start = |claimed| options.start_on_card(claimed, location);
        OnCard::create(&Name { card, pool, location }, head, true, self.reach(), fill, start)
    }

    /// Opens a pool, recovering it first.
    pub fn open(&self, location: &str) -> Result<Pool, Error> {
        match Location::parse(location)? {
            Location::File(path) => {
                refuse_card(self.engine, location)?;
                let medium = Medium::new(match self.read_only {
                    true => Backing::Private(file::open_shared(&path)?),
                    false => self.mapped(file::open_complete(&path, self.survives)?),
                });
                let head = format::read(&medium).map_err(|p| p.at(location))?;
                Pool::start(self.clone(), medium, Members::single(head, None), location)
            }
            Location::Card { card, pool } => {
                self.refuse_read_only(location, NOT_SHARED)?;
                if let Some(names) = Names::of(&card, &pool, location)? {
                    let start = |medium, members| Pool::start(self.clone(), medium, members, location);
                    return names.open(self.reach(), start);
                }
                let name = Name { card: &card, pool: &pool, location };
                OnCard::open(&name, self.reach(), |claimed| self.start_on_card(claimed, location))
            }
        }
    }

    fn mapped(&self, memory: MappedMemory) -> Backing {
        if self.prefault {
            memory.populate();
        }
        Backing::Mapped(memory)
    }

    fn reach(&self) -> Reach {
        Reach { caching: self.caching, commands: true }
    }

    fn start_on_card(&self, Claimed { medium, head, on_card }: Claimed, location: &str) -> Result<Pool, Error> {
        Pool::start(self.clone(), medium, Members::single(head, Some(on_card)), location)
    }

    /// Creates a pool that fills a memory.
    pub fn create_in(&self, memory: Box<dyn Memory>) -> Result<Pool, Error> {
        self.refuse_read_only(IN_MEMORY, WRITTEN)?;
        refuse_card(self.engine, IN_MEMORY)?;
        let head = format::layout(self, memory.bytes()).map_err(|p| p.at(IN_MEMORY))?;
        let medium = Medium::new(Backing::Other(memory));
        let head = format::write(&medium, head)?;
        Pool::start(self.clone(), medium, Members::single(head, None), IN_MEMORY)
    }

    /// Opens the pool that a memory holds, recovering it first.
    pub fn open_in(&self, memory: Box<dyn Memory>) -> Result<Pool, Error> {
        self.refuse_read_only(IN_MEMORY, NOT_SHARED)?;
        refuse_card(self.engine, IN_MEMORY)?;
        let medium = Medium::new(Backing::Other(memory));
        let head = format::read(&medium).map_err(|p| p.at(IN_MEMORY))?;
        Pool::start(self.clone(), medium, Members::single(head, None), IN_MEMORY)
    }

    /// Creates a pool that is striped over memories, a member in each: see `docs/devices.md`. One memory has an ordinary pool.
    pub fn create_striped(&self, mut memories: Vec<Box<dyn Memory>>) -> Result<Pool, Error> {
        self.refuse_read_only(IN_MEMORY, WRITTEN)?;
        check_count(memories.len()).map_err(|p| p.at(IN_MEMORY))?;
        refuse_card(self.engine, IN_MEMORY)?;
        if memories.len() == 1 {
            return self.create_in(memories.remove(0));
        }
        let bytes = memories.iter().map(|memory| memory.bytes()).min().unwrap_or(0);
        let head = format::layout_striped(self, bytes, memories.len()).map_err(|p| p.at(IN_MEMORY))?;
        let (medium, members) = Memories::unnamed(memories, IN_MEMORY).create(set::heads(head))?;
        Pool::start(self.clone(), medium, members, IN_MEMORY)
    }

    /// Opens the pool whose members the memories hold, in their order, recovering it first.
    ///
    /// # Errors
    /// [`Problem::OtherMember`] for memories that do not belong together or are in another order: nothing is changed.
    pub fn open_striped(&self, mut memories: Vec<Box<dyn Memory>>) -> Result<Pool, Error> {
        check_count(memories.len()).map_err(|p| p.at(IN_MEMORY))?;
        if memories.len() == 1 {
            return self.open_in(memories.remove(0));
        }
        self.refuse_read_only(IN_MEMORY, NOT_SHARED)?;
        refuse_card(self.engine, IN_MEMORY)?;
        let (medium, members) = Memories::unnamed(memories, IN_MEMORY).open()?;
        Pool::start(self.clone(), medium, members, IN_MEMORY)
    }

    fn refuse_read_only(&self, location: &str, what: &'static str) -> Result<(), Error> {
        if self.read_only { Err(Problem::BadOption { what }.at(location)) } else { Ok(()) }
    }
}

/// The card can work only on what is on it.
pub(crate) fn refuse_card(engine: Engine, location: &str) -> Result<(), Error> {
    match engine {
        Engine::Card => {
            let what = "the card can work only on a pool that is on it: name it card:NAME/POOL, or use Engine::Cpu";
            Err(Problem::BadOption { what }.at(location))
        }
        Engine::Auto | Engine::Cpu => Ok(()),
    }
}

const IN_MEMORY: &str = "in memory";
/// Why no pool is created for reading alone, or for changes that are forgotten.
pub(crate) const WRITTEN: &str = "a pool that is created is written (read_only, copy_on_write)";
/// Why other pools cannot be opened so.
pub(crate) const NOT_SHARED: &str =
    "only a pool in a file is opened for reading, or for changes that are forgotten (read_only, copy_on_write)";

/// Removes a pool that is not open. A file that is not a pool is left alone.
pub fn remove(location: &str) -> Result<(), Error> {
    match Location::parse(location)? {
        Location::File(path) => file::remove(Path::new(&path)),
        Location::Card { card, pool } => match Names::of(&card, &pool, location)? {
            Some(names) => names.remove(PoolOptions::new().reach(), location),
            None => on_card::remove(&Name { card: &card, pool: &pool, location }),
        },
    }
}
