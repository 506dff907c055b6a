//! Mapped mode: the host stores into the file, and the card copies what a command needs to itself
//! and back.
//!
//! A host that sees no order waits for each command before it stores to what the command covers. So
//! a command runs alone, to its end, before the host's write of it is answered: the card takes over
//! what the host has changed where commands may reach, executes, and what it wrote goes into the
//! file as one step. A process that is killed has done all of a command or nothing, and nobody was
//! told of nothing.

use std::ops::Range;

use nearpm_interface::geometry::{FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, FIRMWARE_SLOTS, LINE, SAVE_BASE, SAVE_BYTES};
use nearpm_interface::registers::{self as reg, state};
use nearpm_interface::save::FIRMWARE_WORD_OFFSET;
use nearpm_sim::core::Access;

use crate::engine::{Engine, clean};

/// Bytes of the arm and firmware words, with which the save area begins.
const WORDS: usize = FIRMWARE_WORD_OFFSET as usize + 8;

const SAVE_AREA: Range<u64> = SAVE_BASE..SAVE_BASE + SAVE_BYTES;
const FIRMWARE: Range<u64> = FIRMWARE_BASE..FIRMWARE_BASE + FIRMWARE_SLOTS as u64 * FIRMWARE_SLOT_BYTES;

fn place(range: &Range<u64>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// Lines of a range that differ between two contents of it, as the second has them.
fn changes(start: u64, old: &[u8], new: &[u8]) -> Vec<(u64, [u8; LINE])> {
    let pages = (start..).step_by(4096).zip(old.chunks(4096).zip(new.chunks(4096)));
    let pages = pages.filter(|(_, (old, new))| old != new);
    let lines = pages.flat_map(|(at, (old, new))| {
        (at..).step_by(LINE).zip(old.as_chunks::<LINE>().0.iter().zip(new.as_chunks::<LINE>().0))
    });
    lines.filter(|(_, (old, new))| old != new).map(|(at, (_, new))| (at, *new)).collect()
}

impl Engine {
    /// Parts of the window that a host may map: all but the save area, which the card refuses to
    /// have written.
    pub fn areas(&self) -> [Range<u64>; 2] {
        [0..SAVE_AREA.start, SAVE_AREA.end..self.store.bytes()]
    }

    pub(crate) fn load_window(&mut self, offset: u64, data: &mut [u8]) {
        if self.store.read(offset, data).is_err() {
            data.fill(0xff);
        }
    }

    pub(crate) fn store_window(&mut self, offset: u64, data: &[u8]) {
        let protected = offset < SAVE_AREA.end && offset + data.len() as u64 > SAVE_AREA.start;
        if !protected && let Err(error) = self.store.write(offset, data) {
            self.fail("store into the card's memory", &error);
        }
    }

    /// Gives the card what the host has changed in a range.
    fn take_over(&mut self, range: &Range<u64>) -> Result<(), std::io::Error> {
        let mut window = vec![0; (range.end - range.start) as usize];
        self.store.read(range.start, &mut window)?;
        let Some(medium) = self.card.as_ref().and_then(|card| card.durable()) else { return Ok(()) };
        for (address, data) in changes(range.start, &medium.bytes[place(range)], &window) {
            self.post(Access::PmWrite { address, data, strobes: u64::MAX });
        }
        self.settle();
        Ok(())
    }

    /// What the card's memory holds in ranges, when nothing is under way.
    fn contents(&self, ranges: &[Range<u64>]) -> Vec<Vec<u8>> {
        let medium = self.card.as_ref().and_then(|card| card.durable());
        let bytes = medium.map_or(&[][..], |medium| &medium.bytes);
        ranges.iter().map(|range| bytes.get(place(range)).unwrap_or_default().to_vec()).collect()
    }

    /// A write to a command page. The one that fills a slot has its effect before it returns.
    pub(crate) fn run_mapped_command(&mut self, access: Access) {
        if let Err(error) = self.try_mapped_command(access) {
            self.fail("carry out a command", &error);
        }
    }

    fn try_mapped_command(&mut self, access: Access) -> Result<(), std::io::Error> {
        let reach = self.ledger.reach(self.store.bytes());
        for range in &reach {
            self.take_over(range)?;
        }
        let before = self.contents(&reach);
        // The host may be told of the end of the command only when its writes are in the window.
        self.hold_records(true);
        self.post(access);
        self.settle();
        if self.is_powered() {
            let after = self.contents(&reach);
            let contents = before.iter().zip(&after);
            let written: Vec<_> =
                reach.iter().zip(contents).flat_map(|(range, (old, new))| changes(range.start, old, new)).collect();
            if !written.is_empty() {
                self.store.replace_lines(&written)?;
            }
        }
        self.hold_records(false);
        Ok(())
    }

    /// A write to a register. Firmware is loaded from the window; what the card notes in its save
    /// area goes there.
    pub(crate) fn set_mapped_register(&mut self, access: Access) {
        let Access::RegisterWrite { offset, .. } = access else { return };
        let result = (|| {
            if offset == reg::FIRMWARE_LOAD {
                self.take_over(&FIRMWARE)?;
            }
            self.accept(access);
            if matches!(offset, reg::FIRMWARE_LOAD | reg::CONTROL) { self.keep_words() } else { Ok(()) }
        })();
        if let Err(error) = result {
            self.fail("write the card's save area", &error);
        }
    }

    /// Puts the words of the save area into the window, as a clean shutdown leaves them.
    fn keep_words(&mut self) -> Result<(), std::io::Error> {
        self.await_reset();
        self.settle();
        let state = self.register(reg::STATE);
        if !matches!(state, Some(state::OPEN | state::NO_FIRMWARE | state::SAVED)) {
            return Ok(());
        }
        let Some(medium) = self.card.as_ref().and_then(|card| card.durable()) else { return Ok(()) };
        let mut words = medium.bytes[place(&SAVE_AREA)][..WORDS].to_vec();
        if let Some((_, arm)) = clean(&medium.bytes) {
            words[..arm.len()].copy_from_slice(&arm);
        }
        self.store.write(SAVE_AREA.start, &words)
    }

    /// The memory that a power cut leaves: what the host has stored into the window, with what the
    /// card had not brought there yet.
    pub(crate) fn window_after(&mut self, card: &[u8]) -> Result<Vec<u8>, std::io::Error> {
        let mut window = vec![0; card.len()];
        self.store.read(0, &mut window)?;
        // Records are held while a command is under way.
        let under_way = if self.holds_records { self.ledger.reach(card.len() as u64) } else { Vec::new() };
        for range in under_way.into_iter().chain([SAVE_AREA]).map(|range| place(&range)) {
            window[range.clone()].copy_from_slice(&card[range]);
        }
        Ok(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_the_lines_that_differ() {
        let old = vec![0; 3 * 4096];
        let mut new = old.clone();
        new[4096 + 70] = 1;
        new[3 * 4096 - 1] = 2;
        let found = changes(0x10_0000, &old, &new);
        assert_eq!(found.iter().map(|c| c.0).collect::<Vec<_>>(), [0x10_1040, 0x10_2fc0]);
        assert_eq!((found[0].1[6], found[1].1[63]), (1, 2));
        assert_eq!(changes(0, &old, &old), []);
    }
}
