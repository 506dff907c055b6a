//! The one way in which pools are made and opened, wherever they are and whatever their type.

use std::path::Path;

use nearpm_interface::media::{PAGE_BYTES, PoolHead};

use super::on_card::{CARDS_JOINED_BY, Claimed, Name, OnCard, Reach};
use super::set::{self, Members, Memories, check_count};
use super::set_on_cards::Names;
use super::{Location, Pool, file, format, grow, on_card};
use crate::error::{Error, Problem};
use crate::memory::{Backing, DurableImage, MappedMemory, Medium, Memory, TornFile};
use crate::options::{MediumKind, Options, Request};

const IN_MEMORY: &str = "in memory";

/// Takes bytes for an offset of the copy, which is zero elsewhere.
pub(crate) type Put<'p> = dyn FnMut(u64, &[u8]) -> Result<(), Error> + 'p;

/// What a pool is to be started on.
pub(crate) struct Opening<'a> {
    /// What was asked for.
    pub request: Request<'a>,
    pub medium: Medium,
    pub members: Members,
    pub location: &'a str,
}

/// A type of pool.
pub(crate) trait PoolType: Sized {
    /// Programs reach what is in it by offsets, and not by pointer.
    const BY_OFFSETS: bool;

    /// The head of a new pool of `bytes` bytes. `by_calls`: a drain of its medium is a call that
    /// waits for a device, and not an instruction.
    fn layout(options: &Options, bytes: u64, by_calls: bool) -> Result<PoolHead, Problem>;

    /// The head of the first member of a new pool over several media, each of `bytes` bytes.
    fn layout_member(options: &Options, bytes: u64, members: usize) -> Result<PoolHead, Problem> {
        format::layout_striped(options, bytes, members)
    }

    /// Recovers what the medium holds, and opens it.
    fn start(ground: Opening<'_>) -> Result<Self, Error>;

    /// Writes the head, which makes it a pool: all else is on the medium.
    fn put_head(&self, head: PoolHead) -> Result<(), Error>;
}

/// What is asked of a type of pool, unless it cannot be had anywhere.
fn request<'o, P: PoolType>(
    options: &'o Options,
    medium_kind: MediumKind,
    is_new: bool,
    location: &str,
) -> Result<Request<'o>, Error> {
    let request = Request { options, by_offsets: P::BY_OFFSETS, medium_kind, is_new, medium: None };
    request.check(location)?;
    Ok(request)
}

fn medium_kind_of(location: &Location) -> MediumKind {
    match location {
        Location::File(_) => MediumKind::File,
        Location::Card { card, .. } if card.contains(CARDS_JOINED_BY) => MediumKind::Cards,
        Location::Card { .. } => MediumKind::Card,
    }
}

fn reach<P: PoolType>(options: &Options) -> Reach {
    // Who posts commands beside stores by pointer has a way of its own: `OnCard::for_commands`.
    Reach { caching: options.caching, commands: P::BY_OFFSETS }
}

/// Over several cards there is one medium, which each executor fences by what was done to it.
fn reach_of_members(options: &Options) -> Reach {
    Reach { caching: options.caching, commands: true }
}

/// The file itself, or a machine around it whose power fails.
fn backing(memory: MappedMemory, request: &Request<'_>) -> Result<Backing, Error> {
    if request.options.prefault && request.by_offsets {
        memory.populate();
    }
    Ok(match request.options.power_cut {
        None => Backing::Mapped(memory),
        Some(cut) if cut.torn => Backing::Other(Box::new(TornFile::load(memory, cut)?)),
        Some(cut) => Backing::Other(Box::new(DurableImage::load(memory, cut))),
    })
}

/// Creates a pool at a location, and opens it. It is there together with what `fill` has put into
/// it, or not at all: a file gets its name, or its head, behind that. On a card it has its name
/// before, and is removed if `fill` fails.
pub(crate) fn create<P: PoolType, E: From<Error>>(
    options: &Options,
    location: &str,
    bytes: u64,
    fill: impl FnOnce(&P) -> Result<(), E>,
) -> Result<P, E> {
    let at = Location::parse(location)?;
    let request = request::<P>(options, medium_kind_of(&at), true, location)?;
    match at {
        Location::File(path) => create_in_file(request, &path, bytes, location, fill),
        Location::Card { card, pool } => {
            let made: P = create_on_card(request, &Name { card: &card, pool: &pool, location }, bytes)?;
            match fill(&made) {
                Ok(()) => Ok(made),
                Err(error) => {
                    drop(made);
                    // The error that led here is the one to report.
                    let _ = remove(location);
                    Err(error)
                }
            }
        }
    }
}

fn create_in_file<P: PoolType, E: From<Error>>(
    request: Request<'_>,
    path: &Path,
    bytes: u64,
    location: &str,
    fill: impl FnOnce(&P) -> Result<(), E>,
) -> Result<P, E> {
    let options = request.options;
    let shape = |bytes, by_calls| P::layout(options, bytes, by_calls).map_err(|p| p.at(location));
    let (memory, unnamed, head) = if bytes == 0 {
        let memory = file::adopt(path, PAGE_BYTES, options.survives, options.permissions, options.most_bytes())?;
        let head = shape(memory.bytes(), memory.drains_for_all())?;
        (memory, None, head)
    } else {
        // What cannot be is refused before there is a file.
        shape(bytes, false)?;
        let (memory, unnamed) = file::create(path, bytes, options.survives, options.most_bytes())?;
        if let Some(bits) = options.permissions {
            unnamed.permit(bits)?;
        }
        let head = shape(bytes, memory.drains_for_all())?;
        (memory, Some(unnamed), head)
    };
    let pool: P = prepare(request, backing(memory, &request)?, head, location)?;
    fill(&pool)?;
    pool.put_head(head)?;
    if let Some(unnamed) = unnamed {
        unnamed.name()?;
    }
    Ok(pool)
}

/// A pool that is whole but for its head on the medium.
fn prepare<P: PoolType>(request: Request<'_>, backing: Backing, head: PoolHead, location: &str) -> Result<P, Error> {
    // Before anything is written.
    let medium = Medium::new(backing);
    request.with_medium(&medium, &head).check(location)?;
    format::prepare(&medium, &head)?;
    P::start(Opening { request, medium, members: Members::single(head, None), location })
}

fn create_on_card<P: PoolType>(request: Request<'_>, name: &Name<'_>, bytes: u64) -> Result<P, Error> {
    let (options, reach, location) = (request.options, reach::<P>(request.options), name.location);
    if let Some(names) = Names::of(name.card, name.pool, location)? {
        let first = |members| P::layout_member(options, bytes / members as u64, members);
        let start = |medium, members| P::start(Opening { request, medium, members, location });
        return names.create(options, first, reach_of_members(options), start);
    }
    let head = P::layout(options, bytes, false).map_err(|p| p.at(location))?;
    let start = |claimed| start_on_card(request, claimed, location);
    OnCard::create(name, head, options.id.is_some(), reach, |_| Ok(()), start)
}

fn start_on_card<P: PoolType>(
    request: Request<'_>,
    Claimed { medium, head, on_card }: Claimed,
    location: &str,
) -> Result<P, Error> {
    P::start(Opening { request, medium, members: Members::single(head, Some(on_card)), location })
}

/// Opens the pool at a location, recovering it first.
pub(crate) fn open<P: PoolType>(options: &Options, location: &str) -> Result<P, Error> {
    let at = Location::parse(location)?;
    let request = request::<P>(options, medium_kind_of(&at), false, location)?;
    match at {
        Location::File(path) => {
            let is_private = options.read_only || options.copy_on_write;
            let backing = match is_private {
                true => Backing::Private(file::open_shared(&path)?),
                false => backing(file::open_up_to(&path, options.survives, options.most_bytes())?, &request)?,
            };
            open_backing(request, backing, location)
        }
        Location::Card { card, pool } => {
            if let Some(names) = Names::of(&card, &pool, location)? {
                let start = |medium, members| P::start(Opening { request, medium, members, location });
                return names.open(reach_of_members(options), start);
            }
            let name = Name { card: &card, pool: &pool, location };
            OnCard::open(&name, reach::<P>(options), |claimed| start_on_card(request, claimed, location))
        }
    }
}

fn open_backing<P: PoolType>(request: Request<'_>, backing: Backing, location: &str) -> Result<P, Error> {
    let medium = Medium::new(backing);
    let head = format::read(&medium).map_err(|p| p.at(location))?;
    if !request.options.read_only {
        grow::settle_head(&medium, &head)?;
    }
    P::start(Opening { request, medium, members: Members::single(head, None), location })
}

/// Creates a pool that fills a memory.
pub(crate) fn create_in<P: PoolType>(options: &Options, memory: Box<dyn Memory>) -> Result<P, Error> {
    let request = request::<P>(options, MediumKind::Memory, true, IN_MEMORY)?;
    let head = P::layout(options, memory.bytes(), memory.drains_for_all()).map_err(|p| p.at(IN_MEMORY))?;
    let pool: P = prepare(request, Backing::Other(memory), head, IN_MEMORY)?;
    pool.put_head(head)?;
    Ok(pool)
}

/// Opens the pool that a memory holds, recovering it first.
pub(crate) fn open_in<P: PoolType>(options: &Options, memory: Box<dyn Memory>) -> Result<P, Error> {
    let request = request::<P>(options, MediumKind::Memory, false, IN_MEMORY)?;
    open_backing(request, Backing::Other(memory), IN_MEMORY)
}

impl Options {
    /// Creates a pool of `bytes` bytes at a path or at `card:NAME/POOL`, and opens it by offsets.
    /// Nothing is left behind when that fails, or when the process is killed meanwhile. 0 bytes:
    /// the pool fills a file that exists, whose first page is blank.
    pub fn create(&self, location: &str, bytes: u64) -> Result<Pool, Error> {
        create(self, location, bytes, |_| Ok(()))
    }

    /// Opens a pool by offsets, recovering it first.
    pub fn open(&self, location: &str) -> Result<Pool, Error> {
        open(self, location)
    }

    /// Creates a pool that fills a memory.
    pub fn create_in(&self, memory: Box<dyn Memory>) -> Result<Pool, Error> {
        create_in(self, memory)
    }

    /// Opens the pool that a memory holds, recovering it first.
    pub fn open_in(&self, memory: Box<dyn Memory>) -> Result<Pool, Error> {
        open_in(self, memory)
    }

    /// Creates a pool on a card with the head and the contents of another one, whose identifier it
    /// keeps.
    pub(crate) fn create_filled(
        &self,
        (card, pool): (&str, &str),
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
        let request = request::<Pool>(&options, MediumKind::Card, true, location)?;
        let start = |claimed| start_on_card(request, claimed, location);
        OnCard::create(&Name { card, pool, location }, head, true, reach::<Pool>(self), fill, start)
    }

    /// Creates a pool that is striped over memories, a member in each: see `docs/devices.md`. One
    /// memory has an ordinary pool.
    pub fn create_striped(&self, mut memories: Vec<Box<dyn Memory>>) -> Result<Pool, Error> {
        check_count(memories.len()).map_err(|p| p.at(IN_MEMORY))?;
        if memories.len() == 1 {
            return self.create_in(memories.remove(0));
        }
        let request = request::<Pool>(self, MediumKind::Memory, true, IN_MEMORY)?;
        let bytes = memories.iter().map(|memory| memory.bytes()).min().unwrap_or(0);
        let head = format::layout_striped(self, bytes, memories.len()).map_err(|p| p.at(IN_MEMORY))?;
        let (medium, members) = Memories::unnamed(memories, IN_MEMORY).create(set::heads(head))?;
        Pool::start(Opening { request, medium, members, location: IN_MEMORY })
    }

    /// Opens the pool whose members the memories hold, in their order, recovering it first.
    ///
    /// # Errors
    /// [`Problem::OtherMember`] for memories that do not belong together or are in another order:
    /// nothing is changed.
    pub fn open_striped(&self, mut memories: Vec<Box<dyn Memory>>) -> Result<Pool, Error> {
        check_count(memories.len()).map_err(|p| p.at(IN_MEMORY))?;
        if memories.len() == 1 {
            return self.open_in(memories.remove(0));
        }
        let request = request::<Pool>(self, MediumKind::Memory, false, IN_MEMORY)?;
        let (medium, members) = Memories::unnamed(memories, IN_MEMORY).open()?;
        Pool::start(Opening { request, medium, members, location: IN_MEMORY })
    }
}

/// Removes a pool that is not open. A file that is not a pool is left alone.
pub fn remove(location: &str) -> Result<(), Error> {
    match Location::parse(location)? {
        Location::File(path) => file::remove(Path::new(&path)),
        Location::Card { card, pool } => match Names::of(&card, &pool, location)? {
            Some(names) => names.remove(reach_of_members(&Options::new()), location),
            None => on_card::remove(&Name { card: &card, pool: &pool, location }),
        },
    }
}
