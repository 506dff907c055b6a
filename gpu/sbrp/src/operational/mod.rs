//! The operational form: an abstract machine whose threads store to memory that all see at once,
//! while stores to PM become durable later, one by one, in any order that what they wait for
//! permits.
//!
//! A store to PM waits for a set of earlier ones. A thread keeps the set that its next store waits
//! for (`before`), adds to it at fences and acquires, and hands it on with the stores that release
//! it: one set for readers of its block, one for all others.

mod handing;
mod search;
mod state;

pub use search::{Exploration, TooLarge, explore};
pub use state::State;

use crate::litmus::{Action, Instruction, NOT_LOADED, Test, Wanted};
use crate::outcome::Outcome;
use crate::rules::{Rule, Semantics};
use state::{Set, bit};

/// A test on the machine.
pub struct Machine {
    test: Test,
    semantics: Semantics,
    stores: Vec<Site>,
}

/// A store.
#[derive(Clone, Copy)]
struct Site {
    thread: usize,
    word: usize,
    value: u8,
    persistent: bool,
}

/// What a step of the machine was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A thread executed the instruction at a line of the file.
    Executed {
        /// The thread.
        thread: usize,
        /// Line in the file.
        line: usize,
    },
    /// A store became durable.
    Durable {
        /// Its number.
        store: usize,
    },
    /// The host was told that a launch has ended.
    Ended {
        /// The launch.
        launch: usize,
    },
}

impl Machine {
    /// The machine of a model.
    pub fn new(test: &Test, semantics: Semantics) -> Machine {
        let stores = test.stores();
        let site = |store: &crate::litmus::StoreSite| Site {
            thread: store.thread,
            word: store.word,
            value: store.value,
            persistent: test.words[store.word].persistent,
        };
        let stores = stores.iter().map(site).collect();
        let test = if semantics.is_epoch() { test.with_barriers() } else { test.clone() };
        Machine { test, semantics, stores }
    }

    /// The state before the first instruction.
    pub fn start(&self) -> State {
        State::new(&self.test, self.stores.len())
    }

    /// What is left when the power fails in a state: the values of all that can be observed.
    pub fn observe(&self, state: &State) -> Outcome {
        let word = |index: usize| match state.durable_store(index) {
            Some(store) => self.stores[store].value,
            None => self.test.words[index].initial,
        };
        crate::outcome::observe(&self.test, word, &state.registers, state.marks, state.ended)
    }

    /// All steps from a state.
    pub fn steps(&self, state: &State) -> Vec<(Step, State)> {
        let mut next = Vec::new();
        for thread in 0..self.test.threads.len() {
            next.extend(self.execute(state, thread));
        }
        for store in 0..self.stores.len() {
            if state.executed & !state.durable & bit(store) != 0 && state.waits_for[store] & !state.durable == 0 {
                let mut after = state.clone();
                after.make_durable(store, self.stores[store].word);
                next.push((Step::Durable { store }, after));
            }
        }
        next.extend(self.end_launch(state));
        next
    }

    /// Persists that the thread has done.
    fn own(&self, state: &State, thread: usize) -> Set {
        (0..self.stores.len()).filter(|s| self.stores[*s].thread == thread).fold(0, |set, s| set | bit(s))
            & state.executed
    }

    fn end_launch(&self, state: &State) -> Option<(Step, State)> {
        let launch = usize::from(state.ended);
        let done = |(index, thread): (usize, &crate::litmus::Thread)| {
            thread.launch != launch || state.threads[index].pc as usize == thread.program.len()
        };
        let drained = state.executed & !state.durable == 0 || !self.semantics.keeps(Rule::KernelEndDrains);
        if launch >= self.test.launches() || !drained || !self.test.threads.iter().enumerate().all(done) {
            return None;
        }
        let mut after = state.clone();
        after.ended += 1;
        Some((Step::Ended { launch }, after))
    }

    fn execute(&self, state: &State, thread: usize) -> Option<(Step, State)> {
        let of = &self.test.threads[thread];
        let instruction = of.program.get(state.threads[thread].pc as usize)?;
        if of.launch != usize::from(state.ended) || state.threads[thread].at_barrier {
            return None;
        }
        let mut after = state.clone();
        after.threads[thread].pc += 1;
        let skipped = instruction.guard.is_some_and(|(register, wanted)| state.registers[register] != wanted);
        if !skipped && !self.perform(&mut after, thread, instruction) {
            return None;
        }
        Some((Step::Executed { thread, line: instruction.line }, after))
    }

    /// Does what an instruction does; false if it has to wait.
    fn perform(&self, state: &mut State, thread: usize, instruction: &Instruction) -> bool {
        match instruction.action {
            Action::Store { id, word, release, .. } => {
                let waits = release.is_some() && !self.semantics.is_strict() && !self.semantics.keeps(Rule::Buffered);
                if waits && self.covered(state, thread) & !state.durable != 0 {
                    return false;
                }
                self.store(state, thread, id, word, release);
            }
            Action::Load { word, wanted, acquire } => {
                let value = match state.visible_store(word) {
                    Some(store) => self.stores[store].value,
                    None => self.test.words[word].initial,
                };
                match wanted {
                    Wanted::Register(register) => state.registers[register] = value,
                    Wanted::Until(wanted) if wanted != value => return false,
                    Wanted::Until(_) => {}
                }
                self.load(state, thread, word, acquire);
            }
            Action::OFence | Action::DFence | Action::Fence(_) => return self.fence(state, thread, instruction.action),
            Action::Barrier => self.come_to_barrier(state, thread),
            Action::Mark(mark) => state.marks |= 1 << mark,
        }
        true
    }
}

/// A register that nothing was loaded into.
pub(crate) const EMPTY_REGISTER: u8 = NOT_LOADED;
