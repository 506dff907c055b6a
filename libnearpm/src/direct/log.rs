//! Writing the log: records, lanes, segments.

use std::collections::TryReserveError;

use nearpm_interface::geometry::LINE_U64;
use nearpm_interface::record::{Kind, RecordHead, RecordSum, SegmentHead};

use super::records::{Record, Records};
use crate::memory::{Backing, View, reserve_populated};

/// Bytes of a segment in front of its first record.
const SEGMENT_HEAD: u64 = SegmentHead::SIZE as u64;

/// Most memory that a lane keeps for the copies of its records.
const KEPT_BYTES: usize = 2 << 20;

/// Records of so many bytes are read back from the log: a long read is fast, and a long copy is
/// not.
const LONG_RECORD: usize = 16 << 10;

/// So many bytes are worth a truncation, if they go home at once then: new objects, and long
/// ranges.
pub(super) const WORTH_A_TRUNCATION: u64 = 64 << 10;

/// Who appends.
#[derive(Clone, Copy)]
pub(crate) struct Writer {
    /// Shard.
    pub slot: usize,
    /// Lane of the shard.
    pub lane: usize,
    /// Number of the first record of the transaction, 0 if there is none yet.
    pub first: u64,
}

/// What all records of one append have in common.
#[derive(Clone, Copy)]
pub(crate) struct Stamp {
    /// Number of the first record of the append.
    pub sequence: u64,
    /// Number of the first record of the transaction.
    pub first: u64,
    /// See [`RecordHead::depends`].
    pub depends: u64,
    /// Kind of the last record. Those before a commit are its parts; undo records are alike.
    pub kind: Kind,
}

/// A record of old bytes in the log whose head is not there: nothing counts of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unsealed {
    /// Offset in the pool.
    pub at: u64,
    /// Bytes of head and operations.
    pub bytes: u64,
    /// See [`SegmentHead::nonce`].
    pub nonce: u64,
    /// The checksum of its operations.
    pub sum: RecordSum,
}

/// The newest record of segments with records whose heads are to come: they are not free.
const TO_COME: u64 = u64::MAX;

/// Where a lane stood before it got records without heads.
#[derive(Clone, Copy, Debug)]
struct Held {
    current: usize,
    cursor: u64,
    last: u64,
}

/// A piece of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// First chunk.
    pub chunk: u32,
    /// Chunks.
    pub chunks: u32,
    /// Offset in the pool.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
    /// See [`SegmentHead::nonce`].
    pub nonce: u64,
    /// Number of the newest record in it, 0 for none.
    pub last: u64,
    /// Bytes from its start that records need not be [ahead of](Segment::write_ahead).
    pub ahead: u64,
}

/// Bytes that a segment gets ahead of its records: as many as it has so far, within these bounds.
const LEAST_AHEAD: u64 = 64 << 10;
const MOST_AHEAD: u64 = 1 << 20;

impl Segment {
    /// Records will have its bytes up to `end`: what comes behind is made ready for many of them
    /// together, where that is worth something.
    #[cold]
    fn write_ahead(&mut self, backing: &Backing, end: u64) {
        let more = self.ahead.clamp(LEAST_AHEAD, MOST_AHEAD);
        let to = (end + more).min(self.bytes);
        backing.write_ahead(self.offset + self.ahead, to - self.ahead);
        self.ahead = to;
    }
}

/// A record that is not home yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    sequence: u64,
    place: Place,
    bytes: usize,
}

/// Where the bytes of a record are.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In [`Pending::volatile`], from here on.
    Volatile(usize),
    /// In the log itself, at this offset in the pool.
    Log(u64),
}

/// The bytes of a record that is not home yet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    /// Here.
    Bytes(&'a [u8]),
    /// At this offset in the pool: so many.
    Log(u64, usize),
}

/// Records that are not home yet, by number.
#[derive(Default)]
pub(crate) struct Pending {
    written: Vec<Written>,
    /// The bytes of short ones once more: what was streamed is in no cache.
    volatile: Vec<u8>,
    /// Bytes of all of them.
    bytes: u64,
}

impl Pending {
    /// Numbers.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        self.written.iter().map(|written| written.sequence)
    }

    /// The bytes of one of them.
    pub fn source(&self, at: usize) -> Source<'_> {
        let written = &self.written[at];
        match written.place {
            Place::Volatile(start) => Source::Bytes(&self.volatile[start..start + written.bytes]),
            Place::Log(offset) => Source::Log(offset, written.bytes),
        }
    }

    /// Bytes of the longest one that is in the log alone.
    pub fn longest_in_log(&self) -> usize {
        let in_log = self.written.iter().filter(|written| matches!(written.place, Place::Log(_)));
        in_log.map(|written| written.bytes).max().unwrap_or(0)
    }

    /// Records.
    pub fn len(&self) -> usize {
        self.written.len()
    }

    /// Bytes of all records.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.written.is_empty()
    }
}

/// Segments that one thread (or one transaction in place) writes.
#[derive(Default)]
pub(crate) struct Lane {
    pub segments: Vec<Segment>,
    current: usize,
    cursor: u64,
    pending: Pending,
    /// Memory of what the last truncation took.
    spare: Pending,
    /// Number of the first record of the transaction in place that is open here, 0 for none.
    pub open: u64,
    /// A transaction has the lane for itself.
    pub busy: bool,
    /// It has records here whose heads are to come.
    held: Option<Held>,
    /// Transactions whose commit relies on the segments: none goes while there are some.
    pub promises: u32,
}

/// Bytes that must be free for a record of `stride` bytes. Behind undo records a line is left, for
/// the record that says that the transaction was taken back: an abort must not fail for lack of
/// space.
pub(super) fn room_for(kind: Kind, stride: u64) -> u64 {
    stride + if kind == Kind::Undo { LINE_U64 } else { 0 }
}

impl Lane {
    /// Whether records fit for which there must be so much [room](room_for), given that records up
    /// to `applied` are dead.
    pub fn fits(&self, records: impl Iterator<Item = (u64, u64)>, applied: u64) -> bool {
        let Some(segment) = self.segments.get(self.current) else { return false };
        let (mut cursor, mut end) = (self.cursor, segment.bytes);
        let mut next = 0;
        for (stride, room) in records {
            if cursor + room > end {
                let Some(found) = self.next_free(next, applied, room) else { return false };
                next = found + 1;
                (cursor, end) = (SEGMENT_HEAD, self.segments[found].bytes);
            }
            cursor += stride;
        }
        true
    }

    /// Whether records of these sizes fit when nothing that is in the lane counts any more.
    pub fn could_fit(&self, strides: impl Iterator<Item = u64>) -> bool {
        // In the order of `fits`.
        let others = (0..self.segments.len()).filter(|&at| at != self.current);
        let order = std::iter::once(self.current).chain(others);
        let mut segments = order.filter_map(|at| {
            let segment = self.segments.get(at)?;
            Some(match segment.last {
                TO_COME if at == self.current => segment.bytes - self.cursor,
                TO_COME => 0,
                _ => segment.bytes - SEGMENT_HEAD,
            })
        });
        let mut left = 0;
        for stride in strides {
            while left < stride {
                let Some(next) = segments.next() else { return false };
                left = next;
            }
            left -= stride;
        }
        true
    }

    /// The first segment from `from` on that holds nothing that counts, and has so much room.
    fn next_free(&self, from: usize, applied: u64, room: u64) -> Option<usize> {
        let free = |i: &usize| {
            let segment = &self.segments[*i];
            *i != self.current && segment.last <= applied && SEGMENT_HEAD + room <= segment.bytes
        };
        (from..self.segments.len()).find(free)
    }

    /// Makes room to remember records that are appended next.
    pub fn try_reserve(&mut self, records: &Records) -> Result<(), TryReserveError> {
        self.pending.written.try_reserve(records.len())?;
        if records.short_bytes() < LONG_RECORD {
            return reserve_populated(&mut self.pending.volatile, records.short_bytes());
        }
        let copied = records.iter().filter(|record| record.long().is_none()).map(Record::stride);
        let short = copied.filter(|&stride| stride < LONG_RECORD as u64).sum::<u64>();
        reserve_populated(&mut self.pending.volatile, short as usize)
    }

    /// Has memory for the copies of records of so many bytes, with its pages. Without it they come
    /// as records do.
    pub fn prepare(&mut self, bytes: u64) {
        let _ = reserve_populated(&mut self.pending.volatile, KEPT_BYTES.min(bytes as usize));
    }

    /// Adds an empty segment.
    pub fn add(&mut self, segment: Segment) {
        self.segments.push(segment);
        if self.segments.len() == 1 {
            (self.current, self.cursor) = (0, SEGMENT_HEAD);
        }
    }

    /// What is not home yet.
    pub fn pending(&self) -> &Pending {
        &self.pending
    }

    /// Hands what is not home yet to a truncation.
    pub fn take(&mut self) -> Pending {
        std::mem::replace(&mut self.pending, std::mem::take(&mut self.spare))
    }

    /// A truncation is done with what it took, and records up to `applied` are dead.
    pub fn settle(&mut self, mut taken: Pending, applied: u64) {
        taken.written.clear();
        taken.volatile.clear();
        taken.bytes = 0;
        taken.volatile.shrink_to(KEPT_BYTES);
        self.spare = taken;
        // One thread alone needs one memory of the two: that which has its pages.
        if self.pending.is_empty() && self.pending.volatile.capacity() < self.spare.volatile.capacity() {
            std::mem::swap(&mut self.pending, &mut self.spare);
        }
        if self.segments.get(self.current).is_some_and(|s| s.last <= applied) {
            self.cursor = SEGMENT_HEAD;
        }
    }

    /// Takes away the segments behind the first `keep` that hold nothing that counts.
    pub fn shrink(&mut self, keep: usize, applied: u64, mut drop: impl FnMut(Segment)) {
        while self.promises == 0
            && self.segments.len() > keep
            && self.segments.last().is_some_and(|s| s.last <= applied)
        {
            if self.current == self.segments.len() - 1 {
                let Some(other) = self.segments[..self.current].iter().position(|s| s.last <= applied) else { return };
                (self.current, self.cursor) = (other, SEGMENT_HEAD);
            }
            drop(self.segments.pop().expect("there is more than one"));
        }
    }

    /// Takes away all segments that hold nothing that counts: there is space for others when
    /// records come.
    pub fn drop_dead(&mut self, applied: u64, mut drop: impl FnMut(Segment)) {
        if self.promises > 0 {
            return;
        }
        let mut current = None;
        let mut kept = Vec::new();
        for (at, segment) in self.segments.drain(..).enumerate() {
            if segment.last <= applied {
                drop(segment);
                continue;
            }
            if at == self.current {
                current = Some(kept.len());
            }
            kept.push(segment);
        }
        self.segments = kept;
        (self.current, self.cursor) = match (current, self.segments.first()) {
            (Some(current), _) => (current, self.cursor),
            // What is left is full.
            (None, Some(first)) => (0, first.bytes),
            (None, None) => (0, SEGMENT_HEAD),
        };
    }

    /// The place of a record that fits, in which segment it is; `next` is where a free one is
    /// looked for.
    #[inline]
    fn take_place(&mut self, kind: Kind, stride: u64, next: &mut usize, applied: u64, backing: &Backing) -> u64 {
        if self.cursor + room_for(kind, stride) > self.segments[self.current].bytes {
            let free = self.next_free(*next, applied, room_for(kind, stride));
            self.current = free.expect("the caller asked whether the records fit");
            *next = self.current + 1;
            self.cursor = SEGMENT_HEAD;
        }
        let segment = &mut self.segments[self.current];
        let at = segment.offset + self.cursor;
        self.cursor += stride;
        if self.cursor > segment.ahead {
            segment.write_ahead(backing, self.cursor);
        }
        at
    }

    /// Writes long records that fit, of old bytes, without their heads, and adds them to `to`,
    /// which has room for them.
    #[cfg_attr(test, track_caller)]
    pub fn append_headless(
        &mut self,
        (backing, view): (&Backing, &View),
        records: &mut Records,
        applied: u64,
        to: &mut Vec<Unsealed>,
    ) {
        if self.held.is_none() {
            let last = self.segments[self.current].last;
            self.held = Some(Held { current: self.current, cursor: self.cursor, last });
            self.promises += 1;
            // Nobody takes the place that an abort goes back to, not even where no record fits
            // behind it.
            self.segments[self.current].last = TO_COME;
        }
        let mut next = 0;
        for index in 0..records.len() {
            let (bytes, stride) =
                records.iter().nth(index).map(|r| (r.bytes(), r.stride())).expect("it is one of them");
            let at = self.take_place(Kind::Undo, stride, &mut next, applied, backing);
            let segment = &mut self.segments[self.current];
            segment.last = TO_COME;
            let nonce = segment.nonce;
            to.push(Unsealed { at, bytes, nonce, sum: records.write_unsealed(index, backing, view, at) });
        }
    }

    /// Records without heads got them, the newest of which has a number; or none will, and their
    /// places are free.
    pub fn end_headless(&mut self, newest: Option<u64>) {
        let Some(held) = self.held.take() else { return };
        self.promises -= 1;
        if newest.is_none() {
            (self.current, self.cursor) = (held.current, held.cursor);
            self.segments[held.current].last = held.last;
        }
        for segment in self.segments.iter_mut().filter(|segment| segment.last == TO_COME) {
            segment.last = newest.unwrap_or(0);
        }
    }

    /// Writes records that fit. They count when a drain follows. Long ones that are `at_home` need
    /// no more.
    #[cfg_attr(test, track_caller)]
    pub fn append(
        &mut self,
        medium: (&Backing, &View),
        records: &mut Records,
        stamp: Stamp,
        applied: u64,
        at_home: bool,
    ) {
        let (backing, view) = medium;
        let count = records.len();
        let mut next = 0;
        for index in 0..count {
            let (bytes, stride) =
                records.iter().nth(index).map(|r| (r.bytes(), r.stride())).expect("it is one of them");
            let at = self.take_place(stamp.kind, stride, &mut next, applied, backing);
            let segment = &mut self.segments[self.current];
            let last = index + 1 == count;
            let sequence = stamp.sequence + index as u64;
            let head = RecordHead {
                crc: 0,
                bytes: bytes as u32,
                nonce: segment.nonce,
                sequence,
                first: stamp.first,
                depends: stamp.depends,
                kind: if last || stamp.kind == Kind::Undo { stamp.kind } else { Kind::Part } as u32,
                parts: if last && stamp.kind == Kind::Commit { count as u32 - 1 } else { 0 },
            };
            segment.last = sequence;
            let here = records.write(index, head, backing, view, at);
            let place = match here {
                _ if stamp.kind == Kind::Undo => continue,
                None if at_home => continue,
                Some(whole) if whole.len() < LONG_RECORD => {
                    self.pending.volatile.extend_from_slice(whole);
                    Place::Volatile(self.pending.volatile.len() - whole.len())
                }
                _ => Place::Log(at),
            };
            self.pending.written.push(Written { sequence, place, bytes: stride as usize });
            self.pending.bytes += stride;
        }
    }
}
