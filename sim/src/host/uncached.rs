//! Accesses around the caches: uncached, write-combining, and what leaves the core as a posted
//! write.

use nearpm_interface::geometry::{COMMAND_PAGE_BYTES, LINE, LINE_U64};

use super::combine::Piece;
use super::cpu::Host;
use super::ranges::split;
use super::resume::{Blocked, Progress};
use super::{Bar, Region};
use crate::core::Access;

impl Host {
    /// Loads around the caches, a packet for each aligned piece of `size`.
    pub(super) fn load_pieces(
        &mut self,
        core: usize,
        region: Region,
        offset: u64,
        data: &mut [u8],
        size: u64,
        progress: &mut Progress,
    ) -> Result<(), Blocked> {
        let done = progress.done;
        for (start, range, part) in split(offset, data.len(), size).skip_while(|(.., part)| part.end <= done) {
            let line = start / LINE_U64 * LINE_U64;
            if let Some(buffer) = self.cores[core].combiner.holds(region, line) {
                self.drain(core, buffer);
            }
            let access = match region.bar {
                Bar::Registers => Access::RegisterRead { offset: start as u32 },
                Bar::Commands => Access::CommandRead { page: (start / COMMAND_PAGE_BYTES as u64) as usize },
                Bar::Memory => Access::PmRead { address: line },
            };
            let fabric = &mut self.fabric;
            let id =
                *progress.fetch.get_or_insert_with(|| fabric.fetch(region.card, self.cores[core].now_ps, access, size));
            self.stop_at(id)?;
            progress.fetch = None;
            let Some((arrival_ps, answer)) = self.fabric.wait(id) else { return Ok(()) };
            self.cores[core].now_ps = self.cores[core].now_ps.max(arrival_ps);
            // A register comes in the first bytes; everything else in its place in the line.
            let shift = if region.bar == Bar::Registers { 0 } else { (start % LINE_U64) as usize };
            progress.done = part.end;
            data[part].copy_from_slice(&answer[shift + range.start..shift + range.end]);
        }
        Ok(())
    }

    pub(super) fn combine(&mut self, core: usize, piece: Piece) {
        let held = self.cores[core].combiner.holds(piece.region, piece.line);
        if let Some(buffer) = held
            && !self.cores[core].combiner.can_merge(piece.region, piece.line)
        {
            self.drain(core, buffer);
        }
        if !self.cores[core].combiner.can_merge(piece.region, piece.line) {
            self.free_buffer(core);
        }
        let combiner = &mut self.cores[core].combiner;
        let buffer = combiner.store(piece);
        if self.adversary.is_none() && combiner.is_complete(buffer) {
            self.drain(core, buffer);
        }
    }

    pub(super) fn free_buffer(&mut self, core: usize) {
        let combiner = &self.cores[core].combiner;
        if combiner.is_full() {
            let victim = match &mut self.adversary {
                Some((_, rng)) => rng.below(combiner.len() as u64) as usize,
                None => 0,
            };
            self.drain(core, victim);
        }
    }

    /// An ordinary processor empties its write-combining buffers before an uncached access; no
    /// program may count on it.
    pub(super) fn drain_for_uncached(&mut self, core: usize) {
        while self.adversary.is_none() && !self.cores[core].combiner.is_empty() {
            self.drain(core, 0);
        }
    }

    pub(super) fn drain(&mut self, core: usize, buffer: usize) {
        let rng = self.adversary.as_mut().map(|(_, rng)| rng);
        for piece in self.cores[core].combiner.drain(buffer, rng) {
            self.post_piece(core, piece);
        }
    }

    /// Sends part of a line as a posted write.
    pub(super) fn post_piece(&mut self, core: usize, piece: Piece) {
        let Piece { region, line, data, strobes } = piece;
        let access = match region.bar {
            Bar::Registers => register_write(line, &data, strobes),
            Bar::Commands => Access::CommandWrite { offset: line, data, strobes },
            Bar::Memory => Access::PmWrite { address: line, data, strobes },
        };
        let parameters = self.fabric.parameters;
        let core = &mut self.cores[core];
        let departure_ps = self.fabric.post(region.card, core.now_ps + parameters.leave_ps, access);
        core.departure_ps = core.departure_ps.max(departure_ps);
        let ahead_ps = parameters.leave_ps + parameters.core_posted * parameters.packet_ps(LINE_U64);
        core.now_ps = core.now_ps.max(departure_ps.saturating_sub(ahead_ps));
    }
}

/// A register is written whole.
fn register_write(line: u64, data: &[u8; LINE], strobes: u64) -> Access {
    let lane = strobes.trailing_zeros() as usize;
    assert_eq!(strobes, 0xf << lane, "registers are written in aligned words of four bytes");
    let value = u32::from_le_bytes(data[lane..lane + 4].try_into().expect("four bytes"));
    Access::RegisterWrite { offset: line as u32 + lane as u32, value }
}
