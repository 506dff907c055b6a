//! Litmus tests of GPU persistency: what a file says, and how it is read.

mod parse;
mod program;
mod tables;

use nearpm_ppo::litmus::Named;
pub use nearpm_ppo::litmus::ParseError;
pub use parse::parse;

use crate::rules::Rule;
use crate::{Model, Operation, Scope};

/// What a word holds: 0 to 200.
pub type Value = u8;
/// What stands in a state for a register that nothing was loaded into.
pub const NOT_LOADED: Value = u8::MAX;
/// Most stores of a test: sets of them are the bits of a `u32`.
pub const MOST_STORES: usize = 24;
/// Most instructions of a test.
pub const MOST_INSTRUCTIONS: usize = 48;

/// A word of eight bytes.
#[derive(Clone, Debug)]
pub struct Word {
    /// Its name.
    pub name: String,
    /// Whether it lies in PM; else it is lost when the power fails.
    pub persistent: bool,
    /// Index of its line, of 128 bytes. Only the persist buffer sees lines.
    pub line: usize,
    /// Value before the program starts.
    pub initial: Value,
}

/// What a load does with the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Keeps it in a register.
    Register(usize),
    /// Waits until it is this one: a loop that does nothing but load.
    Until(Value),
}

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// `store x 1`, `pRel_block x 1`, `pRel_dev x 1`: the number of the store among all of the
    /// test, its word, its value.
    Store {
        /// Number among the stores of the test.
        id: usize,
        /// The word.
        word: usize,
        /// What is stored.
        value: Value,
        /// The scope of a release.
        release: Option<Scope>,
    },
    /// `load x r`, `await x 1`, `pAcq_block x r`, `pAcq_dev x =1`.
    Load {
        /// The word.
        word: usize,
        /// What becomes of the value.
        wanted: Wanted,
        /// The scope of an acquire.
        acquire: Option<Scope>,
    },
    /// `oFence`
    OFence,
    /// `dFence`
    DFence,
    /// `fence.block`, `fence.dev`, `fence.sys`
    Fence(Scope),
    /// `bar`: of the block.
    Barrier,
    /// `mark M`: tells the world, which remembers it when the power fails.
    Mark(usize),
}

impl Action {
    /// What it is in the vocabulary of persistency; none for a mark.
    pub fn operation(&self) -> Option<Operation> {
        Some(match *self {
            Action::Store { release, .. } => release.map_or(Operation::Store, Operation::Release),
            Action::Load { acquire, .. } => acquire.map_or(Operation::Load, Operation::Acquire),
            Action::OFence => Operation::OFence,
            Action::DFence => Operation::DFence,
            Action::Fence(scope) => Operation::Fence(scope),
            Action::Barrier => Operation::Barrier,
            Action::Mark(_) => return None,
        })
    }
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    /// Executed only if a register holds a value.
    pub guard: Option<(usize, Value)>,
    /// What it does.
    pub action: Action,
    /// Its line in the file.
    pub line: usize,
}

/// A thread of the GPU.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its name.
    pub name: String,
    /// Its block.
    pub block: usize,
    /// The launch that it belongs to: one begins when the host has been told that the one before
    /// has ended.
    pub launch: usize,
    /// Its instructions.
    pub program: Vec<Instruction>,
}

/// A store of the test.
#[derive(Clone, Copy, Debug)]
pub struct StoreSite {
    /// Thread.
    pub thread: usize,
    /// Word.
    pub word: usize,
    /// Value.
    pub value: Value,
    /// Line in the file.
    pub line: usize,
}

/// What is observed when the power fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observable {
    /// What a word of PM holds.
    Word(usize),
    /// What was loaded; `-` until then.
    Register(usize),
    /// Whether the world was told: 0 or 1.
    Mark(usize),
    /// Whether the host was told that the last launch has ended: 0 or 1.
    End,
}

/// A litmus test.
#[derive(Clone, Debug)]
pub struct Test {
    /// One line on what it shows.
    pub title: String,
    /// The family that it belongs to.
    pub family: String,
    /// Section of the paper, or the choice that completes it.
    pub source: String,
    /// Rules without which the set of states differs.
    pub needs: Vec<Rule>,
    /// Memory.
    pub words: Vec<Word>,
    /// Threads.
    pub threads: Vec<Thread>,
    /// Names of the registers.
    pub registers: Vec<String>,
    /// Names of the marks.
    pub marks: Vec<String>,
    /// What is observed.
    pub observables: Vec<Observable>,
    /// Names of what is observed.
    pub observed: Vec<String>,
    /// Exactly the states that may be observed, of each model that the test speaks of.
    pub allowed: Vec<(Model, Vec<Named>)>,
    /// Patterns of states that SBRP forbids, with the reason.
    pub forbidden: Vec<Named>,
}

impl Test {
    /// All stores, by their number.
    pub fn stores(&self) -> Vec<StoreSite> {
        let mut found = Vec::new();
        for (thread, of) in self.threads.iter().enumerate() {
            for instruction in &of.program {
                if let Action::Store { word, value, .. } = instruction.action {
                    found.push(StoreSite { thread, word, value, line: instruction.line });
                }
            }
        }
        found
    }

    /// Number of launches, one after the other.
    pub fn launches(&self) -> usize {
        self.threads.iter().map(|thread| thread.launch + 1).max().unwrap_or(1)
    }

    /// The test as a model without scopes takes it: a release is a barrier and a store, an acquire
    /// a load and a barrier.
    pub fn with_barriers(&self) -> Test {
        let mut lowered = self.clone();
        for thread in &mut lowered.threads {
            thread.program = thread.program.iter().flat_map(with_barrier).collect();
        }
        lowered
    }
}

fn with_barrier(of: &Instruction) -> Vec<Instruction> {
    let barrier = Instruction { action: Action::OFence, ..*of };
    match of.action {
        Action::Store { id, word, value, release: Some(_) } => {
            vec![barrier, Instruction { action: Action::Store { id, word, value, release: None }, ..*of }]
        }
        Action::Load { word, wanted, acquire: Some(_) } => {
            vec![Instruction { action: Action::Load { word, wanted, acquire: None }, ..*of }, barrier]
        }
        _ => vec![*of],
    }
}
