//! Random card traffic: commands and host accesses of one pool, most of them on a few hot lines.

use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::{LINE, LINE_U64, MAX_COMMAND_BYTES, POOLS_BASE};
use nearpm_interface::media::{RING_EPOCH, entry_bytes, entry_data};
use nearpm_interface::seal::seal_word;
use nearpm_sim::bench::BenchPool;
use nearpm_sim::core::Access;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// One step of a trace.
#[derive(Clone, Debug)]
pub enum Step {
    /// A command that must succeed.
    Command(Command),
    /// A command that the card must refuse without effect.
    Malformed(Command),
    /// A host access to persistent memory.
    Host(Access),
}

/// A step and when it is submitted.
#[derive(Clone, Debug)]
pub struct Timed {
    /// Cycles after the submission of the step before.
    pub gap: u64,
    /// The step.
    pub step: Step,
}

/// What kind of traffic a trace holds.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Lines that most accesses fall on: the fewer, the more conflicts.
    pub hot_lines: u64,
    /// Longest command, in bytes.
    pub longest: u32,
    /// Longest gap between two steps, in cycles.
    pub gap: u64,
    /// Whether malformed commands are among the steps.
    pub malformed: bool,
}

impl Mix {
    /// Mostly conflicting, short, densely submitted.
    pub const CONFLICTS: Mix = Mix { hot_lines: 12, longest: 700, gap: 20, malformed: true };
    /// As many conflicts, at a rate that the card keeps up with.
    pub const STEADY: Mix = Mix { hot_lines: 12, longest: 700, gap: 60, malformed: true };
    /// Few conflicts, up to a page.
    pub const SPREAD: Mix = Mix { hot_lines: 2048, longest: 4096, gap: 60, malformed: false };
}

/// Bytes of the pool that traces use.
pub const POOL: BenchPool = BenchPool { bytes: 1 << 20, ring: 1 << 19, ring_bytes: 1 << 19 };

/// Builds traces.
struct Builder {
    rng: ChaCha8Rng,
    mix: Mix,
    /// Offset of the next free log slot.
    slot: u64,
    /// Slots written so far: offset of the slot, logged offset, length.
    slots: Vec<(u64, u64, u32)>,
    txid: u64,
    sequence: u64,
}

impl Builder {
    /// A range in the object half of the pool, and its length.
    fn range(&mut self) -> (u64, u32) {
        let length = if self.rng.random_range(0..4) == 0 {
            self.rng.random_range(1..=self.mix.longest)
        } else {
            self.rng.random_range(1..=self.mix.longest.min(2 * LINE as u32))
        };
        let hot = self.mix.hot_lines * LINE_U64;
        let offset = self.rng.random_range(0..hot);
        (offset.min(POOL.ring - length as u64), length)
    }

    /// Reserves a slot for `length` bytes at `offset`; `None` when the ring is used up.
    fn reserve(&mut self, offset: u64, length: u32) -> Option<u64> {
        let bytes = entry_bytes(offset, length);
        let at = self.slot;
        if at + bytes > POOL.ring + POOL.ring_bytes {
            return None;
        }
        self.slot += bytes;
        self.slots.push((at, offset, length));
        Some(at)
    }

    fn command(&mut self, opcode: Opcode) -> Command {
        self.sequence += 1;
        Command { opcode: opcode as u8, pool: 1, txid: self.txid, sequence: self.sequence, ..Command::default() }
    }

    /// Data in the ring that was logged from a place congruent with where it goes.
    fn logged(&mut self) -> Option<(u64, u64, u32)> {
        if self.slots.is_empty() {
            return None;
        }
        let (slot, offset, length) = self.slots[self.rng.random_range(0..self.slots.len())];
        Some((slot + entry_data(offset), offset, length))
    }

    fn some_command(&mut self) -> Option<Command> {
        Some(match self.rng.random_range(0..20) {
            0..=6 => {
                let (source, length) = self.range();
                let destination = self.reserve(source, length)?;
                Command { source, destination, length, ..self.command(Opcode::UndoLog) }
            }
            7..=9 => {
                let (source, destination, length) = self.logged()?;
                Command { source, destination, length, ..self.command(Opcode::Apply) }
            }
            10..=11 => {
                let (source, destination, length) = self.logged()?;
                let auxiliary = self.reserve(destination, length)?;
                Command { source, destination, auxiliary, length, ..self.command(Opcode::UndoRedo) }
            }
            12..=13 => {
                let command = self.command(Opcode::Commit);
                self.txid += 1;
                Command {
                    destination: POOL.ring + RING_EPOCH,
                    auxiliary: seal_word(command.txid),
                    length: 8,
                    ..command
                }
            }
            14 => {
                let pages = POOL.ring / 4096;
                let from = self.rng.random_range(0..pages);
                let to = (from + self.rng.random_range(1..pages)) % pages;
                Command {
                    source: from * 4096,
                    destination: to * 4096,
                    length: 4096,
                    ..self.command(Opcode::ShadowCopy)
                }
            }
            15 => {
                let (source, length) = self.range();
                let destination = self.reserve(source, length)?;
                let auxiliary = self.reserve(source, length)?;
                Command { source, destination, auxiliary, length, ..self.command(Opcode::MirrorLog) }
            }
            16 => {
                let (source, destination, length) = self.logged()?;
                Command { source, destination, length, ..self.command(Opcode::Recover) }
            }
            17 => {
                let word = self.rng.random_range(0..self.mix.hot_lines) * LINE_U64;
                Command {
                    destination: word + 8,
                    auxiliary: self.rng.random(),
                    length: 8,
                    ..self.command(Opcode::Switch)
                }
            }
            18 => self.command(Opcode::Fence),
            _ => {
                let (source, length) = self.range();
                let destination = self.reserve(source, length)?;
                Command { source, destination, length, ..self.command(Opcode::Checkpoint) }
            }
        })
    }

    fn malformed(&mut self) -> Command {
        let good = Command { source: 0, destination: self.slot, length: 64, ..self.command(Opcode::UndoLog) };
        match self.rng.random_range(0..12) {
            0 => Command { opcode: 30, ..good },
            1 => Command { opcode: 200, ..good },
            2 => Command { length: 0, ..good },
            3 => Command { length: MAX_COMMAND_BYTES + 1, ..good },
            4 => Command { pool: 77, ..good },
            5 => Command { thread: 9, ..good },
            6 => Command { source: POOL.bytes - 1, ..good },
            7 => Command { source: u64::MAX - 3, ..good },
            8 => Command { destination: 0, source: 4096, ..good },
            9 => Command { destination: self.slot + 8, ..good },
            10 => Command { txid: 0, ..good },
            _ => Command { source: 1, destination: 4096, length: 64, ..self.command(Opcode::ShadowCopy) },
        }
    }

    fn host(&mut self) -> Access {
        let line = if self.rng.random_range(0..8) == 0 && self.slot > POOL.slots() {
            self.rng.random_range(POOL.ring / LINE_U64..self.slot / LINE_U64)
        } else {
            self.rng.random_range(0..self.mix.hot_lines)
        };
        let address = POOLS_BASE + line * LINE_U64;
        if self.rng.random_range(0..2) == 0 {
            return Access::PmRead { address };
        }
        let mut data = [0; LINE];
        self.rng.fill(&mut data);
        let strobes = if self.rng.random() { u64::MAX } else { self.rng.random() };
        Access::PmWrite { address, data, strobes }
    }
}

/// A trace of about `steps` steps. The same seed gives the same trace.
pub fn random(seed: u64, steps: usize, mix: Mix) -> Vec<Timed> {
    let rng = ChaCha8Rng::seed_from_u64(seed);
    let mut builder = Builder { rng, mix, slot: POOL.slots(), slots: Vec::new(), txid: 1, sequence: 0 };
    let mut trace = Vec::with_capacity(steps);
    while trace.len() < steps {
        let gap = builder.rng.random_range(0..=mix.gap);
        let step = match builder.rng.random_range(0..20) {
            0 if mix.malformed => Step::Malformed(builder.malformed()),
            0..=8 => match builder.some_command() {
                Some(command) => Step::Command(command),
                None => continue,
            },
            _ => Step::Host(builder.host()),
        };
        trace.push(Timed { gap, step });
    }
    trace
}
