//! Transactions of a warp's access, and the translation of their pages.

use crate::lanes::{Lanes, WARP};
use crate::{Counts, TransactionCounts};

/// Bytes of a line, and of a sector of it.
const LINE: u64 = 128;
const SECTOR: u64 = 32;
const PAGE_SHIFT: u32 = 21;
const SETS: usize = 16;

/// The pages of 2 MiB that were used last, in sets of so many.
#[derive(Clone, Debug)]
struct Pages {
    ways: usize,
    held: Vec<u64>,
}

impl Pages {
    fn new(pages: usize) -> Self {
        Self { ways: pages / SETS, held: vec![u64::MAX; pages] }
    }

    /// Whether the page was not held; it is from now on.
    fn misses(&mut self, page: u64) -> bool {
        // As a card's: sets fill unevenly, so that 512 MiB at random do not quite fit.
        let mixed = (page ^ page >> 7).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let set = ((mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53) >> 60) as usize % SETS;
        let ways = &mut self.held[set * self.ways..][..self.ways];
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

/// What a card holds of the translation of addresses: 512 MiB of pages, and 1 GiB of what it looks
/// them up in. Both sizes, and the costs of a miss, were fitted to random persists over 0.5 to 8
/// GiB on an H100 and an H200.
#[derive(Clone, Debug)]
pub struct Translation {
    pages: Pages,
    walks: Pages,
    /// The page of the last access, which is held: most accesses are to it again.
    last: u64,
}

impl Default for Translation {
    fn default() -> Self {
        Self { pages: Pages::new(256), walks: Pages::new(512), last: u64::MAX }
    }
}

impl Translation {
    /// An access to an address, which is counted where its page is not held.
    pub fn access(&mut self, address: u64, counts: &mut Counts) {
        let page = address >> PAGE_SHIFT;
        if page == self.last {
            return;
        }
        self.last = page;
        if self.pages.misses(page) {
            counts.translation_misses += 1;
            counts.walk_misses += u64::from(self.walks.misses(page));
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
    /// Bytes of each: an access is aligned to its size of at most 32 bytes, so it lies in one
    /// sector.
    pub bytes: u64,
    /// Each lane's address follows the one before.
    pub row: bool,
}

impl Lines {
    pub fn of(touched: &Touched<'_>) -> Self {
        let mut lines = Lines { lines: [(0, 0); 2 * WARP], count: 0 };
        for lane in (0..WARP).filter(|lane| touched.mask >> lane & 1 == 1) {
            let address = touched.addresses[lane];
            lines.add(address / LINE, 1 << (address / SECTOR % 4));
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

    /// The transactions by size.
    fn transactions(&self) -> TransactionCounts {
        let mut counts = TransactionCounts::default();
        for (_, sectors) in &self.lines[..self.count] {
            counts.count(sectors.count_ones());
        }
        counts
    }
}

/// Counts a load (or store) of persistent memory by the lanes of `mask`.
pub(crate) fn count_access(counts: &mut Counts, translation: &mut Translation, store: bool, touched: Touched<'_>) {
    let moved = u64::from(touched.mask.count_ones()) * touched.bytes;
    let transactions = match touched.row {
        true => count_row(touched.addresses[0], touched.bytes * WARP as u64, counts, translation),
        false => {
            let lines = Lines::of(&touched);
            lines.lines[..lines.count].iter().for_each(|&(line, _)| translation.access(line * LINE, counts));
            lines.transactions()
        }
    };
    let (bytes, into) = match store {
        true => (&mut counts.pm_bytes_stored, &mut counts.pm_stores),
        false => (&mut counts.pm_bytes_loaded, &mut counts.pm_loads),
    };
    *bytes += moved;
    into.add(&transactions);
}

/// The transactions of bytes that lie one behind the other: most accesses are so.
fn count_row(start: u64, bytes: u64, counts: &mut Counts, translation: &mut Translation) -> TransactionCounts {
    let (end, mut transactions) = (start + bytes - 1, TransactionCounts::default());
    for line in start / LINE..=end / LINE {
        let (first, last) = (start.max(line * LINE), end.min(line * LINE + LINE - 1));
        transactions.count((last / SECTOR - first / SECTOR + 1) as u32);
        translation.access(line * LINE, counts);
    }
    transactions
}

/// Counts an atomic on persistent memory: one transaction for each distinct address.
pub(crate) fn count_atomic(counts: &mut Counts, translation: &mut Translation, addresses: &Lanes, mask: u32) {
    let mut distinct: Vec<u64> = (0..WARP).filter(|lane| mask >> lane & 1 == 1).map(|lane| addresses[lane]).collect();
    distinct.sort_unstable();
    distinct.dedup();
    counts.pm_atomics += distinct.len() as u64;
    distinct.into_iter().for_each(|address| translation.access(address, counts));
}
