//! What is done next: commands that are mostly well-formed, loads and stores, registers, messages.

use std::ops::Range;

use nearpm_firmware::Image;
use nearpm_interface::command::{Command, FLAG_COMPLETE, OPCODES, Opcode};
use nearpm_interface::firmware::{Operand, Use, descriptor};
use nearpm_interface::geometry::{
    ADDRESS_BITS, COMMAND_PAGE_BYTES, COMMAND_PAGES, LINE_U64, MAP_ENTRIES, MAX_COMMAND_BYTES, POOLS_BASE,
    SLOTS_PER_PAGE,
};
use nearpm_interface::media::{RING_EPOCH, RING_HEAD_BYTES, entry_data};
use nearpm_interface::peer::PeerMessage;
use nearpm_interface::registers;
use nearpm_interface::save::SavedMapping;
use nearpm_interface::seal::seal_word;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::slave::{Beat, Transfer};
use crate::programs;

/// Lines from [`POOLS_BASE`] on that no pool holds: what is stored there is what is loaded.
pub const PRIVATE_LINES: u64 = 256;
/// Where pools begin.
const POOLS: u64 = POOLS_BASE + PRIVATE_LINES * LINE_U64;
/// Bits of a transaction's identifier, as libraries give it.
const TXID_BITS: u32 = 48;
/// The length with the most bits that the card looks at.
const LONGEST: u32 = 2 * MAX_COMMAND_BYTES - 1;

#[derive(Clone, Copy)]
struct Pool {
    pool: u32,
    thread: u16,
    base: u64,
    bytes: u64,
    ring: u64,
    ring_bytes: u64,
    txid: u64,
}

/// What the traffic of a memory knows.
pub struct Traffic {
    firmware: Image,
    pools: Vec<Pool>,
    bytes: u64,
    sequence: u64,
}

/// A number of random size.
fn spread(rng: &mut ChaCha8Rng, end: u64) -> u64 {
    let bits = rng.random_range(0..=u64::BITS - (end - 1).max(1).leading_zeros());
    rng.random_range(0..(1_u128 << bits).min(end.into()) as u64)
}

impl Traffic {
    /// Pools in a memory of so many bytes; none is mapped yet.
    pub fn new(rng: &mut ChaCha8Rng, bytes: u64) -> Self {
        let pool = |_| {
            let length = (4 << 10) + spread(rng, bytes - POOLS - (4 << 10)) / LINE_U64 * LINE_U64;
            let behind = spread(rng, bytes - POOLS - length + 1) / LINE_U64 * LINE_U64;
            // As many near the end of the memory as near its begin.
            let base = if rng.random() { POOLS + behind } else { bytes - length - behind };
            let ring = rng.random_range(1..length / LINE_U64 - 8) * LINE_U64;
            let ring_bytes = (length - ring).min(u32::MAX.into()) / LINE_U64 * LINE_U64;
            // The last line of some pools and rings is not whole.
            let odd = if rng.random_range(0..4) == 0 { rng.random_range(0..LINE_U64) } else { 0 };
            let (bytes, ring_bytes) = (length - odd, ring_bytes - odd);
            let (pool, thread) = (rng.random(), rng.random());
            // The card does not look at what no library gives.
            let bits = if rng.random_range(0..4) == 0 { u64::BITS } else { TXID_BITS };
            let txid = 1 + spread(rng, (u64::MAX >> (u64::BITS - bits)) - (1 << 20));
            Pool { pool, thread, base, bytes, ring, ring_bytes, txid }
        };
        let pools = (0..MAP_ENTRIES + 2).map(pool).collect();
        Traffic { firmware: nearpm_firmware::standard(), pools, bytes, sequence: rng.random() }
    }

    /// The map command of the pool with that number.
    pub fn map(&self, number: usize) -> Command {
        let p = self.pools[number % self.pools.len()];
        Command {
            opcode: Opcode::Map as u8,
            pool: p.pool,
            thread: p.thread,
            source: p.base,
            destination: p.bytes,
            auxiliary: p.ring,
            length: p.ring_bytes as u32,
            sequence: p.txid - 1,
            ..Command::default()
        }
    }

    /// The entry of the mapping table for the pool with that number, as a save has it.
    pub fn saved_mapping(&self, number: usize, rng: &mut ChaCha8Rng) -> SavedMapping {
        let p = self.pools[number % self.pools.len()];
        SavedMapping {
            // In use, mostly with nothing special.
            flags: if rng.random_range(0..4) == 0 { rng.random() } else { 1 },
            reserved: 0,
            thread: p.thread,
            pool: p.pool,
            base: p.base,
            bytes: p.bytes,
            ring: p.ring,
            ring_bytes: p.ring_bytes,
            committed: if rng.random_range(0..4) == 0 { rng.random() } else { p.txid - 1 },
            reached: if rng.random_range(0..4) == 0 { rng.random() } else { p.txid - 1 },
            reserved_tail: [0; 8],
        }
    }

    /// Whom a command to the pool with that number is of; it does nothing yet.
    pub fn head(&mut self, number: usize, rng: &mut ChaCha8Rng) -> Command {
        self.sequence = self.sequence.wrapping_add(1);
        let p = self.pools[number % self.pools.len()];
        Command {
            flags: if rng.random_range(0..3) == 0 { FLAG_COMPLETE } else { 0 },
            pool: p.pool,
            thread: p.thread,
            txid: p.txid,
            sequence: self.sequence,
            tag: rng.random(),
            ..Command::default()
        }
    }

    /// Lets the next transactions of the pool with that number have identifiers with the bits of a
    /// mask.
    pub fn hurry(&mut self, number: usize, bits: u64) {
        let count = self.pools.len();
        let txid = &mut self.pools[number % count].txid;
        *txid = (*txid).max(bits);
    }

    /// Numbers of mapped pools that have so many bytes before their rings, and so many in them.
    pub fn with_room(&self, before: u64, ring: u64) -> Vec<usize> {
        let has_room = |p: &Pool| p.ring >= before && p.ring_bytes >= ring;
        (0..MAP_ENTRIES).filter(|number| has_room(&self.pools[*number])).collect()
    }

    /// A log of bytes of the pool with that number, so far into the entries of its ring.
    pub fn log(&mut self, number: usize, at: u64, of: Range<u64>, rng: &mut ChaCha8Rng) -> Command {
        let head = self.head(number, rng);
        let destination = self.pools[number % self.pools.len()].ring + RING_HEAD_BYTES + at;
        let length = (of.end - of.start) as u32;
        Command { opcode: Opcode::UndoLog as u8, source: of.start, destination, length, ..head }
    }

    /// Where the pool with that number begins.
    pub fn base(&self, number: usize) -> u64 {
        self.pools[number % self.pools.len()].base
    }

    /// Lets the rings of some pools end behind all addresses: as a save may say, and no map command
    /// that is carried out.
    pub fn stretch_rings(&mut self) {
        for p in self.pools.iter_mut().step_by(2) {
            (p.ring, p.ring_bytes) = ((1 << ADDRESS_BITS) - LINE_U64, 1 << 12);
        }
    }

    /// The next commit to the pool with that number, which waits for these cards.
    pub fn commit(&mut self, number: usize, participants: u32, rng: &mut ChaCha8Rng) -> Command {
        let head = self.head(number, rng);
        let count = self.pools.len();
        commit(&mut self.pools[number % count], participants, head, rng)
    }

    /// A command to one of the pools, mostly one that the standard firmware takes; with `peers`
    /// some wait for other cards.
    pub fn command(&mut self, rng: &mut ChaCha8Rng, peers: bool) -> Command {
        let number = rng.random_range(0..self.pools.len());
        let head = self.head(number, rng);
        let p = &mut self.pools[number];
        let most = if rng.random_range(0..40) == 0 { MAX_COMMAND_BYTES.into() } else { 2000 };
        let length = if rng.random_range(0..200) == 0 { MAX_COMMAND_BYTES.into() } else { 1 + spread(rng, most) };
        let length = length.min(p.ring).min(p.ring_bytes.saturating_sub(RING_HEAD_BYTES + 192).max(1));
        let slots = (p.ring_bytes.saturating_sub(length + RING_HEAD_BYTES + 192)) / LINE_U64 + 1;
        let mut slot = || p.ring + RING_HEAD_BYTES + spread(rng, slots) * LINE_U64;
        let (slot, second) = (slot(), slot());
        let place = spread(rng, p.ring - length + 1);
        let length = length as u32;
        // What most programs take, whatever they are: operands at whole lines of the ring, apart
        // from each other.
        if rng.random_range(0..8) == 0 {
            let opcode = rng.random_range(0..OPCODES as u8);
            let third = p.ring + RING_HEAD_BYTES + spread(rng, slots) * LINE_U64;
            let (source, participants) = (slot, participants(rng, peers));
            let known = Command { source, destination: second, auxiliary: third, length, participants, ..head };
            return Command { opcode: if programs::maps(opcode) { Opcode::Fence as u8 } else { opcode }, ..known };
        }
        match rng.random_range(0..16) {
            0..=3 => Command { opcode: Opcode::UndoLog as u8, source: place, destination: slot, length, ..head },
            4 => Command {
                opcode: Opcode::MirrorLog as u8,
                source: place,
                destination: slot,
                auxiliary: second,
                length,
                ..head
            },
            turn @ 5..=7 => Command {
                opcode: if turn < 7 { Opcode::Apply } else { Opcode::Recover } as u8,
                source: slot + entry_data(place),
                destination: place,
                length,
                ..head
            },
            8 => Command {
                opcode: Opcode::UndoRedo as u8,
                source: slot + entry_data(place),
                destination: place,
                auxiliary: second,
                length,
                ..head
            },
            9 => Command {
                opcode: Opcode::Checkpoint as u8,
                source: place & !4095,
                destination: slot,
                length: 4096,
                ..head
            },
            10 => {
                let to = spread(rng, p.bytes) & !4095;
                Command {
                    opcode: Opcode::ShadowCopy as u8,
                    source: place & !4095,
                    destination: to,
                    length: 4096,
                    ..head
                }
            }
            11 => Command {
                opcode: Opcode::Switch as u8,
                destination: place & !7,
                auxiliary: rng.random(),
                length: 8,
                participants: participants(rng, peers),
                ..head
            },
            12 => Command { opcode: Opcode::Fence as u8, participants: participants(rng, peers), ..head },
            13..=14 => commit(p, participants(rng, peers), head, rng),
            _ if rng.random_range(0..4) == 0 => Command { opcode: Opcode::Unmap as u8, ..head },
            _ if rng.random() => self.map(number),
            _ => self.odd_map(number, rng),
        }
    }

    /// A map command of which something is anywhere; it is mostly refused.
    fn odd_map(&self, number: usize, rng: &mut ChaCha8Rng) -> Command {
        let map = self.map(number);
        let any = rng.random::<u64>() >> (u64::BITS - ADDRESS_BITS) & !(LINE_U64 - 1);
        match rng.random_range(0..4) {
            0 => Command { source: any, ..map },
            1 => Command { destination: any, ..map },
            2 => Command { auxiliary: any, ..map },
            _ => Command { length: rng.random(), ..map },
        }
    }

    /// Puts anything into operands that the standard firmware does not use for a command.
    fn fill_unused(&self, rng: &mut ChaCha8Rng, command: Command) -> Command {
        let Some(head) = self.firmware.descriptor(command.opcode).filter(|head| !head.flag(descriptor::MAPS)) else {
            return command;
        };
        let mut other = |operand, at| if head.operand_use(operand) == Use::None { rng.random() } else { at };
        let source = other(Operand::Source, command.source);
        let destination = other(Operand::Destination, command.destination);
        Command { source, destination, auxiliary: other(Operand::Auxiliary, command.auxiliary), ..command }
    }

    /// A command, in one or two stores.
    pub fn command_stores(&mut self, rng: &mut ChaCha8Rng, peers: bool) -> Vec<Transfer> {
        let mut bytes = if rng.random_range(0..30) == 0 {
            let mut wild = [0; 64];
            rng.fill(&mut wild);
            let known = self.command(rng, peers);
            let wild = Command { pool: known.pool, thread: known.thread, ..Command::from_bytes(&wild) };
            let length = match rng.random_range(0..8) {
                0 => LONGEST - rng.random_range(0..LINE_U64 as u32),
                _ => wild.length >> rng.random_range(0..32),
            };
            let auxiliary = match rng.random_range(0..8) {
                0 => (1 << ADDRESS_BITS) - 1 - rng.random_range(0..u64::from(LONGEST)),
                _ => wild.auxiliary,
            };
            Command { opcode: wild.opcode % 32, length, auxiliary, ..wild }.encode()
        } else {
            let command = self.command(rng, peers);
            if rng.random_range(0..4) == 0 { self.fill_unused(rng, command).encode() } else { command.encode() }
        };
        if rng.random_range(0..40) == 0 {
            bytes[rng.random_range(0..64)] ^= 1 << rng.random_range(0..8);
        }
        let slots = if rng.random_range(0..40) == 0 { COMMAND_PAGE_BYTES / 64 } else { SLOTS_PER_PAGE };
        // The page that may map comes most.
        let page = rng.random_range(0..COMMAND_PAGES + 2) % COMMAND_PAGES;
        let address = (page * COMMAND_PAGE_BYTES + rng.random_range(0..slots) * 64) as u64;
        let first = if rng.random_range(0..8) == 0 { rng.random() } else { u64::MAX };
        let whole = Transfer::write(address, vec![(bytes, first)]);
        if first == u64::MAX { vec![whole] } else { vec![whole, Transfer::write(address, vec![(bytes, !first)])] }
    }

    /// A load or store of lines, most of them near what commands touch.
    pub fn memory(&mut self, rng: &mut ChaCha8Rng) -> Transfer {
        let p = self.pools[rng.random_range(0..self.pools.len())];
        let address = match rng.random_range(0..20) {
            0..=9 => p.base + spread(rng, p.bytes),
            10 => p.base + p.ring + spread(rng, p.ring_bytes.max(1)),
            11..=15 => return private(rng),
            16 => rng.random_range(0..POOLS_BASE),
            17 => self.bytes.saturating_sub(512) + rng.random_range(0..1024),
            _ => rng.random_range(0..1 << 40),
        };
        let address = address.min((1 << 40) - LINE_U64) / LINE_U64 * LINE_U64;
        let left = (4096 - address % 4096) / LINE_U64;
        let beats = if rng.random_range(0..6) == 0 { 1 + spread(rng, left) } else { 1 };
        transfer(rng, address, beats.min(left) as u8)
    }

    /// A message of another card: most of them about transactions that are under way.
    pub fn message(&self, rng: &mut ChaCha8Rng) -> PeerMessage {
        let p = self.pools[rng.random_range(0..self.pools.len())];
        let txid = match rng.random_range(0..8) {
            0 => spread(rng, 1 << TXID_BITS),
            1 => rng.random(),
            _ => p.txid.wrapping_sub(spread(rng, 2000)).max(1),
        };
        let known = PeerMessage {
            pool: p.pool,
            thread: p.thread,
            device: rng.random_range(0..8),
            status: rng.random_range(0..2),
            txid,
        };
        match rng.random_range(0..12) {
            0 => PeerMessage { pool: rng.random(), ..known },
            1 => PeerMessage { thread: rng.random(), ..known },
            2 => PeerMessage { device: rng.random(), status: rng.random(), ..known },
            _ => known,
        }
    }
}

fn commit(p: &mut Pool, participants: u32, head: Command, rng: &mut ChaCha8Rng) -> Command {
    p.txid = p.txid.saturating_add(1 + spread(rng, 500));
    let (destination, auxiliary) = (p.ring + RING_EPOCH, seal_word(head.txid % (1 << TXID_BITS)));
    Command { opcode: Opcode::Commit as u8, destination, auxiliary, length: 8, participants, ..head }
}

fn participants(rng: &mut ChaCha8Rng, peers: bool) -> u32 {
    match rng.random_range(0..4) {
        _ if !peers => 0,
        0 => rng.random(),
        1 => 0b11,
        2 => rng.random_range(0..256),
        _ => 0,
    }
}

fn transfer(rng: &mut ChaCha8Rng, address: u64, beats: u8) -> Transfer {
    if rng.random() {
        return Transfer::read(address, beats);
    }
    let mut beat = |_| -> Beat {
        let mut data = [0; 64];
        rng.fill(&mut data);
        (data, if rng.random() { u64::MAX } else { rng.random() })
    };
    Transfer::write(address, (0..beats).map(&mut beat).collect())
}

fn private(rng: &mut ChaCha8Rng) -> Transfer {
    let address = POOLS_BASE + rng.random_range(0..PRIVATE_LINES) * LINE_U64;
    if rng.random() { Transfer::read(address, 1) } else { transfer(rng, address, 1) }
}

/// An access to a register that ends nothing; a read without `writes`.
pub fn register(rng: &mut ChaCha8Rng, writes: bool) -> Transfer {
    let all = registers::ALL;
    let offset = match rng.random_range(0..16) {
        0 => rng.random_range(0..4096_u32),
        _ => all[rng.random_range(0..all.len())].offset,
    };
    if !writes || rng.random() || offset / 4 == registers::CONTROL / 4 {
        return Transfer::read(offset.into(), 1);
    }
    let value: u32 = match offset & !3 {
        registers::COMPLETION0_SIZE
        | registers::COMPLETION1_SIZE
        | registers::COMPLETION2_SIZE
        | registers::COMPLETION3_SIZE => rng.random_range(0..=12),
        registers::FIRMWARE_LOAD if rng.random() => rng.random_range(0..2),
        registers::PARKED_ACT if rng.random() => rng.random_range(0..32) | rng.random_range(1..3) << 8,
        registers::DEVICE_NUMBER if rng.random() => rng.random_range(0..8),
        _ => rng.random(),
    };
    write_register(offset, value, if rng.random_range(0..16) == 0 { rng.random_range(0..16) } else { 0xf })
}

/// A write of a register.
pub fn write_register(offset: u32, value: u32, strobes: u64) -> Transfer {
    let mut data = [0; 64];
    data[..4].copy_from_slice(&value.to_le_bytes());
    Transfer::write(offset.into(), vec![(data, strobes)])
}
