//! Reading a segment of a log in pieces: it is megabytes long, of which what counts is often the
//! smaller part, and a piece's memory is used again.

use nearpm_interface::record::RecordHead;

use crate::memory::Medium;

/// Bytes that are read at once.
const PIECE: usize = 256 << 10;

/// A segment's offset, bytes and nonce.
#[derive(Clone, Copy)]
pub(crate) struct SegmentAt {
    pub offset: u64,
    pub bytes: u64,
    pub nonce: u64,
}

/// The bytes of a segment.
pub(super) struct Pieces<'m> {
    medium: &'m Medium,
    segment: SegmentAt,
    /// Where in the segment the piece begins that was read.
    start: usize,
    piece: Vec<u8>,
}

impl<'m> Pieces<'m> {
    pub fn new(medium: &'m Medium, segment: SegmentAt) -> Pieces<'m> {
        Pieces { medium, segment, start: 0, piece: Vec::new() }
    }

    /// The whole record at a place.
    pub fn record(&mut self, at: usize) -> Option<(RecordHead, &[u8])> {
        let nonce = self.segment.nonce;
        let head = RecordHead::from_bytes(self.bytes(at, RecordHead::SIZE)?.first_chunk()?);
        // Nearly always: what lies behind the last record is of other times.
        if head.nonce != nonce {
            return None;
        }
        RecordHead::decode(self.bytes(at, head.bytes as usize)?, nonce)
    }

    /// Bytes from a place on; `None` where the segment ends before.
    fn bytes(&mut self, at: usize, count: usize) -> Option<&[u8]> {
        let all = self.segment.bytes as usize;
        let end = at.checked_add(count).filter(|&end| end <= all)?;
        if at < self.start || end > self.start + self.piece.len() {
            // All that is left for one that is longer: others may follow, and would be read anew
            // with each step.
            let most = if count > PIECE { all } else { all.min(at + PIECE) };
            self.piece.resize(most - at, 0);
            self.medium.load(self.segment.offset + at as u64, &mut self.piece);
            self.start = at;
        }
        self.piece.get(at - self.start..end - self.start)
    }
}

#[cfg(test)]
mod tests {
    use nearpm_interface::record::Kind;

    use super::*;
    use crate::memory::{Backing, VolatileMemory};

    const NONCE: u64 = 77;

    fn record(length: usize, sequence: u64) -> Vec<u8> {
        let mut record: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        let head = RecordHead {
            bytes: length as u32,
            nonce: NONCE,
            sequence,
            first: sequence,
            kind: Kind::Commit as u32,
            parts: 1,
            ..RecordHead::default()
        };
        head.seal(&mut record);
        record
    }

    #[test]
    fn records_are_found_wherever_pieces_end() {
        const BYTES: usize = 4 * PIECE;
        let mut bytes = vec![0; BYTES];
        let mut at = 64;
        // Short ones, one over the end of the first piece, one longer than a piece, and one that
        // the segment has no room for.
        let lengths = [64, 4096, PIECE - 4096, 320, PIECE + 640, 128];
        for (number, length) in (1..).zip(lengths) {
            bytes[at..at + length].copy_from_slice(&record(length, number));
            at += length;
        }
        bytes[BYTES - 64..].copy_from_slice(&record(128, 9)[..64]);
        let medium = Medium::new(Backing::Other(Box::new(VolatileMemory::new(8192 + BYTES))));
        medium.put(8192, &bytes);
        let segment = SegmentAt { offset: 8192, bytes: BYTES as u64, nonce: NONCE };
        let mut pieces = Pieces::new(&medium, segment);
        let mut found = 0;
        for at in (0..BYTES).step_by(64).chain([0, BYTES, BYTES + 64, usize::MAX]) {
            let expected = bytes.get(at..).and_then(|rest| RecordHead::decode(rest, NONCE));
            let record = pieces.record(at);
            assert!(record == expected, "at {at}");
            found += usize::from(record.is_some());
        }
        assert_eq!(found, lengths.len());
    }
}
