//! The log of direct pools: packed records in segments that lie in the heap.
//!
//! A **segment** is a chunk (or several) whose [`crate::media::ChunkWord`] says `Log`, so that
//! recovery finds every segment in the table of chunks. Its first line is a [`SegmentHead`];
//! records follow, each from the start of a line, without gaps. A **record** is a [`RecordHead`],
//! operations, and zeros up to the end of its line. It certifies itself: its checksum covers the
//! nonce of its segment and all its bytes, so that one fence makes it count. Records of a pool are
//! numbered; those up to the pool's *applied word* are dead. A reader takes the records of a
//! segment in order and stops at the first that is not whole, or not younger than the one before.
//!
//! | kind | says |
//! |---|---|
//! | [`Kind::Undo`] | old bytes: stored again, newest record first, unless a commit of the same transaction follows in any segment |
//! | [`Kind::Part`] | new bytes of a transaction whose commit follows |
//! | [`Kind::Commit`] | the rest of the transaction, and that it happened |
//!
//! From [`HOME_RECORD_VERSION`] on a record may say of bytes that they lie at home already, with
//! their checksum ([`Operation::Home`]): it counts only if they match, unless all records up to its
//! number are known to have been durable. That is said by later records ([`Operation::Through`]),
//! by the *confirmed word* of the pool ([`POOL_CONFIRMED`]) and by the applied word.
//!
//! An **operation** is a word ([`Operation::word`]) and its data, padded to eight bytes.

use crate::geometry::LINE_U64;
use crate::layout::layout;
use crate::seal;

/// Magic of a [`SegmentHead`]: "NearSegm".
pub const SEGMENT_MAGIC: u64 = u64::from_le_bytes(*b"NearSegm");
/// Version of segments and records.
pub const RECORD_VERSION: u32 = 1;
/// Version of segments whose records may have [`Operation::Home`] and [`Operation::Through`].
pub const HOME_RECORD_VERSION: u32 = 2;
/// Offset in the pool of the applied word: 0 where the pool has no segments, else
/// [`crate::seal::seal_word`] of a record's number. Every record up to that number is home, and
/// dead.
pub const POOL_APPLIED: u64 = 2 * LINE_U64;
/// Offset in the pool of the confirmed word: 0 for none, else [`crate::seal::seal_word`] of a
/// number. Every record up to that number that is in the log was durable once, with what it says
/// lies at home.
pub const POOL_CONFIRMED: u64 = POOL_APPLIED + 8;
/// Offset in the pool of a word that says in which mode the last program would have been the faster
/// ([`crate::seal::seal_word`]: 1 a working copy, 2 in place); anything else says nothing, and
/// nothing but speed depends on it.
pub const POOL_USE: u64 = POOL_CONFIRMED + 8;
const _: () = assert!(POOL_APPLIED > crate::media::POOL_OPENED && POOL_APPLIED + LINE_U64 <= crate::media::PAGE_BYTES);

layout! {
    /// First line of a log segment, sealed with no body.
    SegmentHead, 64 {
        /// [`SEGMENT_MAGIC`].
        0 magic: u64,
        /// [`RECORD_VERSION`], [`HOME_RECORD_VERSION`].
        8 version: u32,
        /// Pool identifier.
        12 pool: u32,
        /// Drawn at random for each segment that is made: records of earlier segments in the same
        /// place do not count.
        16 nonce: u64,
        /// Bytes of the segment, this line included.
        24 bytes: u64,
        /// Reserved zeros.
        32 reserved: [u8; 28],
        /// Checksum.
        60 crc: u32,
    }
}

layout! {
    /// Head of a record.
    RecordHead, 48 {
        /// CRC-32C of everything behind it, up to [`RecordHead::bytes`].
        0 crc: u32,
        /// Bytes of head and operations, a multiple of 8.
        4 bytes: u32,
        /// The segment's nonce.
        8 nonce: u64,
        /// Number of the record; rises over the whole pool, from 1.
        16 sequence: u64,
        /// Number of the first record of the transaction.
        24 first: u64,
        /// The record counts only if every record up to this number is there, too; 0 for none.
        32 depends: u64,
        /// Code of [`Kind`].
        40 kind: u32,
        /// Parts of the transaction before this record, for a commit.
        44 parts: u32,
    }
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Kind {
    /// Old bytes of a range, durable before the program stores there.
    Undo = 1,
    /// New bytes, without the end of the transaction.
    Part = 2,
    /// New bytes and the end of the transaction.
    Commit = 3,
}

impl Kind {
    /// The kind of a code.
    pub fn from_code(code: u32) -> Option<Kind> {
        match code {
            1 => Some(Kind::Undo),
            2 => Some(Kind::Part),
            3 => Some(Kind::Commit),
            _ => None,
        }
    }
}

/// Most bytes that one [`Operation::Store`] carries.
pub const MAX_STORE_BYTES: usize = (1 << 12) - 8;
/// Offsets that an operation can name end here.
pub const MAX_OFFSET: u64 = 1 << 48;

/// One change of the pool, as a record holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// These bytes go to this offset.
    Store(u64, &'a [u8]),
    /// These bits of the word at this offset become 1.
    Set(u64, u64),
    /// These bits of the word at this offset become 0.
    Clear(u64, u64),
    /// These bits of the sealed word at this offset become 1 ([`crate::seal::seal_bits`]).
    SetSealed(u64, u64),
    /// These bits of the sealed word at this offset become 0.
    ClearSealed(u64, u64),
    /// From this offset on so many bytes lie at home already; this is their CRC-32C.
    Home(u64, u32, u32),
    /// All records up to this number were durable when this one was made.
    Through(u64),
}

const SET: u64 = 1 << 12;
const CLEAR: u64 = 2 << 12;
const SET_SEALED: u64 = 3 << 12;
const CLEAR_SEALED: u64 = 4 << 12;
const HOME: u64 = 5 << 12;
const THROUGH: u64 = 6 << 12;

impl<'a> Operation<'a> {
    /// The word in front of the data: bits 63:16 the offset, bits 15:12 what it is, bits 11:0 the
    /// bytes of data.
    pub fn word(&self) -> u64 {
        match *self {
            Operation::Store(offset, data) => offset << 16 | data.len() as u64,
            Operation::Set(offset, _) => offset << 16 | SET | 8,
            Operation::Clear(offset, _) => offset << 16 | CLEAR | 8,
            Operation::SetSealed(offset, _) => offset << 16 | SET_SEALED | 8,
            Operation::ClearSealed(offset, _) => offset << 16 | CLEAR_SEALED | 8,
            Operation::Home(offset, ..) => offset << 16 | HOME | 8,
            Operation::Through(_) => THROUGH | 8,
        }
    }

    /// Bytes that the operation takes in a record.
    pub fn bytes(&self) -> usize {
        match *self {
            Operation::Store(_, data) => 8 + data.len().next_multiple_of(8),
            _ => 16,
        }
    }

    /// The word of data behind [`Operation::word`]; 0 for bytes.
    pub fn data(&self) -> u64 {
        match *self {
            Operation::Store(..) => 0,
            Operation::Set(_, mask)
            | Operation::Clear(_, mask)
            | Operation::SetSealed(_, mask)
            | Operation::ClearSealed(_, mask) => mask,
            Operation::Home(_, bytes, sum) => u64::from(sum) << 32 | u64::from(bytes),
            Operation::Through(number) => number,
        }
    }

    /// The bytes of the pool that it speaks of: offset and number.
    pub fn range(&self) -> (u64, u64) {
        match *self {
            Operation::Store(offset, data) => (offset, data.len() as u64),
            Operation::Set(offset, _)
            | Operation::Clear(offset, _)
            | Operation::SetSealed(offset, _)
            | Operation::ClearSealed(offset, _) => (offset, 8),
            Operation::Home(offset, bytes, _) => (offset, bytes.into()),
            Operation::Through(_) => (0, 0),
        }
    }

    /// The operation at the start of `body`, and what follows it; `None` where there is none that
    /// is valid.
    // Who asks distinguishes them at once: what it gives need not be put together.
    #[inline(always)]
    pub fn decode(body: &'a [u8]) -> Option<(Operation<'a>, &'a [u8])> {
        let (word, rest) = body.split_first_chunk::<8>()?;
        let word = u64::from_le_bytes(*word);
        let (offset, length) = (word >> 16, (word & 0xfff) as usize);
        let padded = rest.get(..length.next_multiple_of(8))?;
        if word & 0xf000 == 0 {
            return (length > 0).then(|| (Operation::Store(offset, &padded[..length]), &rest[padded.len()..]));
        }
        let mask = || Some(u64::from_le_bytes(padded.try_into().ok()?));
        let operation = match word & 0xf000 {
            SET => Operation::Set(offset, mask()?),
            CLEAR => Operation::Clear(offset, mask()?),
            SET_SEALED => Operation::SetSealed(offset, mask()?),
            CLEAR_SEALED => Operation::ClearSealed(offset, mask()?),
            _ => return Self::decode_of_files(word, rest),
        };
        Some((operation, &rest[padded.len()..]))
    }

    /// Operations that pools on files alone have, few a record.
    #[cold]
    fn decode_of_files(word: u64, rest: &'a [u8]) -> Option<(Operation<'a>, &'a [u8])> {
        let (data, rest) = rest.split_first_chunk::<8>()?;
        let data = u64::from_le_bytes(*data);
        let operation = match word & 0xf000 {
            HOME => Operation::Home(word >> 16, data as u32, (data >> 32) as u32),
            THROUGH => Operation::Through(data),
            _ => return None,
        };
        // As for all but stores, the length is that of a word.
        (word & 0xfff == 8).then_some((operation, rest))
    }
}

/// Checksums of two parts one after the other: that of the first, multiplied by a power of x in the
/// field of CRC-32C, and that of the second. By squaring it takes as many steps as the length has
/// bits, as zlib's `crc32_combine` does since 1.2.12.
mod joined {
    /// Its polynomial, lowest coefficient in the highest bit.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    const ONE: u32 = 1 << 31;

    const fn product(a: u32, mut b: u32) -> u32 {
        let (mut sum, mut bit) = (0, ONE);
        while bit != 0 {
            if a & bit != 0 {
                sum ^= b;
            }
            b = b >> 1 ^ if b & 1 == 0 { 0 } else { POLYNOMIAL };
            bit >>= 1;
        }
        sum
    }

    /// x to the power of 8, 16, 32 and so on: what so many bytes shift by.
    const POWERS: [u32; 32] = {
        let mut powers = [1 << 23; 32];
        let mut at = 1;
        while at < 32 {
            powers[at] = product(powers[at - 1], powers[at - 1]);
            at += 1;
        }
        powers
    };

    /// What a checksum adds to that of something with so many bytes behind it, fewer than 4 Gi.
    pub fn shifted(sum: u32, bytes: u64) -> u32 {
        let set = (0..32).filter(|bit| bytes >> bit & 1 == 1);
        set.fold(sum, |sum, bit| product(POWERS[bit], sum))
    }
}

/// The checksum of a record that is seen in pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordSum {
    crc: u32,
    begun: bool,
}

impl RecordSum {
    /// That of operations alone: what is added first is no head.
    pub fn of_operations() -> RecordSum {
        RecordSum { crc: 0, begun: true }
    }

    /// Adds the next bytes of the record. The first ones are the head, at least the field of the
    /// checksum, which does not count.
    pub fn add(&mut self, piece: &[u8]) {
        let skipped = if self.begun { 0 } else { 4 };
        self.crc = crc32c::crc32c_append(self.crc, &piece[skipped..]);
        self.begun = true;
    }

    /// Writes the checksum into the first bytes of the record.
    pub fn put(&self, record: &mut [u8]) {
        record[..4].copy_from_slice(&self.crc.to_le_bytes());
    }
}

impl RecordHead {
    /// Bytes that a record of `bytes` bytes takes in its segment.
    pub fn stride(bytes: u64) -> u64 {
        bytes.next_multiple_of(LINE_U64)
    }

    /// Writes the head with its checksum into the first bytes of a whole record.
    ///
    /// # Panics
    /// If `record` is shorter than a head.
    pub fn seal(&self, record: &mut [u8]) {
        record[..Self::SIZE].copy_from_slice(&self.to_bytes());
        let mut sum = RecordSum::default();
        sum.add(&record[..self.bytes as usize]);
        sum.put(record);
    }

    /// The head with the checksum of a record, given that of the operations behind it alone.
    pub fn over(&self, operations: RecordSum) -> [u8; Self::SIZE] {
        let mut head = self.to_bytes();
        let bytes = u64::from(self.bytes) - Self::SIZE as u64;
        let crc = joined::shifted(crc32c::crc32c(&head[4..]), bytes) ^ operations.crc;
        RecordSum { crc, begun: true }.put(&mut head);
        head
    }

    /// The record at the start of `bytes`, if it is whole and of the segment with this nonce: head
    /// and operations.
    pub fn decode(bytes: &[u8], nonce: u64) -> Option<(RecordHead, &[u8])> {
        let head = RecordHead::from_bytes(bytes.first_chunk()?);
        let length = head.bytes as usize;
        let plausible = head.nonce == nonce
            && length >= Self::SIZE
            && length.is_multiple_of(8)
            && seal::is_identifier(head.sequence);
        let record = bytes.get(..length).filter(|_| plausible)?;
        Kind::from_code(head.kind)?;
        (crc32c::crc32c(&record[4..]) == head.crc).then(|| (head, &record[Self::SIZE..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sums_of_parts_join() {
        let bytes: Vec<u8> = (0..70_000u32).map(|at| (at.wrapping_mul(at) >> 5) as u8).collect();
        for cut in [0, 1, 7, 64, 4096, 69_999, 70_000] {
            let (first, second) = bytes.split_at(cut);
            let sum = joined::shifted(crc32c::crc32c(first), second.len() as u64) ^ crc32c::crc32c(second);
            assert_eq!(sum, crc32c::crc32c(&bytes), "cut at {cut}");
        }
    }

    #[test]
    fn a_head_that_comes_later_seals_what_is_behind_it() {
        let whole = record(&[Operation::Store(4096, &[7; 1000]), Operation::Set(64, 3)], 5);
        let (head, operations) = RecordHead::decode(&whole, 5).expect("it is whole");
        let mut sum = RecordSum::of_operations();
        operations.chunks(100).for_each(|piece| sum.add(piece));
        assert_eq!(head.over(sum), whole[..RecordHead::SIZE]);
    }

    fn record(operations: &[Operation<'_>], nonce: u64) -> Vec<u8> {
        let mut record = vec![0; RecordHead::SIZE];
        for operation in operations {
            record.extend_from_slice(&operation.word().to_le_bytes());
            match operation {
                Operation::Store(_, data) => record.extend_from_slice(data),
                other => record.extend_from_slice(&other.data().to_le_bytes()),
            }
            record.resize(record.len().next_multiple_of(8), 0);
        }
        let head = RecordHead {
            bytes: record.len() as u32,
            nonce,
            sequence: 9,
            first: 8,
            kind: Kind::Commit as u32,
            parts: 1,
            ..RecordHead::default()
        };
        head.seal(&mut record);
        record
    }

    proptest! {
        #[test]
        fn operations_come_back_and_a_flipped_bit_does_not(
            offset in 0..MAX_OFFSET, data in prop::collection::vec(any::<u8>(), 1..300), mask: u64, bit: prop::sample::Index,
        ) {
            let operations = [
                Operation::Store(offset, &data),
                Operation::Set(64, mask),
                Operation::Clear(72, mask),
                Operation::SetSealed(80, mask),
                Operation::ClearSealed(88, mask),
                Operation::Home(offset, mask as u32, (mask >> 32) as u32),
                Operation::Through(mask),
            ];
            let mut bytes = record(&operations, 77);
            prop_assert_eq!(bytes.len(), RecordHead::SIZE + operations.iter().map(Operation::bytes).sum::<usize>());
            let (head, mut body) = RecordHead::decode(&bytes, 77).unwrap();
            prop_assert_eq!((head.sequence, head.first, head.parts), (9, 8, 1));
            for operation in operations {
                let (found, rest) = Operation::decode(body).unwrap();
                prop_assert_eq!(found, operation);
                body = rest;
            }
            prop_assert!(body.is_empty());
            prop_assert!(RecordHead::decode(&bytes, 78).is_none(), "records of another segment do not count");
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(RecordHead::decode(&bytes, 77).is_none());
        }
    }
}
