//! Truncating the log of an open pool, and the segments that it consists of.
//!
//! A truncation makes a *cut*: with all shards locked it takes every record that is not home yet.
//! It writes them home while other threads go on appending, declares them dead, and lets the lanes
//! use their segments again. One runs at a time.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, TryLockError};

use nearpm_interface::geometry::LINE_U64;
use nearpm_interface::media::{CHUNK_BYTES, ChunkWord, PAGE_BYTES, PoolHead};
use nearpm_interface::record::{
    HOME_RECORD_VERSION, Kind, MAX_STORE_BYTES, POOL_APPLIED, POOL_CONFIRMED, RECORD_VERSION, RecordHead,
    SEGMENT_MAGIC, SegmentHead,
};
use nearpm_interface::seal;

use super::carry::Taken;
use super::lock_order::{Held, Lock};
use super::log::{Lane, Pending, Segment, room_for};
use super::pool::COMMIT_LANE;
use super::records::{Record, Records};
use super::shard::{Shard, ShardGuard};
use super::slot::slot;
use super::{DirectPool, Reservation};
use crate::error::{Error, Problem};
use crate::events::event;
use crate::heap::index::Runs;
use crate::memory::Backing;
use crate::planted::{Fault, planted};
use crate::random::random_id;

/// Segments that a lane keeps when it needs no more: it goes on in one while the other is
/// truncated.
const KEPT_SEGMENTS: usize = 2;

/// The log takes one part of so many of the heap at most, but for one segment that each lane needs.
const LOG_SHARE: u64 = 4;

/// A new segment takes one part of so many of what is left of that at most, so that there is
/// something for the lanes to come.
const SEGMENT_SHARE: u64 = 8;

/// Bytes of a usual segment: large enough to make truncations rare, small in small pools.
fn segment_bytes(pool_bytes: u64) -> u64 {
    (pool_bytes / 128).clamp(CHUNK_BYTES, 32 * CHUNK_BYTES) / CHUNK_BYTES * CHUNK_BYTES
}

/// Pools of so many bytes have a log that synchronisations of a device are worth.
const LARGE_POOL: u64 = 256 << 20;

/// Bytes of a usual segment where drains are calls: a truncation has several of them, which whoever
/// commits meanwhile waits for, and bytes that change often go home once in each.
fn segment_bytes_of_files(pool_bytes: u64) -> u64 {
    let (share, most) = if pool_bytes < LARGE_POOL { (256, 128) } else { (64, 1024) };
    segment_bytes(pool_bytes).max((pool_bytes / share).min(most * CHUNK_BYTES) / CHUNK_BYTES * CHUNK_BYTES)
}

/// Chunks that are kept for segments: four of them, or a sixteenth of a small heap.
pub(super) fn kept_chunks(head: &PoolHead) -> u64 {
    (4 * segment_bytes(head.bytes) / CHUNK_BYTES).min(head.pages * PAGE_BYTES / CHUNK_BYTES / 16)
}

/// What a large transaction asks for in advance is one part of so many of the free space at most,
/// where the log has its share already.
const FREE_SHARE: u64 = 16;

/// What a large transaction may grow by, at least, before it asks for room again.
const LEAST_SPARE: u64 = 16 << 10;

/// Bytes at the end of a record that may stay blank, because the next operation does not fit, with
/// its head.
const LONGEST_WASTE: u64 = (8 + MAX_STORE_BYTES + RecordHead::SIZE) as u64;

/// The right to truncate.
pub(super) type Turn<'p> = Held<MutexGuard<'p, ()>>;

/// What a truncation has taken.
pub(super) struct Cut {
    /// Records up to this number are dead afterwards.
    dead: u64,
    /// Newest record that nobody has waited for, 0 for none.
    unacknowledged: u64,
    /// By shard and lane.
    lanes: Vec<(usize, usize, Pending)>,
}

/// Memory that a truncation needs, taken before it takes anything of the log.
pub(super) struct Room {
    /// Numbers of records, and where they are: lane of the cut, index there.
    order: Vec<(u64, usize, usize)>,
    /// A record that is read back from the log.
    long: Vec<u8>,
}

impl Room {
    /// For all records that are not home.
    pub(super) fn for_records(shards: &[ShardGuard<'_>], pool: &DirectPool) -> Result<Room, Error> {
        let mut room = Room { order: Vec::new(), long: Vec::new() };
        let lanes = || shards.iter().flat_map(|shard| &shard.lanes);
        let no_memory = || Error::no_memory("a truncation of the log");
        room.order.try_reserve(lanes().map(|lane| lane.pending().len()).sum()).map_err(no_memory())?;
        let longest = lanes().map(|lane| lane.pending().longest_in_log()).max().unwrap_or(0);
        debug_assert!(longest as u64 <= pool.record_limit() + PAGE_BYTES, "a record lies in one segment");
        room.long.try_reserve(longest).map_err(no_memory())?;
        Ok(room)
    }
}

/// Strides of records, and the room that there must be for each.
pub(super) fn sizes(records: &Records, kind: Kind) -> impl Iterator<Item = (u64, u64)> + Clone {
    records.iter().map(Record::stride).map(move |stride| (stride, room_for(kind, stride)))
}

impl DirectPool {
    /// Most bytes of a record. A line stays free behind it: see [`room_for`]. It stays as it is
    /// when the pool grows: one record finds room in what is kept for the log in any case, and so
    /// much is kept of the pool as it was made.
    pub(super) fn record_limit(&self) -> u64 {
        segment_bytes(self.head.bytes) - SegmentHead::SIZE as u64 - LINE_U64
    }

    /// Takes the memory now that the records of the calling thread's commits are copied to until a
    /// truncation.
    pub(super) fn prepare_lane(&self) {
        let mut shard = self.shards[slot()].lock();
        if shard.lanes.is_empty() {
            shard.lanes.push(Lane::default());
        }
        shard.lanes[COMMIT_LANE].prepare(KEPT_SEGMENTS as u64 * segment_bytes(self.head.bytes));
    }

    pub(super) fn lock_all(&self) -> Vec<ShardGuard<'_>> {
        self.shards.iter().map(Shard::lock).collect()
    }

    /// Waits for the right to truncate. It comes before the locks of shards.
    ///
    /// # Errors
    /// [`Error::Poisoned`]: a truncation that failed, or ended in a panic, has lost sight of
    /// records that it took, and another one would declare them dead.
    pub(super) fn truncation(&self) -> Result<Turn<'_>, Error> {
        if matches!(self.truncating.try_lock(), Err(TryLockError::WouldBlock)) {
            self.carry.help(&self.medium);
        }
        let turn = Held::take(&self.medium, Lock::Truncation, || self.medium.lock(&self.truncating))
            .map_err(|_| self.poison(Error::Poisoned))?;
        self.refuse_poisoned()?;
        Ok(turn)
    }

    /// Whether a lane has room for records of these sizes.
    #[inline]
    pub(super) fn fit_of(&self, lane: &Lane, sizes: impl Iterator<Item = (u64, u64)>) -> bool {
        lane.fits(sizes, self.applied.load(Ordering::Relaxed))
    }

    /// Sees to it that a commit with these records and so many bytes more will find room in the log
    /// of a lane that it shares with nobody who is not done by then. Gives how many bytes more it
    /// may be in truth. The lane keeps its segments until the transaction ends; its `first` promise
    /// is counted.
    ///
    /// # Errors
    /// [`Error::Full`], what the medium refuses: nothing is promised.
    pub(super) fn promise(
        &self,
        slot: usize,
        lane: usize,
        records: &Records,
        more: u64,
        first: bool,
    ) -> Result<u64, Error> {
        // Little by little would mean to look at everything again and again.
        let made = records.iter().map(Record::stride).sum::<u64>() + more;
        let halved = |&spare: &u64| (spare > LEAST_SPARE).then_some((spare / 2).max(LEAST_SPARE));
        let mut spares = std::iter::successors(Some(made.max(LEAST_SPARE)), halved).map(|spare| more + spare);
        let strides = |more: u64| {
            let (limit, piece) = (self.record_limit(), self.record_limit() - LONGEST_WASTE);
            let count = more.div_ceil(piece);
            let last = RecordHead::stride(more - (count - 1) * piece + LONGEST_WASTE);
            let others = std::iter::repeat_n(RecordHead::stride(limit), count as usize - 1);
            records.iter().map(Record::stride).chain(others).chain([last])
        };
        {
            let mut shard = self.shards[slot].lock();
            if shard.lanes.is_empty() {
                shard.lanes.push(Lane::default());
            }
            shard.lanes[lane].promises += u32::from(first);
            if let Some(found) = spares.find(|&more| shard.lanes[lane].could_fit(strides(more))) {
                return Ok(found);
            }
        }
        let _turn = self.settled()?;
        // As much again, so that the sum of all looks stays linear. Beyond its share the log asks
        // for little of what is free: objects want it.
        let make = |more| self.make_room_for(slot, lane, strides(more).map(|stride| (stride, stride))).map(|()| more);
        let spared = (self.log_budget() * CHUNK_BYTES).max(self.heap.free_bytes() / FREE_SHARE);
        let ready = make(more + made.min(spared).max(LEAST_SPARE)).or_else(|_| make(more + LEAST_SPARE));
        if ready.is_err() && first {
            self.shards[slot].lock().lanes[lane].promises -= 1;
        }
        ready
    }

    /// Chunks that the log may still have beyond what each lane needs.
    fn log_budget(&self) -> u64 {
        self.heap.log_budget(self.heap.chunks() / LOG_SHARE)
    }

    /// Truncates the log, and adds segments to a lane until records of these sizes fit.
    pub(super) fn make_room_for(
        &self,
        slot: usize,
        lane: usize,
        sizes: impl Iterator<Item = (u64, u64)> + Clone,
    ) -> Result<(), Error> {
        let turn = self.truncation()?;
        let fits = || self.fit_of(&self.shards[slot].lock().lanes[lane], sizes.clone());
        // Another thread's truncation may have made room meanwhile.
        if fits() {
            return Ok(());
        }
        if self.shards[slot].lock().lanes[lane].segments.len() >= KEPT_SEGMENTS {
            self.truncate_beside(&turn)?;
            if fits() {
                return Ok(());
            }
        }
        let mut shards = self.lock_all();
        self.truncate(&turn, &mut shards)?;
        let longest = sizes.clone().map(|(_, room)| room).max().unwrap_or(0);
        // Once: the segments that are added here have nothing in them yet, and would be given away
        // again and again.
        let mut gave_way = false;
        while !self.fit_of(&shards[slot].lanes[lane], sizes.clone()) {
            let made = match self.make_segment(longest, 0) {
                // Segments of others have room on the medium, too.
                Err(Error::Full { .. } | Error::Pool { problem: Problem::NoSpace { .. }, .. })
                    if !std::mem::replace(&mut gave_way, true) =>
                {
                    self.give_way(&mut shards)?;
                    self.make_segment(longest, 0)
                }
                made => made,
            };
            let made = match made {
                Err(Error::Full { .. }) if self.grow_for(longest)? => self.make_segment(longest, 0),
                made => made,
            };
            shards[slot].lanes[lane].add(made?);
        }
        let lane = &mut shards[slot].lanes[lane];
        while lane.segments.len() < KEPT_SEGMENTS && self.log_budget() > 0 {
            match self.make_segment(0, kept_chunks(&self.head)) {
                Ok(segment) => lane.add(segment),
                // The pool or its medium is nearly full: one must do.
                Err(Error::Full { .. } | Error::Pool { problem: Problem::NoSpace { .. }, .. }) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// So many bytes of the log are worth a [`DirectPool::tidy`] while others write: those of a
    /// usual segment, of which each thread has two.
    pub fn worth_tidying(&self) -> u64 {
        if self.drain_is_a_call() { segment_bytes_of_files(self.bytes()) } else { segment_bytes(self.bytes()) }
    }

    /// Brings home what the log holds, if that is at least so many bytes, while other threads go
    /// on: who commits has to do it less often then, and the next open has less to read.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Forked`]; what the medium refuses.
    pub fn tidy(&self, least: u64) -> Result<bool, Error> {
        self.check_writable()?;
        let waiting = |shard: &Shard| shard.lock().lanes.iter().map(|lane| lane.pending().bytes()).sum::<u64>();
        let due = self.shards.iter().map(waiting).sum::<u64>() >= least;
        if due {
            self.truncate_beside(&self.truncation()?)?;
        }
        Ok(due)
    }

    /// Brings home what a commit has appended that went past the pool's mechanism.
    ///
    /// # Errors
    /// Poisons the pool: the commit is in the log.
    pub(super) fn bring_home(&self) -> Result<(), Error> {
        let home = self.truncation().and_then(|turn| self.truncate_beside(&turn));
        home.map_err(|error| self.poison(error))
    }

    /// Takes pages of an ordinary file out of this process that the system holds in any case: after
    /// a truncation those count for it that were written. What is used again is mapped again; of
    /// other memory nothing goes. Says whether any could have come since the last time.
    pub fn let_pages_go(&self) -> bool {
        let applied = self.applied.load(Ordering::Relaxed);
        let Backing::Mapped(memory) = self.medium.backing() else { return false };
        let came = self.let_go_at.swap(applied, Ordering::Relaxed) != applied;
        if came {
            memory.let_pages_go();
        }
        came
    }

    /// Truncates the log while other threads go on.
    pub(super) fn truncate_beside(&self, _turn: &Turn<'_>) -> Result<(), Error> {
        let _active = self.carry.begin();
        let (room, cut) = {
            let mut shards = self.lock_all();
            (Room::for_records(&shards, self)?, self.cut(&mut shards))
        };
        if let Some(mut cut) = cut {
            self.carry_home(&mut cut, room)?;
            self.settle(&mut self.lock_all(), cut);
        }
        Ok(())
    }

    /// Truncates the log while no other thread appends, and gives segments back that lanes need no
    /// more.
    pub(super) fn truncate(&self, _turn: &Turn<'_>, shards: &mut [ShardGuard<'_>]) -> Result<(), Error> {
        let _active = self.carry.begin();
        let room = Room::for_records(shards, self)?;
        if let Some(mut cut) = self.cut(shards) {
            self.carry_home(&mut cut, room)?;
            self.settle(shards, cut);
        }
        let applied = self.applied.load(Ordering::Relaxed);
        let mut dropped = Vec::new();
        for lane in shards.iter_mut().flat_map(|shard| &mut shard.lanes) {
            lane.shrink(KEPT_SEGMENTS, applied, |segment| dropped.push(segment));
        }
        self.drop_segments(&dropped)
    }

    /// Gives back what threads have at hand: runs with room, and segments in which nothing counts.
    /// Only right after a truncation with all shards locked.
    fn give_way(&self, shards: &mut [ShardGuard<'_>]) -> Result<(), Error> {
        let applied = self.applied.load(Ordering::Relaxed);
        let mut dropped = Vec::new();
        for shard in shards {
            self.heap.retire(&mut shard.arena);
            shard.lanes.iter_mut().for_each(|lane| lane.drop_dead(applied, |segment| dropped.push(segment)));
        }
        self.drop_segments(&dropped)
    }

    /// Takes space for an object when the heap has none that is free: out of what other threads
    /// have at hand, and out of the log where that is enough. The shards stay locked meanwhile, so
    /// that nobody takes it first.
    pub(super) fn reserve_from_others(&self, slot: usize, bytes: u64) -> Result<Reservation, Error> {
        let reserve = |shards: &mut [ShardGuard<'_>]| {
            let fresh = |offset, bytes| self.populate(offset + bytes);
            self.heap.reserve(&mut shards[slot].arena, bytes, Runs::Listed, fresh)
        };
        {
            let mut shards = self.lock_all();
            shards.iter_mut().for_each(|shard| self.heap.retire(&mut shard.arena));
            let reserved = reserve(&mut shards);
            let segments = shards.iter().flat_map(|shard| &shard.lanes).flat_map(|lane| &lane.segments);
            let log = segments.map(|segment| (segment.chunk, segment.chunks));
            if !matches!(reserved, Err(Error::Full { .. })) || !self.heap.has_space_without(bytes, log) {
                return reserved;
            }
        }
        let _settled = self.settled()?;
        let turn = self.truncation()?;
        let mut shards = self.lock_all();
        self.truncate(&turn, &mut shards)?;
        self.give_way(&mut shards)?;
        reserve(&mut shards)
    }

    /// Takes what is not home yet, as far as open transactions in place allow; `None` if there is
    /// nothing.
    pub(super) fn cut(&self, shards: &mut [ShardGuard<'_>]) -> Option<Cut> {
        let lanes = || shards.iter().flat_map(|shard| &shard.lanes);
        let newest = self.sequence.0.load(Ordering::Relaxed) - 1;
        let oldest_open = lanes().map(|lane| lane.open).filter(|&open| open != 0).min();
        let dead = oldest_open.map_or(newest, |open| open - 1);
        if dead == self.applied.load(Ordering::Relaxed) && lanes().all(|lane| lane.pending().is_empty()) {
            return None;
        }
        let mut taken = Vec::new();
        for (slot, shard) in shards.iter_mut().enumerate() {
            taken.extend(shard.lanes.iter_mut().enumerate().map(|(lane, of)| (slot, lane, of.take())));
        }
        self.heap.cut();
        Some(Cut { dead, unacknowledged: self.unacknowledged.newest(), lanes: taken })
    }

    /// Writes what was taken home, and declares it dead.
    pub(super) fn carry_home(&self, cut: &mut Cut, room: Room) -> Result<(), Error> {
        if cut.unacknowledged != 0 {
            // What commits did not wait for must be durable before its effects are.
            self.medium.drain().map_err(|error| self.poison(error))?;
        }
        self.confirm(cut)?;
        let Room { mut order, long } = room;
        for (lane, (_, _, pending)) in cut.lanes.iter().enumerate() {
            order.extend(pending.numbers().enumerate().map(|(at, sequence)| (sequence, lane, at)));
        }
        // In place, because the other way takes memory; numbers are different.
        order.sort_unstable();
        let taken = Taken { lanes: std::mem::take(&mut cut.lanes), order, longest: long.capacity() };
        let (taken, carried) = self.carry.all(&self.medium, taken, long);
        cut.lanes = taken.lanes;
        carried.map_err(|error| self.poison(error))?;
        self.medium.drain().map_err(|error| self.poison(error))?;
        self.medium.put_word(POOL_APPLIED, seal::seal_word(cut.dead));
        // Unseen: a cut would have to fall between two writes, while another lane holds an older
        // record of the same bytes.
        self.medium.drain().map_err(|error| self.poison(error))?;
        event!(debug, pool = self.location, through = cut.dead, "log truncated");
        Ok(())
    }

    /// What the cut brings home may change bytes of which its records say that they lie there: from
    /// here on a recovery takes them for right.
    fn confirm(&self, cut: &Cut) -> Result<(), Error> {
        let names_home = self.writes_once && self.known.newest_home() > self.applied.load(Ordering::Relaxed);
        if !names_home || planted(Fault::LeavesRecordsUnconfirmed) {
            return Ok(());
        }
        self.medium.put_word(POOL_CONFIRMED, seal::seal_word(cut.dead));
        self.medium.drain().map_err(|error| self.poison(error))?;
        self.known.show(cut.dead);
        Ok(())
    }

    /// Lanes may use again what is dead.
    pub(super) fn settle(&self, shards: &mut [ShardGuard<'_>], cut: Cut) {
        self.applied.store(cut.dead, Ordering::Relaxed);
        self.unacknowledged.clear(cut.unacknowledged);
        self.heap.settled();
        if self.writes_once {
            self.known.show(cut.dead);
            self.release_ready();
        }
        for (slot, lane, pending) in cut.lanes {
            shards[slot].lanes[lane].settle(pending, cut.dead);
        }
    }

    /// Makes a segment for records of up to `longest` bytes, as large as usual if there is space,
    /// and leaves `spare` chunks free. Only right after a truncation with all shards locked: no
    /// record may name its chunks' words.
    fn make_segment(&self, longest: u64, spare: u64) -> Result<Segment, Error> {
        let least = (longest + SegmentHead::SIZE as u64).div_ceil(CHUNK_BYTES) as u32;
        let usual = (self.worth_tidying() / CHUNK_BYTES).min(self.log_budget() / SEGMENT_SHARE) as u32;
        let usual = usual.max(least);
        let take =
            |chunks| self.heap.take_chunks(chunks, ChunkWord::Log { chunks }, spare).map(|chunk| (chunk, chunks));
        let taken = (0..=usual.ilog2()).map(|halvings| usual >> halvings).filter(|&n| n >= least).find_map(take);
        let full = || Error::Full { requested: longest, free: self.heap.free_bytes() };
        let (chunk, chunks) = taken.ok_or_else(full)?;
        let word = ChunkWord::Log { chunks };
        let (offset, bytes, place) = self.heap.chunk_range(chunk, chunks);
        self.secure(offset..offset + bytes).inspect_err(|_| self.heap.release(offset))?;
        if self.is_watched() {
            self.keep(&(offset..offset + bytes));
        }
        let nonce = u64::from(random_id()) << 32 | u64::from(random_id());
        let head = SegmentHead {
            magic: SEGMENT_MAGIC,
            version: if self.writes_once { HOME_RECORD_VERSION } else { RECORD_VERSION },
            pool: self.head.pool,
            nonce,
            bytes,
            ..SegmentHead::default()
        };
        let mut line = head.to_bytes();
        seal::seal(&[], &mut line);
        self.medium.put(offset, &line);
        self.medium.drain().map_err(|error| self.poison(error))?;
        self.medium.put_word(place, self.heap.form().encode_chunk(word));
        // Unseen: the next record's drain comes in time, unless a thread on another processor
        // shares the shard.
        self.medium.drain().map_err(|error| self.poison(error))?;
        // Pages that are there already need nothing.
        let is_there = self.options.prefault || !self.medium.backing().is_mapped();
        let ahead = if self.drain_is_a_call() || !is_there { 0 } else { bytes };
        Ok(Segment { chunk, chunks, offset, bytes, nonce, last: 0, ahead })
    }

    /// Gives segments back in which nothing counts. Only right after a truncation with all shards
    /// locked.
    pub(super) fn drop_segments(&self, segments: &[Segment]) -> Result<(), Error> {
        if segments.is_empty() {
            return Ok(());
        }
        for segment in segments {
            let (_, _, place) = self.heap.chunk_range(segment.chunk, segment.chunks);
            self.medium.put_word(place, ChunkWord::Free.encode());
        }
        // Unseen: another processor would have to make an object there, durable before this word
        // is.
        self.medium.drain().map_err(|error| self.poison(error))?;
        segments.iter().for_each(|segment| self.heap.release(segment.offset));
        Ok(())
    }
}
