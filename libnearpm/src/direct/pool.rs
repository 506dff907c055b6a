//! Open direct pools.

use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nearpm_driver::pci::Caching;
use nearpm_interface::media::{HEAP_ROOT, MIN_RING_BYTES, PAGE_BYTES, PoolHead};
use nearpm_interface::record::POOL_APPLIED;
use nearpm_interface::seal;

use super::heap::Heap;
use super::log::Lane;
use super::shard::{Alone, SHARDS, Shard, slot};
use super::truncate::kept_chunks;
use super::tx::Entrance;
use super::{DirectOptions, Mode, Reservation, Transaction};
use crate::check::Class;
use crate::error::{Error, Problem};
use crate::lint::Linter;
use crate::memory::{Backing, DurableImage, MappedMemory, Medium, Memory, View};
use crate::options::PoolOptions;
use crate::pool::on_card::{Claimed, Name, OnCard, Reach};
use crate::pool::{Location, NOT_SHARED, file, format};
use crate::recovery::{Recovery, recover as recover_pool};
use crate::statistics::{HeapState, Statistics};
use crate::typed::window::Window;

/// Lane of commits from a working copy.
pub(super) const COMMIT_LANE: usize = 0;
/// Bytes of private pages that get their memory at once.
const POPULATE_BYTES: u64 = 256 * 1024;

const IN_MEMORY: &str = "in memory";

/// An open pool. All of it may be used by several threads at once; a transaction belongs to one. Dropping it closes it, and
/// keeps errors to itself.
pub struct DirectPool {
    view: View,
    pub(super) medium: Medium,
    pub(super) head: PoolHead,
    pub(super) heap: Heap,
    pub(super) options: DirectOptions,
    recovery: Recovery,
    pub(super) shards: Box<[Shard]>,
    /// Number of the next record.
    pub(super) sequence: Alone<AtomicU64>,
    /// Records up to this number are dead.
    pub(super) applied: AtomicU64,
    /// Newest record of an asynchronous commit that may not be durable, 0 for none.
    pub(super) unacknowledged: AtomicU64,
    root: AtomicU64,
    /// End of the pages that were given memory.
    populated: AtomicU64,
    pub(super) poisoned: AtomicBool,
    /// Locked by whoever truncates the log, before any shard.
    pub(super) truncating: Mutex<()>,
    /// For typed transactions.
    pub(super) entrance: Entrance,
    closed: bool,
    pub(super) linter: Option<Box<Linter>>,
    /// Dropped last: the pool must not be opened again before it is closed.
    on_card: Option<OnCard>,
}

impl std::fmt::Debug for DirectPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectPool").field("head", &self.head).field("options", &self.options).finish_non_exhaustive()
    }
}

/// The processor does all the work on a direct pool, on a card as well.
const REACH: Reach = Reach { caching: Caching::WriteBack, commands: false };

/// Refuses what a pool on a card cannot have.
fn check_card(options: &DirectOptions, location: &str) -> Result<(), Error> {
    let what = match options {
        DirectOptions { mode: Mode::InPlace, .. } => {
            "a card's memory is reached by copies over the link, and Mode::InPlace needs memory that is mapped; use \
             Mode::WorkingCopy"
        }
        DirectOptions { power_cut: Some(_), .. } => {
            "DirectOptions::power_cut is for pools in files; cut the power of the card itself"
        }
        DirectOptions { read_only: true, .. } => NOT_SHARED,
        _ => return Ok(()),
    };
    Err(Problem::BadOption { what }.at(location))
}

/// The file itself, or a machine around it whose power fails.
fn backing(memory: MappedMemory, options: &DirectOptions) -> Backing {
    match options.power_cut {
        None => Backing::Mapped(memory),
        Some(cut) => Backing::Other(Box::new(DurableImage::load(memory, cut))),
    }
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

/// The layout of a new pool: one small ring, no spare pages.
fn layout(options: &DirectOptions, bytes: u64) -> Result<PoolHead, Problem> {
    let mut shape = PoolOptions::new().lanes(1).ring_bytes(MIN_RING_BYTES).spare_pages(0);
    if let Some(id) = options.id {
        shape = shape.id(id);
    }
    format::layout(&shape, bytes)
}

impl DirectPool {
    /// Creates a pool of `bytes` bytes at a path or at `card:NAME/POOL` and opens it. Nothing is left behind when that fails. 0 bytes: the
    /// pool fills a file that exists, whose first page is blank.
    pub fn create(location: &str, bytes: u64, options: &DirectOptions) -> Result<DirectPool, Error> {
        let path = match Location::parse(location)? {
            Location::File(path) => path,
            Location::Card { card, pool } => {
                check_card(options, location)?;
                let head = layout(options, bytes).map_err(|p| p.at(location))?;
                let (name, chosen) = (Name { card: &card, pool: &pool, location }, options.id.is_some());
                let start = |claimed| Self::claim(claimed, location, options);
                return OnCard::create(&name, head, chosen, REACH, |_| Ok(()), start);
            }
        };
        if bytes == 0 {
            let memory = file::adopt(&path, PAGE_BYTES, options.survives)?;
            let head = layout(options, memory.bytes()).map_err(|p| p.at(location))?;
            return Self::write(backing(memory, options), head, location, options);
        }
        let head = layout(options, bytes).map_err(|p| p.at(location))?;
        let memory = file::create(&path, bytes, options.survives)?;
        Self::write(backing(memory, options), head, location, options).inspect_err(|_| file::discard(Path::new(&path)))
    }

    /// Opens a pool, recovering it first.
    pub fn open(location: &str, options: &DirectOptions) -> Result<DirectPool, Error> {
        match Location::parse(location)? {
            Location::File(path) if options.read_only => {
                Self::open_backing(Backing::Private(file::open_shared(&path)?), location, options)
            }
            Location::File(path) => {
                Self::open_backing(backing(file::open(&path, options.survives)?, options), location, options)
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
        match Self::open(location, options) {
            Err(Error::Pool { problem: Problem::NotFound, .. }) => Self::create(location, bytes, options),
            done => done,
        }
    }

    /// Creates a pool that fills a memory.
    pub fn create_in(memory: Box<dyn Memory>, options: &DirectOptions) -> Result<DirectPool, Error> {
        let head = layout(options, memory.bytes()).map_err(|p| p.at(IN_MEMORY))?;
        Self::write(Backing::Other(memory), head, IN_MEMORY, options)
    }

    /// Opens the pool that a memory holds, recovering it first.
    pub fn open_in(memory: Box<dyn Memory>, options: &DirectOptions) -> Result<DirectPool, Error> {
        if options.read_only {
            return Err(Problem::BadOption { what: NOT_SHARED }.at(IN_MEMORY));
        }
        Self::open_backing(Backing::Other(memory), IN_MEMORY, options)
    }

    fn write(backing: Backing, head: PoolHead, location: &str, options: &DirectOptions) -> Result<Self, Error> {
        if options.read_only {
            let what = "a pool that is created is written (DirectOptions::read_only)";
            return Err(Problem::BadOption { what }.at(location));
        }
        if options.mode == Mode::InPlace {
            // Before anything is written.
            in_place_address(&backing, location)?;
        }
        let medium = Medium::new(backing);
        let head = format::write(&medium, head)?;
        Self::start(medium, head, location, options, None)
    }

    fn open_backing(backing: Backing, location: &str, options: &DirectOptions) -> Result<Self, Error> {
        let medium = Medium::new(backing);
        let head = format::read(&medium).map_err(|p| p.at(location))?;
        Self::start(medium, head, location, options, None)
    }

    fn claim(
        Claimed { medium, head, on_card }: Claimed,
        location: &str,
        options: &DirectOptions,
    ) -> Result<Self, Error> {
        on_card.drop_left_lines(&medium, &head)?;
        Self::start(medium, head, location, options, Some(on_card))
    }

    fn start(
        medium: Medium,
        head: PoolHead,
        location: &str,
        options: &DirectOptions,
        on_card: Option<OnCard>,
    ) -> Result<Self, Error> {
        let named = |error: Error| match error {
            Error::Corrupt { what, offset } => Problem::Corrupt { what, offset }.at(location),
            other => other,
        };
        let (recovery, _) = recover_pool(&medium, &head).map_err(named)?;
        let table = medium.load_vec(head.table(), head.pages * 8);
        if table.iter().any(|&b| b != 0) {
            let what = "shadow paging has moved its pages, and programs would see them at other places";
            return Err(Problem::BadOption { what }.at(location));
        }
        let heap = Heap::load(medium.backing(), &head, kept_chunks(&head)).map_err(named)?;
        let view = match options.mode {
            Mode::WorkingCopy => medium.backing().working_copy(&heap.ranges_in_use())?,
            Mode::InPlace => View::in_place(in_place_address(medium.backing(), location)?, medium.bytes()),
        };
        if options.prefault {
            view.populate(0, medium.bytes());
        }
        let root = medium.load_word(head.heap() + HEAP_ROOT);
        if root != 0 && heap.usable_bytes(root).is_none() {
            let what = Class::Root.what();
            return Err(Problem::Corrupt { what, offset: head.heap() + HEAP_ROOT }.at(location));
        }
        if options.read_only {
            medium.backing().freeze()?;
        } else {
            // From here on there may be segments.
            medium.put_word(POOL_APPLIED, seal::seal_word(0));
            medium.drain()?;
        }
        let linter = Linter::new(&options.lint, &view, heap.range());
        Ok(DirectPool {
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
            unacknowledged: AtomicU64::new(0),
            root: AtomicU64::new(root),
            poisoned: AtomicBool::new(false),
            truncating: Mutex::default(),
            entrance: Entrance::default(),
            closed: false,
            linter,
            on_card,
        })
    }

    /// Where the program sees offset 0. Stays until the pool is closed.
    pub fn base(&self) -> *mut u8 {
        self.view.base()
    }

    /// Bytes of the pool.
    pub fn bytes(&self) -> u64 {
        self.medium.bytes()
    }

    /// Identifier of the pool.
    pub fn id(&self) -> u32 {
        self.head.pool
    }

    /// How it was opened.
    pub fn options(&self) -> &DirectOptions {
        &self.options
    }

    /// What the recovery at open found and did.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// Offsets that objects may have.
    pub fn heap(&self) -> Range<u64> {
        self.heap.range()
    }

    /// Free bytes.
    pub fn free_bytes(&self) -> u64 {
        self.heap.free_bytes()
    }

    /// Offset of the root object, 0 if there is none.
    pub fn root(&self) -> u64 {
        self.root.load(Ordering::Acquire)
    }

    /// Bytes of an allocated or reserved object.
    ///
    /// # Errors
    /// [`Error::NotAllocated`].
    pub fn usable_bytes(&self, object: u64) -> Result<u64, Error> {
        self.heap.usable_bytes(object).ok_or(Error::NotAllocated { offset: object })
    }

    /// The allocated object that follows an offset (0: the first), in rising order; committed ones only.
    pub fn next_object(&self, after: u64) -> Option<u64> {
        self.heap.next_object(after)
    }

    /// Counters since the pool was opened.
    pub fn statistics(&self) -> Statistics {
        let shards = self.shards.iter().map(|shard| shard.lock().tally);
        shards.fold(self.medium.counters.snapshot(), |sum, tally| sum.plus(&tally))
    }

    /// The state of the allocator, reservations included.
    pub fn heap_state(&self) -> HeapState {
        self.heap.state()
    }

    pub(crate) fn mode(&self) -> Mode {
        self.options.mode
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    pub(crate) fn heap_index(&self) -> &Heap {
        &self.heap
    }

    pub(crate) fn heap_start(&self) -> u64 {
        self.head.heap()
    }

    pub(crate) fn note_root(&self, root: u64) {
        self.root.store(root, Ordering::Release);
    }

    /// The heap, for typed objects.
    pub(super) fn window(&self) -> Window<'_> {
        self.view.window(self.heap.range())
    }

    pub(super) fn refuse_poisoned(&self) -> Result<(), Error> {
        if self.poisoned.load(Ordering::Relaxed) { Err(Error::Poisoned) } else { Ok(()) }
    }

    /// Refuses changes of a pool that was opened for reading.
    #[inline]
    pub(super) fn check_writable(&self) -> Result<(), Error> {
        if self.options.read_only { Err(Error::ReadOnly) } else { Ok(()) }
    }

    /// Refuses ranges that no object has.
    #[inline]
    pub(crate) fn check(&self, range: &Range<u64>) -> Result<(), Error> {
        let heap = self.heap.range();
        if heap.start <= range.start && range.start <= range.end && range.end <= heap.end {
            return Ok(());
        }
        Err(Error::OutOfRange { offset: range.start, length: range.end.wrapping_sub(range.start), heap })
    }

    /// Takes space for an object. Its bytes are what the space held before. A crash or [`DirectPool::cancel`] gives it back.
    pub fn reserve(&self, bytes: u64) -> Result<Reservation, Error> {
        match self.reserve_here(bytes) {
            Err(Error::Full { .. }) => {
                // What threads have at hand is more than nothing.
                self.lock_all().iter_mut().for_each(|shard| self.heap.retire(&mut shard.arena));
                self.reserve_here(bytes)
            }
            done => done,
        }
    }

    fn reserve_here(&self, bytes: u64) -> Result<Reservation, Error> {
        self.check_writable()?;
        let mut shard = self.shards[slot()].lock();
        let reserved = self.heap.reserve(&mut shard.arena, bytes, |offset, bytes| self.populate(offset + bytes))?;
        if let Some(linter) = &self.linter {
            linter.reserve(self, &(reserved.offset..reserved.offset + reserved.bytes));
        }
        Ok(reserved)
    }

    /// A range means nothing beyond this run of the program, as locks do: the lint leaves it alone.
    pub fn note_volatile(&self, range: Range<u64>) {
        if let Some(linter) = &self.linter {
            linter.ignore(range);
        }
    }

    /// Gives pages their memory up to somewhat behind `end`.
    fn populate(&self, end: u64) {
        let start = self.populated.load(Ordering::Relaxed);
        if end > start && self.options.mode == Mode::WorkingCopy {
            let start = start.max(self.heap.range().start / PAGE_BYTES * PAGE_BYTES);
            let to = (end + POPULATE_BYTES).min(self.bytes());
            self.populated.store(to, Ordering::Relaxed);
            // A jump ahead by a large object is left to the page faults.
            if to.saturating_sub(start) <= 4 * POPULATE_BYTES {
                self.view.populate(start, to - start);
            }
        }
    }

    /// Gives a reservation back.
    pub fn cancel(&self, reservation: Reservation) {
        self.heap.release(reservation.offset);
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::ReadOnly`].
    pub fn begin(&self) -> Result<Transaction, Error> {
        self.check_writable()?;
        self.refuse_poisoned()?;
        let slot = slot();
        let mut shard = self.shards[slot].lock();
        let mut transaction = shard.spare.pop().unwrap_or_default();
        let lane = match self.options.mode {
            Mode::WorkingCopy => COMMIT_LANE,
            Mode::InPlace => {
                let free = shard.lanes.iter().position(|lane| !lane.busy);
                let lane = free.unwrap_or_else(|| {
                    shard.lanes.push(Lane::default());
                    shard.lanes.len() - 1
                });
                shard.lanes[lane].busy = true;
                lane
            }
        };
        drop(shard);
        transaction.start(slot, lane);
        if let Some(linter) = &self.linter {
            linter.begin(self, transaction.key());
        }
        Ok(transaction)
    }

    /// A transaction has ended.
    pub(crate) fn end(&self, slot: usize, lane: usize, spare: Transaction, count: impl FnOnce(&mut Statistics)) {
        let mut shard = self.shards[slot].lock();
        if self.options.mode == Mode::InPlace {
            let lane = &mut shard.lanes[lane];
            (lane.busy, lane.open) = (false, 0);
        }
        shard.spare.push(spare);
        count(&mut shard.tally);
    }

    /// From now on nothing can be claimed about the pool.
    pub(crate) fn poison(&self, error: Error) -> Error {
        self.poisoned.store(true, Ordering::Relaxed);
        error
    }

    /// Closes the pool: what was stored and never made durable is written home as well.
    pub fn close(mut self) -> Result<(), Error> {
        self.shut()
    }

    fn shut(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.closed, true) || self.options.read_only || self.poisoned.load(Ordering::Relaxed)
        {
            return Ok(());
        }
        if let Some(linter) = &self.linter {
            linter.close(self);
        }
        let turn = self.truncation();
        let mut shards = self.lock_all();
        if shards.iter().any(|shard| shard.lanes.iter().any(|lane| lane.busy)) {
            // A transaction was left open: the next open takes it back.
            return Ok(());
        }
        self.truncate(&turn, &mut shards)?;
        if self.options.mode == Mode::WorkingCopy {
            self.write_differences_home();
        }
        let lanes = shards.iter_mut().flat_map(|s| &mut s.lanes);
        let segments: Vec<_> = lanes.flat_map(|lane| lane.segments.drain(..)).collect();
        self.drop_segments(&segments)?;
        // Unseen, all three: no cut falls into a close, and only a pool that shadow paging uses next is spoilt by a word that stays.
        self.medium.drain()?;
        self.medium.put_word(POOL_APPLIED, 0);
        self.medium.drain()?;
        if let Some(on_card) = &self.on_card {
            on_card.note_closed(&self.medium);
        }
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
