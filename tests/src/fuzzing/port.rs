//! The ports of a card under arbitrary accesses.

use std::ops::Range;

use arbitrary::{Result, Unstructured};
use nearpm_interface::command::{Command, Opcode, slot_offset};
use nearpm_interface::completion::Completion;
use nearpm_interface::geometry::{
    COMMAND_BAR_BYTES, COMMAND_PAGES, LINE, LINE_U64, MAX_COMMAND_BYTES, POOLS_BASE, SAVE_BASE, SAVE_BYTES,
    SLOTS_PER_PAGE,
};
use nearpm_interface::registers;
use nearpm_interface::seal::seal_word;
use nearpm_interface::status::Status;
use nearpm_sim::bench::{BenchPool, CardBench, line_pattern, provisioned};
use nearpm_sim::core::{Access, CardCore, Medium, Ticket};

/// The pool that is mapped at the start: identifier 1, thread 0.
const POOL: BenchPool = BenchPool { bytes: 256 << 10, ring: 128 << 10, ring_bytes: 128 << 10 };
/// Bytes of the card's memory: twice as many for pools as the first one has.
const PM_BYTES: u64 = POOLS_BASE + 2 * POOL.bytes;
/// Most accesses of a run.
const ACCESSES: usize = 200;
/// Far beyond the bound on any answer (the card may have 32 commands of the longest kind in front
/// of it).
const HANG_CYCLES: u64 = 10_000_000;
/// Tags of the fuzzer have this bit, those of the bench have not.
const TAG: u32 = 1 << 31;

/// What the host did, as far as it tells what memory may hold.
struct Host {
    bench: CardBench,
    /// Memory if commands wrote nothing.
    expected: Medium,
    /// Device addresses that commands may write: every pool that was ever asked to be mapped.
    mapped: Vec<Range<u64>>,
    /// Stores that are not answered yet.
    stores: Vec<(Ticket, Access)>,
    others: Vec<Ticket>,
}

/// A medium with firmware whose every other line names its address.
fn medium() -> Medium {
    let mut medium = provisioned(PM_BYTES as usize, nearpm_firmware::standard().bytes());
    for address in (POOLS_BASE..PM_BYTES).step_by(LINE) {
        medium.write_line(address, &line_pattern(address), u64::MAX);
    }
    medium
}

/// A field that is often where something is decided, and anything else at times.
fn offset(u: &mut Unstructured<'_>) -> Result<u64> {
    Ok(match u.int_in_range(0..=7)? {
        0..=2 => u.int_in_range(0..=POOL.ring / LINE_U64)? * LINE_U64,
        3..=4 => POOL.slots() + u.int_in_range(0..=511)? * LINE_U64,
        5 => u.int_in_range(0..=POOL.bytes)?,
        6 => *u.choose(&[0, POOL.ring, POOL.bytes, POOL.bytes - 64, u64::MAX, u64::MAX - 63, 1 << 40, 1 << 63])?,
        _ => u.arbitrary()?,
    })
}

/// A command that makes sense by itself.
fn sound(u: &mut Unstructured<'_>) -> Result<Command> {
    let within = u.int_in_range(0..=LINE_U64 - 1)?;
    let object = u.int_in_range(0..=63)? * LINE_U64;
    let slot = POOL.slots() + u.int_in_range(0..=500)? * LINE_U64;
    let mirror = slot + POOL.ring_bytes / 2;
    let opcode = u.choose(Opcode::ALL)?.0;
    let txid = u.int_in_range(1..=1000)?;
    let (source, destination, auxiliary, length) = match opcode {
        Opcode::Apply | Opcode::Recover | Opcode::UndoRedo => {
            (slot + within, object + within, mirror, u.int_in_range(1..=1000)?)
        }
        Opcode::Commit => (0, POOL.ring, seal_word(txid), 8),
        Opcode::Switch => (0, object + 8, u.arbitrary()?, 8),
        Opcode::ShadowCopy => (0, 4096 * u.int_in_range(1..=16)?, 0, 4096),
        _ => (object + within, slot, mirror, u.int_in_range(1..=1000)?),
    };
    let tag = u.arbitrary::<u32>()? | TAG;
    let opcode = opcode as u8;
    Ok(Command { opcode, pool: 1, txid, source, destination, auxiliary, length, tag, ..Command::default() })
}

/// A command whose fields have nothing to do with each other.
fn senseless(u: &mut Unstructured<'_>) -> Result<Command> {
    Ok(Command {
        opcode: if u.ratio(7, 8)? { u.choose(Opcode::ALL)?.0 as u8 } else { u.arbitrary()? },
        flags: u.arbitrary()?,
        thread: if u.ratio(7, 8)? { 0 } else { u.arbitrary()? },
        pool: if u.ratio(7, 8)? { u.int_in_range(0..=2)? } else { u.arbitrary()? },
        txid: if u.ratio(7, 8)? { u.int_in_range(0..=20)? } else { u.arbitrary()? },
        source: offset(u)?,
        destination: offset(u)?,
        auxiliary: offset(u)?,
        sequence: u.arbitrary()?,
        length: match u.int_in_range(0..=3)? {
            0 => *u.choose(&[0, 1, 8, 64, 4096, MAX_COMMAND_BYTES, MAX_COMMAND_BYTES + 1, u32::MAX])?,
            1 => u.arbitrary()?,
            _ => u.int_in_range(1..=1000)?,
        },
        tag: u.arbitrary::<u32>()? | TAG,
        participants: if u.ratio(7, 8)? { 0 } else { u.arbitrary()? },
        crc: 0,
    })
}

/// A mapping request that makes sense, for another part of the memory.
fn mapping(u: &mut Unstructured<'_>) -> Result<Command> {
    let at = POOLS_BASE + u.int_in_range(0..=2 * POOL.bytes / LINE_U64)? * LINE_U64;
    let lines = u.int_in_range(0..=POOL.bytes / LINE_U64)?;
    let ring = u.int_in_range(0..=lines)?;
    Ok(Command {
        opcode: Opcode::Map as u8,
        pool: u.int_in_range(0..=2)?,
        thread: u.int_in_range(0..=17)?,
        source: at,
        destination: lines * LINE_U64,
        auxiliary: ring * LINE_U64,
        length: ((lines - ring) * LINE_U64) as u32,
        tag: TAG,
        ..Command::default()
    })
}

/// Makes the accesses that the bytes describe on a card that `power_up` boots.
///
/// # Panics
/// If the card breaks a promise, or hangs.
pub fn command_port(power_up: &dyn Fn(Medium) -> Box<dyn CardCore>, data: &[u8]) {
    let expected = medium();
    let bench = CardBench::open(power_up(expected.clone()), POOL);
    let pool = POOLS_BASE..POOLS_BASE + POOL.bytes;
    let mut host = Host { bench, expected, mapped: vec![pool], stores: Vec::new(), others: Vec::new() };
    let mut u = Unstructured::new(data);
    for _ in 0..ACCESSES {
        // Bytes that run out end the description: every input is one.
        if u.is_empty() || host.step(&mut u).is_err() {
            break;
        }
    }
    host.finish();
}

impl Host {
    fn submit(&mut self, access: Access) {
        let ticket = self.bench.card.submit(access);
        self.others.push(ticket);
    }

    /// Writes 64 bytes into a slot, in one piece or in several, some of which may be missing or
    /// come twice.
    fn write_slot(&mut self, u: &mut Unstructured<'_>, data: [u8; LINE]) -> Result<()> {
        let offset = if u.ratio(7, 8)? {
            slot_offset(u.int_in_range(0..=COMMAND_PAGES - 1)?, u.int_in_range(0..=SLOTS_PER_PAGE - 1)?)
        } else {
            u.int_in_range(0..=COMMAND_BAR_BYTES as u64 / LINE_U64)? * LINE_U64
        };
        let mut left = if u.ratio(3, 4)? { 0 } else { u64::MAX };
        if left == 0 {
            self.submit(Access::CommandWrite { offset, data, strobes: u64::MAX });
        }
        while left != 0 && !u.is_empty() {
            let strobes = u.arbitrary::<u64>()? & if u.ratio(7, 8)? { left } else { u64::MAX };
            self.submit(Access::CommandWrite { offset, data, strobes });
            left &= !strobes;
            if u.ratio(1, 8)? {
                break;
            }
        }
        Ok(())
    }

    fn step(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        match u.int_in_range(0..=15)? {
            0..=6 => {
                let command = if u.ratio(2, 3)? { sound(u)? } else { senseless(u)? };
                self.note(&command);
                self.write_slot(u, command.encode())?;
            }
            7 => {
                let command = mapping(u)?;
                self.note(&command);
                self.write_slot(u, command.encode())?;
            }
            8 => {
                let mut data = [0; LINE];
                u.fill_buffer(&mut data)?;
                self.write_slot(u, data)?;
            }
            9..=11 => {
                let access =
                    Access::PmWrite { address: address(u)?, data: [u.arbitrary()?; LINE], strobes: u.arbitrary()? };
                let ticket = self.bench.card.submit(access.clone());
                self.stores.push((ticket, access));
            }
            12..=13 => self.submit(Access::PmRead { address: address(u)? }),
            14 => self.submit(Access::CommandRead { page: u.int_in_range(0..=COMMAND_PAGES)? }),
            _ => {
                let next = self.bench.card.cycle() + u.int_in_range(0..=5000)?;
                self.bench.card.advance_to(next);
            }
        }
        Ok(())
    }

    /// Notes what a command might map.
    fn note(&mut self, command: &Command) {
        let end = command.source.saturating_add(command.destination);
        if command.opcode == Opcode::Map as u8 && command.source >= POOLS_BASE && end <= PM_BYTES {
            self.mapped.push(command.source..end);
        }
    }

    /// Waits for every answer and for rest, asks for one more command, and compares memory.
    fn finish(mut self) {
        for (ticket, access) in std::mem::take(&mut self.stores) {
            let answer = self.bench.card.wait(ticket, HANG_CYCLES);
            if let Access::PmWrite { address, data, strobes } = access
                && !answer.error
            {
                self.expected.write_line(address, &data, strobes);
            }
        }
        for ticket in std::mem::take(&mut self.others) {
            self.bench.card.wait(ticket, HANG_CYCLES);
        }
        let end = self.bench.card.cycle() + HANG_CYCLES;
        while !self.bench.card.is_idle() {
            let next = self.bench.card.cycle() + 1000;
            assert!(next < end, "the card does not come to rest");
            self.bench.card.advance_to(next);
        }
        self.look_at_records();
        let fence = self.bench.post(Command { pool: 1, ..Command::default() });
        let status = self.bench.finish(fence).status;
        assert!(matches!(status, Status::Ok | Status::Unmapped), "the card goes on, but gave {status:?}");
        self.compare();
    }

    /// Every record must lie in a ring and be a record.
    fn look_at_records(&mut self) {
        let rings: Vec<Range<u64>> = (0..COMMAND_PAGES)
            .map(|page| {
                let at = registers::completion_ring(page);
                let base = u64::from(self.bench.register(at)) | u64::from(self.bench.register(at + 4)) << 32;
                base..base + (16 << self.bench.register(at + 8))
            })
            .collect();
        while let Some(write) = self.bench.card.take_dma() {
            let at = write.strobes.trailing_zeros() as usize;
            assert_eq!(write.strobes, 0xffff << at, "a record is 16 bytes");
            let bus = write.bus_address + at as u64;
            assert!(rings.iter().any(|ring| ring.contains(&bus)), "a record at {bus:#x} lies in no ring");
            let record: &[u8; 16] = write.data[at..at + 16].try_into().expect("16 bytes");
            let status = Completion::from_bytes(record).status;
            assert!(Status::from_code(status).is_some(), "status {status:#x} is no status");
        }
    }

    /// Outside the pools that might be mapped, memory holds what the host stored.
    fn compare(self) {
        let found = self.bench.card.power_fail(HANG_CYCLES, 0);
        let saved = SAVE_BASE..SAVE_BASE + SAVE_BYTES;
        let touched = |address| saved.contains(&address) || self.mapped.iter().any(|pool| pool.contains(&address));
        for address in (0..PM_BYTES).step_by(LINE).filter(|address| !touched(*address)) {
            let line = address as usize..address as usize + LINE;
            assert_eq!(found.bytes[line.clone()], self.expected.bytes[line], "the line at {address:#x} was touched");
        }
    }
}

/// A device address of a line, in memory or beyond it.
fn address(u: &mut Unstructured<'_>) -> Result<u64> {
    Ok(match u.int_in_range(0..=7)? {
        0..=4 => POOLS_BASE + u.int_in_range(0..=64)? * LINE_U64,
        5..=6 => u.int_in_range(0..=PM_BYTES / LINE_U64)? * LINE_U64,
        _ => u.arbitrary::<u64>()? & !(LINE_U64 - 1),
    })
}
