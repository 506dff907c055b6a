//! Entries of a log, as the processor reads them.

use nearpm_gpu::ObjectKind;
use nearpm_interface::region::ObjectHead;

use super::layout::{STRIPE, WARP, places};
use crate::seal::seal_of;

/// An entry that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Thread of the launch (blocks in whole warps), or partition.
    pub thread: u32,
    /// Its number in the thread, from 0. A conventional log has one entry a partition here: all its
    /// words.
    pub slot: u32,
    /// Its words.
    pub words: Vec<u32>,
}

/// In which order entries are undone or redone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By thread, each thread's oldest first.
    Oldest,
    /// By thread, each thread's newest first: undo where no two threads log the same place.
    Newest,
    /// By a stamp, a word of each entry, the highest first: undo where threads log the same place.
    /// The kernel draws stamps so that of two that log a place the later one has the higher stamp.
    NewestStamp {
        /// Number of the word.
        word: usize,
    },
}

impl Order {
    pub(super) fn sort(self, entries: &mut [Entry]) {
        match self {
            Order::Oldest => {}
            Order::Newest => entries.sort_by_key(|entry| (entry.thread, std::cmp::Reverse(entry.slot))),
            Order::NewestStamp { word } => {
                entries.sort_by_key(|entry| std::cmp::Reverse(entry.words.get(word).copied().unwrap_or_default()));
            }
        }
    }
}

fn word(bytes: &[u8], at: u64) -> u32 {
    bytes.get(at as usize..).and_then(|rest| rest.first_chunk()).map_or(0, |&word| u32::from_le_bytes(word))
}

/// Called with thread, slot and words of an entry.
pub(super) type Visit<'v> = &'v mut dyn FnMut(u32, u32, &[u32]);

/// A log's bytes as PM has them.
pub(super) struct Stored<'d> {
    pub head: &'d ObjectHead,
    pub generation: u32,
    pub data: &'d [u8],
    /// Of a tail log.
    pub tails: &'d [u8],
}

impl Stored<'_> {
    /// Goes through all entries that count, by thread and slot.
    pub fn visit(&self, kind: ObjectKind, visit: Visit<'_>) {
        let mut words = Vec::new();
        for thread in 0..places(self.head) {
            match kind {
                ObjectKind::ConventionalLog => self.partition(thread, &mut words, visit),
                ObjectKind::TailLog => self.with_tail(thread, &mut words, visit),
                _ => self.sealed(thread, &mut words, visit),
            }
        }
    }

    /// The words of an entry, and its seal if it has one.
    fn stripes(&self, thread: u32, slot: u32, stripes: u32, words: &mut Vec<u32>) {
        let entry = u64::from(thread / WARP) * u64::from(self.head.depth) + u64::from(slot);
        let place = entry * u64::from(stripes) * STRIPE + 4 * u64::from(thread % WARP);
        words.clear();
        words.extend((0..stripes).map(|stripe| word(self.data, place + u64::from(stripe) * STRIPE)));
    }

    /// A thread's entries end before the first that does not count: one is inserted behind the
    /// fence of the one before it.
    fn sealed(&self, thread: u32, words: &mut Vec<u32>, visit: Visit<'_>) {
        for slot in 0..self.head.depth {
            self.stripes(thread, slot, self.head.words + 1, words);
            let seal = words.pop();
            if seal != Some(seal_of(words, self.generation)) {
                return;
            }
            visit(thread, slot, words);
        }
    }

    fn with_tail(&self, thread: u32, words: &mut Vec<u32>, visit: Visit<'_>) {
        let tail = word(self.tails, 4 * u64::from(thread));
        let count = tail & 0xffff;
        if tail >> 16 != self.generation & 0xffff || count > self.head.depth {
            return;
        }
        for slot in 0..count {
            self.stripes(thread, slot, self.head.words, words);
            visit(thread, slot, words);
        }
    }

    fn partition(&self, partition: u32, words: &mut Vec<u32>, visit: Visit<'_>) {
        let start = u64::from(partition) * self.head.stride;
        let (count, generation) = (word(self.data, start), word(self.data, start + 4));
        if generation == self.generation && count != 0 && count <= self.head.depth {
            words.clear();
            words.extend((0..count).map(|at| word(self.data, start + STRIPE + 4 * u64::from(at))));
            visit(partition, 0, words);
        }
    }
}
