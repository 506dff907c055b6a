//! Micro-traces on a bare card: the figures of the card itself, without host and link.
//!
//! Every time is taken at the card's ports: a command is *accepted* when its write is answered,
//! and *done* when its completion record leaves. The memory is durable some cycles before the
//! record leaves, so the latencies are upper bounds of accept-to-durable. What a figure comes from
//! (RTL cycles or the transaction-level model) is the caller's to say: it knows which card it
//! handed in.

use std::collections::HashMap;

use nearpm_interface::command::{Command, FLAG_COMPLETE, Opcode, slot_offset};
use nearpm_interface::completion::Completion;
use nearpm_interface::geometry::{COMMAND_PAGES, FIRMWARE_BASE, LINE, LINE_U64, POOLS_BASE, SAVE_BASE, SLOTS_PER_PAGE};
use nearpm_interface::media::{RING_HEAD_BYTES, entry_bytes};
use nearpm_interface::registers::{self, state};
use nearpm_interface::save::{FIRMWARE_WORD_OFFSET, firmware_word};
use nearpm_interface::status::Status;

use crate::core::{Access, Answer, CardCore, Medium, Ticket};

/// No answer within this many cycles means that the card hangs: beyond any stated bound.
const HANG_CYCLES: u64 = 2_000_000;
/// Where the completion rings lie on the bus.
const RING_BUS: u64 = 0x4000_0000;
/// log2 of the records of a ring.
const RING_LOG2: u32 = 12;

/// A card with one mapped pool, driven at its ports.
pub struct CardBench<C: CardCore + ?Sized = dyn CardCore> {
    /// The card.
    pub card: Box<C>,
    slot: usize,
    tag: u32,
    done: Records,
}

/// When and how a command was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Cycle at which the completion record left the card.
    pub cycle: u64,
    /// The outcome.
    pub status: Status,
    /// Order number.
    pub order: u64,
}

/// A command on its way.
#[derive(Clone, Copy, Debug)]
pub struct Posted {
    /// The write of the command.
    pub ticket: Ticket,
    /// The command's tag.
    pub tag: u32,
}

/// The pool that the bench maps: identifier 1, thread 0, at [`POOLS_BASE`].
#[derive(Clone, Copy, Debug)]
pub struct BenchPool {
    /// Bytes of the pool.
    pub bytes: u64,
    /// Offset of the log ring.
    pub ring: u64,
    /// Bytes of the log ring.
    pub ring_bytes: u64,
}

impl BenchPool {
    /// A pool whose second half is the log ring.
    pub fn of(bytes: u64) -> Self {
        BenchPool { bytes, ring: bytes / 2, ring_bytes: bytes / 2 }
    }
    /// Offset of the first log slot.
    pub fn slots(&self) -> u64 {
        self.ring + RING_HEAD_BYTES
    }
}

impl<C: CardCore + ?Sized> CardBench<C> {
    /// Waits until the card is open, sets up completion rings and maps the pool.
    ///
    /// # Panics
    /// If the card does not open, or refuses the mapping.
    pub fn open(card: Box<C>, pool: BenchPool) -> Self {
        let mut bench = CardBench { card, slot: 0, tag: 0, done: Records::default() };
        wait_until_open(&mut *bench.card);
        for page in 0..COMMAND_PAGES {
            let ring = registers::completion_ring(page);
            let bus = RING_BUS + page as u64 * (16 << RING_LOG2);
            bench.set_register(ring, bus as u32);
            bench.set_register(ring + 4, (bus >> 32) as u32);
            bench.set_register(ring + 8, RING_LOG2);
        }
        let map = bench.post(Command {
            opcode: Opcode::Map as u8,
            pool: 1,
            source: POOLS_BASE,
            destination: pool.bytes,
            auxiliary: pool.ring,
            length: pool.ring_bytes as u32,
            ..Command::default()
        });
        assert_eq!(bench.finish(map).status, Status::Ok, "the card maps the pool");
        bench
    }

    /// Reads a register.
    pub fn register(&mut self, offset: u32) -> u32 {
        let answer = self.access(Access::RegisterRead { offset });
        u32::from_le_bytes(answer.data[..4].try_into().expect("four bytes"))
    }

    /// Writes a register.
    pub fn set_register(&mut self, offset: u32, value: u32) {
        self.access(Access::RegisterWrite { offset, value });
    }

    /// Makes an access and waits for its answer.
    pub fn access(&mut self, access: Access) -> Answer {
        let ticket = self.card.submit(access);
        self.card.wait(ticket, HANG_CYCLES)
    }

    /// Posts a command with a tag of its own, asking for a completion record, by one 64-byte write
    /// on page 0.
    pub fn post(&mut self, command: Command) -> Posted {
        self.tag += 1;
        self.slot = (self.slot + 1) % SLOTS_PER_PAGE;
        let command = Command { tag: self.tag, flags: FLAG_COMPLETE, ..command };
        let ticket = self.card.submit(Access::CommandWrite {
            offset: slot_offset(0, self.slot),
            data: command.encode(),
            strobes: u64::MAX,
        });
        Posted { ticket, tag: self.tag }
    }

    /// The cycle at which a posted command was accepted (or refused).
    pub fn accepted(&mut self, posted: Posted) -> u64 {
        self.card.wait(posted.ticket, HANG_CYCLES).cycle
    }

    /// Runs until the command is done.
    ///
    /// # Panics
    /// If no record comes.
    pub fn finish(&mut self, posted: Posted) -> Done {
        self.done.wait_for(&mut *self.card, (0, posted.tag))
    }
}

/// Completion records that have left a card, by command page and tag.
#[derive(Default)]
pub struct Records(HashMap<(usize, u32), Done>);

impl Records {
    /// Runs the card until the record of a command has left it.
    ///
    /// # Panics
    /// If it does not come.
    pub fn wait_for(&mut self, card: &mut (impl CardCore + ?Sized), command: (usize, u32)) -> Done {
        let end = card.cycle() + HANG_CYCLES;
        loop {
            self.collect(card);
            if let Some(done) = self.0.remove(&command) {
                return done;
            }
            assert!(card.cycle() < end, "no completion of page and tag {command:?}");
            card.advance_to(card.cycle() + 1);
        }
    }

    fn collect(&mut self, card: &mut (impl CardCore + ?Sized)) {
        while let Some(write) = card.take_dma() {
            let at = write.strobes.trailing_zeros() as usize;
            let record = Completion::from_bytes(&write.data[at..at + 16].try_into().expect("a record is 16 bytes"));
            let status = Status::from_code(record.status).expect("the card sends known codes");
            let done = Done { cycle: write.cycle, status, order: record.order };
            self.0.insert((usize::from(record.page), record.tag), done);
        }
    }
}

/// Waits until a card is open.
///
/// # Panics
/// If it does not open.
pub fn wait_until_open(card: &mut (impl CardCore + ?Sized)) {
    let end = card.cycle() + HANG_CYCLES;
    loop {
        let ticket = card.submit(Access::RegisterRead { offset: registers::STATE });
        let found = card.wait(ticket, HANG_CYCLES).data;
        if found[..4] == state::OPEN.to_le_bytes() {
            return;
        }
        assert!(card.cycle() < end, "the card does not open: state {:02x?}", &found[..4]);
    }
}

/// An undo log of `length` bytes at `source` into the slot at `destination`.
fn undo_log(source: u64, destination: u64, length: u32, sequence: u64) -> Command {
    Command {
        opcode: Opcode::UndoLog as u8,
        pool: 1,
        txid: 1,
        source,
        destination,
        sequence,
        length,
        ..Command::default()
    }
}

/// Cycles from a load's address at the port to its data, on an idle card and from a bank without an
/// open row: the third quartile of one load in each bank of the memory, for the card has opened
/// rows of some when it was powered up.
pub fn load_latency(bench: &mut CardBench) -> u64 {
    let lines = (0..4).flat_map(|bank| (0..4).map(move |group| bank * (32 << 10) + group * LINE_U64));
    let mut cycles: Vec<u64> = lines
        .map(|offset| {
            let start = bench.card.cycle();
            let answer = bench.access(Access::PmRead { address: POOLS_BASE + offset });
            answer.cycle - start
        })
        .collect();
    cycles.sort_unstable();
    cycles[3 * cycles.len() / 4]
}

/// Cycles from acceptance to completion of one undo log of `bytes` on an idle card: the median of
/// `samples`, at addresses spread over the pool so that rows of the memory are opened and closed.
pub fn undo_latency(bench: &mut CardBench, pool: BenchPool, bytes: u32, samples: u64) -> u64 {
    let mut cycles: Vec<u64> = (0..samples)
        .map(|i| {
            let source = (i * 0x1_3480) % (pool.ring - bytes as u64) / LINE_U64 * LINE_U64;
            let posted = bench.post(undo_log(source, pool.slots(), bytes, i));
            let accepted = bench.accepted(posted);
            let done = bench.finish(posted);
            assert_eq!(done.status, Status::Ok);
            done.cycle - accepted
        })
        .collect();
    cycles.sort_unstable();
    cycles[cycles.len() / 2]
}

/// Bytes and cycles of a rate.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Commands that were done.
    pub commands: u64,
    /// Bytes that they copied.
    pub bytes: u64,
    /// Cycles from the first acceptance to the last completion.
    pub cycles: u64,
}

impl Rate {
    /// Copied bytes a nanosecond, i.e. GB/s, with a clock period in picoseconds.
    pub fn gb_per_s(&self, period_ps: u64) -> f64 {
        self.bytes as f64 * 1000.0 / (self.cycles * period_ps) as f64
    }
    /// Commands a second, in millions, with a clock period in picoseconds.
    pub fn million_per_s(&self, period_ps: u64) -> f64 {
        self.commands as f64 * 1e6 / (self.cycles * period_ps) as f64
    }
}

/// Posts `count` undo logs of `bytes` without waiting, each from an own place into an own slot, and
/// takes the rate.
pub fn undo_rate(bench: &mut CardBench, pool: BenchPool, bytes: u32, count: u64) -> Rate {
    let slot = entry_bytes(0, bytes);
    let slots = (pool.ring_bytes - RING_HEAD_BYTES) / slot;
    let sources = pool.ring / (bytes as u64).next_multiple_of(LINE_U64);
    let posted: Vec<Posted> = (0..count)
        .map(|i| {
            let source = (i % sources) * (bytes as u64).next_multiple_of(LINE_U64);
            bench.post(undo_log(source, pool.slots() + (i % slots) * slot, bytes, i))
        })
        .collect();
    let first = bench.accepted(posted[0]);
    let mut last = first;
    for p in &posted {
        let done = bench.finish(*p);
        assert_eq!(done.status, Status::Ok);
        last = last.max(done.cycle);
    }
    Rate { commands: count, bytes: count * bytes as u64, cycles: last - first }
}

/// A blank medium with a firmware image in slot 0 and in force, as a card leaves the factory.
pub fn provisioned(bytes: usize, image: &[u8]) -> Medium {
    let mut medium = Medium::blank(bytes);
    let at = FIRMWARE_BASE as usize;
    medium.bytes[at..at + image.len()].copy_from_slice(image);
    let crc = u32::from_le_bytes(image[60..64].try_into().expect("an image has a head line"));
    let word = (SAVE_BASE + FIRMWARE_WORD_OFFSET) as usize;
    medium.bytes[word..word + 8].copy_from_slice(&firmware_word(0, crc).to_le_bytes());
    medium
}

/// Data of a line that names its address, for filling memory in tests and benches.
pub fn line_pattern(address: u64) -> [u8; LINE] {
    let mut line = [0; LINE];
    for (i, word) in line.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&(address + 8 * i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    }
    line
}
