//! CommandPort: command slots that fill piece by piece, and what each page counts.

use nearpm_interface::command::Command;
use nearpm_interface::completion::PageStatus;
use nearpm_interface::geometry::{COMMAND_PAGE_BYTES, COMMAND_PAGES, LINE, SLOTS_PER_PAGE};
use nearpm_interface::status::Status;

/// A slot that is being filled.
#[derive(Clone, Copy)]
struct Partial {
    bytes: [u8; LINE],
    /// One bit per byte that has come.
    filled: u64,
}

const EMPTY: Partial = Partial { bytes: [0; LINE], filled: 0 };

/// The command pages.
pub struct Pages {
    slots: Vec<Partial>,
    /// Status line of each page; `order` is filled in by the reader.
    pub status: [PageStatus; COMMAND_PAGES],
}

/// Page and slot of an offset in the command BAR; `None` where no slot lies.
pub fn locate(offset: u64) -> Option<(u8, usize)> {
    let page = offset as usize / COMMAND_PAGE_BYTES;
    let slot = offset as usize % COMMAND_PAGE_BYTES / LINE;
    (page < COMMAND_PAGES && slot < SLOTS_PER_PAGE).then_some((page as u8, page * SLOTS_PER_PAGE + slot))
}

/// `old` with the bytes of `new` that `strobes` selects.
fn merged(old: &[u8; LINE], new: &[u8; LINE], strobes: u64) -> [u8; LINE] {
    std::array::from_fn(|i| if strobes >> i & 1 == 1 { new[i] } else { old[i] })
}

impl Pages {
    /// Empty slots, zero counts.
    pub fn new() -> Self {
        Pages { slots: vec![EMPTY; COMMAND_PAGES * SLOTS_PER_PAGE], status: Default::default() }
    }

    /// Whether a beat would fill its slot.
    pub fn would_fill(&self, slot: usize, strobes: u64) -> bool {
        let filled = self.slots[slot].filled;
        // A byte that comes twice restarts the slot with the beat.
        if filled & strobes == 0 { filled | strobes == u64::MAX } else { strobes == u64::MAX }
    }

    /// The slot's 64 bytes as a beat would complete them; `None` where it would not.
    pub fn filled(&self, slot: usize, data: &[u8; LINE], strobes: u64) -> Option<[u8; LINE]> {
        if strobes == u64::MAX {
            return Some(*data);
        }
        self.would_fill(slot, strobes).then(|| merged(&self.slots[slot].bytes, data, strobes))
    }

    /// Takes a beat; a slot that is complete with it is empty again.
    pub fn merge(&mut self, slot: usize, data: &[u8; LINE], strobes: u64) {
        let partial = &mut self.slots[slot];
        if partial.filled & strobes != 0 {
            *partial = EMPTY;
        }
        partial.filled |= strobes;
        match partial.filled {
            u64::MAX => *partial = EMPTY,
            _ => partial.bytes = merged(&partial.bytes, data, strobes),
        }
    }

    /// Counts the end of a command: refused, failed or retired.
    pub fn count(&mut self, page: u8, command: &Command, status: u8) {
        let line = &mut self.status[page as usize];
        let counter = match status {
            0 => &mut line.retired,
            1..0x80 => &mut line.refused,
            _ => &mut line.failed,
        };
        *counter = counter.wrapping_add(1);
        if status != Status::Ok.code() {
            line.last_bad_tag = command.tag;
            line.last_bad_status = status;
        }
    }

    /// Counts an accepted command.
    pub fn accept(&mut self, page: u8) {
        let accepted = &mut self.status[page as usize].accepted;
        *accepted = accepted.wrapping_add(1);
    }

    /// Counts a dropped slot.
    pub fn drop_slot(&mut self, page: u8) {
        let dropped = &mut self.status[page as usize].dropped;
        *dropped = dropped.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_split_fills_a_slot_once_and_a_second_write_restarts_it() {
        let mut pages = Pages::new();
        let old = [1; LINE];
        let new: [u8; LINE] = std::array::from_fn(|i| i as u8);
        pages.merge(3, &old, 0xffff_ffff);
        // This restarts the slot: what has come of the old command is gone.
        pages.merge(3, &new, 0x0000_ff00);
        pages.merge(3, &new, !0xffff);
        assert_eq!(pages.filled(3, &new, 0x7f), None);
        assert_eq!(pages.filled(3, &new, 0xff), Some(new));
        pages.merge(3, &new, 0xff);
        assert!(!pages.would_fill(3, 0xff) && pages.would_fill(3, u64::MAX));
    }

    #[test]
    fn only_the_start_of_a_page_takes_commands() {
        assert_eq!(locate(0), Some((0, 0)));
        assert_eq!(locate(4096 + 64 * 15), Some((1, 31)));
        assert_eq!(locate(64 * 16), None);
        assert_eq!(locate(4 * 4096), None);
    }
}
