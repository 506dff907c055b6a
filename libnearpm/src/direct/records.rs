//! The records of one append, before they are in the log.

use std::ops::Range;

use nearpm_interface::geometry::LINE_U64;
use nearpm_interface::record::{MAX_STORE_BYTES, Operation, RecordHead, RecordSum};

use super::heap::Change;
use crate::error::Error;
use crate::heap::Form;
use crate::memory::{Backing, View};

/// Ranges of so many bytes get records of their own, whose bytes go from the view to the log in small pieces. In tests they are short, so
/// that small pools have some.
pub(crate) const LONG_RANGE: u64 = if cfg!(test) { 600 } else { 16 << 10 };

/// Bytes that are on their way from the view at once: they stay in the nearest cache.
pub(super) const PIECE: usize = 16 << 10;

/// Bytes of an operation that stores as much as one can.
const LONGEST_OPERATION: u64 = 8 + MAX_STORE_BYTES as u64;

/// What the memory of records is for.
const WHAT: &str = "the records of a transaction";

/// A record.
pub(crate) struct Record {
    /// Start and end in [`Records::bytes`]; of a long one there is the head alone.
    place: Range<usize>,
    /// The range of a long one.
    long: Option<Range<u64>>,
    /// Where it lies in the pool, once it was appended.
    pub at: u64,
}

impl Record {
    /// Bytes of head and operations.
    pub fn bytes(&self) -> u64 {
        let long = self.long.as_ref().map_or(0, |range| operation_bytes(range.end - range.start));
        self.place.len() as u64 + long
    }

    /// Bytes that it takes in a segment.
    pub fn stride(&self) -> u64 {
        RecordHead::stride(self.bytes())
    }

    /// The range that it holds, if it is long and holds nothing else.
    pub fn long(&self) -> Option<&Range<u64>> {
        self.long.as_ref()
    }
}

/// Bytes of the operations that store so many bytes.
fn operation_bytes(stored: u64) -> u64 {
    let (full, rest) = (stored / MAX_STORE_BYTES as u64, stored % MAX_STORE_BYTES as u64);
    full * LONGEST_OPERATION + if rest == 0 { 0 } else { 8 + rest.next_multiple_of(8) }
}

/// Builds the records of one append, as they will lie in their segments: each from a line on, the last of a transaction being its
/// commit.
#[derive(Default)]
pub(crate) struct Records {
    bytes: Vec<u8>,
    records: Vec<Record>,
    /// Most bytes of a record.
    limit: u64,
    /// A piece of a long one on its way.
    piece: Vec<u8>,
}

impl Records {
    /// Begins anew with an empty record.
    pub fn begin(&mut self, limit: u64) {
        self.bytes.clear();
        self.records.clear();
        self.limit = limit;
        self.begin_record(None);
    }

    /// Makes room, so that operations need no more memory: ranges that they store, and words of tables that they change.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub fn try_reserve(
        &mut self,
        ranges: impl Iterator<Item = Range<u64>>,
        words: usize,
        limit: u64,
    ) -> Result<(), Error> {
        let (mut bytes, mut records) = (16 * words as u64, 2);
        for range in ranges {
            let length = range.end - range.start;
            if length >= LONG_RANGE {
                records += length / (limit / 2) + 2;
            } else {
                bytes += operation_bytes(length);
            }
        }
        // Each record that is begun because the last one was full leaves less than an operation of room there.
        records += bytes / limit.saturating_sub(LONGEST_OPERATION).max(1);
        let heads = records * 2 * RecordHead::SIZE as u64;
        let no_memory = || Error::no_memory(WHAT);
        self.bytes.try_reserve(((bytes + heads) as usize).saturating_sub(self.bytes.len())).map_err(no_memory())?;
        self.records.try_reserve((records as usize).saturating_sub(self.records.len())).map_err(no_memory())
    }

    fn begin_record(&mut self, long: Option<Range<u64>>) {
        self.bytes.resize(self.bytes.len().next_multiple_of(LINE_U64 as usize), 0);
        let start = self.bytes.len();
        self.bytes.resize(start + RecordHead::SIZE, 0);
        self.records.push(Record { place: start..self.bytes.len(), long, at: 0 });
    }

    fn current(&mut self) -> &mut Record {
        self.records.last_mut().expect("a record was begun")
    }

    /// Takes the current record away if it holds nothing.
    fn drop_empty(&mut self) {
        if self.current().long.is_none() && self.current().place.len() == RecordHead::SIZE {
            let record = self.records.pop().expect("there is a current one");
            self.bytes.truncate(record.place.start);
        }
    }

    /// Whether nothing but a head is there.
    pub fn is_empty(&self) -> bool {
        matches!(&self.records[..], [only] if only.long.is_none() && only.place.len() == RecordHead::SIZE)
    }

    /// Makes room for an operation.
    fn operation(&mut self, bytes: usize) {
        if self.current().bytes() + bytes as u64 > self.limit || self.current().long.is_some() {
            self.begin_record(None);
        }
        self.current().place.end += bytes;
    }

    /// Bytes that are in the view go to their place. Those of a long range are looked at when the records are appended.
    pub fn store_from(&mut self, view: &View, offset: u64, bytes: u64) {
        if bytes >= LONG_RANGE {
            return self.store_long(offset..offset + bytes);
        }
        let mut at = offset;
        while at < offset + bytes {
            let piece = (offset + bytes - at).min(MAX_STORE_BYTES as u64) as usize;
            self.operation(8 + piece.next_multiple_of(8));
            store_operation(view, at, piece, &mut self.bytes);
            at += piece as u64;
        }
    }

    fn store_long(&mut self, range: Range<u64>) {
        self.drop_empty();
        let most = (self.limit - RecordHead::SIZE as u64) / LONGEST_OPERATION * MAX_STORE_BYTES as u64;
        assert!(most > 0, "a record has room for an operation");
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min(at + most);
            self.begin_record(Some(at..end));
            at = end;
        }
    }

    /// A change of the heap's tables.
    pub fn change(&mut self, change: Change) {
        self.operation(16);
        let (word, data) = match change {
            Change::Word(offset, word) => (Operation::Store(offset, &[0; 8]).word(), word),
            Change::Set(offset, mask, Form::Plain) => (Operation::Set(offset, mask).word(), mask),
            Change::Clear(offset, mask, Form::Plain) => (Operation::Clear(offset, mask).word(), mask),
            Change::Set(offset, mask, Form::Sealed) => (Operation::SetSealed(offset, mask).word(), mask),
            Change::Clear(offset, mask, Form::Sealed) => (Operation::ClearSealed(offset, mask).word(), mask),
        };
        self.bytes.extend_from_slice(&word.to_le_bytes());
        self.bytes.extend_from_slice(&data.to_le_bytes());
    }

    /// Ends the last record.
    pub fn finish(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(LINE_U64 as usize), 0);
    }

    /// The records.
    pub fn iter(&self) -> impl Iterator<Item = &Record> + Clone {
        self.records.iter()
    }

    /// Writes a record to its place in the pool. Gives the bytes of one that is not long.
    #[cfg_attr(test, track_caller)]
    pub fn write(&mut self, index: usize, head: RecordHead, backing: &Backing, view: &View, at: u64) -> Option<&[u8]> {
        let record = &mut self.records[index];
        record.at = at;
        if let Some(range) = record.long.clone() {
            stream_long(head, &range, backing, view, at, &mut self.piece);
            return None;
        }
        let start = record.place.start;
        let whole = &mut self.bytes[start..start + record.stride() as usize];
        head.seal(whole);
        backing.stream(at, whole);
        Some(whole)
    }
}

/// Appends the operation that stores bytes of the view.
fn store_operation(view: &View, at: u64, bytes: usize, to: &mut Vec<u8>) {
    to.extend_from_slice(&(at << 16 | bytes as u64).to_le_bytes());
    view.append(at, bytes, to);
    to.resize(to.len().next_multiple_of(8), 0);
}

/// Writes a long record. Its first line goes last, because it holds the checksum.
#[cfg_attr(test, track_caller)]
fn stream_long(head: RecordHead, range: &Range<u64>, backing: &Backing, view: &View, at: u64, piece: &mut Vec<u8>) {
    const LINE: usize = LINE_U64 as usize;
    let mut first = None;
    let mut sum = RecordSum::default();
    let (mut to, mut from) = (at, range.start);
    piece.clear();
    piece.extend_from_slice(&head.to_bytes());
    while from < range.end {
        let bytes = (range.end - from).min(MAX_STORE_BYTES as u64) as usize;
        store_operation(view, from, bytes, piece);
        from += bytes as u64;
        let last = from == range.end;
        if !last && piece.len() < PIECE {
            continue;
        }
        let summed = if last { piece.len() } else { piece.len() / LINE * LINE };
        sum.add(&piece[..summed]);
        if last {
            piece.resize(piece.len().next_multiple_of(LINE), 0);
        }
        let whole = piece.len() / LINE * LINE;
        let held = if first.is_none() { LINE } else { 0 };
        first.get_or_insert_with(|| piece[..LINE].to_vec());
        backing.stream(to + held as u64, &piece[held..whole]);
        to += whole as u64;
        piece.drain(..whole);
    }
    let mut first = first.expect("a long range has bytes");
    sum.put(&mut first);
    backing.stream(at, &first);
}
