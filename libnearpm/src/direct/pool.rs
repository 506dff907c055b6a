//! Open direct pools.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use nearpm_interface::media::{CHUNK_BYTES, PAGE_BYTES, PoolHead};

use super::by_mechanism::{ByMechanism, Turn};
use super::carry::Carry;
use super::known::Known;
use super::lint::Linter;
use super::log::Writer;
use super::shard::Shard;
use super::slot::{Alone, slot};
use super::snapshot::{self, Snapshots};
use super::tx::Entrance;
use super::unacknowledged::Unacknowledged;
use super::{Reservation, Transaction};
use crate::error::{Error, Problem};
use crate::events::event;
use crate::heap::index::{Heap, Runs};
use crate::memory::{Backing, Medium, Memory, View};
use crate::options::{Durability, Growth, Mode, Options};
use crate::pool::set::Members;
use crate::process::Process;
use crate::recovery::Recovery;
use crate::statistics::{HeapState, Statistics};
use crate::typed::window::Window;

/// Lane of commits from a working copy.
pub(super) const COMMIT_LANE: usize = 0;
/// Bytes of private pages that get their memory at once.
const POPULATE_BYTES: u64 = 256 * 1024;

/// An open pool. All of it may be used by several threads at once; a transaction belongs to one.
/// Dropping it closes it, and keeps errors to itself.
pub struct DirectPool {
    pub(super) view: View,
    pub(super) medium: Arc<Medium>,
    pub(super) head: PoolHead,
    pub(super) heap: Heap,
    pub(super) options: Options,
    pub(super) mode: Mode,
    pub(super) recovery: Recovery,
    pub(super) shards: Box<[Shard]>,
    /// Number of the next record.
    pub(super) sequence: Alone<AtomicU64>,
    /// Records up to this number are dead.
    pub(super) applied: AtomicU64,
    /// What was home when pages were let go.
    pub(super) let_go_at: AtomicU64,
    /// Newest record of an asynchronous commit that may not be durable, 0 for none.
    pub(super) unacknowledged: Unacknowledged,
    /// New objects are written once, to their place and not to the log: on a file, where bytes cost
    /// more than checksums.
    pub(super) writes_once: bool,
    /// Bytes from which new objects are written once.
    pub(super) once_from: u64,
    /// Bytes of shorter ones that a transaction may log, where they could go home at once.
    pub(super) logged_new: u64,
    /// What is known to be durable, if so.
    pub(super) known: Known,
    pub(super) root: AtomicU64,
    /// End of the pages that were given memory.
    pub(super) populated: AtomicU64,
    pub(super) poisoned: AtomicBool,
    /// Locked by whoever truncates the log, before any shard.
    pub(super) truncating: Mutex<()>,
    /// What whoever has it carries home.
    pub(super) carry: Carry,
    /// For typed transactions.
    pub(super) entrance: Entrance,
    pub(super) closed: bool,
    /// Who opened it.
    pub(super) process: Process,
    pub(super) linter: Option<Box<Linter>>,
    /// How many there are who hear of a change before it is made: the lint, a mechanism, snapshots.
    pub(super) watchers: AtomicUsize,
    /// Those that are alive.
    pub(super) snapshots: Snapshots,
    /// What brings commits home, unless records do.
    pub(super) by_mechanism: Option<ByMechanism>,
    /// The head as it is now: the pool may have grown. Locked while it grows.
    pub(super) grown: Mutex<PoolHead>,
    /// Where it is, for messages.
    pub(super) location: String,
    /// Dropped last: the pool must not be opened again before it is closed.
    pub(super) members: Members,
}

impl std::fmt::Debug for DirectPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectPool").field("head", &self.head).field("options", &self.options).finish_non_exhaustive()
    }
}

impl DirectPool {
    /// Where the program sees offset 0. Stays until the pool is closed.
    pub fn base(&self) -> *mut u8 {
        self.view.base()
    }

    /// Whether it has a log of records: over several cards there is none, and what the mechanism
    /// has no room for is refused.
    #[inline]
    pub(super) fn has_log(&self) -> bool {
        self.members.len() == 1
    }

    /// Bytes of the pool.
    pub fn bytes(&self) -> u64 {
        self.medium.bytes()
    }

    /// Identifier of the pool.
    pub fn id(&self) -> u32 {
        self.head.pool
    }

    /// How far the pool may grow while it is open.
    pub fn growth(&self) -> Option<Growth> {
        self.options.growth
    }

    /// What the program's stores go to.
    #[inline]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What its commits wait for.
    pub fn durability(&self) -> Durability {
        self.options.durability
    }

    /// What the recovery at open found and did.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// Offsets that objects may have.
    #[inline]
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

    /// The allocated object that follows an offset (0: the first), in rising order; committed ones
    /// only.
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

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    pub(crate) fn heap_index(&self) -> &Heap {
        &self.heap
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

    /// Refuses changes of a pool that was opened for reading, or by the parent of this process.
    #[inline]
    pub(super) fn check_writable(&self) -> Result<(), Error> {
        if !self.belongs_here() {
            return Err(Error::Forked);
        }
        if self.options.read_only { Err(Error::ReadOnly) } else { Ok(()) }
    }

    /// Whether this process opened the pool. In a child of `fork` it is the parent's: nothing is
    /// changed, nor does closing it.
    #[inline]
    pub fn belongs_here(&self) -> bool {
        self.process.is_current()
    }

    /// Whether somebody is to hear of a change before it is made.
    #[inline]
    pub(super) fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::Relaxed) != 0
    }

    /// A transaction is about to change ranges.
    #[cold]
    pub(super) fn tell(&self, transaction: usize, ranges: &[Range<u64>]) {
        if let Some(linter) = &self.linter {
            linter.add(self, transaction, ranges);
        }
        if let Some(by) = &self.by_mechanism {
            by.first_touch(ranges);
        }
        ranges.iter().for_each(|range| self.keep(range));
    }

    /// A range is about to change: snapshots keep what it was.
    #[cold]
    pub(super) fn keep(&self, range: &Range<u64>) {
        snapshot::keep(&self.snapshots, &self.view, range);
    }

    /// Refuses ranges that no object has.
    #[inline]
    pub(crate) fn check(&self, range: &Range<u64>) -> Result<(), Error> {
        if !self.is_in_heap(range) {
            let (length, heap) = (range.end.wrapping_sub(range.start), self.heap.range());
            return Err(Error::OutOfRange { offset: range.start, length, heap });
        }
        if !range.is_empty() && !self.heap.holds_objects(range) {
            // Its space belongs to the log, or may from the next record on.
            return Err(Error::NotAllocated { offset: range.start });
        }
        Ok(())
    }

    #[inline]
    fn is_in_heap(&self, range: &Range<u64>) -> bool {
        let heap = self.heap.range();
        heap.start <= range.start && range.start <= range.end && range.end <= heap.end
    }

    /// Whether all bytes of a range lie in chunks that hold objects or reservations. Other chunks
    /// may become part of the log at any time.
    pub fn holds_objects(&self, range: &Range<u64>) -> bool {
        self.is_in_heap(range) && (range.is_empty() || self.heap.holds_objects(range))
    }

    /// The parts of a range for which [`DirectPool::holds_objects`] is true, chunk by chunk.
    pub fn parts_with_objects(&self, range: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<'_> {
        let heap = self.heap.range();
        let (mut at, end) = (range.start.max(heap.start), range.end.min(heap.end));
        let chunks = std::iter::from_fn(move || {
            let start = at;
            at = end.min(heap.start + ((start - heap.start) / CHUNK_BYTES + 1) * CHUNK_BYTES);
            (start < end).then_some(start..at)
        });
        chunks.filter(|part| self.holds_objects(part))
    }

    /// Whether space is taken at an offset, and no object by a commit.
    pub fn is_reserved(&self, offset: u64) -> bool {
        self.heap.is_reserved(offset)
    }

    /// Takes space for an object. Its bytes are what the space held before. A crash or
    /// [`DirectPool::cancel`] gives it back.
    pub fn reserve(&self, bytes: u64) -> Result<Reservation, Error> {
        self.check_writable()?;
        let slot = slot();
        let reserved = match self.take_space(slot, bytes) {
            Err(Error::Full { .. }) => self.reserve_where_scarce(slot, bytes)?,
            done => done?,
        };
        let reserved = match self.secure(reserved.offset..reserved.offset + reserved.bytes) {
            Ok(()) => reserved,
            Err(error) => self.reserve_with_room(reserved, error, slot, bytes)?,
        };
        if self.is_watched() {
            self.tell_reserved(&(reserved.offset..reserved.offset + reserved.bytes));
        }
        Ok(reserved)
    }

    /// Space was taken: the program may store there.
    #[cold]
    fn tell_reserved(&self, range: &Range<u64>) {
        if let Some(linter) = &self.linter {
            linter.reserve(self, range);
        }
        self.keep(range);
    }

    /// Takes space that the thread or the lists have.
    #[inline(always)]
    fn take_space(&self, slot: usize, bytes: u64) -> Result<Reservation, Error> {
        let mut shard = self.shards[slot].lock();
        let fresh = |offset, bytes| self.populate(offset + bytes);
        self.heap.reserve(&mut shard.arena, bytes, Runs::Elsewhere, fresh)
    }

    /// Takes space where there is little: also some that waits, that other threads have, that the
    /// log has, and that comes by growth.
    #[cold]
    fn reserve_where_scarce(&self, slot: usize, bytes: u64) -> Result<Reservation, Error> {
        if self.release_early() {
            match self.take_space(slot, bytes) {
                Err(Error::Full { .. }) => {}
                done => return done,
            }
        }
        self.reserve_elsewhere(slot, bytes)
    }

    /// Takes other space than what has no room on the medium: what waits has some. It is listed
    /// behind the run that has none, and found first.
    #[cold]
    fn reserve_with_room(
        &self,
        without: Reservation,
        error: Error,
        slot: usize,
        bytes: u64,
    ) -> Result<Reservation, Error> {
        self.cancel(without);
        if !matches!(error, Error::Pool { problem: Problem::NoSpace { .. }, .. }) {
            return Err(error);
        }
        self.heap.retire(&mut self.shards[slot].lock().arena);
        if !self.release_early() {
            return Err(error);
        }
        let reserved = match self.take_space(slot, bytes) {
            Err(Error::Full { .. }) => self.reserve_where_scarce(slot, bytes)?,
            done => done?,
        };
        let range = reserved.offset..reserved.offset + reserved.bytes;
        self.secure(range).inspect_err(|_| self.cancel(reserved))?;
        Ok(reserved)
    }

    /// Takes space where the thread and the lists have none: from other threads, from the log, and
    /// by growth.
    fn reserve_elsewhere(&self, slot: usize, bytes: u64) -> Result<Reservation, Error> {
        loop {
            match self.reserve_from_others(slot, bytes) {
                Err(Error::Full { .. }) if self.grow_for(bytes)? => {}
                done => return done,
            }
        }
    }

    /// Takes room on the medium for a range of the heap that comes into use, and for what the
    /// tables say of it.
    #[inline]
    pub(super) fn secure(&self, range: Range<u64>) -> Result<(), Error> {
        if self.medium.backing().is_complete() {
            return Ok(());
        }
        self.medium.backing().secure(self.heap.tables_of(&range).chain([range]))
    }

    /// Whether everything that was loaded from the pool, by the program as well, was there: its
    /// file was not cut short, and its medium could be read.
    ///
    /// # Errors
    /// [`Problem::Truncated`], [`Problem::NoSpace`], what the system refuses.
    #[inline]
    pub(super) fn alive(&self) -> Result<(), Error> {
        if self.view.is_whole() && self.medium.backing().is_whole() { Ok(()) } else { self.loss() }
    }

    #[cold]
    fn loss(&self) -> Result<(), Error> {
        self.view.alive()?;
        match self.medium.backing() {
            Backing::Mapped(memory) => memory.alive(),
            Backing::Private(memory) => memory.alive(),
            // A card is asked where it may have gone.
            Backing::Other(_) => Ok(()),
        }
    }

    /// A range means nothing beyond this run of the program, as locks do: the lint leaves it alone.
    pub fn note_volatile(&self, range: Range<u64>) {
        if let Some(linter) = &self.linter {
            linter.ignore(range);
        }
    }

    /// Gives pages their memory up to somewhat behind `end`.
    pub(super) fn populate(&self, end: u64) {
        let start = self.populated.load(Ordering::Relaxed);
        if end > start && self.mode == Mode::WorkingCopy {
            let start = start.max(self.heap.range().start / PAGE_BYTES * PAGE_BYTES);
            // While the pool grows the medium is longer than the view for a moment.
            let to = (end + POPULATE_BYTES).min(self.view.bytes());
            self.populated.store(to, Ordering::Relaxed);
            // A jump ahead by a large object is left to the page faults.
            if to.saturating_sub(start) <= 4 * POPULATE_BYTES {
                self.view.populate(start, to - start);
            }
        }
    }

    /// Gives a reservation back. Twice is as good as once.
    pub fn cancel(&self, reservation: Reservation) {
        if self.belongs_here() {
            self.heap.release(reservation.offset);
        }
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
        let lane = if self.mode == Mode::InPlace { shard.take_lane(0) } else { COMMIT_LANE };
        drop(shard);
        transaction.start(self, slot, lane);
        if let Some(linter) = &self.linter {
            linter.begin(self, transaction.key());
        }
        Ok(transaction)
    }

    /// A transaction has ended.
    pub(crate) fn end(
        &self,
        Writer { slot, lane, .. }: Writer,
        promised: bool,
        spare: Transaction,
        count: impl FnOnce(&mut Statistics),
    ) {
        let mut shard = self.shards[slot].lock();
        if promised {
            shard.lanes[lane].promises -= 1;
        }
        if self.mode == Mode::InPlace || lane != COMMIT_LANE {
            let lane = &mut shard.lanes[lane];
            (lane.busy, lane.open) = (false, 0);
            lane.end_headless(None);
        }
        shard.spare.push(spare);
        count(&mut shard.tally);
    }

    /// Leaves nothing to the pool's mechanism, and keeps commits away while the medium is written
    /// past it.
    ///
    /// # Errors
    /// What the medium refuses poisons the pool.
    pub(super) fn settled(&self) -> Result<Option<Turn<'_>>, Error> {
        let turn = self.by_mechanism.as_ref().map(|by| by.turn(self)).transpose()?;
        turn.map(|mut turn| turn.settle().map(|()| turn)).transpose()
    }

    /// From now on nothing can be claimed about the pool.
    pub(crate) fn poison(&self, error: Error) -> Error {
        self.poisoned.store(true, Ordering::Relaxed);
        event!(error, pool = self.location, %error, "pool poisoned");
        error
    }
}
