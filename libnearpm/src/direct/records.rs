//! The records of one append, before they are in the log.

use std::collections::TryReserveError;
use std::ops::Range;

use nearpm_interface::geometry::LINE;
use nearpm_interface::record::{MAX_STORE_BYTES, Operation, RecordHead, RecordSum};

use crate::heap::Form;
use crate::heap::index::Change;
use crate::memory::{Backing, View};

/// Ranges of so many bytes get records of their own, whose bytes go from the view to the log in
/// small pieces. In tests they are short, so that small pools have some.
pub(crate) const LONG_RANGE: u64 = if cfg!(test) { 600 } else { 16 << 10 };

/// Bytes that are on their way from the view at once: they stay in the nearest cache.
pub(super) const PIECE: usize = 16 << 10;

/// Bytes of an operation that stores as much as one can.
const LONGEST_OPERATION: u64 = 8 + MAX_STORE_BYTES as u64;

/// Bytes that lie at home, in a record: their offset, their number, their checksum.
pub(super) type HomeSum = (u64, u32, u32);

/// A change of the heap's tables that is in a record: the word in front of its data, 0 for none,
/// and where the data lie.
type Newest = (u64, usize);

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

/// Builds the records of one append, as they will lie in their segments: each from a line on, the
/// last of a transaction being its commit. Whatever is added takes its memory first: an error
/// leaves what was built before.
#[derive(Default)]
pub(crate) struct Records {
    bytes: Vec<u8>,
    records: Vec<Record>,
    /// Most bytes of a record.
    limit: u64,
    /// A piece of a long one on its way.
    piece: Vec<u8>,
    /// Where the newest changes of the heap's tables lie in the current record: of a word, and of
    /// bits.
    newest: [Newest; 2],
    /// They say that records up to this number are durable.
    pub says: u64,
    /// They speak of bytes at home.
    pub names_home: bool,
    /// There is one, and a drain that is a call follows it at once: it may be
    /// [appended](crate::memory::Memory::append).
    pub is_drained: bool,
}

impl Records {
    /// Begins anew with an empty record.
    pub fn begin(&mut self, limit: u64) -> Result<(), TryReserveError> {
        self.bytes.clear();
        self.records.clear();
        (self.says, self.names_home, self.is_drained) = (0, false, false);
        self.limit = limit;
        self.begin_record(None)
    }

    /// Makes room for so many bytes, and for zeros up to the end of their line.
    #[inline]
    fn make_room(&mut self, bytes: usize) -> Result<(), TryReserveError> {
        self.bytes.try_reserve(bytes + LINE)
    }

    #[cold]
    fn next_record(&mut self, long: Option<Range<u64>>) -> Result<(), TryReserveError> {
        self.begin_record(long)
    }

    #[inline(always)]
    fn begin_record(&mut self, long: Option<Range<u64>>) -> Result<(), TryReserveError> {
        self.records.try_reserve(1)?;
        self.make_room(LINE + RecordHead::SIZE)?;
        if !self.bytes.is_empty() {
            self.finish();
        }
        self.newest = [(0, 0); 2];
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; RecordHead::SIZE]);
        self.records.push(Record { place: start..self.bytes.len(), long, at: 0 });
        Ok(())
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
    #[inline]
    fn operation(&mut self, bytes: usize) -> Result<(), TryReserveError> {
        let current = self.current();
        if current.long.is_some() || (current.place.len() + bytes) as u64 > self.limit {
            self.next_record(None)?;
        }
        self.make_room(bytes)?;
        self.current().place.end += bytes;
        Ok(())
    }

    /// Bytes that are in the view go to their place. Those of a long range are looked at when the
    /// records are appended.
    #[inline]
    pub fn store_from(&mut self, view: &View, offset: u64, bytes: u64) -> Result<(), TryReserveError> {
        if bytes >= LONG_RANGE {
            return self.store_long(offset..offset + bytes);
        }
        let mut at = offset;
        while at < offset + bytes {
            let piece = (offset + bytes - at).min(MAX_STORE_BYTES as u64) as usize;
            self.operation(8 + piece.next_multiple_of(8))?;
            store_operation(view, at, piece, &mut self.bytes);
            at += piece as u64;
        }
        Ok(())
    }

    #[cold]
    fn store_long(&mut self, range: Range<u64>) -> Result<(), TryReserveError> {
        // Of the pieces that are on their way when the record is written.
        self.piece.clear();
        self.piece.try_reserve(PIECE + LONGEST_OPERATION as usize + LINE)?;
        self.drop_empty();
        let most = (self.limit - RecordHead::SIZE as u64) / LONGEST_OPERATION * MAX_STORE_BYTES as u64;
        assert!(most > 0, "a record has room for an operation");
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min(at + most);
            self.next_record(Some(at..end))?;
            at = end;
        }
        Ok(())
    }

    /// Bytes lie at home already.
    pub fn home(&mut self, (offset, bytes, sum): HomeSum) -> Result<(), TryReserveError> {
        self.names_home = true;
        self.word(Operation::Home(offset, bytes, sum))
    }

    /// Records up to a number are durable.
    pub fn through(&mut self, number: u64) -> Result<(), TryReserveError> {
        self.says = number;
        self.word(Operation::Through(number))
    }

    fn word(&mut self, operation: Operation<'_>) -> Result<(), TryReserveError> {
        self.operation(16)?;
        let (word, data) = (operation.word(), operation.data());
        self.bytes.extend_from_slice((u128::from(data) << 64 | u128::from(word)).to_le_bytes().as_slice());
        Ok(())
    }

    /// A change of the heap's tables. Objects that lie side by side change the same words: one
    /// operation changes all bits of one.
    #[inline]
    pub fn change(&mut self, change: Change) -> Result<(), TryReserveError> {
        let (kind, word, data) = match change {
            Change::Word(offset, word) => (0, Operation::Store(offset, &[0; 8]).word(), word),
            Change::Set(offset, mask, Form::Plain) => (1, Operation::Set(offset, mask).word(), mask),
            Change::Clear(offset, mask, Form::Plain) => (1, Operation::Clear(offset, mask).word(), mask),
            Change::Set(offset, mask, Form::Sealed) => (1, Operation::SetSealed(offset, mask).word(), mask),
            Change::Clear(offset, mask, Form::Sealed) => (1, Operation::ClearSealed(offset, mask).word(), mask),
        };
        let (newest, at) = self.newest[kind];
        if newest == word {
            let place = self.bytes[at..].first_chunk_mut().expect("it was put there");
            let before = if kind == 0 { 0 } else { u64::from_le_bytes(*place) };
            *place = (before | data).to_le_bytes();
            return Ok(());
        }
        self.operation(16)?;
        self.newest[kind] = (word, self.bytes.len() + 8);
        self.bytes.extend_from_slice((u128::from(data) << 64 | u128::from(word)).to_le_bytes().as_slice());
        Ok(())
    }

    /// Ends the last record.
    pub fn finish(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(LINE), 0);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether some of them are long.
    #[inline]
    pub fn has_long(&self) -> bool {
        self.records.iter().any(|record| record.long.is_some())
    }

    /// Bytes of all but the long ones, and of the heads of those.
    pub fn short_bytes(&self) -> usize {
        self.bytes.len()
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
            let (mut first, sum) = stream_operations(Some(head), &range, backing, view, at, &mut self.piece);
            sum.put(&mut first);
            if view.is_whole() && backing.is_whole() {
                backing.stream(at, &first);
            }
            return None;
        }
        let start = record.place.start;
        let whole = &mut self.bytes[start..start + record.stride() as usize];
        head.seal(whole);
        if self.is_drained {
            backing.append(at, whole);
        } else {
            backing.stream(at, whole);
        }
        Some(whole)
    }
}

impl Records {
    /// Writes what is behind the head of a long record to its place in the pool, and gives its
    /// checksum. Nothing counts of it before a head comes there ([`RecordHead::over`]).
    #[cfg_attr(test, track_caller)]
    pub fn write_unsealed(&mut self, index: usize, backing: &Backing, view: &View, at: u64) -> RecordSum {
        let range = self.records[index].long.clone().expect("it is a long one");
        let (first, sum) = stream_operations(None, &range, backing, view, at, &mut self.piece);
        backing.stream(at, &first);
        sum
    }
}

/// Appends the operation that stores bytes of the view.
fn store_operation(view: &View, at: u64, bytes: usize, to: &mut Vec<u8>) {
    to.extend_from_slice(&(at << 16 | bytes as u64).to_le_bytes());
    view.append(at, bytes, to);
    if !bytes.is_multiple_of(8) {
        to.resize(to.len() + bytes.next_multiple_of(8) - bytes, 0);
    }
}

/// Writes a long record but for its first line, which goes last, because it holds the checksum: not
/// at all where the view has lost something, so that zeros in the place of it do not count. Gives
/// that line, and the checksum: of all of the record, or without a head of its operations alone.
#[cfg_attr(test, track_caller)]
fn stream_operations(
    head: Option<RecordHead>,
    range: &Range<u64>,
    backing: &Backing,
    view: &View,
    at: u64,
    piece: &mut Vec<u8>,
) -> ([u8; LINE], RecordSum) {
    let mut first = None;
    let (mut sum, mut left_out) = match head {
        Some(_) => (RecordSum::default(), 0),
        None => (RecordSum::of_operations(), RecordHead::SIZE),
    };
    let (mut to, mut from) = (at, range.start);
    piece.clear();
    piece.extend_from_slice(&head.map_or([0; RecordHead::SIZE], |head| head.to_bytes()));
    while from < range.end {
        let bytes = (range.end - from).min(MAX_STORE_BYTES as u64) as usize;
        store_operation(view, from, bytes, piece);
        from += bytes as u64;
        let last = from == range.end;
        if !last && piece.len() < PIECE {
            continue;
        }
        let summed = if last { piece.len() } else { piece.len() / LINE * LINE };
        sum.add(&piece[std::mem::take(&mut left_out)..summed]);
        if last {
            piece.resize(piece.len().next_multiple_of(LINE), 0);
        }
        let whole = piece.len() / LINE * LINE;
        let held = if first.is_none() { LINE } else { 0 };
        first.get_or_insert_with(|| *piece.first_chunk::<LINE>().expect("a record has a head"));
        backing.stream(to + held as u64, &piece[held..whole]);
        to += whole as u64;
        piece.drain(..whole);
    }
    (first.expect("a long range has bytes"), sum)
}
