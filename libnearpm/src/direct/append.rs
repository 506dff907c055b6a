//! The log of an open pool: appending, truncating, making room.

use std::ops::Range;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use nearpm_interface::geometry::LINE_U64;
use nearpm_interface::media::{CHUNK_BYTES, ChunkWord, PAGE_BYTES, PoolHead};
use nearpm_interface::record::{Kind, POOL_APPLIED, RECORD_VERSION, SEGMENT_MAGIC, SegmentHead};
use nearpm_interface::seal;

use super::home::Home;
use super::log::{Lane, Records, Segment, Source, Stamp};
use super::shard::{Shard, ShardState};
use super::{DirectPool, Mode};
use crate::error::Error;
use crate::options::Durability;
use crate::pool::format;

/// Segments that a lane keeps when it needs no more.
const KEPT_SEGMENTS: usize = 2;

/// Bytes of a usual segment: large enough to make truncations rare, small in small pools.
fn segment_bytes(pool_bytes: u64) -> u64 {
    (pool_bytes / 128).clamp(CHUNK_BYTES, 64 * CHUNK_BYTES) / CHUNK_BYTES * CHUNK_BYTES
}

/// Chunks that are kept for segments: four of them, or a sixteenth of a small heap.
pub(super) fn kept_chunks(head: &PoolHead) -> u64 {
    (4 * segment_bytes(head.bytes) / CHUNK_BYTES).min(head.pages * PAGE_BYTES / CHUNK_BYTES / 16)
}

impl DirectPool {
    /// Most bytes of a record.
    pub(super) fn record_limit(&self) -> u64 {
        segment_bytes(self.bytes()) - SegmentHead::SIZE as u64
    }

    /// Whether a commit that has returned survives. Where a fence is that of one processor, no other can make an asynchronous commit
    /// durable.
    pub(super) fn commits_are_durable(&self) -> bool {
        self.options.durability == Durability::Durable
            || self.options.mode == Mode::InPlace
            || !self.medium.backing().drains_for_all()
    }

    /// Appends undo records and makes them durable. Gives the number of the first one.
    #[cfg_attr(test, track_caller)]
    pub(super) fn append_undo(
        &self,
        slot: usize,
        lane: usize,
        records: &mut Records,
        first: u64,
    ) -> Result<u64, Error> {
        self.append(slot, lane, records, first, Kind::Undo, std::iter::empty(), true)
    }

    /// Appends the last records of a transaction, durable if the pool's commits are. `logged` are ranges of the heap that they name.
    #[cfg_attr(test, track_caller)]
    pub(super) fn append_commit(
        &self,
        slot: usize,
        lane: usize,
        records: &mut Records,
        first: u64,
        logged: impl Iterator<Item = Range<u64>>,
    ) -> Result<(), Error> {
        let durable = self.commits_are_durable();
        self.append(slot, lane, records, first, Kind::Commit, logged, durable).map(drop)
    }

    #[cfg_attr(test, track_caller)]
    #[allow(clippy::too_many_arguments, reason = "one append has that many properties, and three callers")]
    pub(super) fn append(
        &self,
        slot: usize,
        lane: usize,
        records: &mut Records,
        first: u64,
        kind: Kind,
        logged: impl Iterator<Item = Range<u64>>,
        durable: bool,
    ) -> Result<u64, Error> {
        let mut shard = self.fit(slot, lane, records)?;
        let count = records.len() as u64;
        let sequence = self.sequence.fetch_add(count, Ordering::Relaxed);
        let first = if first == 0 { sequence } else { first };
        let depends = self.unacknowledged.load(Ordering::Acquire);
        let applied = self.applied.load(Ordering::Relaxed);
        for range in logged {
            self.heap.log(range.start, range.end - range.start);
        }
        let shard = &mut *shard;
        let to = &mut shard.lanes[lane];
        if kind == Kind::Undo && to.open == 0 {
            to.open = sequence;
        }
        to.append(self.medium.backing(), records, Stamp { sequence, first, depends, kind }, applied);
        let bytes: u64 = records.strides().sum();
        shard.tally.log_entries += count;
        shard.tally.bytes_by_cpu += bytes;
        shard.tally.lines_written_back += bytes / LINE_U64;
        if durable {
            shard.tally.fences += 1;
            self.medium.backing().drain().map_err(|error| self.poison(error))?;
        } else {
            self.unacknowledged.fetch_max(sequence + count - 1, Ordering::Release);
        }
        Ok(sequence)
    }

    /// Locks a shard when the records fit into its lane, making room if need be.
    fn fit(&self, slot: usize, lane: usize, records: &Records) -> Result<MutexGuard<'_, ShardState>, Error> {
        loop {
            let mut shard = self.shards[slot].lock();
            if self.poisoned.load(Ordering::Relaxed) {
                return Err(Error::Poisoned);
            }
            if shard.lanes.is_empty() {
                shard.lanes.push(Lane::default());
            }
            if shard.lanes[lane].fits(records.strides(), self.applied.load(Ordering::Relaxed)) {
                return Ok(shard);
            }
            drop(shard);
            self.make_room(slot, lane, records)?;
        }
    }

    pub(super) fn lock_all(&self) -> Vec<MutexGuard<'_, ShardState>> {
        self.shards.iter().map(Shard::lock).collect()
    }

    /// Truncates the log, and adds segments to a lane until the records fit.
    fn make_room(&self, slot: usize, lane: usize, records: &Records) -> Result<(), Error> {
        let mut shards = self.lock_all();
        self.truncate(&mut shards)?;
        loop {
            let lane = &mut shards[slot].lanes[lane];
            if lane.fits(records.strides(), self.applied.load(Ordering::Relaxed)) {
                return Ok(());
            }
            let longest = records.strides().max().unwrap_or(0);
            lane.add(self.make_segment(longest)?);
        }
    }

    /// Writes what the log holds home, and declares it dead as far as open transactions in place allow.
    pub(super) fn truncate(&self, shards: &mut [MutexGuard<'_, ShardState>]) -> Result<(), Error> {
        let lanes = || shards.iter().flat_map(|shard| &shard.lanes);
        let newest = self.sequence.load(Ordering::Relaxed) - 1;
        let oldest_open = lanes().map(|lane| lane.open).filter(|&open| open != 0).min();
        let dead = oldest_open.map_or(newest, |open| open - 1);
        let mut written: Vec<_> = lanes().flat_map(Lane::written).collect();
        if written.is_empty() && dead == self.applied.load(Ordering::Relaxed) {
            return Ok(());
        }
        if self.unacknowledged.load(Ordering::Acquire) != 0 {
            // What commits did not wait for must be durable before its effects are.
            self.medium.drain().map_err(|error| self.poison(error))?;
        }
        written.sort_unstable_by_key(|&(sequence, _)| sequence);
        let mut home = Home::new(&self.medium);
        let mut long = Vec::new();
        for (_, record) in written {
            match record {
                Source::Bytes(record) => home.apply_record(record),
                Source::Log(offset, bytes) => {
                    long.resize(bytes, 0);
                    self.medium.load(offset, &mut long);
                    home.apply_record(&long);
                }
            }
        }
        home.finish();
        self.medium.drain().map_err(|error| self.poison(error))?;
        self.medium.put_word(POOL_APPLIED, seal::seal_word(dead));
        // Unseen: a cut would have to fall between two writes, while another lane holds an older record of the same bytes.
        self.medium.drain().map_err(|error| self.poison(error))?;
        self.applied.store(dead, Ordering::Relaxed);
        self.unacknowledged.store(0, Ordering::Release);
        self.heap.truncated();
        for shard in shards.iter_mut() {
            for lane in &mut shard.lanes {
                lane.truncated(dead);
                lane.shrink(KEPT_SEGMENTS, dead, |segment| self.drop_segment(&segment));
            }
        }
        Ok(())
    }

    /// Makes a segment for records of up to `longest` bytes, as large as usual if there is space. Only right after a truncation: no record
    /// may name its chunks' words.
    fn make_segment(&self, longest: u64) -> Result<Segment, Error> {
        let usual = (segment_bytes(self.bytes()) / CHUNK_BYTES) as u32;
        let least = (longest + SegmentHead::SIZE as u64).div_ceil(CHUNK_BYTES) as u32;
        let take = |chunks| self.heap.take_chunks(chunks, ChunkWord::Log { chunks }, 0).map(|chunk| (chunk, chunks));
        let taken = (0..=usual.ilog2()).map(|halvings| usual >> halvings).filter(|&n| n >= least).find_map(take);
        let full = || Error::Full { requested: longest, free: self.heap.free_bytes() };
        let (chunk, chunks) = taken.ok_or_else(full)?;
        let word = ChunkWord::Log { chunks };
        let (offset, bytes, place) = self.heap.chunk_range(chunk, chunks);
        let nonce = u64::from(format::random_id()) << 32 | u64::from(format::random_id());
        let head = SegmentHead {
            magic: SEGMENT_MAGIC,
            version: RECORD_VERSION,
            pool: self.head.pool,
            nonce,
            bytes,
            ..SegmentHead::default()
        };
        let mut line = head.to_bytes();
        seal::seal(&[], &mut line);
        self.medium.put(offset, &line);
        self.medium.drain().map_err(|error| self.poison(error))?;
        self.medium.put_word(place, word.encode());
        // Unseen: the next record's drain comes in time, unless a thread on another processor shares the shard.
        self.medium.drain().map_err(|error| self.poison(error))?;
        Ok(Segment { chunk, chunks, offset, bytes, nonce, last: 0 })
    }

    /// Gives a segment back in which nothing counts. Only right after a truncation.
    pub(super) fn drop_segment(&self, segment: &Segment) {
        let (_, _, place) = self.heap.chunk_range(segment.chunk, segment.chunks);
        self.medium.put_word(place, ChunkWord::Free.encode());
        self.heap.release(segment.offset);
    }
}
