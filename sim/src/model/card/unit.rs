//! NearPmUnit: two contexts, the sequencer, and the engines that carry its operations out.

use std::collections::VecDeque;

use nearpm_interface::firmware::{Instruction, Operand};
use nearpm_interface::geometry::{CONTEXTS_PER_UNIT, LINE, LINE_U64};
use nearpm_interface::media::{ENTRY_MAGIC, ENTRY_VERSION, EntryHead, lines_of};
use nearpm_interface::seal::HEAD_COVERED;
use nearpm_interface::status::Status;

use super::phase::Phase;
use super::{ModelCard, Signal};
use crate::model::fault::Fault;
use crate::model::memory::{Burst, Token, WriteBeat, burst_lines};

/// Lines of the FIFO of the DmaEngine.
const FIFO_LINES: u32 = 64;
/// Read bursts that a unit has outstanding at most: tags are three bits.
const READ_BURSTS: usize = 8;

/// A command in a unit.
#[derive(Clone, Copy)]
struct Running {
    slot: u8,
    pc: u8,
    /// Device address of the pool.
    base: u64,
    /// Cycle from which its program may start.
    start: u64,
    /// Operations that have not been handed over completely.
    operations: u32,
    /// Write bursts without an answer.
    answers: u32,
    /// Checksum of the lines of the last copy that was handed over.
    crc: u32,
    status: u8,
    /// Memory answered with an error: nothing more is written.
    broken: bool,
    /// The program stands at a wait.
    waiting: bool,
    /// The wait is over and progress has been offered.
    offered: bool,
    ended: bool,
}

impl Running {
    fn breaks(&mut self) {
        self.broken = true;
        self.status = Status::MemoryError.code();
    }
}

/// What an instruction has asked the engines for.
enum Work {
    Copy(Transfer),
    /// The head of a log entry, to be sealed over the last copy.
    Head {
        address: u64,
        head: EntryHead,
    },
    /// One word.
    Word {
        address: u64,
        data: [u8; LINE],
        strobes: u64,
    },
}

struct Transfer {
    /// Next line to read, and how many are left.
    read: u64,
    to_read: u64,
    /// Next line to write, and how many are left.
    write: u64,
    to_write: u64,
    /// Lines that have come from memory, and their checksum.
    come: u64,
    crc: u32,
    /// Offset of the first byte in its line, and bytes.
    offset: u64,
    bytes: u64,
    /// Whole lines instead of exact bytes.
    whole: bool,
}

impl Transfer {
    /// Bytes of the line with this number that belong to the range.
    fn strobes(&self, line: u64) -> u64 {
        let start = self.offset.saturating_sub(line * LINE_U64);
        let end = (self.offset + self.bytes - line * LINE_U64).min(LINE_U64);
        (u64::MAX >> (LINE_U64 - (end - start))) << start
    }
}

struct Operation {
    context: u8,
    /// Cycle from which the engines see it.
    ready: u64,
    work: Work,
}

/// A unit.
pub struct Unit {
    contexts: [Option<Running>; CONTEXTS_PER_UNIT],
    /// Contexts whose program can go on; the sequencer serves the first up to its end or a wait.
    sequence: VecDeque<u8>,
    /// Contexts that offered progress in a replay and wait for its word to be durable.
    offering: VecDeque<u8>,
    operations: VecDeque<Operation>,
    /// Number of the first operation, from power-up.
    first: u64,
    /// Operation that the read side works on, by number.
    reading: u64,
    /// Read burst at the memory port, with the operation that it is for.
    pub read_request: Option<Burst>,
    /// Read bursts at the memory, with their operations.
    outstanding: VecDeque<u64>,
    /// A write burst of the first operation is at the memory port.
    pub write_request: bool,
    fifo: VecDeque<WriteBeat>,
    /// Lines in the FIFO or on their way to it.
    reserved: u32,
    /// Lines read and written.
    pub lines: [u32; 2],
}

impl Unit {
    pub fn new() -> Self {
        Unit {
            contexts: [None; CONTEXTS_PER_UNIT],
            sequence: VecDeque::new(),
            offering: VecDeque::new(),
            operations: VecDeque::new(),
            first: 0,
            reading: 0,
            read_request: None,
            outstanding: VecDeque::new(),
            write_request: false,
            fifo: VecDeque::with_capacity(FIFO_LINES as usize),
            reserved: 0,
            lines: [0; 2],
        }
    }

    /// Contexts that hold no command.
    pub fn free_contexts(&self) -> usize {
        self.contexts.iter().filter(|c| c.is_none()).count()
    }

    fn context(&mut self, context: u8) -> &mut Running {
        self.contexts[context as usize].as_mut().expect("the context runs a command")
    }

    fn operation(&mut self, number: u64) -> &mut Operation {
        &mut self.operations[(number - self.first) as usize]
    }
}

impl ModelCard {
    /// Takes a command into a free context.
    pub(in crate::model) fn unit_issue(&mut self, u: usize, slot: u8) {
        let contents = &self.order.slots[slot as usize];
        let pc = if contents.resume != 0 { contents.resume } else { contents.descriptor.entry() };
        let base = self.map.get(contents.entry).map_or(0, |m| m.base);
        let start = self.now + self.timing.issue;
        let unit = &mut self.units[u];
        let context = unit.contexts.iter().position(Option::is_none).expect("the dispatcher looked") as u8;
        unit.contexts[context as usize] = Some(Running {
            slot,
            pc,
            base,
            start,
            operations: 0,
            answers: 0,
            crc: 0,
            status: 0,
            broken: false,
            waiting: false,
            offered: false,
            ended: false,
        });
        unit.sequence.push_back(context);
        if unit.sequence.len() == 1 {
            self.wheel.push(start, Signal::Sequence(u as u8));
        }
    }

    /// Runs the program of the first context up to its end or a wait. Operations get the cycle of
    /// their instruction.
    pub(in crate::model) fn on_sequence(&mut self, u: usize) {
        let Some(&context) = self.units[u].sequence.front() else { return };
        let start = self.units[u].context(context).start;
        if start > self.now {
            self.wheel.push(start, Signal::Sequence(u as u8));
            return;
        }
        let mut at = self.now;
        loop {
            let running = *self.units[u].context(context);
            let instruction = self.firmware.instruction(running.pc);
            match instruction {
                // A command that has met an error writes nothing more, least of all what a wait
                // protects.
                _ if running.broken => self.unit_end(u, context, running.status, at),
                None => self.unit_end(u, context, Status::FirmwareFault.code(), at),
                Some(Instruction::End { status }) => self.unit_end(u, context, status, at),
                Some(Instruction::Wait) => {
                    let running = self.units[u].context(context);
                    running.waiting = true;
                    running.offered = false;
                    self.unit_next(u, at);
                    break;
                }
                Some(instruction) => self.unit_enqueue(u, context, instruction, at),
            }
            let unit = &mut self.units[u];
            at += self.timing.instruction;
            let running = unit.context(context);
            if running.ended {
                break;
            }
            running.pc = running.pc.wrapping_add(1);
        }
        self.unit_work(u);
        self.unit_check(u, context);
    }

    fn unit_end(&mut self, u: usize, context: u8, status: u8, at: u64) {
        let unit = &mut self.units[u];
        let running = unit.context(context);
        running.ended = true;
        if running.status == 0 {
            running.status = status;
        }
        self.unit_next(u, at);
    }

    /// The sequencer leaves the first context, and goes on with the other.
    fn unit_next(&mut self, u: usize, at: u64) {
        let next = at + self.timing.instruction;
        let unit = &mut self.units[u];
        unit.sequence.pop_front();
        if let Some(&other) = unit.sequence.front() {
            let running = unit.context(other);
            running.start = running.start.max(next);
            self.wheel.push(running.start, Signal::Sequence(u as u8));
        }
    }

    fn unit_enqueue(&mut self, u: usize, context: u8, instruction: Instruction, at: u64) {
        let running = *self.units[u].context(context);
        let command = self.order.slots[running.slot as usize].command;
        let address = |operand: Operand| running.base.wrapping_add(command.operand(operand));
        let (ready, work) = match instruction {
            Instruction::Copy { from, from_lines, to, to_lines, lines } => {
                let from = address(from) + from_lines as u64 * LINE_U64;
                let to = address(to) + to_lines as u64 * LINE_U64;
                let count = lines_of(from, command.length);
                let copy = Transfer {
                    read: from / LINE_U64 * LINE_U64,
                    to_read: count,
                    write: to / LINE_U64 * LINE_U64,
                    to_write: count,
                    come: 0,
                    crc: 0,
                    offset: from % LINE_U64,
                    bytes: command.length as u64,
                    whole: lines,
                };
                (at + self.timing.copy_to_read, Work::Copy(copy))
            }
            Instruction::Generate { at: place, object, kind } => {
                let head = EntryHead {
                    magic: ENTRY_MAGIC,
                    kind,
                    version: ENTRY_VERSION,
                    thread: command.thread,
                    sequence: command.sequence,
                    txid: command.txid,
                    offset: command.operand(object),
                    length: command.length,
                    pool: command.pool,
                    participants: command.participants,
                    ..EntryHead::default()
                };
                (at + self.timing.word_to_write, Work::Head { address: address(place), head })
            }
            Instruction::Store { at: place } => {
                let address = address(place);
                let lane = (address % LINE_U64) as usize / 8 * 8;
                let mut data = [0; LINE];
                data[lane..lane + 8].copy_from_slice(&command.auxiliary.to_le_bytes());
                let line = address / LINE_U64 * LINE_U64;
                (at + self.timing.word_to_write, Work::Word { address: line, data, strobes: 0xff << lane })
            }
            // End and wait are the sequencer's.
            Instruction::End { .. } | Instruction::Wait => return,
        };
        let unit = &mut self.units[u];
        unit.context(context).operations += 1;
        // Only a copy can start behind others: it reads ahead.
        let starts = matches!(work, Work::Copy(_)) || unit.operations.is_empty();
        unit.operations.push_back(Operation { context, ready, work });
        if starts {
            self.wheel.push(ready, Signal::Unit(u as u8));
        }
    }

    /// Puts the next bursts of a unit at the memory port.
    pub(in crate::model) fn unit_work(&mut self, u: usize) {
        self.unit_read_side(u);
        self.unit_write_side(u);
    }

    fn unit_read_side(&mut self, u: usize) {
        let now = self.now;
        let unit = &mut self.units[u];
        if unit.read_request.is_some() || unit.outstanding.len() >= READ_BURSTS {
            return;
        }
        while let Some(operation) = unit.operations.get((unit.reading - unit.first) as usize) {
            let Work::Copy(copy) = &operation.work else {
                unit.reading += 1;
                continue;
            };
            if copy.to_read == 0 {
                unit.reading += 1;
                continue;
            }
            let beats = burst_lines(copy.read, copy.to_read);
            if operation.ready > now || unit.reserved + beats as u32 > FIFO_LINES {
                return;
            }
            unit.reserved += beats as u32;
            let token = Token { requester: u as u8, tag: 0 };
            unit.read_request = Some(Burst { token, address: copy.read, beats: beats as u8 });
            self.wake_port(now);
            return;
        }
    }

    /// The port took the read burst.
    pub(in crate::model) fn unit_read_granted(&mut self, u: usize) -> Burst {
        let unit = &mut self.units[u];
        let burst = unit.read_request.take().expect("it asks");
        let number = unit.reading;
        unit.outstanding.push_back(number);
        unit.lines[0] = unit.lines[0].wrapping_add(burst.beats as u32);
        let mut more = number + 1 < unit.first + unit.operations.len() as u64;
        if let Work::Copy(copy) = &mut unit.operation(number).work {
            copy.read += burst.beats as u64 * LINE_U64;
            copy.to_read -= burst.beats as u64;
            more |= copy.to_read > 0;
        }
        if more {
            self.wheel.push(self.now + self.timing.burst_gap, Signal::Unit(u as u8));
        }
        burst
    }

    /// A read burst of a unit has come from memory.
    pub(in crate::model) fn unit_read(&mut self, u: usize, lines: &[[u8; LINE]], error: bool) {
        let rounds = self.fault == Some(Fault::RollbackRoundsToLines);
        let unit = &mut self.units[u];
        let number = unit.outstanding.pop_front().expect("it was outstanding");
        let operation = &mut unit.operations[(number - unit.first) as usize];
        let running = unit.contexts[operation.context as usize].as_mut().expect("its command runs");
        if error {
            running.breaks();
        }
        let Work::Copy(copy) = &mut operation.work else { unreachable!("only copies read") };
        for line in lines {
            let inside = copy.strobes(copy.come);
            copy.come += 1;
            let data = mask(line, inside);
            copy.crc = crc32c::crc32c_append(copy.crc, &data);
            unit.fifo.push_back(match (copy.whole, rounds) {
                (true, _) => WriteBeat { data, strobes: u64::MAX },
                (false, false) => WriteBeat { data, strobes: inside },
                (false, true) => WriteBeat { data: *line, strobes: u64::MAX },
            });
        }
        self.wheel.push(self.now + self.timing.read_to_write, Signal::Unit(u as u8));
    }

    fn unit_write_side(&mut self, u: usize) {
        let now = self.now;
        loop {
            let unit = &mut self.units[u];
            if unit.write_request {
                return;
            }
            let Some(operation) = unit.operations.front_mut() else { return };
            if operation.ready > now {
                self.wheel.push(operation.ready, Signal::Unit(u as u8));
                return;
            }
            let context = operation.context;
            let running = unit.contexts[context as usize].as_mut().expect("its command runs");
            let failed = running.broken;
            if let Work::Copy(copy) = &mut operation.work {
                let beats = burst_lines(copy.write, copy.to_write);
                if (unit.fifo.len() as u64) < beats {
                    return;
                }
                if failed {
                    unit.fifo.drain(..beats as usize);
                    unit.reserved -= beats as u32;
                    copy.write += beats * LINE_U64;
                    copy.to_write -= beats;
                    if copy.to_write == 0 {
                        self.unit_operation_over(u);
                    }
                    continue;
                }
            } else if failed {
                self.unit_operation_over(u);
                continue;
            }
            unit.write_request = true;
            self.wake_port(now);
            return;
        }
    }

    /// The port took a write burst of the first operation.
    pub(in crate::model) fn unit_write_granted(&mut self, u: usize, data: &mut Vec<WriteBeat>) -> Burst {
        let unit = &mut self.units[u];
        unit.write_request = false;
        let operation = unit.operations.front_mut().expect("it asks");
        let context = operation.context;
        let running = unit.contexts[context as usize].as_mut().expect("its command runs");
        running.answers += 1;
        let (address, over) = match &mut operation.work {
            Work::Copy(copy) => {
                let beats = burst_lines(copy.write, copy.to_write);
                data.extend(unit.fifo.drain(..beats as usize));
                unit.reserved -= beats as u32;
                let address = copy.write;
                copy.write += beats * LINE_U64;
                copy.to_write -= beats;
                (address, copy.to_write == 0)
            }
            Work::Head { address, head } => {
                let mut bytes = head.to_bytes();
                let crc = crc32c::crc32c_append(running.crc, &bytes[..HEAD_COVERED]);
                bytes[HEAD_COVERED..].copy_from_slice(&crc.to_le_bytes());
                data.push(WriteBeat { data: bytes, strobes: u64::MAX });
                (*address, true)
            }
            Work::Word { address, data: line, strobes } => {
                data.push(WriteBeat { data: *line, strobes: *strobes });
                (*address, true)
            }
        };
        unit.lines[1] = unit.lines[1].wrapping_add(data.len() as u32);
        let token = Token { requester: u as u8, tag: context };
        if over {
            self.unit_operation_over(u);
            if self.fault == Some(Fault::ReleaseBeforeAnswer) {
                self.unit_check(u, context);
            }
        }
        if !self.units[u].operations.is_empty() {
            self.wheel.push(self.now + self.timing.burst_gap, Signal::Unit(u as u8));
        }
        Burst { token, address, beats: data.len() as u8 }
    }

    /// The first operation has been handed over.
    fn unit_operation_over(&mut self, u: usize) {
        let unit = &mut self.units[u];
        let operation = unit.operations.pop_front().expect("there is a first");
        unit.first += 1;
        unit.reading = unit.reading.max(unit.first);
        let context = operation.context;
        unit.context(context).operations -= 1;
        if let Work::Copy(copy) = &operation.work {
            unit.context(context).crc = copy.crc;
        }
        if unit.context(context).answers == 0 {
            self.unit_check(u, context);
        }
    }

    /// The memory answered a write burst of a unit.
    pub(in crate::model) fn unit_written(&mut self, u: usize, context: u8, error: bool) {
        if self.fault == Some(Fault::ReleaseBeforeAnswer) {
            return;
        }
        let running = self.units[u].context(context);
        running.answers -= 1;
        if error {
            running.breaks();
        }
        self.unit_check(u, context);
    }

    /// Goes on where all that a context wrote is durable.
    fn unit_check(&mut self, u: usize, context: u8) {
        let early = self.fault == Some(Fault::ReleaseBeforeAnswer);
        let Some(running) = self.units[u].contexts[context as usize].as_mut() else { return };
        if running.operations > 0 || (running.answers > 0 && !early) {
            return;
        }
        let (slot, status) = (running.slot, running.status);
        if running.ended {
            // Done is reported once: the context goes with it.
            self.units[u].contexts[context as usize] = None;
            self.wheel.push(self.now + self.timing.unit_done, Signal::Done { slot, status });
            if self.dispatcher.ready != 0 {
                self.dispatch_wanted(self.now + self.timing.unit_done);
            }
        } else if running.waiting && !running.offered {
            running.offered = true;
            self.wheel.push(self.now + self.timing.progress, Signal::Progress { unit: u as u8, context });
        }
    }

    /// A context offers its progress at a wait.
    pub(in crate::model) fn on_progress(&mut self, u: usize, context: u8) {
        let running = *self.units[u].context(context);
        let resume = running.pc.wrapping_add(1);
        if !running.broken {
            self.order.slots[running.slot as usize].resume = resume;
            if self.persistence.phase == Phase::Replay {
                // It goes on when the progress word is durable.
                self.units[u].offering.push_back(context);
                self.replay_progress(u as u8, resume);
                return;
            }
        }
        self.unit_go_on(u, context);
    }

    /// The progress word of the context that offered first is durable.
    pub(in crate::model) fn unit_resume(&mut self, u: usize) {
        let context = self.units[u].offering.pop_front().expect("it offered progress");
        self.unit_go_on(u, context);
    }

    /// Goes on behind a wait.
    fn unit_go_on(&mut self, u: usize, context: u8) {
        let now = self.now;
        let unit = &mut self.units[u];
        let running = unit.context(context);
        running.waiting = false;
        running.pc = running.pc.wrapping_add(1);
        running.start = now;
        unit.sequence.push_back(context);
        if unit.sequence.len() == 1 {
            self.on_sequence(u);
        }
    }
}

/// A line with the bytes outside a mask zeroed.
fn mask(line: &[u8; LINE], strobes: u64) -> [u8; LINE] {
    match strobes {
        u64::MAX => *line,
        _ => std::array::from_fn(|i| if strobes >> i & 1 == 1 { line[i] } else { 0 }),
    }
}
