//! Arbitrary programs on the units of a card.

use arbitrary::{Result, Unstructured};
use nearpm_firmware::Image;
use nearpm_firmware::check::OPERANDS;
use nearpm_interface::command::{Command, OPCODES};
use nearpm_interface::firmware::{Descriptor, Operand, Use, descriptor};
use nearpm_interface::geometry::{LINE, LINE_U64, POOLS_BASE};
use nearpm_interface::media::{RING_HEAD_BYTES, entry_bytes, lines_of};
use nearpm_interface::status::Status;
use nearpm_sim::bench::{BenchPool, CardBench, Posted, line_pattern, provisioned, wait_until_open};
use nearpm_sim::core::{Access, CardCore, Medium, Ticket};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::drive::WHOLE_SAVE;
use crate::oracle::Oracle;
use crate::programs;
use crate::rig::without_save;

/// The pool that programs work in: identifier 1, thread 0.
const POOL: BenchPool = BenchPool { bytes: 128 << 10, ring: 64 << 10, ring_bytes: 64 << 10 };
/// Most commands and host accesses of a run.
const STEPS: usize = 80;
/// Lines of pool and ring that most operands and host accesses fall on: few, so that most conflict.
const HOT_LINES: u64 = 24;
/// Beyond any answer.
const HANG_CYCLES: u64 = 2_000_000;
/// Cycles in which stores that were answered reach the memory.
const SETTLE_CYCLES: u64 = 3_000;
/// Attempts to find operands that do not overlap.
const PLACINGS: usize = 6;

struct Run {
    bench: CardBench,
    image: Image,
    oracle: Oracle,
    commands: Vec<(Posted, u8)>,
    host: Vec<(Ticket, Option<[u8; LINE]>)>,
    txid: u64,
}

/// Has a card run programs and host accesses that the bytes describe, and compares it with each
/// taking effect at once. In half of the runs the power is cut when the host has all answers, and
/// some more times in the replay.
///
/// # Panics
/// If they differ, or the card hangs.
pub fn microprograms(power_up: &dyn Fn(Medium) -> Box<dyn CardCore>, data: &[u8]) {
    let mut u = Unstructured::new(data);
    let Ok(seed) = u.arbitrary() else { return };
    let image = programs::random(&mut ChaCha8Rng::seed_from_u64(seed));
    let bytes = (POOLS_BASE + POOL.bytes) as usize;
    let mut medium = provisioned(bytes, image.bytes());
    for address in (POOLS_BASE..bytes as u64).step_by(LINE) {
        medium.write_line(address, &line_pattern(address), u64::MAX);
    }
    let bench = CardBench::open(power_up(medium.clone()), POOL);
    let mut run = Run { bench, image, oracle: Oracle::new(medium), commands: Vec::new(), host: Vec::new(), txid: 1 };
    // Bytes that run out end the description: every input is one.
    for _ in 0..STEPS {
        if u.is_empty() || run.step(&mut u).is_err() {
            break;
        }
    }
    run.finish(power_up, &mut u);
}

impl Run {
    fn step(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        match u.int_in_range(0..=7)? {
            0..=4 => self.command(u)?,
            5..=6 => {
                let in_ring = u.ratio(1, 4)?;
                let address = POOLS_BASE + place(u, in_ring)? / LINE_U64 * LINE_U64;
                let access = if u.arbitrary()? {
                    Access::PmRead { address }
                } else {
                    let strobes = if u.arbitrary()? { u64::MAX } else { u.arbitrary()? };
                    Access::PmWrite { address, data: [u.arbitrary()?; LINE], strobes }
                };
                let loaded = self.oracle.host(&access);
                self.host.push((self.bench.card.submit(access), loaded));
            }
            _ => {
                let next = self.bench.card.cycle() + u.int_in_range(0..=300)?;
                self.bench.card.advance_to(next);
            }
        }
        Ok(())
    }

    /// Posts a command that is none of the card's to refuse.
    fn command(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let opcode = u.int_in_range(0..=OPCODES as u8 - 1)?;
        let Some(head) = self.image.descriptor(opcode).filter(|_| !programs::maps(opcode)) else { return Ok(()) };
        for _ in 0..PLACINGS {
            let command = operands(u, head)?;
            if overlaps(&command, head) {
                continue;
            }
            let sequence = self.commands.len() as u64;
            let command = Command { opcode, pool: 1, txid: self.txid, sequence, ..command };
            let code = self.image.program(opcode).expect("it has a descriptor");
            let status = self.oracle.program(&code, &command);
            self.txid += u64::from(head.flag(descriptor::COMMITS));
            self.commands.push((self.bench.post(command), status));
            break;
        }
        Ok(())
    }

    /// Compares what the host was told, then the memory.
    fn finish(mut self, power_up: &dyn Fn(Medium) -> Box<dyn CardCore>, u: &mut Unstructured<'_>) {
        for (ticket, expected) in std::mem::take(&mut self.host) {
            let answer = self.bench.card.wait(ticket, HANG_CYCLES);
            assert!(!answer.error, "the card refused a host access");
            assert!(expected.is_none_or(|line| line == answer.data), "a load gives another line");
        }
        // A command that fails in a replay makes the card report a loss.
        let all_succeed = self.commands.iter().all(|(_, status)| *status == Status::Ok.code());
        let is_cut = all_succeed && u.arbitrary().unwrap_or(false);
        for (posted, status) in std::mem::take(&mut self.commands) {
            if is_cut {
                self.bench.accepted(posted);
            } else {
                assert_eq!(self.bench.finish(posted).status.code(), status, "status of command {}", posted.tag);
            }
        }
        let after = if is_cut { u.int_in_range(0..=200).unwrap_or(0) } else { SETTLE_CYCLES };
        self.bench.card.advance_to(self.bench.card.cycle() + after);
        let mut medium = self.bench.card.power_fail(WHOLE_SAVE, 0);
        if is_cut {
            for _ in 0..u.int_in_range(0..=2).unwrap_or(0) {
                let mut card = power_up(medium);
                card.advance_to(u.int_in_range(100..=4_000).unwrap_or(100));
                medium = card.power_fail(WHOLE_SAVE, 0);
            }
            medium = replayed(power_up(medium));
        }
        let (found, expected) = (without_save(&medium), without_save(&self.oracle.medium));
        let differs = found.iter().zip(&expected).position(|(found, expected)| found != expected);
        assert_eq!(differs.map(|at| at - POOLS_BASE as usize), None, "first byte of the pool that differs");
    }
}

/// The memory when a card has opened and settled.
fn replayed(mut card: Box<dyn CardCore>) -> Medium {
    wait_until_open(&mut *card);
    card.advance_to(card.cycle() + SETTLE_CYCLES);
    card.power_fail(WHOLE_SAVE, 0)
}

/// Offset of a byte, in the ring behind its words or in front of it.
fn place(u: &mut Unstructured<'_>, in_ring: bool) -> Result<u64> {
    let base = if in_ring { POOL.ring + RING_HEAD_BYTES } else { 0 };
    let line = if u.ratio(1, 8)? { u.int_in_range(0..=500)? } else { u.int_in_range(0..=HOT_LINES)? };
    Ok(base + line * LINE_U64 + u.int_in_range(0..=LINE_U64 - 1)?)
}

/// A command with operands as a program declares them, but that they may overlap.
fn operands(u: &mut Unstructured<'_>, head: Descriptor) -> Result<Command> {
    let longest = if u.ratio(1, 8)? { 3000 } else { 200 };
    let mut command = Command { length: u.int_in_range(1..=longest)?, ..Command::default() };
    for operand in OPERANDS {
        let at = match head.operand_use(operand) {
            Use::None => u.arbitrary()?,
            Use::Bytes => place(u, head.in_ring(operand))?,
            Use::Entry => place(u, true)? / LINE_U64 * LINE_U64,
            Use::Word => place(u, head.in_ring(operand))? / 8 * 8,
        };
        match operand {
            Operand::Source => command.source = at,
            Operand::Destination if head.flag(descriptor::CONGRUENT) => {
                command.destination = at / LINE_U64 * LINE_U64 + command.source % LINE_U64;
            }
            Operand::Destination => command.destination = at,
            Operand::Auxiliary => command.auxiliary = at,
        }
    }
    Ok(command)
}

/// Whether operands share a line of which one is written, which the card refuses.
fn overlaps(command: &Command, head: Descriptor) -> bool {
    let at = |operand| command.operand(operand);
    let lines = OPERANDS.map(|operand| {
        let first = at(operand) / LINE_U64;
        let count = match head.operand_use(operand) {
            Use::None => return 0..0,
            Use::Bytes => lines_of(at(operand), command.length),
            Use::Entry => entry_bytes(at(head.logged()), command.length) / LINE_U64,
            Use::Word => 1,
        };
        first..first + count
    });
    let [source, destination, auxiliary] = lines;
    let meet = |a: &std::ops::Range<u64>, b: &std::ops::Range<u64>| a.start < b.end && b.start < a.end;
    meet(&source, &destination) || meet(&source, &auxiliary) || meet(&destination, &auxiliary)
}
