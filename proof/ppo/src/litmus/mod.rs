//! Litmus tests: what a file says, and how it is read.

mod error;
pub mod expected;
pub mod lines;
mod outcome;
mod parse;
mod program;
mod tables;

use std::collections::BTreeSet;

pub use error::ParseError;
pub use expected::{Named, fits};
pub use parse::parse;

use crate::rules::Rule;

/// What a word holds. Programs name 0 to 200.
pub type Value = u8;
/// A word of a log that was never written.
pub const EMPTY: Value = u8::MAX;
/// The head of a log entry that was written.
pub const WRITTEN: Value = 1;

/// Moment at which a test looks at memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The bare medium in the instant of the failure, without what was saved.
    Failure,
    /// After the replay of what was saved, before recovery.
    Replay,
    /// After recovery, which may have been cut any number of times.
    Recovery,
}

/// A word of eight bytes: what memory writes in one piece.
#[derive(Clone, Debug)]
pub struct Word {
    /// Its name; empty for the words of logs and epochs.
    pub name: String,
    /// Index of its line.
    pub line: usize,
    /// Value before the program starts.
    pub initial: Value,
}

/// A line of 64 bytes: what conflicts are about and what a cache writes back.
#[derive(Clone, Debug)]
pub struct Line {
    /// The card that it lies on.
    pub device: usize,
    /// Whether only the card touches it: logs, checkpoints, epochs.
    pub managed: bool,
    /// Whether memory refuses what is written to it.
    pub refused: bool,
    /// Indices of its words.
    pub words: Vec<usize>,
    /// Whether a procedure writes it. Only then can a cached copy be stale.
    pub written_by_card: bool,
}

/// A transaction of one thread.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// Its name.
    pub name: String,
    /// Number of its (pool, thread).
    pub thread: usize,
    /// Its number among those of its thread, from 1: what the epoch word holds when it is
    /// committed.
    pub number: Value,
    /// The cards that take part.
    pub devices: Vec<usize>,
}

/// A slot of a log with the entry that one procedure writes.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Index of the transaction.
    pub transaction: usize,
    /// The card that it lies on.
    pub device: usize,
    /// The words that were logged.
    pub exact: Vec<usize>,
    /// All words of the lines that were logged, and for each the word of the entry that keeps its
    /// value: data keeps its place in the line.
    pub data: Vec<(usize, usize)>,
    /// The word of the entry's head.
    pub head: usize,
}

/// A step of a procedure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Reads words and writes them to others.
    Copy(Vec<(usize, usize)>),
    /// Writes a log entry.
    Log(usize),
    /// Writes a word.
    Set(usize, Value),
    /// Waits until the procedure's earlier writes are durable.
    Wait,
    /// Waits for the peers.
    Sync,
    /// Writes the epoch.
    Commit,
}

/// A command: what one card executes for one post.
#[derive(Clone, Debug)]
pub struct Procedure {
    /// Its name, for example `P1`.
    pub name: String,
    /// The card.
    pub device: usize,
    /// The transaction that it belongs to.
    pub transaction: usize,
    /// Its steps.
    pub steps: Vec<Step>,
    /// Lines that it reads.
    pub reads: BTreeSet<usize>,
    /// Lines that it writes, but for the epoch.
    pub writes: BTreeSet<usize>,
    /// Whether it waits for every earlier command of its thread: a commit or a switch.
    pub ordered: bool,
    /// Whether the memory reports an error to its log.
    pub fails: bool,
}

impl Procedure {
    /// Whether it waits for its peers.
    pub fn synchronises(&self) -> bool {
        self.steps.first() == Some(&Step::Sync)
    }

    /// Whether it commits its transaction.
    pub fn commits(&self) -> bool {
        self.steps.contains(&Step::Commit)
    }
}

/// How a command is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Posting {
    /// By one store of 64 bytes.
    Whole,
    /// By write-combining stores.
    Combining,
    /// By uncached stores.
    Uncached,
}

/// An instruction of a processor's thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Stores to a cached word.
    Store(usize, Value),
    /// Loads a cached word to a register.
    Load(usize, usize),
    /// Stores around the caches.
    NonTemporal(usize, Value),
    /// Begins to write a line back and keeps it.
    WriteBack(usize),
    /// Begins to write a line back and drop it.
    Invalidate(usize),
    /// Store fence.
    Fence,
    /// Posts a command.
    Post(usize, Posting),
    /// Reads the status line of a card.
    ReadBack(usize),
    /// Waits for the completion record of a command.
    Finish(usize),
    /// Resets the function of a card and waits for it.
    Reset(usize),
    /// Tells the world: a mark outlives the failure.
    Mark(usize),
    /// Waits for a mark: a lock that is handed over.
    Await(usize),
}

/// A thread of the processor.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its name, for example `P0`.
    pub name: String,
    /// Its instructions.
    pub program: Vec<Instruction>,
}

/// What a test observes, in the order in which states are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observable {
    /// A word.
    Word(usize),
    /// An entry of a log: the values that it holds, or `-`.
    Entry(usize),
    /// Whether the epoch on a card has reached a transaction.
    Epoch(usize, usize),
    /// A mark: 0 or 1.
    Mark(usize),
    /// A register; `-` until it is loaded.
    Register(usize),
    /// Whether a loss was reported.
    Loss,
}

/// What departs from the usual machine.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Commands that a card takes at a time; no bound if absent.
    pub fifo: Option<usize>,
    /// Packets that a link holds; no bound if absent.
    pub link: Option<usize>,
    /// Whether the energy may not suffice for the save.
    pub save_may_tear: bool,
    /// Stores in the consumed image of an earlier failure.
    pub old_image: Vec<(usize, Value)>,
    /// The card does not order host accesses (capability HOST_ORDERED is 0).
    pub host_unordered: bool,
    /// The paper's permission: what a command only reads is released when it has been read, and
    /// what was read is saved.
    pub early_release: bool,
}

/// A litmus test.
#[derive(Clone, Debug)]
pub struct Test {
    /// One line on what it shows.
    pub title: String,
    /// The family that it belongs to.
    pub family: String,
    /// Section of the paper, item of the contract.
    pub source: String,
    /// Rules without which the set of states differs.
    pub needs: Vec<Rule>,
    /// Why no card runs it, where none does.
    pub model_only: Option<String>,
    /// Moment of the observation.
    pub moment: Moment,
    /// Number of cards.
    pub devices: usize,
    /// Memory.
    pub words: Vec<Word>,
    /// Memory.
    pub lines: Vec<Line>,
    /// Transactions.
    pub transactions: Vec<Transaction>,
    /// Log slots, in the order in which the library assigned them.
    pub entries: Vec<Entry>,
    /// Epoch words: thread, device, word.
    pub epochs: Vec<(usize, usize, usize)>,
    /// Commands.
    pub procedures: Vec<Procedure>,
    /// The processor's threads.
    pub threads: Vec<Thread>,
    /// Names of marks.
    pub marks: Vec<String>,
    /// Names of registers.
    pub registers: Vec<String>,
    /// What is observed.
    pub observables: Vec<Observable>,
    /// Names of the observables.
    pub observed: Vec<String>,
    /// What departs from the usual machine.
    pub options: Options,
    /// Exactly the states that may be observed.
    pub allowed: Vec<Named>,
    /// Patterns of states that must not be, with the reason.
    pub forbidden: Vec<Named>,
}

impl Test {
    /// Word of a thread's epoch on a card.
    ///
    /// # Panics
    /// If the thread has no transaction there.
    pub fn epoch(&self, thread: usize, device: usize) -> usize {
        let found = self.epochs.iter().find(|(t, d, _)| (*t, *d) == (thread, device));
        found.expect("a thread has an epoch on each card of its transactions").2
    }

    /// The (pool, thread) of a command.
    pub fn thread_of(&self, procedure: usize) -> usize {
        self.transactions[self.procedures[procedure].transaction].thread
    }
}
