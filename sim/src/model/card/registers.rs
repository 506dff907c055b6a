//! Registers.

use nearpm_interface::INTERFACE_VERSION;
use nearpm_interface::geometry::{COMMAND_PAGES, HOST_QUEUE_LINES, MAP_ENTRIES, REQUEST_SLOTS};
use nearpm_interface::registers::{self as r, capability, control, firmware_status, state};

use super::ModelCard;

/// Event counters of the register block.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    pub accepted: u32,
    pub retired: u32,
    pub refused: u32,
    pub failed: u32,
    pub dropped: u32,
    pub held: u32,
    pub host_reads: u32,
    pub host_writes: u32,
    pub host_held: u32,
    pub host_refused: u32,
    pub host_latched: u32,
}

/// A completion ring in host memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ring {
    /// Bus address.
    pub base: u64,
    /// log2 of its records.
    pub log2: u32,
    /// Records are written.
    pub enabled: bool,
    /// Records since the ring was started.
    pub next: u64,
}

/// log2 of the records of the largest ring.
const RING_LOG2_MAX: u32 = 12;

/// Page and register (0 low, 1 high, 2 size) of a completion ring register.
fn ring_register(offset: u32) -> Option<(usize, u32)> {
    let at = offset.checked_sub(r::COMPLETION0_LO)?;
    let (page, which) = (at as usize / 16, at % 16 / 4);
    (page < COMMAND_PAGES && which < 3 && at % 4 == 0).then_some((page, which))
}

impl ModelCard {
    pub(in crate::model) fn read_register(&self, offset: u32) -> u32 {
        if let Some((page, which)) = ring_register(offset) {
            let ring = &self.rings[page];
            return [ring.base as u32, (ring.base >> 32) as u32, ring.log2][which as usize];
        }
        let c = &self.counters;
        let unit_lines = |which: usize| self.units.iter().fold(0u32, |sum, u| sum.wrapping_add(u.lines[which]));
        match offset {
            r::ID => r::ID_VALUE,
            r::VERSION => INTERFACE_VERSION,
            r::CAPABILITIES => {
                let safe = if self.power_fail_safe { capability::POWER_FAIL_SAFE } else { 0 };
                capability::HOST_ORDERED | capability::COMPLETION_RECORDS | capability::PEERS | safe
            }
            r::GEOMETRY => (self.units.len() | REQUEST_SLOTS << 8 | HOST_QUEUE_LINES << 16 | MAP_ENTRIES << 24) as u32,
            r::PM_BYTES_LO => self.memory.bytes() as u32,
            r::PM_BYTES_HI => (self.memory.bytes() >> 32) as u32,
            r::DEVICE_NUMBER => self.device,
            r::STATE => self.state(),
            r::GENERATION => self.persistence.generation as u32,
            r::REPLAYED => self.persistence.replayed,
            r::LATCHED => self.map.mask(|m| m.latched),
            r::MAPPED => self.map.mask(|m| !m.orphan),
            r::STORES_LOST => self.lost.count,
            r::LOST_FIRST_LO => self.lost.first as u32,
            r::LOST_FIRST_HI => (self.lost.first >> 32) as u32,
            r::LOST_LAST_LO => self.lost.last as u32,
            r::LOST_LAST_HI => (self.lost.last >> 32) as u32,
            r::SAVE_CYCLES => self.persistence.save_cycles as u32,
            r::FIRMWARE_STATUS => self.shown_firmware_status() | (self.firmware.slot as u32) << 8,
            r::FIRMWARE_CRC => self.firmware.crc,
            r::CYCLES => self.now as u32,
            r::PARKED..=r::PARKED_REACHED => self.read_parked(offset),
            r::COMMANDS_ACCEPTED => c.accepted,
            r::COMMANDS_RETIRED => c.retired,
            r::COMMANDS_REFUSED => c.refused,
            r::COMMANDS_FAILED => c.failed,
            r::COMMANDS_DROPPED => c.dropped,
            r::COMMANDS_HELD => c.held,
            r::HOST_READS => c.host_reads,
            r::HOST_WRITES => c.host_writes,
            r::HOST_HELD => c.host_held,
            r::HOST_REFUSED => c.host_refused,
            r::HOST_LATCHED => c.host_latched,
            r::UNIT_READ_LINES => unit_lines(0),
            r::UNIT_WRITE_LINES => unit_lines(1),
            r::DIRECTION_SWITCHES => self.port.switches,
            r::STALL_REQUEST_FULL => self.front.stall_request as u32,
            r::STALL_HOST_FULL => self.front.stall_host as u32,
            // Write-only registers, holes, the build hash (a model has no Verilog), RECORDS_LOST
            // (its host memory refuses nothing), and TLPS_POISONED, which is a PCIe bridge's.
            _ => 0,
        }
    }

    pub(in crate::model) fn write_register(&mut self, offset: u32, value: u32) {
        if let Some((page, which)) = ring_register(offset) {
            let ring = &mut self.rings[page];
            match which {
                0 => ring.base = ring.base & !0xffff_ffff | (value & !63) as u64,
                1 => ring.base = ring.base & 0xffff_ffff | (value as u64) << 32,
                _ => *ring = Ring { base: ring.base, log2: value.min(RING_LOG2_MAX), enabled: true, next: 0 },
            }
            return;
        }
        match offset {
            r::DEVICE_NUMBER => self.number_device(value),
            r::PARKED_SELECT => self.select_parked(value),
            r::PARKED_ACT => self.act_on_parked(value),
            r::FIRMWARE_LOAD => self.load_firmware(value),
            r::CONTROL => {
                if value & control::FUNCTION_RESET != 0 {
                    self.function_reset();
                }
                if value & control::SHUT_DOWN != 0 {
                    self.shut_down();
                }
                if value & control::ACKNOWLEDGE_LOSS != 0 {
                    self.acknowledge_loss();
                }
            }
            _ => {}
        }
    }

    /// An image that is in force before the card is open is not shown so.
    fn shown_firmware_status(&self) -> u32 {
        let closed = [state::BOOTING, state::REPLAYING].contains(&self.state());
        let hides = closed && self.firmware_status == firmware_status::OK;
        if hides { firmware_status::BUSY } else { self.firmware_status }
    }

    /// Notes the outcome of a firmware load.
    pub(in crate::model) fn set_firmware_status(&mut self, status: u32) {
        debug_assert!(status <= firmware_status::MEMORY_ERROR);
        self.firmware_status = status;
    }
}
