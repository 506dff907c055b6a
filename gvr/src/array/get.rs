//! Gets from a log.
//!
//! An entry of the current version never changes again in it, so that one that is known is good without a look. For others the data is read
//! where it was last while the entries are read (paper, III-D1c): if they are what was known, the data is right, as blocks of older
//! versions do not change and are not used again before all ranks have met.

use std::ops::Range;

use super::core::Core;
use crate::error::Result;

impl Core {
    pub(super) fn get_log(&self, rank: usize, at: u64, data: &mut [u8]) -> Result<()> {
        let blocks = self.blocks_of(at, data.len());
        if let Some(offset) = self.together(rank, &blocks, |counters| counters.get_hits += 1) {
            return self.rma.get(self.place(rank, offset + at - blocks.start * self.geometry.block), data);
        }
        if self.known(rank, &blocks) {
            self.state.borrow_mut().counters.get_hits += 1;
            self.note_extent(rank, &blocks);
            let entry = |block: u64| self.state.borrow().peers[rank].cache[block as usize];
            return self.read_blocks(rank, at, data, entry);
        }
        self.state.borrow_mut().counters.get_misses += 1;
        let mut entries = vec![0; (blocks.end - blocks.start) as usize];
        let place = self.place(rank, self.geometry.entry(blocks.start));
        let Some((offset, guess)) = self.guess(rank, at, &blocks) else {
            self.rma.load_many(place, &mut entries)?;
            self.note(rank, blocks.start, &entries);
            return self.read_blocks(rank, at, data, |block| entries[(block - blocks.start) as usize]);
        };
        let get = self.rma.begin_get(self.place(rank, offset), data.len())?;
        self.rma.load_many(place, &mut entries)?;
        if entries == guess {
            return self.rma.end_get(get, data);
        }
        self.rma.drop_get(get)?;
        self.note(rank, blocks.start, &entries);
        self.read_blocks(rank, at, data, |block| entries[(block - blocks.start) as usize])
    }

    /// Where a run lay when its entries were last seen, if it lay in one piece and its place was not used again since.
    fn guess(&self, rank: usize, at: u64, blocks: &Range<u64>) -> Option<(u64, Vec<u64>)> {
        let state = self.state.borrow();
        let peer = &state.peers[rank];
        let cached = peer.cache.get(blocks.start as usize..blocks.end as usize)?;
        let first = *cached.first()?;
        let together = cached.iter().zip(first..).all(|(entry, wanted)| *entry == wanted);
        let place = self.geometry.place(first);
        let whole = first >= peer.head.max(1) && place + cached.len() as u64 <= self.geometry.capacity;
        (together && whole).then(|| (self.geometry.data(first) + at % self.geometry.block, cached.to_vec()))
    }

    /// Reads bytes whose blocks are where `entry` says; blocks that were never written are zeros.
    pub(super) fn read_blocks(&self, rank: usize, at: u64, data: &mut [u8], entry: impl Fn(u64) -> u64) -> Result<()> {
        let mut pieces: Vec<(Option<u64>, Range<usize>)> = Vec::new();
        for block in self.blocks_of(at, data.len()) {
            let piece = self.piece(block, at, data.len());
            let offset =
                Some(entry(block)).filter(|entry| *entry != 0).map(|entry| self.geometry.data(entry) + piece.inside);
            match pieces.last_mut() {
                Some((before, bytes)) if before.map(|at| at + bytes.len() as u64) == offset => {
                    bytes.end = piece.bytes.end
                }
                _ => pieces.push((offset, piece.bytes)),
            }
        }
        let begin = |(offset, bytes): &(Option<u64>, Range<usize>)| {
            offset.map(|offset| self.rma.begin_get(self.place(rank, offset), bytes.len())).transpose()
        };
        let gets: Vec<_> = pieces.iter().map(begin).collect::<Result<_>>()?;
        for (get, (_, bytes)) in gets.into_iter().zip(pieces) {
            match get {
                Some(get) => self.rma.end_get(get, &mut data[bytes])?,
                None => data[bytes].fill(0),
            }
        }
        Ok(())
    }
}
