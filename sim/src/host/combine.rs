//! A core's write-combining buffers.
//!
//! A buffer gathers stores to one line. What it holds leaves as one packet when it is full, and
//! otherwise as packets of aligned eight bytes (SDM, volume 3, "Buffering of Write Combining Memory
//! Locations"). Nothing orders buffers, or the pieces of one, until a fence. A line stored by
//! MOVDIR64B lies in a buffer of its own and leaves in one piece.

use nearpm_interface::geometry::{LINE, LINE_U64};

use super::Region;
use super::ranges::{mask, split};
use crate::rng::Rng;

/// Part of a line on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub region: Region,
    /// Offset of the line in its BAR.
    pub line: u64,
    pub data: [u8; LINE],
    /// One bit per byte.
    pub strobes: u64,
}

/// The parts of a store as pieces of lines.
pub(super) fn pieces(region: Region, offset: u64, data: &[u8], size: u64) -> impl Iterator<Item = Piece> {
    split(offset, data.len(), size).map(move |(start, range, part)| {
        let line = start / LINE_U64 * LINE_U64;
        let lane = (start - line) as usize + range.start;
        let mut bytes = [0; LINE];
        bytes[lane..lane + part.len()].copy_from_slice(&data[part.clone()]);
        Piece { region, line, data: bytes, strobes: mask(lane, part.len()) }
    })
}

struct Buffer {
    piece: Piece,
    /// Never merged with and never split.
    whole: bool,
}

/// The buffers of one core, oldest first.
pub struct Combiner {
    buffers: Vec<Buffer>,
    capacity: usize,
}

impl Combiner {
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a core has write-combining buffers");
        Combiner { buffers: Vec::with_capacity(capacity), capacity }
    }

    pub fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }

    pub fn len(&self) -> usize {
        self.buffers.len()
    }

    /// Whether a line has bytes here.
    pub fn holds(&self, region: Region, line: u64) -> Option<usize> {
        self.buffers.iter().position(|b| b.piece.region == region && b.piece.line == line)
    }

    /// Whether a new buffer can be opened.
    pub fn is_full(&self) -> bool {
        self.buffers.len() == self.capacity
    }

    /// Merges a store into the buffer of its line, or opens one. Gives the buffer's number.
    ///
    /// # Panics
    /// If a buffer must be opened and none is free.
    pub fn store(&mut self, piece: Piece) -> usize {
        let open = |b: &Buffer| !b.whole && b.piece.region == piece.region && b.piece.line == piece.line;
        if let Some(i) = self.buffers.iter().position(open) {
            let held = &mut self.buffers[i].piece;
            for byte in (0..LINE).filter(|byte| piece.strobes >> byte & 1 == 1) {
                held.data[byte] = piece.data[byte];
            }
            held.strobes |= piece.strobes;
            return i;
        }
        self.open(piece, false)
    }

    /// Opens a buffer for a line that leaves in one piece.
    pub fn store_whole(&mut self, piece: Piece) -> usize {
        self.open(piece, true)
    }

    fn open(&mut self, piece: Piece, whole: bool) -> usize {
        assert!(!self.is_full(), "no write-combining buffer is free");
        self.buffers.push(Buffer { piece, whole });
        self.buffers.len() - 1
    }

    /// Whether a merge into this line is possible without opening a buffer.
    pub fn can_merge(&self, region: Region, line: u64) -> bool {
        self.buffers.iter().any(|b| !b.whole && b.piece.region == region && b.piece.line == line)
    }

    /// Whether a buffer has all bytes of its line.
    pub fn is_complete(&self, buffer: usize) -> bool {
        self.buffers[buffer].piece.strobes == u64::MAX
    }

    /// Takes one word, by chance, out of a buffer that may be split, or the whole of another one.
    pub fn take_some(&mut self, buffer: usize, rng: &mut Rng) -> Piece {
        let held = &mut self.buffers[buffer];
        if held.whole || (held.piece.strobes == u64::MAX && rng.one_in(2)) {
            return self.buffers.remove(buffer).piece;
        }
        let words: Vec<_> = words(held.piece).collect();
        let word = words[rng.below(words.len() as u64) as usize];
        held.piece.strobes &= !word.strobes;
        if held.piece.strobes == 0 {
            self.buffers.remove(buffer);
        }
        word
    }

    /// Empties a buffer into pieces. With a random generator, a complete one may leave in pieces
    /// too, and pieces leave in any order.
    pub fn drain(&mut self, buffer: usize, rng: Option<&mut Rng>) -> Vec<Piece> {
        let Buffer { piece, whole } = self.buffers.remove(buffer);
        let Some(rng) = rng else {
            return if piece.strobes == u64::MAX { vec![piece] } else { words(piece).collect() };
        };
        if whole || (piece.strobes == u64::MAX && rng.one_in(2)) {
            return vec![piece];
        }
        let mut pieces: Vec<_> = words(piece).collect();
        for i in (1..pieces.len()).rev() {
            pieces.swap(i, rng.below(i as u64 + 1) as usize);
        }
        pieces
    }
}

/// The aligned eight-byte words of a piece that have bytes.
fn words(piece: Piece) -> impl Iterator<Item = Piece> {
    let word = move |w: u32| {
        let mut word = piece;
        word.strobes &= 0xffu64 << (8 * w);
        word
    };
    (0..8).map(word).filter(|p| p.strobes != 0)
}

#[cfg(test)]
mod tests {
    use super::super::Bar;
    use super::*;

    fn piece(line: u64, strobes: u64) -> Piece {
        Piece { region: Region { card: 0, bar: Bar::Commands }, line, data: [strobes as u8; LINE], strobes }
    }

    #[test]
    fn stores_to_a_line_merge_and_leave_in_words() {
        let mut combiner = Combiner::new(2);
        combiner.store(piece(0, 0xff));
        combiner.store(piece(0, 0xff00));
        assert_eq!(combiner.len(), 1);
        let pieces = combiner.drain(0, None);
        assert_eq!(pieces.iter().map(|p| p.strobes).collect::<Vec<_>>(), [0xff, 0xff00]);
    }

    #[test]
    fn a_complete_line_is_one_piece_unless_the_adversary_splits_it() {
        let mut sizes = std::collections::HashSet::new();
        let mut rng = Rng::new(1);
        for _ in 0..20 {
            let mut combiner = Combiner::new(2);
            combiner.store(piece(0, u64::MAX));
            sizes.insert(combiner.drain(0, Some(&mut rng)).len());
            combiner.store_whole(piece(0, u64::MAX));
            assert_eq!(combiner.drain(0, Some(&mut rng)).len(), 1, "MOVDIR64B is never split");
        }
        assert_eq!(sizes, [1, 8].into());
        let mut combiner = Combiner::new(1);
        combiner.store(piece(0, u64::MAX));
        assert_eq!(combiner.drain(0, None).len(), 1);
    }
}
