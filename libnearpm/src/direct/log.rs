//! Writing the log: records, lanes, segments.

use nearpm_interface::geometry::LINE_U64;
use nearpm_interface::record::{Kind, MAX_STORE_BYTES, Operation, RecordHead, SegmentHead};

use super::heap::Change;
use crate::memory::{Backing, View};

/// Bytes of a segment in front of its first record.
const SEGMENT_HEAD: u64 = SegmentHead::SIZE as u64;

/// Most memory that a lane keeps for the copies of its records.
const KEPT_BYTES: usize = 2 << 20;

/// Records of so many bytes are read back from the log: a long read is fast, and a long copy is not.
const LONG_RECORD: usize = 16 << 10;

/// Builds the records of one append, as they will lie in their segments: each from a line on, the last of a transaction being its
/// commit.
#[derive(Default)]
pub(crate) struct Records {
    bytes: Vec<u8>,
    /// Start and end of each record in `bytes`.
    places: Vec<(usize, usize)>,
    /// Most bytes of a record.
    limit: usize,
}

impl Records {
    /// Begins anew with an empty record.
    pub fn begin(&mut self, limit: u64) {
        self.bytes.clear();
        self.places.clear();
        self.limit = limit as usize;
        self.begin_record();
    }

    fn begin_record(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(LINE_U64 as usize), 0);
        let start = self.bytes.len();
        self.bytes.resize(start + RecordHead::SIZE, 0);
        self.places.push((start, self.bytes.len()));
    }

    fn current(&mut self) -> &mut (usize, usize) {
        self.places.last_mut().expect("a record was begun")
    }

    /// Whether nothing but a head is there.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == RecordHead::SIZE
    }

    /// Makes room for an operation.
    fn operation(&mut self, bytes: usize) {
        let (start, end) = *self.current();
        if end - start + bytes > self.limit {
            self.begin_record();
        }
        self.current().1 += bytes;
    }

    /// Bytes that are in the view go to their place.
    pub fn store_from(&mut self, view: &View, offset: u64, bytes: u64) {
        let mut at = offset;
        while at < offset + bytes {
            let piece = (offset + bytes - at).min(MAX_STORE_BYTES as u64) as usize;
            self.operation(8 + piece.next_multiple_of(8));
            self.bytes.extend_from_slice(&(at << 16 | piece as u64).to_le_bytes());
            view.append(at, piece, &mut self.bytes);
            self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
            at += piece as u64;
        }
    }

    /// A change of the heap's tables.
    pub fn change(&mut self, change: Change) {
        self.operation(16);
        let (word, data) = match change {
            Change::Word(offset, word) => (Operation::Store(offset, &[0; 8]).word(), word),
            Change::Set(offset, mask) => (Operation::Set(offset, mask).word(), mask),
            Change::Clear(offset, mask) => (Operation::Clear(offset, mask).word(), mask),
        };
        self.bytes.extend_from_slice(&word.to_le_bytes());
        self.bytes.extend_from_slice(&data.to_le_bytes());
    }

    /// Ends the last record.
    pub fn finish(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(LINE_U64 as usize), 0);
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Bytes that each record takes in a segment.
    pub fn strides(&self) -> impl Iterator<Item = u64> + Clone + '_ {
        self.places.iter().map(|&(start, end)| RecordHead::stride((end - start) as u64))
    }
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
    /// In [`Lane::volatile`], from here on.
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

/// Segments that one thread (or one transaction in place) writes.
#[derive(Default)]
pub(crate) struct Lane {
    pub segments: Vec<Segment>,
    current: usize,
    cursor: u64,
    /// Records that are not home yet.
    written: Vec<Written>,
    /// The bytes of short ones once more: what was streamed is in no cache.
    volatile: Vec<u8>,
    /// Number of the first record of the transaction in place that is open here, 0 for none.
    pub open: u64,
    /// A transaction in place has the lane.
    pub busy: bool,
}

impl Lane {
    /// Whether records of these sizes fit, given that records up to `applied` are dead.
    pub fn fits(&self, strides: impl Iterator<Item = u64>, applied: u64) -> bool {
        let Some(segment) = self.segments.get(self.current) else { return false };
        let (mut cursor, mut end) = (self.cursor, segment.bytes);
        let mut next = 0;
        for stride in strides {
            if cursor + stride > end {
                let Some(found) = self.next_free(next, applied, stride) else { return false };
                next = found + 1;
                (cursor, end) = (SEGMENT_HEAD, self.segments[found].bytes);
            }
            cursor += stride;
        }
        true
    }

    /// The first segment from `from` on that holds nothing that counts, and a record of this size.
    fn next_free(&self, from: usize, applied: u64, stride: u64) -> Option<usize> {
        let free = |i: &usize| {
            let segment = &self.segments[*i];
            *i != self.current && segment.last <= applied && SEGMENT_HEAD + stride <= segment.bytes
        };
        (from..self.segments.len()).find(free)
    }

    /// Adds an empty segment.
    pub fn add(&mut self, segment: Segment) {
        self.segments.push(segment);
        if self.segments.len() == 1 {
            (self.current, self.cursor) = (0, SEGMENT_HEAD);
        }
    }

    /// Records up to `applied` are dead.
    pub fn truncated(&mut self, applied: u64) {
        self.written.clear();
        self.volatile.clear();
        self.volatile.shrink_to(KEPT_BYTES);
        if self.segments.get(self.current).is_some_and(|s| s.last <= applied) {
            self.cursor = SEGMENT_HEAD;
        }
    }

    /// Records of new bytes that are not home yet.
    pub fn written(&self) -> impl Iterator<Item = (u64, Source<'_>)> {
        self.written.iter().map(|w| {
            let source = match w.place {
                Place::Volatile(start) => Source::Bytes(&self.volatile[start..start + w.bytes]),
                Place::Log(offset) => Source::Log(offset, w.bytes),
            };
            (w.sequence, source)
        })
    }

    /// Takes away the segments behind the first `keep` that hold nothing that counts.
    pub fn shrink(&mut self, keep: usize, applied: u64, mut drop: impl FnMut(Segment)) {
        while self.segments.len() > keep && self.segments.last().is_some_and(|s| s.last <= applied) {
            if self.current == self.segments.len() - 1 {
                let Some(other) = self.segments[..self.current].iter().position(|s| s.last <= applied) else { return };
                (self.current, self.cursor) = (other, SEGMENT_HEAD);
            }
            drop(self.segments.pop().expect("there is more than one"));
        }
    }

    /// Writes records that fit. They count when a drain follows.
    #[cfg_attr(test, track_caller)]
    pub fn append(&mut self, backing: &Backing, records: &mut Records, stamp: Stamp, applied: u64) {
        let count = records.places.len();
        let mut next = 0;
        for index in 0..count {
            let (start, end) = records.places[index];
            let stride = RecordHead::stride((end - start) as u64);
            if self.cursor + stride > self.segments[self.current].bytes {
                self.current = self.next_free(next, applied, stride).expect("the caller asked whether the records fit");
                next = self.current + 1;
                self.cursor = SEGMENT_HEAD;
            }
            let segment = &mut self.segments[self.current];
            let last = index + 1 == count;
            let sequence = stamp.sequence + index as u64;
            let head = RecordHead {
                crc: 0,
                bytes: (end - start) as u32,
                nonce: segment.nonce,
                sequence,
                first: stamp.first,
                depends: stamp.depends,
                kind: if last || stamp.kind == Kind::Undo { stamp.kind } else { Kind::Part } as u32,
                parts: if last && stamp.kind == Kind::Commit { count as u32 - 1 } else { 0 },
            };
            let whole = &mut records.bytes[start..start + stride as usize];
            head.seal(whole);
            let offset = segment.offset + self.cursor;
            backing.stream(offset, whole);
            segment.last = sequence;
            self.cursor += stride;
            if stamp.kind != Kind::Undo {
                let short = whole.len() < LONG_RECORD;
                let place = if short { Place::Volatile(self.volatile.len()) } else { Place::Log(offset) };
                self.written.push(Written { sequence, place, bytes: whole.len() });
                self.volatile.extend_from_slice(if short { whole } else { &[] });
            }
        }
    }
}
