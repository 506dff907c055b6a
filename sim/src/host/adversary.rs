//! What caches and buffers may do unasked, and programs tend to forget.

use nearpm_interface::geometry::LINE_U64;

use super::cpu::{Host, RECENT};
use crate::core::Access;

impl Host {
    pub(super) fn remember(&mut self, number: u64) {
        let Some((_, rng)) = &mut self.adversary else { return };
        match self.recent.len() {
            RECENT => self.recent[rng.below(RECENT as u64) as usize] = number,
            _ => self.recent.push(number),
        }
    }

    /// Now and then, something that nobody asked for.
    pub(super) fn mischief(&mut self, core: usize) {
        let (one_in, rng) = self.adversary.as_mut().expect("called for an adversary only");
        if !rng.one_in(*one_in) {
            return;
        }
        let (action, random) = (rng.below(4), rng.bits());
        let pick = |n: usize| (random % n.max(1) as u64) as usize;
        let state = &mut self.cores[core];
        match action {
            0 if self.cache.len() > 0 => {
                let victim = self.cache.nth(pick(self.cache.len()));
                self.evict(core, victim);
            }
            // Only what is mapped with write-back caching is ever prefetched: a neighbour of what
            // was used so.
            1 if !self.recent.is_empty() => {
                let used = self.recent[pick(self.recent.len())];
                self.prefetch(core, used, used + (random >> 32 & 1));
            }
            2 if !state.combiner.is_empty() => {
                let buffer = pick(state.combiner.len());
                let piece = state.combiner.take_some(buffer, rng);
                self.post_piece(core, piece);
            }
            3 if !state.pending.is_empty() => {
                let (line, flush) = state.pending.swap_remove(pick(state.pending.len()));
                self.flush(core, line, flush);
            }
            _ => {}
        }
    }

    /// Fetches a line in the background, because another one of its card was used.
    fn prefetch(&mut self, core: usize, used: u64, number: u64) {
        if !self.windows.are_together(used, number) || self.cache.contains(number) || self.cache.is_full() {
            return;
        }
        let (card, address) = self.windows.locate(number);
        let access = Access::PmRead { address };
        let id = self.fabric.fetch(card, self.cores[core].now_ps, access, LINE_U64);
        self.cache.insert(number, Some(id));
        self.statistics(card).prefetches += 1;
    }
}
