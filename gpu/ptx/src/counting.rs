//! Transactions of a warp's access, and the translation of their pages.

use crate::lanes::{Lanes, WARP};
use crate::{Counts, TransactionCounts};

const PAGE_SHIFT: u32 = 21;
const SETS: usize = 64;
const WAYS: usize = 4;

/// The last 512 MiB of pages of 2 MiB: what a card translates without a queue.
#[derive(Clone, Debug)]
pub(crate) struct Translation {
    sets: Vec<[u64; WAYS]>,
}

impl Translation {
    pub fn new() -> Self {
        Self { sets: vec![[u64::MAX; WAYS]; SETS] }
    }

    /// Whether the page was not held; it is from now on.
    fn misses(&mut self, address: u64) -> bool {
        let page = address >> PAGE_SHIFT;
        let set = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        let ways = &mut self.sets[set as usize];
        match ways.iter().position(|&held| held == page) {
            Some(way) => {
                ways[..=way].rotate_right(1);
                false
            }
            None => {
                ways.rotate_right(1);
                ways[0] = page;
                true
            }
        }
    }
}

/// The 128-byte lines that a warp's access touches, each with its 32-byte sectors as four bits.
pub(crate) struct Lines {
    lines: [(u64, u8); 2 * WARP],
    count: usize,
}

/// A warp's access to persistent memory.
pub(crate) struct Touched<'a> {
    pub addresses: &'a Lanes,
    /// The lanes that take part.
    pub mask: u32,
    /// Bytes of each: an access is aligned to its size of at most 32 bytes, so it lies in one sector.
    pub bytes: u64,
    /// Each lane's address follows the one before.
    pub row: bool,
}

impl Lines {
    pub fn of(touched: &Touched<'_>) -> Self {
        let mut lines = Lines { lines: [(0, 0); 2 * WARP], count: 0 };
        if touched.row {
            let start = touched.addresses[0];
            let sectors = start / 32..=(start + touched.bytes * WARP as u64 - 1) / 32;
            sectors.for_each(|sector| lines.add(sector / 4, 1 << (sector % 4)));
            return lines;
        }
        for lane in (0..WARP).filter(|lane| touched.mask >> lane & 1 == 1) {
            let address = touched.addresses[lane];
            lines.add(address / 128, 1 << (address / 32 % 4));
        }
        lines
    }

    fn add(&mut self, line: u64, sector: u8) {
        let known = self.lines[..self.count].iter_mut().rev().find(|(known, _)| *known == line);
        match known {
            Some((_, sectors)) => *sectors |= sector,
            None => {
                self.lines[self.count] = (line, sector);
                self.count += 1;
            }
        }
    }

    /// Adds these transactions to a count.
    pub fn count(&self, into: &mut TransactionCounts, misses: &mut u64, translation: &mut Translation) {
        for &(line, sectors) in &self.lines[..self.count] {
            match sectors.count_ones() {
                1 => into.up_to_32 += 1,
                2 => into.up_to_64 += 1,
                _ => into.up_to_128 += 1,
            }
            *misses += u64::from(translation.misses(line * 128));
        }
    }
}

/// Counts a load (or store) of persistent memory by the lanes of `mask`.
pub(crate) fn count_access(counts: &mut Counts, translation: &mut Translation, store: bool, touched: Touched<'_>) {
    let lines = Lines::of(&touched);
    let moved = u64::from(touched.mask.count_ones()) * touched.bytes;
    if store {
        counts.pm_bytes_stored += moved;
        lines.count(&mut counts.pm_stores, &mut counts.translation_misses, translation);
    } else {
        counts.pm_bytes_loaded += moved;
        lines.count(&mut counts.pm_loads, &mut counts.translation_misses, translation);
    }
}

/// Counts an atomic on persistent memory: one transaction for each distinct address.
pub(crate) fn count_atomic(counts: &mut Counts, translation: &mut Translation, addresses: &Lanes, mask: u32) {
    let mut distinct: Vec<u64> = (0..WARP).filter(|lane| mask >> lane & 1 == 1).map(|lane| addresses[lane]).collect();
    distinct.sort_unstable();
    distinct.dedup();
    counts.pm_atomics += distinct.len() as u64;
    for address in distinct {
        counts.translation_misses += u64::from(translation.misses(address));
    }
}
