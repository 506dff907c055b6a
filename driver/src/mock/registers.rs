//! The register block, firmware loading and reset.

use nearpm_interface::completion::PageStatus;
use nearpm_interface::firmware::{IMAGE_BYTES, IMAGE_MAGIC};
use nearpm_interface::geometry::{COMMAND_PAGES, FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, LINE, LINE_U64};
use nearpm_interface::registers::{self as reg, capability, control, firmware_status, state};

use super::{State, overlap};
use crate::registers::LostStores;

impl State {
    pub(super) fn register(&mut self, offset: u32) -> u32 {
        let capabilities = [
            (self.options.host_ordered, capability::HOST_ORDERED),
            (self.options.completion_records, capability::COMPLETION_RECORDS),
            (true, capability::POWER_FAIL_SAFE),
        ];
        match offset {
            reg::ID => reg::ID_VALUE,
            reg::VERSION => self.options.version,
            reg::CAPABILITIES => capabilities.iter().filter(|(on, _)| *on).map(|(_, bit)| bit).sum(),
            reg::PM_BYTES_LO => self.options.pm_bytes as u32,
            reg::PM_BYTES_HI => (self.options.pm_bytes as u64 >> 32) as u32,
            reg::STATE => self.card_state,
            reg::FIRMWARE_STATUS => self.firmware_status(),
            reg::MAPPED => self.mappings.iter().fold(0, |mask, mapping| mask | 1 << mapping.entry),
            reg::LATCHED => self.latched().into(),
            reg::STORES_LOST => self.stores_lost(),
            reg::LOST_FIRST_LO => self.lost.map_or(0, |lost| lost.first as u32),
            reg::LOST_FIRST_HI => self.lost.map_or(0, |lost| (lost.first >> 32) as u32),
            reg::LOST_LAST_LO => self.lost.map_or(0, |lost| lost.last as u32),
            reg::LOST_LAST_HI => self.lost.map_or(0, |lost| (lost.last >> 32) as u32),
            _ => 0,
        }
    }

    /// Entries whose logs have failed, one bit each.
    fn latched(&self) -> u16 {
        self.mappings.iter().map(|m| u16::from(m.latched) << m.entry).sum()
    }

    /// The status line of a page.
    pub(super) fn page_status(&self, page: usize) -> PageStatus {
        PageStatus { latched: self.latched(), stores_lost: self.stores_lost(), ..self.pages[page].status }
    }

    fn stores_lost(&self) -> u32 {
        self.lost.map_or(0, |lost| lost.count)
    }

    /// Whether memory refuses a store to a line. The pools that it falls into are latched.
    pub(super) fn is_lost(&mut self, line: u64) -> bool {
        if !self.refusing.iter().any(|range| overlap(range, &(line..line + LINE_U64))) {
            return false;
        }
        let lost = self.lost.unwrap_or(LostStores { count: 0, first: line, last: line });
        let (count, first, last) = (lost.count + 1, lost.first.min(line), lost.last.max(line));
        self.lost = Some(LostStores { count, first, last });
        for mapping in &mut self.mappings {
            mapping.latched |= (mapping.base..mapping.base + mapping.bytes).contains(&line);
        }
        true
    }

    pub(super) fn set_register(&mut self, offset: u32, value: u32) {
        match offset {
            reg::CONTROL if value & control::ACKNOWLEDGE_LOSS != 0 => {
                self.card_state = state::OPEN;
                self.lost = None;
            }
            reg::CONTROL if value & control::SHUT_DOWN != 0 => {
                while self.execute_one() {}
                self.card_state = state::SAVED;
            }
            reg::CONTROL if value & control::FUNCTION_RESET != 0 => self.reset(),
            reg::FIRMWARE_LOAD => self.load_asked = Some((value, self.options.load_looks)),
            _ => {}
        }
        for page in 0..COMMAND_PAGES {
            let base = reg::completion_ring(page);
            let ring = &mut self.pages[page].ring;
            if offset == base {
                ring.0 = ring.0 >> 32 << 32 | u64::from(value);
            } else if offset == base + 4 {
                ring.0 = ring.0 & 0xffff_ffff | u64::from(value) << 32;
            } else if offset == base + 8 {
                ring.1 = Some(value);
                self.pages[page].records = 0;
            }
        }
    }

    /// What is shown of firmware loads. Carries out one that was asked for.
    fn firmware_status(&mut self) -> u32 {
        match self.load_asked {
            Some((slot, 0)) => {
                self.load_asked = None;
                self.load_firmware(slot);
            }
            Some((slot, looks)) => {
                self.load_asked = Some((slot, looks - 1));
                return self.firmware_status & !0xff | firmware_status::BUSY;
            }
            None => {}
        }
        self.firmware_status
    }

    fn load_firmware(&mut self, slot: u32) {
        if self.options.busy_loads > 0 {
            self.options.busy_loads -= 1;
            self.firmware_status = firmware_status::NOT_IDLE;
            return;
        }
        let start = FIRMWARE_BASE as usize + slot as usize * FIRMWARE_SLOT_BYTES as usize;
        let image = &self.medium[start..start + IMAGE_BYTES];
        let head: &[u8; LINE] = image[..LINE].try_into().expect("an image has a head");
        self.firmware_status = if image[..4] != IMAGE_MAGIC.to_le_bytes() {
            firmware_status::BAD_MAGIC
        } else if !nearpm_interface::seal::is_sealed(&image[LINE..], head) {
            firmware_status::BAD_CRC
        } else {
            self.card_state = state::OPEN;
            firmware_status::OK | slot << 8
        };
    }

    pub(super) fn reset(&mut self) {
        // What asks for it pushes what was sent before, as any request does that waits for an
        // answer.
        self.push();
        while self.execute_one() {}
        self.mappings.clear();
        for page in &mut self.pages {
            page.ring = (0, None);
        }
    }
}
