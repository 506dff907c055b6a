//! How direct pools are created, opened and closed.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use nearpm_driver::pci::Caching;
use nearpm_interface::media::{HEAP_ROOT, MIN_RING_BYTES, PAGE_BYTES, PoolHead, SEALED_VERSION};
use nearpm_interface::record::{POOL_APPLIED, POOL_CONFIRMED};
use nearpm_interface::seal;

use super::by_mechanism::{self, ByMechanism};
use super::heap::Heap;
use super::known::Known;
use super::lint::Linter;
use super::shard::{Alone, SHARDS, Shard};
use super::truncate::kept_chunks;
use super::tx::Entrance;
use super::unacknowledged::Unacknowledged;
use super::{DirectOptions, DirectPool, Mode};
use crate::damage::Class;
use crate::error::{Error, Problem};
use crate::memory::{Backing, DurableImage, MappedMemory, Medium, Memory, TornFile, View};
use crate::options::PoolOptions;
use crate::pool::on_card::{Claimed, Name, OnCard, Reach};
use crate::pool::set::Members;
use crate::pool::{Location, NOT_SHARED, WRITTEN, file, format, refuse_card};
use crate::process::Process;
use crate::recovery;

const PAGE: u32 = PAGE_BYTES as u32;
/// A ring that a mechanism uses has one part of so many of a new pool, and so many bytes at most.
const RING_SHARE: u64 = 16;
const MOST_RING: u64 = 1 << 20;

const IN_MEMORY: &str = "in memory";

/// How the processor reaches a direct pool on a card. Who posts commands for it has a way of its own.
const REACH: Reach = Reach { caching: Caching::WriteBack, commands: false };

/// Refuses what a pool on a card cannot have.
fn check_card(options: &DirectOptions, location: &str) -> Result<(), Error> {
    by_mechanism::check(options, location)?;
    let what = match options {
        DirectOptions { mode: Mode::InPlace, .. } => {
            "a card's memory is reached by copies over the link, and Mode::InPlace needs memory that is mapped; use \
             Mode::WorkingCopy"
        }
        DirectOptions { power_cut: Some(_), .. } => {
            "DirectOptions::power_cut is for pools in files; cut the power of the card itself"
        }
        DirectOptions { read_only: true, .. } | DirectOptions { copy_on_write: true, .. } => NOT_SHARED,
        _ => return Ok(()),
    };
    Err(Problem::BadOption { what }.at(location))
}

/// Refuses what a pool in the computer's own memory cannot have.
fn check_computer(options: &DirectOptions, location: &str) -> Result<(), Error> {
    by_mechanism::check(options, location)?;
    options.mechanism.map_or(Ok(()), |_| refuse_card(options.engine, location))
}

/// The file itself, or a machine around it whose power fails.
fn backing(memory: MappedMemory, options: &DirectOptions) -> Result<Backing, Error> {
    Ok(match options.power_cut {
        None => Backing::Mapped(memory),
        Some(cut) if cut.torn => Backing::Other(Box::new(TornFile::load(memory, cut)?)),
        Some(cut) => Backing::Other(Box::new(DurableImage::load(memory, cut))),
    })
}

/// Where programs may store in place.
fn in_place_address(backing: &Backing, location: &str) -> Result<*mut u8, Error> {
    let refuse = |what| Problem::BadOption { what }.at(location);
    if !backing.keeps_order() {
        return Err(refuse(
            "on an ordinary file the system writes pages when it likes, so that Mode::InPlace cannot survive a power cut; use \
             Mode::WorkingCopy, or Survives::ProcessCrash",
        ));
    }
    backing
        .address()
        .ok_or_else(|| refuse("this memory cannot be mapped, which Mode::InPlace needs; use Mode::WorkingCopy"))
}

/// The layout of a new pool: one ring, small where no mechanism is to use it, no spare pages, sealed tables.
fn layout(options: &DirectOptions, bytes: u64) -> Result<PoolHead, Problem> {
    let ring = match options.mechanism {
        None => MIN_RING_BYTES,
        Some(_) => (bytes / RING_SHARE).clamp(MIN_RING_BYTES.into(), MOST_RING) as u32 / PAGE * PAGE,
    };
    let mut shape = PoolOptions::new().lanes(1).ring_bytes(ring).spare_pages(0);
    if let Some(id) = options.id {
        shape = shape.id(id);
    }
    format::layout(&shape, bytes).map(|head| PoolHead { version: SEALED_VERSION, ..head })
}

/// Takes room on the medium, where the file has holes: for everything that a program may store to in place; else for what is in use, and what
/// comes into use gets its room then.
fn secure(medium: &Medium, head: &PoolHead, heap: &Heap, mode: Mode) -> Result<(), Error> {
    let backing = medium.backing();
    if mode == Mode::InPlace {
        return backing.secure(std::iter::once(0..medium.bytes()));
    }
    backing.secure([0..PAGE_BYTES, head.heap()..head.heap() + PAGE_BYTES])?;
    heap.ranges_in_use().into_iter().try_for_each(|range| {
        backing.secure(heap.tables_of(&range))?;
        match backing.secure([range.clone()]) {
            // Its objects have their room: the medium was full before all of the chunk had some.
            Err(Error::Pool { problem: Problem::NoSpace { .. }, .. }) => backing.secure(objects_in(heap, &range)),
            done => done,
        }
    })
}

/// Where the objects of a range of chunks lie.
fn objects_in(heap: &Heap, range: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let objects = std::iter::successors(heap.next_object(range.start - 1), |&object| heap.next_object(object));
    let end = range.end;
    objects
        .take_while(move |&object| object < end)
        .map(|object| object..object + heap.usable_bytes(object).unwrap_or(0))
}

impl DirectPool {
    /// Creates a pool of `bytes` bytes at a path or at `card:NAME/POOL` and opens it. Nothing is left behind when that fails, or when
    /// the process is killed meanwhile. 0 bytes: the pool fills a file that exists, whose first page is blank.
    pub fn create(location: &str, bytes: u64, options: &DirectOptions) -> Result<DirectPool, Error> {
        Self::create_with(location, bytes, options, |_| Ok(()))
    }

    /// As [`DirectPool::create`], and the pool is there together with what `fill` has committed, or not at all: it gets its name
    /// behind that. On a card it has its name before, and is removed if `fill` fails.
    ///
    /// # Errors
    /// As [`DirectPool::create`]; those of `fill`.
    pub fn create_with<E: From<Error>>(
        location: &str,
        bytes: u64,
        options: &DirectOptions,
        fill: impl FnOnce(&DirectPool) -> Result<(), E>,
    ) -> Result<DirectPool, E> {
        match Location::parse(location)? {
            Location::File(path) => Self::create_in_file(&path, bytes, location, options, fill),
            Location::Card { card, pool } => {
                check_card(options, location)?;
                let head = layout(options, bytes).map_err(|p| p.at(location))?;
                let (name, chosen) = (Name { card: &card, pool: &pool, location }, options.id.is_some());
                let start = |claimed| Self::claim(claimed, location, options);
                let made = OnCard::create(&name, head, chosen, REACH, |_| Ok(()), start)?;
                match fill(&made) {
                    Ok(()) => Ok(made),
                    Err(error) => {
                        drop(made);
                        // The error that led here is the one to report.
                        let _ = crate::pool::remove(location);
                        Err(error)
                    }
                }
            }
        }
    }

    fn create_in_file<E: From<Error>>(
        path: &Path,
        bytes: u64,
        location: &str,
        options: &DirectOptions,
        fill: impl FnOnce(&DirectPool) -> Result<(), E>,
    ) -> Result<DirectPool, E> {
        check_computer(options, location)?;
        let shape = |bytes| layout(options, bytes).map_err(|p| p.at(location));
        let (memory, unnamed, head) = if bytes == 0 {
            let memory = file::adopt(path, PAGE_BYTES, options.survives, options.permissions)?;
            let head = shape(memory.bytes())?;
            (memory, None, head)
        } else {
            let head = shape(bytes)?;
            let (memory, unnamed) = file::create(path, bytes, options.survives)?;
            if let Some(bits) = options.permissions {
                unnamed.permit(bits)?;
            }
            (memory, Some(unnamed), head)
        };
        let pool = Self::prepare(backing(memory, options)?, head, location, options)?;
        fill(&pool)?;
        format::put_head(&pool.medium, head).map_err(|error| pool.poison(error))?;
        if let Some(unnamed) = unnamed {
            unnamed.name()?;
        }
        Ok(pool)
    }

    /// Opens a pool, recovering it first.
    pub fn open(location: &str, options: &DirectOptions) -> Result<DirectPool, Error> {
        match Location::parse(location)? {
            Location::File(_) if options.read_only && options.power_cut.is_some() => {
                let what =
                    "a pool that is only read has no stores that a power cut could take (DirectOptions::power_cut)";
                Err(Problem::BadOption { what }.at(location))
            }
            Location::File(_) if options.copy_on_write && (options.read_only || options.power_cut.is_some()) => {
                let what = "changes that are forgotten (DirectOptions::copy_on_write) go neither with read_only nor with power_cut";
                Err(Problem::BadOption { what }.at(location))
            }
            Location::File(path) if options.copy_on_write => {
                let options = DirectOptions { mode: Mode::InPlace, ..options.clone() };
                Self::open_backing(Backing::Private(file::open_shared(&path)?), location, &options)
            }
            Location::File(path) if options.read_only => {
                Self::open_backing(Backing::Private(file::open_shared(&path)?), location, options)
            }
            Location::File(path) => {
                Self::open_backing(backing(file::open(&path, options.survives)?, options)?, location, options)
            }
            Location::Card { card, pool } => {
                check_card(options, location)?;
                let name = Name { card: &card, pool: &pool, location };
                OnCard::open(&name, REACH, |claimed| Self::claim(claimed, location, options))
            }
        }
    }

    /// Opens a pool, or creates it where nothing is at the path.
    ///
    /// # Errors
    /// As [`DirectPool::open`] where something is, else as [`DirectPool::create`].
    pub fn open_or_create(location: &str, bytes: u64, options: &DirectOptions) -> Result<DirectPool, Error> {
        Self::open_or_create_with(location, bytes, options, |_| Ok(()))
    }

    /// As [`DirectPool::open_or_create`]; a new pool is filled as by [`DirectPool::create_with`].
    ///
    /// # Errors
    /// As [`DirectPool::open`] where something is, else as [`DirectPool::create_with`].
    pub fn open_or_create_with(
        location: &str,
        bytes: u64,
        options: &DirectOptions,
        fill: impl FnOnce(&DirectPool) -> Result<(), Error>,
    ) -> Result<DirectPool, Error> {
        match Self::open(location, options) {
            Err(Error::Pool { problem: Problem::NotFound, .. }) => {}
            done => return done,
        }
        match Self::create_with(location, bytes, options, fill) {
            // Another process was faster. A link that leads nowhere is there, and is not found.
            Err(Error::Pool { problem: Problem::Exists, location: at }) => match Self::open(location, options) {
                Err(Error::Pool { problem: Problem::NotFound, .. }) => Err(Problem::Exists.at(at)),
                done => done,
            },
            done => done,
        }
    }

    /// Creates a pool that fills a memory.
    pub fn create_in(memory: Box<dyn Memory>, options: &DirectOptions) -> Result<DirectPool, Error> {
        check_computer(options, IN_MEMORY)?;
        let head = layout(options, memory.bytes()).map_err(|p| p.at(IN_MEMORY))?;
        let pool = Self::prepare(Backing::Other(memory), head, IN_MEMORY, options)?;
        format::put_head(&pool.medium, head).map_err(|error| pool.poison(error))?;
        Ok(pool)
    }

    /// Opens the pool that a memory holds, recovering it first.
    pub fn open_in(memory: Box<dyn Memory>, options: &DirectOptions) -> Result<DirectPool, Error> {
        if options.read_only || options.copy_on_write {
            return Err(Problem::BadOption { what: NOT_SHARED }.at(IN_MEMORY));
        }
        Self::open_backing(Backing::Other(memory), IN_MEMORY, options)
    }

    /// A pool that is whole but for its head on the medium.
    fn prepare(backing: Backing, head: PoolHead, location: &str, options: &DirectOptions) -> Result<Self, Error> {
        if options.read_only || options.copy_on_write {
            return Err(Problem::BadOption { what: WRITTEN }.at(location));
        }
        if options.mode == Mode::InPlace {
            // Before anything is written.
            in_place_address(&backing, location)?;
        }
        let medium = Medium::new(backing);
        format::prepare(&medium, &head)?;
        Self::start(medium, Members::single(head, None), location, options)
    }

    fn open_backing(backing: Backing, location: &str, options: &DirectOptions) -> Result<Self, Error> {
        if !options.copy_on_write {
            check_computer(options, location)?;
        }
        let medium = Medium::new(backing);
        let head = format::read(&medium).map_err(|p| p.at(location))?;
        Self::start(medium, Members::single(head, None), location, options)
    }

    fn claim(
        Claimed { medium, head, on_card }: Claimed,
        location: &str,
        options: &DirectOptions,
    ) -> Result<Self, Error> {
        let members = Members::single(head, Some(on_card));
        members.drop_left_lines(&medium)?;
        Self::start(medium, members, location, options)
    }

    fn start(medium: Medium, members: Members, location: &str, options: &DirectOptions) -> Result<Self, Error> {
        let (medium, head) = (Arc::new(medium), *members.stripes.whole());
        let named = |error: Error| match error {
            Error::Corrupt { what, offset } => Problem::Corrupt { what, offset }.at(location),
            other => other,
        };
        let (recovery, lanes) = recovery::recover(&medium, &head).map_err(named)?;
        if medium.words(head.table()..head.table() + head.pages * 8).next().is_some() {
            let what = "shadow paging has moved its pages, and programs would see them at other places";
            return Err(Problem::BadOption { what }.at(location));
        }
        let heap = Heap::load(medium.backing(), &head, kept_chunks(&head)).map_err(named)?;
        if !options.read_only {
            secure(&medium, &head, &heap, options.mode)?;
        }
        let view = match options.mode {
            Mode::WorkingCopy => medium.backing().working_copy(&heap.ranges_in_use())?,
            Mode::InPlace => View::in_place(in_place_address(medium.backing(), location)?, medium.bytes()),
        };
        if options.prefault {
            view.populate(0, medium.bytes());
        }
        let root_place = head.heap() + HEAP_ROOT;
        let root = match heap.form().decode(medium.load_word(root_place)) {
            None => return Err(named(Class::RootWord.at(root_place))),
            Some(root) if root != 0 && heap.usable_bytes(root).is_none() => {
                return Err(named(Class::Root.at(root_place)));
            }
            Some(root) => root,
        };
        if options.read_only {
            medium.backing().freeze()?;
        } else {
            // From here on there may be segments.
            medium.put_word(POOL_CONFIRMED, 0);
            // Unseen: the drains of the first one come in time, unless another thread makes it.
            medium.put_word(POOL_APPLIED, seal::seal_word(0));
            medium.drain()?;
        }
        let mechanism = options.mechanism.filter(|_| !options.read_only && !options.copy_on_write);
        let open = |mechanism| ByMechanism::open(mechanism, options, (&medium, &head), &members, &lanes);
        let by_mechanism = mechanism.map(open).transpose().map_err(named)?;
        // What could not be read looked blank.
        medium.backing().alive().and_then(|()| view.alive())?;
        let linter = Linter::new(&options.lint, &view, heap.range());
        let by_calls = options.mode == Mode::WorkingCopy && medium.backing().drains_for_all();
        Ok(DirectPool {
            writes_once: by_calls && by_mechanism.is_none() && !options.read_only,
            known: Known::default(),
            populated: AtomicU64::new(if options.prefault { medium.bytes() } else { 0 }),
            view,
            medium,
            head,
            heap,
            options: options.clone(),
            recovery,
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            sequence: Alone(AtomicU64::new(1)),
            applied: AtomicU64::new(0),
            unacknowledged: Unacknowledged::default(),
            root: AtomicU64::new(root),
            poisoned: AtomicBool::new(false),
            truncating: Mutex::default(),
            entrance: Entrance::default(),
            closed: false,
            process: Process::current(),
            linter,
            by_mechanism,
            members,
        })
    }

    /// Closes the pool: what was stored and never made durable is written home as well.
    pub fn close(mut self) -> Result<(), Error> {
        self.shut()
    }

    fn shut(&mut self) -> Result<(), Error> {
        // Before any lock: in a child of `fork` another thread of the parent may hold it for ever.
        if !self.belongs_here() {
            return Ok(());
        }
        if std::mem::replace(&mut self.closed, true) || self.options.read_only || self.poisoned.load(Ordering::Relaxed)
        {
            return Ok(());
        }
        if let Some(linter) = &self.linter {
            linter.close(self);
        }
        // The program may have seen zeros in the place of what was lost: the next open recovers what is durable.
        self.alive().map_err(|error| self.poison(error))?;
        let mut mechanism = self.settled()?;
        let turn = self.truncation()?;
        let mut shards = self.lock_all();
        if shards.iter().any(|shard| shard.lanes.iter().any(|lane| lane.busy)) {
            // A transaction was left open: the next open takes it back.
            return Ok(());
        }
        self.truncate(&turn, &mut shards)?;
        if self.options.mode == Mode::WorkingCopy {
            self.write_differences_home()?;
        }
        let lanes = shards.iter_mut().flat_map(|s| &mut s.lanes);
        let segments: Vec<_> = lanes.flat_map(|lane| lane.segments.drain(..)).collect();
        self.drop_segments(&segments)?;
        self.medium.put_word(POOL_CONFIRMED, 0);
        // Unseen, all three: no cut falls into a close, and only a pool that shadow paging uses next is spoilt by a word that stays.
        self.medium.drain()?;
        self.medium.put_word(POOL_APPLIED, 0);
        self.medium.drain()?;
        if let Some(mechanism) = &mut mechanism {
            mechanism.close()?;
        }
        self.members.note_closed(&self.medium);
        Ok(())
    }
}

impl Drop for DirectPool {
    fn drop(&mut self) {
        // After a panic nothing is known of what this memory holds: the next open recovers.
        if !std::thread::panicking() {
            // There is nobody to tell: `close` is for those who want to know.
            let _ = self.shut();
        }
    }
}
