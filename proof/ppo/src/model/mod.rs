//! The operational semantics: a state, and the steps that lead on from it.
//!
//! A state is everything that matters for what comes next, in a canonical form, so that equal
//! states are found equal. [`Model::steps`] gives every successor: each is one event of the
//! processor, the caches, a link, a card, the power, or the recovery. A power failure is a step
//! from every state, so what a run observes is independent of any timing.

mod cache;
mod card;
mod command;
mod cpu;
mod failure;
mod link;
mod recovery;
mod view;

pub use recovery::Repair;

use crate::litmus::{EMPTY, Posting, Test, Value};
use crate::rules::{Rule, Rules};

/// What stands for data that nobody meant: of an entry that was never written, or of half a command
/// that is executed.
const GARBAGE: Value = 222;

/// Where a computer is between power-up and the last recovery.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The program runs.
    Running,
    /// The cards execute what was saved.
    Replay,
    /// Software recovers: the steps that it still has to do.
    Recovery(Vec<Repair>),
    /// Everything is done.
    Over,
}

/// What lies in a write-combining buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Buffered {
    /// A word.
    Word(usize, Value),
    /// A whole command.
    Whole(usize),
    /// Half a command that was posted in pieces.
    Piece(usize, u8, Posting),
}

/// What travels on a link.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Packet {
    /// A posted write: a word, or all words of a line.
    Store(Vec<(usize, Value)>),
    /// A command in one piece.
    Whole(usize),
    /// Half a command.
    Piece(usize, u8),
    /// A fetch of a line: for a thread that waits for it, or ahead of any need.
    Load(Option<usize>, usize),
    /// A read of the status line by a thread.
    ReadBack(usize),
    /// A function-level reset by a thread.
    Reset(usize),
}

/// What a thread waits for inside an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blocked {
    /// Nothing.
    No,
    /// A load of its line.
    Load,
    /// The answer to a read-back.
    ReadBack,
    /// The end of a function-level reset: of the card, once the reset has arrived.
    Reset,
}

/// A thread of the processor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ThreadState {
    /// The next instruction.
    pub counter: usize,
    /// What it waits for inside its instruction.
    pub blocked: Blocked,
    /// Lines whose write-back was begun, as a bit mask.
    pub write_backs: u32,
    /// Lines whose invalidation was begun.
    pub invalidations: u32,
    /// Write-combining buffers.
    pub combining: Vec<Buffered>,
}

/// A line in the (coherent) caches of the processor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cached {
    /// Values of its words.
    pub values: Vec<Value>,
    /// Whether it was stored to and not written back.
    pub dirty: bool,
}

/// What a card has accepted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// A posted write.
    Store,
    /// A command.
    Command(usize),
    /// A fetch of a line, perhaps for a thread.
    Load(Option<usize>, usize),
}

/// An accepted item until it retires.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Item {
    /// What is to be done.
    pub work: Work,
    /// Whether it was issued.
    pub started: bool,
    /// The next step of a command.
    pub step: usize,
    /// Where a saved command goes on.
    pub progress: usize,
    /// Writes that the memory has not answered; a group is written in one piece.
    pub unanswered: Vec<Vec<(usize, Value)>>,
    /// Earlier commands of its thread that it waits for, as a bit mask.
    pub after: u32,
}

/// A card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Card {
    /// What is accepted, in the order of arrival.
    pub items: Vec<Item>,
    /// Commands that wait for their peers.
    pub parked: Vec<Item>,
    /// Halves of commands that have arrived, two bits for each.
    pub pieces: u32,
    /// Threads whose log failed, or whose pool has lost a store.
    pub latched: u32,
    /// Lines that a failed log covers.
    pub held: u32,
    /// Whether memory has refused a store.
    pub lost: bool,
    /// Commands of peers that are known to have come to their synchronisation.
    pub heard: u32,
    /// What the image of the save holds, where the replay would start over (a planted fault).
    pub image: Vec<Item>,
}

/// A state of the computer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// Where the computer is.
    pub phase: Phase,
    /// The persistent memory of all cards, by words.
    pub medium: Vec<Value>,
    /// Threads; none without power.
    pub threads: Vec<ThreadState>,
    /// Lines in the caches.
    pub cache: Vec<Option<Cached>>,
    /// What is under way to each card, oldest first.
    pub links: Vec<Vec<Packet>>,
    /// The cards.
    pub cards: Vec<Card>,
    /// Commands with a completion record.
    pub completed: u32,
    /// Marks that were set.
    pub marks: u32,
    /// What was loaded. It is observed after the failure as if somebody had written it down.
    pub registers: Vec<Value>,
    /// Whether a loss was reported.
    pub loss: bool,
}

/// A test under a set of rules.
#[derive(Debug)]
pub struct Model<'t> {
    /// The test.
    pub test: &'t Test,
    /// The rules in force.
    pub rules: Rules,
}

impl<'t> Model<'t> {
    /// The model of a test.
    pub fn new(test: &'t Test, rules: Rules) -> Model<'t> {
        Model { test, rules }
    }

    /// The state before the first instruction.
    pub fn start(&self) -> State {
        let thread =
            ThreadState { counter: 0, blocked: Blocked::No, write_backs: 0, invalidations: 0, combining: Vec::new() };
        State {
            phase: Phase::Running,
            medium: self.test.words.iter().map(|w| w.initial).collect(),
            threads: vec![thread; self.test.threads.len()],
            cache: vec![None; self.test.lines.len()],
            links: vec![Vec::new(); self.test.devices],
            cards: vec![Card::default(); self.test.devices],
            completed: 0,
            marks: 0,
            registers: vec![EMPTY; self.test.registers.len()],
            loss: false,
        }
    }

    /// All successors of a state.
    pub fn steps(&self, state: &State) -> Vec<State> {
        let mut next = Vec::new();
        match &state.phase {
            Phase::Running => {
                self.program_steps(state, &mut next);
                self.prefetch_steps(state, &mut next);
                self.failure_steps(state, &mut next);
            }
            Phase::Replay => {
                self.replay_steps(state, &mut next);
                self.failure_steps(state, &mut next);
            }
            Phase::Recovery(_) => {
                self.recovery_steps(state, &mut next);
                self.failure_steps(state, &mut next);
            }
            Phase::Over => {}
        }
        next
    }

    /// The steps of a running computer but for failures and what the caches may do idly: if there
    /// is none, nothing goes on.
    pub fn program_steps(&self, state: &State, next: &mut Vec<State>) {
        for thread in 0..state.threads.len() {
            self.thread_steps(state, thread, next);
            self.drain_steps(state, thread, next);
        }
        self.write_back_steps(state, next);
        for device in 0..self.test.devices {
            self.link_steps(state, device, next);
            self.item_steps(state, device, next);
            self.peer_steps(state, device, next);
        }
    }

    /// Whether every thread has come to its end.
    pub fn is_finished(&self, state: &State) -> bool {
        state.threads.iter().zip(&self.test.threads).all(|(state, thread)| state.counter == thread.program.len())
    }

    fn keep(&self, rule: Rule) -> bool {
        self.rules.keep(rule)
    }

    fn line_of(&self, word: usize) -> usize {
        self.test.words[word].line
    }

    fn device_of(&self, line: usize) -> usize {
        self.test.lines[line].device
    }

    /// Whether a cached copy of the line can be stale: then it matters when it is read and dropped.
    /// Any other line acts as if it were always in the cache, which a prefetch in time brings
    /// about.
    fn is_exposed(&self, line: usize) -> bool {
        self.test.lines[line].written_by_card
    }
}

/// A bit of a mask.
fn bit(index: usize) -> u32 {
    1 << index
}

/// The state with a change.
fn with(state: &State, change: impl FnOnce(&mut State)) -> State {
    let mut next = state.clone();
    change(&mut next);
    next
}
