//! Accesses through the write-back cache.

use nearpm_interface::geometry::{LINE, LINE_U64};

use super::combine::Piece;
use super::cpu::{Flush, Host};
use super::ranges::{mask, split};
use super::resume::{Blocked, Progress};
use super::{Bar, Region};
use crate::core::Access;

impl Host {
    pub(super) fn load_cached(
        &mut self,
        core: usize,
        card: usize,
        offset: u64,
        data: &mut [u8],
        progress: &mut Progress,
    ) -> Result<(), Blocked> {
        let offset = self.windows.place(card, offset);
        let last = (offset + data.len().max(1) as u64 - 1) / LINE_U64;
        let done = progress.done;
        for (line, range, part) in split(offset, data.len(), LINE_U64).skip_while(|(.., part)| part.end <= done) {
            let number = line / LINE_U64;
            let mut asked = progress.asked.unwrap_or(number);
            while asked <= last.min(number + self.fabric.parameters.look_ahead_lines) {
                progress.asked = Some(asked);
                if !self.cache.contains(asked) {
                    self.start_fill(core, asked)?;
                    self.statistics(card).load_misses += 1;
                    progress.missed = true;
                }
                asked += 1;
            }
            progress.asked = Some(asked);
            self.remember(number);
            let mask = mask(range.start, range.len());
            // The adversary's choice of a victim may have hit a line that was asked for.
            if !self.cache.contains(number) {
                self.start_fill(core, number)?;
            }
            let known = self.cache.touch(number).expect("asked for above").known;
            if known & mask == mask {
                self.statistics(card).load_hits += 1;
                self.cores[core].now_ps += self.fabric.parameters.hit_ps;
            } else {
                self.stop_at_line(number)?;
                self.resolve(core, number);
            }
            let held = &self.cache.peek(number).expect("touched above").data;
            progress.done = part.end;
            data[part].copy_from_slice(&held[range]);
        }
        if progress.missed {
            let core = &mut self.cores[core];
            core.now_ps = core.now_ps.max(core.fill_ps);
        }
        Ok(())
    }

    pub(super) fn store_cached(
        &mut self,
        core: usize,
        card: usize,
        offset: u64,
        data: &[u8],
        progress: &mut Progress,
    ) -> Result<(), Blocked> {
        let offset = self.windows.place(card, offset);
        let done = progress.done;
        for (line, range, part) in split(offset, data.len(), LINE_U64).skip_while(|(.., part)| part.end <= done) {
            let number = line / LINE_U64;
            let mask = mask(range.start, range.len());
            if !self.cache.contains(number) {
                if mask == u64::MAX {
                    // A whole line is owned without being read (fast string stores, 64-byte
                    // stores).
                    self.make_room(core);
                    self.cache.insert(number, None);
                } else {
                    self.start_fill(core, number)?;
                    self.statistics(card).store_misses += 1;
                }
            }
            self.remember(number);
            progress.done = part.end;
            let held = self.cache.touch(number).expect("inserted above");
            held.data[range].copy_from_slice(&data[part]);
            held.known |= mask;
            held.dirty = true;
        }
        Ok(())
    }

    /// Puts a line into the cache and starts to fetch it, no faster than misses overlap. Where the
    /// core has to wait for that, others go on first.
    pub(super) fn start_fill(&mut self, core: usize, number: u64) -> Result<(), Blocked> {
        self.make_room(core);
        let (card, address) = self.windows.locate(number);
        let parameters = &self.fabric.parameters;
        let core = &mut self.cores[core];
        let fill_ps = core.fill_ps.max(core.now_ps) + parameters.load_spacing_ps();
        let begin_ps = fill_ps.saturating_sub(parameters.load_miss_ps);
        let waits = begin_ps > core.now_ps;
        core.now_ps = core.now_ps.max(begin_ps);
        if waits && self.takes_turns {
            return Err(Blocked::Turn);
        }
        core.fill_ps = fill_ps;
        let id = self.fabric.fetch(card, core.now_ps, Access::PmRead { address }, LINE_U64);
        self.cache.insert(number, Some(id));
        Ok(())
    }

    /// Waits until a cached line is complete.
    pub(super) fn resolve(&mut self, core: usize, number: u64) {
        let line = self.cache.peek(number).expect("only cached lines are resolved");
        let Some(id) = line.fill.take() else { return };
        let (arrival_ps, data) = self.fabric.wait(id).unwrap_or((0, [0xff; LINE]));
        for byte in (0..LINE).filter(|byte| line.known >> byte & 1 == 0) {
            line.data[byte] = data[byte];
        }
        (line.known, line.filled_ps) = (u64::MAX, arrival_ps);
        let core = &mut self.cores[core];
        core.now_ps = core.now_ps.max(arrival_ps);
    }

    /// Writes a line back if it is dirty, and drops it where told.
    pub(super) fn flush(&mut self, core: usize, number: u64, flush: Flush) {
        if self.write_line(core, number) {
            let (card, _) = self.windows.locate(number);
            self.statistics(card).write_backs += 1;
        }
        if flush == Flush::Drop && self.cache.contains(number) {
            self.cache.remove(number);
        }
    }

    pub(super) fn evict(&mut self, core: usize, number: u64) {
        if self.write_line(core, number) {
            let (card, _) = self.windows.locate(number);
            self.statistics(card).evictions += 1;
        }
        self.cache.remove(number);
    }

    /// Writes a cached line back if it is dirty; whether it was.
    pub(super) fn write_line(&mut self, core: usize, number: u64) -> bool {
        if !self.cache.contains(number) {
            return false;
        }
        self.resolve(core, number);
        let line = self.cache.peek(number).expect("looked at above");
        let dirty = std::mem::replace(&mut line.dirty, false);
        if dirty {
            // The whole line goes, with what the core only read of it.
            let data = line.data;
            let (card, address) = self.windows.locate(number);
            let region = Region { card, bar: Bar::Memory };
            let piece = Piece { region, line: address, data, strobes: u64::MAX };
            self.post_piece(core, piece);
        }
        dirty
    }

    pub(super) fn make_room(&mut self, core: usize) {
        while self.cache.is_full() {
            let victim = match &mut self.adversary {
                Some((_, rng)) => self.cache.nth(rng.below(self.cache.len() as u64) as usize),
                None => self.cache.oldest().expect("a full cache is not empty"),
            };
            self.evict(core, victim);
        }
    }
}
