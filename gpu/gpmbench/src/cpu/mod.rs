//! The programs on a processor alone, by several threads, with the same durability: what the
//! paper's figure 1 compares GPM with.
//!
//! | file | program | what makes it recoverable |
//! |---|---|---|
//! | `store.rs` | gpKVS | an undo log a thread, a word for the batch |
//! | `table.rs` | gpDB | the same; the number of rows behind an insertion |
//! | `native.rs` | PS, SRAD, BFS | what is done is noted behind what was stored |

mod native;
mod store;
mod table;

pub use native::{GraphLevels, Image, sums};
pub use store::Store;
pub use table::Table;

use nearpm_gpu::persist;

/// Stores a word and makes it durable.
fn store_word(place: &mut [u8], word: u64) {
    place[..8].copy_from_slice(&word.to_le_bytes());
    persist(&place[..8]);
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes[8 * at..].first_chunk().map_or(0, |&word| u64::from_le_bytes(word))
}

/// An undo log of one thread: entries of place, two old words, and a word that says that they are
/// whole.
struct UndoLog<'l> {
    bytes: &'l mut [u8],
    batch: u64,
    used: usize,
}

/// Words of an entry.
const ENTRY: usize = 4;

/// What says that an entry of a batch is whole.
fn seal_of(batch: u64, entry: [u64; ENTRY - 1]) -> u64 {
    let step = |h: u64, word: u64| (h ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(29);
    entry.into_iter().fold(batch.wrapping_mul(0x9e37_79b9_7f4a_7c15), step) | 1
}

impl<'l> UndoLog<'l> {
    /// Bytes of a log for so many entries.
    fn bytes_for(entries: usize) -> usize {
        (8 * ENTRY * entries).next_multiple_of(64)
    }

    fn new(bytes: &'l mut [u8], batch: u64) -> UndoLog<'l> {
        UndoLog { bytes, batch, used: 0 }
    }

    /// Logs what is at a place, durably.
    fn insert(&mut self, place: u64, old: [u64; 2]) {
        let entry = [place, old[0], old[1]];
        let words = [place, old[0], old[1], seal_of(self.batch, entry)];
        let to = &mut self.bytes[8 * ENTRY * self.used..][..8 * ENTRY];
        to.as_chunks_mut::<8>().0.iter_mut().zip(words).for_each(|(to, word)| *to = word.to_le_bytes());
        persist(to);
        self.used += 1;
    }

    /// Places and old words of a batch, the newest first.
    fn newest_first(bytes: &[u8], batch: u64) -> Vec<(u64, [u64; 2])> {
        let entries = (0..bytes.len() / (8 * ENTRY)).map(|at| [0, 1, 2, 3].map(|i| word(bytes, ENTRY * at + i)));
        let whole = entries.take_while(|&[place, a, b, seal]| seal == seal_of(batch, [place, a, b]));
        let mut all: Vec<_> = whole.map(|[place, a, b, _]| (place, [a, b])).collect();
        all.reverse();
        all
    }
}

/// Elements of each of `threads` parts of `all`.
fn part_of(all: usize, threads: usize) -> usize {
    all.div_ceil(threads.max(1)).max(1)
}
