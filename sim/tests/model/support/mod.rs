//! A model card on the bench: short names for what tests do to it.
//!
//! Each test binary includes this module and uses a part of it.
#![allow(dead_code)]

pub mod oracle;
pub mod scenario;

use nearpm_interface::command::{Command, FLAG_COMPLETE, Opcode, slot_offset};
use nearpm_interface::completion::{Completion, PageStatus};
use nearpm_interface::geometry::{FIRMWARE_BASE, LINE, LINE_U64, POOLS_BASE, SAVE_BASE};
use nearpm_interface::media::{EntryHead, RING_HEAD_BYTES, entry_bytes};
use nearpm_interface::registers::{self, state};
use nearpm_interface::save::{FIRMWARE_WORD_OFFSET, firmware_word};
use nearpm_interface::seal;
use nearpm_interface::status::Status;
use nearpm_sim::core::{Access, Answer, CardCore, Medium, Ticket};
use nearpm_sim::model::fault::Fault;
use nearpm_sim::model::{Config, ModelCard};

/// Far beyond every bound of the card, in cycles.
pub const LIMIT: u64 = 4_000_000;
/// Bytes of the test medium.
pub const PM_BYTES: usize = 4 << 19;
/// The pool that the rig maps: identifier, bytes, offset and bytes of its ring.
pub const POOL: u32 = 7;
pub const POOL_BYTES: u64 = 512 << 10;
pub const RING: u64 = 256 << 10;
pub const RING_BYTES: u64 = 256 << 10;
/// Offset of the first log slot.
pub const SLOTS: u64 = RING + RING_HEAD_BYTES;
/// Energy that is more than enough for every save, in cycles.
pub const ENERGY: u64 = 100_000;

/// Bus address of the completion rings, 64 KiB apart.
pub const BUS: u64 = 0x1000_0000;

/// A medium on which the standard firmware is in force.
pub fn provisioned() -> Medium {
    with_image(nearpm_firmware::standard().bytes())
}

/// A medium on which an image is in force.
pub fn with_image(image: &[u8]) -> Medium {
    let mut medium = Medium::blank(PM_BYTES);
    medium.bytes[FIRMWARE_BASE as usize..][..image.len()].copy_from_slice(image);
    let crc = u32::from_le_bytes(image[60..64].try_into().unwrap());
    let at = (SAVE_BASE + FIRMWARE_WORD_OFFSET) as usize;
    medium.bytes[at..at + 8].copy_from_slice(&firmware_word(0, crc).to_le_bytes());
    medium
}

/// The card with what the test knows of it.
pub struct Rig {
    pub card: Box<ModelCard>,
    slot: usize,
    pub tag: u32,
    pub records: Vec<Completion>,
}

impl Rig {
    /// Powers a card up.
    pub fn power_up(medium: Medium) -> Rig {
        Rig::of(ModelCard::new(Config { trace: true, ..Config::default() }, medium))
    }

    /// The same with a fault, if one is given.
    pub fn faulty(medium: Medium, fault: Option<Fault>) -> Rig {
        let config = Config { trace: true, ..Config::default() };
        Rig::of(match fault {
            Some(fault) => ModelCard::with_fault(config, medium, fault),
            None => ModelCard::new(config, medium),
        })
    }

    pub fn of(card: ModelCard) -> Rig {
        Rig { card: Box::new(card), slot: 0, tag: 100, records: Vec::new() }
    }

    /// An open card with the pool mapped for thread 0.
    pub fn open(fault: Option<Fault>) -> Rig {
        let mut rig = Rig::faulty(provisioned(), fault);
        rig.until(state::OPEN);
        rig.rings();
        rig.map(POOL, 0, POOLS_BASE);
        rig
    }

    /// Starts the completion rings of all pages.
    pub fn rings(&mut self) {
        for page in 0..4 {
            let ring = registers::completion_ring(page);
            self.set(ring, (BUS + page as u64 * 0x1_0000) as u32);
            self.set(ring + 4, 0);
            self.set(ring + 8, 8);
        }
    }

    pub fn map(&mut self, pool: u32, thread: u16, base: u64) {
        let record = self.run(Command { pool, thread, ..map_command(base) });
        assert_eq!(record.status, Status::Ok.code());
    }

    pub fn get(&mut self, offset: u32) -> u32 {
        let data = self.ask(Access::RegisterRead { offset }).data;
        u32::from_le_bytes(data[..4].try_into().unwrap())
    }

    pub fn set(&mut self, offset: u32, value: u32) {
        self.ask(Access::RegisterWrite { offset, value });
    }

    /// Waits for a state.
    pub fn until(&mut self, state: u32) {
        let end = self.card.cycle() + LIMIT;
        loop {
            let now = self.get(registers::STATE);
            if now == state {
                return;
            }
            assert!(self.card.cycle() < end, "state {now} instead of {state}");
        }
    }

    pub fn ask(&mut self, access: Access) -> Answer {
        let ticket = self.card.submit(access);
        self.card.wait(ticket, LIMIT)
    }

    /// Posts bytes to the next slot of a page, whole, and does not wait.
    pub fn post_raw(&mut self, page: usize, data: [u8; LINE], strobes: u64) -> Ticket {
        let offset = slot_offset(page, self.slot);
        self.slot = (self.slot + 1) % 16;
        self.card.submit(Access::CommandWrite { offset, data, strobes })
    }

    /// The slot that [`Rig::post_raw`] wrote last.
    pub fn last_slot(&self) -> usize {
        (self.slot + 15) % 16
    }

    /// Posts a command to a page and does not wait; gives its tag.
    pub fn post_to(&mut self, page: usize, command: Command) -> u32 {
        self.tag += 1;
        let command = Command { tag: self.tag, flags: FLAG_COMPLETE, ..command };
        self.post_raw(page, command.encode(), u64::MAX);
        self.tag
    }

    pub fn post(&mut self, command: Command) -> u32 {
        self.post_to(0, command)
    }

    /// Collects completion records.
    pub fn collect(&mut self) {
        while let Some(write) = self.card.take_dma() {
            let at = write.strobes.trailing_zeros() as usize;
            assert_eq!(write.strobes, 0xffff << at);
            self.records.push(Completion::from_bytes(&write.data[at..at + 16].try_into().unwrap()));
        }
    }

    /// Waits for the record of a tag.
    pub fn finish(&mut self, tag: u32) -> Completion {
        let end = self.card.cycle() + LIMIT;
        loop {
            self.collect();
            if let Some(i) = self.records.iter().position(|r| r.tag == tag) {
                return self.records.remove(i);
            }
            assert!(self.card.cycle() < end, "no record of tag {tag}");
            let next = self.card.cycle() + 1;
            self.card.advance_to(next);
        }
    }

    /// Posts and waits for the record.
    pub fn run(&mut self, command: Command) -> Completion {
        let tag = self.post(command);
        self.finish(tag)
    }

    /// Posts a command to a closed card; gives the slots that were dropped.
    pub fn run_dropped(&mut self, command: Command) -> u32 {
        self.post(command);
        self.status(0).dropped
    }

    pub fn run_on(&mut self, page: usize, command: Command) -> Completion {
        let tag = self.post_to(page, command);
        self.finish(tag)
    }

    pub fn status(&mut self, page: usize) -> PageStatus {
        PageStatus::from_bytes(&self.ask(Access::CommandRead { page }).data)
    }

    /// Stores a line of the pool and does not wait.
    pub fn store(&mut self, offset: u64, data: [u8; LINE]) -> Ticket {
        self.card.submit(Access::PmWrite { address: POOLS_BASE + offset, data, strobes: u64::MAX })
    }

    /// Loads a line of the pool.
    pub fn load(&mut self, offset: u64) -> [u8; LINE] {
        self.ask(Access::PmRead { address: POOLS_BASE + offset }).data
    }

    /// Lets everything come to rest.
    pub fn settle(&mut self) {
        let end = self.card.cycle() + LIMIT;
        while !self.card.is_idle() {
            assert!(self.card.cycle() < end, "the card does not come to rest");
            let next = self.card.cycle() + 1;
            self.card.advance_to(next);
        }
        self.collect();
    }

    /// Cuts the power with enough energy for the save.
    pub fn cut(self, seed: u64) -> Medium {
        self.card.power_fail(ENERGY, seed)
    }
}

/// Bytes of a line of the test pool that its offset and a number name.
pub fn pattern(offset: u64, number: u64) -> [u8; LINE] {
    std::array::from_fn(|i| (offset / 64 * 37 + number * 101 + i as u64 * 7 + 1) as u8)
}

/// Pool bytes of a medium.
pub fn pool_bytes(medium: &Medium, offset: u64, bytes: usize) -> &[u8] {
    &medium.bytes[(POOLS_BASE + offset) as usize..][..bytes]
}

/// The command that maps the test pool at a device address.
pub fn map_command(base: u64) -> Command {
    Command {
        opcode: Opcode::Map as u8,
        pool: POOL,
        source: base,
        destination: POOL_BYTES,
        auxiliary: RING,
        length: RING_BYTES as u32,
        // Committed before: transactions up to 4 are stale.
        sequence: 4,
        ..Command::default()
    }
}

pub fn unmap() -> Command {
    Command { opcode: Opcode::Unmap as u8, pool: POOL, ..Command::default() }
}

/// Undo log of a range into a log slot.
pub fn undo(txid: u64, source: u64, length: u32, slot: u64) -> Command {
    Command {
        opcode: Opcode::UndoLog as u8,
        pool: POOL,
        txid,
        source,
        destination: slot,
        sequence: slot,
        length,
        ..Command::default()
    }
}

/// Commit of a transaction.
pub fn commit(txid: u64) -> Command {
    Command {
        opcode: Opcode::Commit as u8,
        pool: POOL,
        txid,
        destination: RING,
        auxiliary: seal::seal_word(txid),
        ..Command::default()
    }
}

pub fn fence() -> Command {
    Command { opcode: Opcode::Fence as u8, pool: POOL, ..Command::default() }
}

/// Copy from the ring to its home.
pub fn apply(source: u64, destination: u64, length: u32) -> Command {
    Command { opcode: Opcode::Apply as u8, pool: POOL, source, destination, length, ..Command::default() }
}

pub fn undo_redo(txid: u64, source: u64, destination: u64, length: u32, slot: u64) -> Command {
    Command {
        opcode: Opcode::UndoRedo as u8,
        pool: POOL,
        txid,
        source,
        destination,
        auxiliary: slot,
        sequence: slot,
        length,
        ..Command::default()
    }
}

/// The log entry in a slot: its head and the logged bytes.
pub fn entry(medium: &Medium, slot: u64) -> Option<(EntryHead, Vec<u8>)> {
    let bytes = pool_bytes(medium, slot, (RING + RING_BYTES - slot) as usize);
    let head = EntryHead::decode(bytes)?;
    let start = (LINE_U64 + head.offset % LINE_U64) as usize;
    assert!(entry_bytes(head.offset, head.length) as usize <= bytes.len());
    Some((head, bytes[start..start + head.length as usize].to_vec()))
}
