//! The slots of the command pages: puts the pieces of commands together.

use nearpm_interface::geometry::{COMMAND_PAGE_BYTES, COMMAND_PAGES, LINE, SLOTS_PER_PAGE};

#[derive(Clone, Copy)]
struct Slot {
    bytes: [u8; LINE],
    strobes: u64,
}

const EMPTY: Slot = Slot { bytes: [0; LINE], strobes: 0 };

/// What has come of commands that are not whole.
pub struct Slots {
    slots: Vec<Slot>,
}

impl Default for Slots {
    fn default() -> Slots {
        Slots { slots: vec![EMPTY; COMMAND_PAGES * SLOTS_PER_PAGE] }
    }
}

impl Slots {
    /// Stores bytes of a line at an offset of the command BAR; gives page and contents of the slot
    /// that is full with them.
    pub fn store(&mut self, offset: u64, data: &[u8; LINE], strobes: u64) -> Option<(usize, [u8; LINE])> {
        let (page, slot) = (offset as usize / COMMAND_PAGE_BYTES, offset as usize % COMMAND_PAGE_BYTES / LINE);
        if page >= COMMAND_PAGES || slot >= SLOTS_PER_PAGE {
            return None;
        }
        let slot = &mut self.slots[page * SLOTS_PER_PAGE + slot];
        for (at, byte) in data.iter().enumerate().filter(|(at, _)| strobes >> at & 1 == 1) {
            slot.bytes[at] = *byte;
        }
        slot.strobes |= strobes;
        (slot.strobes == u64::MAX).then(|| (page, std::mem::replace(slot, EMPTY).bytes))
    }

    /// Whether a slot holds part of a command, whose rest may still come.
    pub fn has_parts(&self) -> bool {
        self.slots.iter().any(|slot| slot.strobes != 0)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.slots.fill(EMPTY);
    }
}
