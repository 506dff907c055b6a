//! How direct pools are created, opened and closed.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use nearpm_interface::media::{HEAP_ROOT, MIN_RING_BYTES, PAGE_BYTES, PoolHead, SPAN_VERSION};
use nearpm_interface::record::{POOL_APPLIED, POOL_CONFIRMED};
use nearpm_interface::seal;

use super::DirectPool;
use super::by_mechanism::{self, ByMechanism};
use super::carry::Carry;
use super::known::Known;
use super::lint::Linter;
use super::mode_by_use;
use super::once;
use super::shard::Shard;
use super::slot::{Alone, SHARDS};
use super::snapshot::Snapshots;
use super::transaction::LOGGED_NEW;
use super::truncate::kept_chunks;
use super::tx::Entrance;
use super::unacknowledged::Unacknowledged;
use crate::damage::Class;
use crate::error::{Error, Problem};
use crate::events::event;
use crate::heap::HeapLayout;
use crate::heap::index::{Heap, Placement};
use crate::heap::spans::Spread;
use crate::heap::tables::{Bitmaps, HeapTables};
use crate::memory::{Backing, Medium, Memory, View};
use crate::options::{Mechanism, Mode, Options};
use crate::pool::{self, Opening, PoolType, format};
use crate::process::Process;

const PAGE: u32 = PAGE_BYTES as u32;
/// The rings that a mechanism uses have one part of so many of a new pool.
const RING_SHARE: u64 = 16;
/// Bytes of a ring at most, and at least where there are several.
const MOST_RING: u64 = 1 << 20;
const LEAST_OF_SEVERAL: u64 = 128 << 10;

/// Takes room on the medium, where the file has holes: for everything that a program may store to
/// in place; else for what is in use, and what comes into use gets its room then.
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

/// What a new pool of `bytes` bytes has where nothing was said: one ring, small where no mechanism
/// is to use it, but several where commits may go by more than one at the same time; spare pages
/// for shadow paging alone.
fn shape(options: &Options, bytes: u64, by_calls: bool) -> Options {
    let share = bytes / RING_SHARE;
    let lanes = match options.lanes {
        None if options.ring_bytes.is_none() && !by_calls && by_mechanism::may_use_several_lanes(options) => {
            (share / LEAST_OF_SEVERAL).clamp(1, by_mechanism::MOST_LANES.into())
        }
        _ => 1,
    };
    let ring = match options.mechanism {
        None => MIN_RING_BYTES,
        Some(_) => (share / lanes).clamp(MIN_RING_BYTES.into(), MOST_RING) as u32 / PAGE * PAGE,
    };
    Options {
        lanes: options.lanes.or(Some(lanes as u16)),
        ring_bytes: options.ring_bytes.or(Some(ring)),
        spare_pages: options.spare_pages.or((options.mechanism != Some(Mechanism::Shadow)).then_some(0)),
        ..options.clone()
    }
}

impl PoolType for DirectPool {
    const BY_OFFSETS: bool = false;

    /// As [`shape`] says, with sealed tables.
    fn layout(options: &Options, bytes: u64, by_calls: bool) -> Result<PoolHead, Problem> {
        format::layout(&shape(options, bytes, by_calls), bytes).map(|head| PoolHead { version: SPAN_VERSION, ..head })
    }

    /// One lane, whose ring on each member has its share of that.
    fn layout_member(options: &Options, bytes: u64, members: usize) -> Result<PoolHead, Problem> {
        let options = Options { lanes: options.lanes.or(Some(1)), ..options.clone() };
        format::layout_striped(&shape(&options, bytes, false), bytes, members)
    }

    fn start(Opening { request, medium, mut members, location }: Opening<'_>) -> Result<DirectPool, Error> {
        let options = request.options;
        let (medium, head) = (Arc::new(medium), *members.stripes.whole());
        let mode = mode_by_use::mode(request.mode(), options, &medium);
        let request = request.with_medium(&medium, &head);
        request.check(location)?;
        members.drop_left_lines(&medium)?;
        let named = |error: Error| match error {
            Error::Corrupt { what, offset } => Problem::Corrupt { what, offset }.at(location),
            other => other,
        };
        let (recovery, lanes) = members.recover_home(&medium, location).map_err(named)?;
        members.synchronise(options, &medium)?;
        let has_log = members.len() == 1;
        let kept = if has_log { kept_chunks(&head) } else { 0 };
        let heap = load_heap(medium.backing(), &head, kept, options.most_bytes());
        // A card that has gone reads as ones, which are no tables.
        let heap = heap.map_err(|error| medium.backing().alive().err().unwrap_or_else(|| named(error)))?;
        if !options.read_only {
            secure(&medium, &head, &heap, mode)?;
        }
        // Asked for no more than is used: what was handed out may be stored through at any time.
        let address = if mode == Mode::InPlace { medium.backing().address() } else { None };
        let mechanism = options.mechanism.filter(|_| !options.read_only && !options.copy_on_write);
        let view = match (address, mechanism) {
            (Some(address), _) => View::in_place(address, medium.bytes()),
            // Pages of a file that are private once they are stored to would show what moves there
            // until then.
            (None, Some(Mechanism::Shadow)) => medium.backing().copied(&heap.ranges_in_use())?,
            (None, _) => medium.backing().working_copy(&heap.ranges_in_use())?,
        };
        if options.prefault {
            view.populate(0, medium.bytes());
        }
        if options.prefault && !options.read_only {
            // The log lies there, and what goes home.
            medium.backing().populate();
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
        } else if has_log {
            // From here on there may be segments.
            medium.put_word(POOL_CONFIRMED, 0);
            // Unseen: the drains of the first one come in time, unless another thread makes it.
            medium.put_word(POOL_APPLIED, seal::seal_word(0));
            medium.drain()?;
        }
        let open = |mechanism| ByMechanism::open(mechanism, options, (&medium, &head), &members, &lanes);
        let by_mechanism = mechanism.map(open).transpose().map_err(named)?;
        // What could not be read looked blank.
        medium.backing().alive().and_then(|()| view.alive())?;
        let linter = Linter::new(&options.lint, &view, heap.range());
        let by_calls = mode == Mode::WorkingCopy && medium.backing().drains_for_all();
        let writes_once = by_calls && by_mechanism.is_none() && !options.read_only;
        event!(info, pool = location, bytes = medium.bytes(), ?recovery, "pool opened");
        let pool = DirectPool {
            writes_once,
            once_from: if writes_once { options.write_once_from.unwrap_or(once::LEAST) } else { u64::MAX },
            logged_new: if by_calls { LOGGED_NEW } else { 0 },
            known: Known::default(),
            populated: AtomicU64::new(if options.prefault { medium.bytes() } else { 0 }),
            view,
            head,
            heap,
            options: options.clone(),
            mode,
            recovery,
            shards: (0..SHARDS).map(|_| Shard::new(medium.clone())).collect(),
            medium,
            sequence: Alone(AtomicU64::new(1)),
            applied: AtomicU64::new(0),
            let_go_at: AtomicU64::new(0),
            unacknowledged: Unacknowledged::default(),
            root: AtomicU64::new(root),
            poisoned: AtomicBool::new(false),
            truncating: Mutex::default(),
            carry: Carry::default(),
            entrance: Entrance::default(),
            closed: false,
            process: Process::current(),
            watchers: AtomicUsize::new(usize::from(linter.is_some()) + usize::from(by_mechanism.is_some())),
            snapshots: Snapshots::default(),
            linter,
            by_mechanism,
            grown: Mutex::new(head),
            location: location.to_owned(),
            members,
        };
        if options.prefault && mode == Mode::WorkingCopy && !options.read_only {
            pool.prepare_lane();
        }
        Ok(pool)
    }

    fn put_head(&self, head: PoolHead) -> Result<(), Error> {
        format::put_head(&self.medium, head).map(drop).map_err(|error| self.poison(error))
    }
}

impl DirectPool {
    /// Creates a pool of `bytes` bytes at a path or at `card:NAME/POOL` and opens it. Nothing is
    /// left behind when that fails, or when the process is killed meanwhile. 0 bytes: the pool
    /// fills a file that exists, whose first page is blank.
    pub fn create(location: &str, bytes: u64, options: &Options) -> Result<DirectPool, Error> {
        pool::create(options, location, bytes, |_| Ok(()))
    }

    /// As [`DirectPool::create`], and the pool is there together with what `fill` has committed, or
    /// not at all: it gets its name behind that. On a card it has its name before, and is removed
    /// if `fill` fails.
    ///
    /// # Errors
    /// As [`DirectPool::create`]; those of `fill`.
    pub fn create_with<E: From<Error>>(
        location: &str,
        bytes: u64,
        options: &Options,
        fill: impl FnOnce(&DirectPool) -> Result<(), E>,
    ) -> Result<DirectPool, E> {
        pool::create(options, location, bytes, fill)
    }

    /// Opens a pool, recovering it first.
    pub fn open(location: &str, options: &Options) -> Result<DirectPool, Error> {
        pool::open(options, location)
    }

    /// Opens a pool, or creates it where nothing is at the path.
    ///
    /// # Errors
    /// As [`DirectPool::open`] where something is, else as [`DirectPool::create`].
    pub fn open_or_create(location: &str, bytes: u64, options: &Options) -> Result<DirectPool, Error> {
        Self::open_or_create_with(location, bytes, options, |_| Ok(()))
    }

    /// As [`DirectPool::open_or_create`]; a new pool is filled as by [`DirectPool::create_with`].
    ///
    /// # Errors
    /// As [`DirectPool::open`] where something is, else as [`DirectPool::create_with`].
    pub fn open_or_create_with(
        location: &str,
        bytes: u64,
        options: &Options,
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
    pub fn create_in(memory: Box<dyn Memory>, options: &Options) -> Result<DirectPool, Error> {
        pool::create_in(options, memory)
    }

    /// Opens the pool that a memory holds, recovering it first.
    pub fn open_in(memory: Box<dyn Memory>, options: &Options) -> Result<DirectPool, Error> {
        pool::open_in(options, memory)
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
        // The program may have seen zeros in the place of what was lost: the next open recovers
        // what is durable.
        self.alive().map_err(|error| self.poison(error))?;
        let mut mechanism = self.settled()?;
        let turn = self.truncation()?;
        let mut shards = self.lock_all();
        if self.mode == Mode::InPlace && shards.iter().any(|shard| shard.lanes.iter().any(|lane| lane.busy)) {
            // A transaction was left open: the next open takes it back.
            return Ok(());
        }
        self.truncate(&turn, &mut shards)?;
        if self.mode == Mode::WorkingCopy {
            self.write_differences_home()?;
        }
        let lanes = shards.iter_mut().flat_map(|s| &mut s.lanes);
        let segments: Vec<_> = lanes.flat_map(|lane| lane.segments.drain(..)).collect();
        self.drop_segments(&segments)?;
        if self.has_log() {
            self.medium.put_word(POOL_CONFIRMED, 0);
            self.note_use(&shards);
            // Unseen, all three: no cut falls into a close, and only a pool that shadow paging uses
            // next is spoilt by a word that stays.
            self.medium.drain()?;
            self.medium.put_word(POOL_APPLIED, 0);
        }
        self.medium.drain()?;
        if let Some(mechanism) = &mut mechanism {
            mechanism.close()?;
        }
        self.members.note_closed(&self.medium);
        event!(info, pool = self.location, "pool closed");
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

/// The index of a recovered pool's heap. The pool may grow to `most` bytes; the log may always have
/// `kept` chunks.
pub(super) fn load_heap(backing: &Backing, head: &PoolHead, kept: u64, most: u64) -> Result<Heap, Error> {
    let tables = HeapTables::load(
        HeapLayout::of(head),
        Bitmaps::All,
        |range| backing.to_read(range),
        |offset, bytes| {
            backing.load(offset, bytes);
            Ok(())
        },
    )?;
    Heap::build(&tables, kept, most, Placement::Apart(Spread::of(head)))
}
