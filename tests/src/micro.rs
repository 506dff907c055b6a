//! Micro-traces: one effect of the card's timing each, for fitting the model's latencies.

use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::{LINE, LINE_U64, POOLS_BASE};
use nearpm_interface::media::{RING_EPOCH, entry_bytes, entry_data};
use nearpm_interface::seal::seal_word;
use nearpm_sim::core::Access;

use crate::trace::{POOL, Step, Timed};

/// A named trace.
pub struct Micro {
    /// What it shows.
    pub name: String,
    /// Its steps.
    pub trace: Vec<Timed>,
}

/// Hands out log slots and sequence numbers.
pub(crate) struct Maker {
    slot: u64,
    sequence: u64,
}

impl Maker {
    pub(crate) fn new() -> Self {
        Maker { slot: POOL.slots(), sequence: 0 }
    }

    pub(crate) fn command(&mut self, opcode: Opcode, source: u64, destination: u64, length: u32) -> Command {
        self.sequence += 1;
        let sequence = self.sequence;
        Command { opcode: opcode as u8, pool: 1, txid: 1, sequence, source, destination, length, ..Command::default() }
    }

    pub(crate) fn reserve(&mut self, offset: u64, length: u32) -> u64 {
        let at = self.slot;
        self.slot += entry_bytes(offset, length);
        at
    }

    pub(crate) fn log(&mut self, opcode: Opcode, offset: u64, length: u32) -> Command {
        let slot = self.reserve(offset, length);
        self.command(opcode, offset, slot, length)
    }

    pub(crate) fn mirror(&mut self, offset: u64, length: u32) -> Command {
        let second = self.reserve(offset, length);
        Command { auxiliary: second, ..self.log(Opcode::MirrorLog, offset, length) }
    }

    /// A command that reads what a slot, reserved for `offset`, would hold, and writes it home.
    pub(crate) fn home(&mut self, opcode: Opcode, offset: u64, length: u32) -> Command {
        let slot = self.reserve(offset, length);
        self.command(opcode, slot + entry_data(offset), offset, length)
    }

    pub(crate) fn undo_redo(&mut self, offset: u64, length: u32) -> Command {
        let auxiliary = self.reserve(offset, length);
        Command { auxiliary, ..self.home(Opcode::UndoRedo, offset, length) }
    }

    pub(crate) fn word(&mut self, opcode: Opcode, destination: u64) -> Command {
        let command = self.command(opcode, 0, destination, 8);
        let auxiliary = if opcode == Opcode::Commit { seal_word(command.txid) } else { 77 };
        Command { auxiliary, ..command }
    }

    pub(crate) fn fence(&mut self) -> Command {
        self.command(Opcode::Fence, 0, 0, 0)
    }

    pub(crate) fn commit(&mut self) -> Command {
        self.word(Opcode::Commit, POOL.ring + RING_EPOCH)
    }
}

pub(crate) fn store(offset: u64) -> Step {
    Step::Host(Access::PmWrite { address: POOLS_BASE + offset, data: [0x5a; LINE], strobes: u64::MAX })
}

pub(crate) fn load(offset: u64) -> Step {
    Step::Host(Access::PmRead { address: POOLS_BASE + offset })
}

pub(crate) fn spaced(gap: u64, steps: impl IntoIterator<Item = Step>) -> Vec<Timed> {
    steps.into_iter().map(|step| Timed { gap, step }).collect()
}

/// Commands alone on the card: each program, and the lengths that make one burst, several and many.
fn alone() -> Vec<(String, Vec<Step>)> {
    let mut all = Vec::new();
    for length in [8, 64, 256, 700, 1024, 2048, 4096, 16384] {
        let m = &mut Maker::new();
        for (name, command) in [
            ("undo log", m.log(Opcode::UndoLog, 4096, length)),
            ("apply", m.home(Opcode::Apply, 4096, length)),
            ("undo+redo", m.undo_redo(4096, length)),
            ("mirrored log", m.mirror(4096, length)),
        ] {
            all.push((format!("{name} of {length} B"), vec![Step::Command(command)]));
        }
    }
    let m = &mut Maker::new();
    for (name, command) in [
        ("unaligned log", m.log(Opcode::UndoLog, 4096 + 40, 64)),
        ("log across a page", m.log(Opcode::UndoLog, 8192 - 256, 700)),
        ("shadow copy", m.command(Opcode::ShadowCopy, 4096, 16384, 4096)),
        ("switch", m.word(Opcode::Switch, 64)),
        ("commit", m.commit()),
        ("fence", m.fence()),
    ] {
        all.push((name.to_string(), vec![Step::Command(command)]));
    }
    all.push(("load".into(), vec![load(0)]));
    all.push(("store".into(), vec![store(0)]));
    all
}

/// Several items without a conflict.
fn streams() -> Vec<(String, Vec<Step>)> {
    let mut all = Vec::new();
    for length in [64, 256, 1024, 4096] {
        let m = &mut Maker::new();
        let logs = (0..24).map(|i| Step::Command(m.log(Opcode::UndoLog, i * 8192, length))).collect();
        all.push((format!("24 logs of {length} B"), logs));
    }
    let m = &mut Maker::new();
    all.push(("16 fences".into(), (0..16).map(|_| Step::Command(m.fence())).collect()));
    all.push(("24 stores".into(), (0..24).map(|i| store(i * LINE_U64)).collect()));
    all.push(("24 loads".into(), (0..24).map(|i| load(i * LINE_U64)).collect()));
    all.push(("24 loads of far rows".into(), (0..24).map(|i| load(i * 16384)).collect()));
    let pairs = (0..12).flat_map(|i| [store(i * LINE_U64), load((i + 100) * LINE_U64)]);
    all.push(("12 stores and loads in turn".into(), pairs.collect()));
    let m = &mut Maker::new();
    let mixed = (0..12).flat_map(|i| [Step::Command(m.log(Opcode::UndoLog, i * 8192, 64)), store(i * 8192 + 4096)]);
    all.push(("12 logs and other stores in turn".into(), mixed.collect()));
    let m = &mut Maker::new();
    let mixed = (0..12).flat_map(|i| [Step::Command(m.log(Opcode::UndoLog, i * 8192, 64)), load(i * 8192 + 4096)]);
    all.push(("12 logs and other loads in turn".into(), mixed.collect()));
    all
}

/// Items that wait for each other.
fn chains() -> Vec<(String, Vec<Step>)> {
    let mut all = Vec::new();
    let m = &mut Maker::new();
    all.push(("8 applies to one line".into(), (0..8).map(|_| Step::Command(m.home(Opcode::Apply, 64, 64))).collect()));
    all.push(("8 switches of one word".into(), (0..8).map(|_| Step::Command(m.word(Opcode::Switch, 64))).collect()));
    let m = &mut Maker::new();
    all.push(("4 undo+redo of one range".into(), (0..4).map(|_| Step::Command(m.undo_redo(64, 300))).collect()));
    all.push(("12 stores to one line".into(), (0..12).map(|_| store(64)).collect()));
    let pairs = (0..8).flat_map(|_| [store(64), load(64)]);
    all.push(("8 stores and loads of one line".into(), pairs.collect()));
    let m = &mut Maker::new();
    let pairs = (0..8).flat_map(|_| [Step::Command(m.log(Opcode::UndoLog, 64, 64)), store(64)]);
    all.push(("8 logs and stores of one line".into(), pairs.collect()));
    let m = &mut Maker::new();
    let pairs = (0..8).flat_map(|_| [Step::Command(m.home(Opcode::Apply, 64, 64)), load(64)]);
    all.push(("8 applies and loads of one line".into(), pairs.collect()));
    let m = &mut Maker::new();
    let logs: Vec<_> = (0..6).map(|i| Step::Command(m.log(Opcode::UndoLog, i * 8192, 256))).collect();
    all.push(("6 logs and a commit".into(), logs.into_iter().chain([Step::Command(m.commit())]).collect()));
    all
}

/// Every micro-trace.
pub fn all() -> Vec<Micro> {
    let micro = |gap, (name, steps)| Micro { name, trace: spaced(gap, steps) };
    let together = alone().into_iter().chain(streams()).chain(chains()).map(|steps| micro(0, steps));
    together.chain(streams().into_iter().map(|(name, steps)| micro(13, (format!("{name}, spaced"), steps)))).collect()
}
