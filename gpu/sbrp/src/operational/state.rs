//! What the machine is in.

use super::EMPTY_REGISTER;
use crate::Scope;
use crate::litmus::Test;

/// A set of stores.
pub type Set = u32;

const NONE: u8 = u8::MAX;

/// The set of one store.
pub fn bit(store: usize) -> Set {
    1 << store
}

/// What a store hands to a thread that reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Handed {
    /// To a thread of the same block.
    pub block: Set,
    /// To any other, if it acquires at the scope of the device.
    pub device: Set,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ThreadState {
    /// Its next instruction.
    pub pc: u8,
    /// It waits at a barrier of its block.
    pub at_barrier: bool,
    /// What its next persist waits for.
    pub before: Set,
    /// What its last fences covered: what its stores hand on.
    pub fenced: Handed,
    /// The widest scope that a fence of it had.
    pub widest: Option<Scope>,
    /// Stores that it has read: a later fence acquires what they hand on.
    pub read: Set,
    /// What barriers have handed to it, until a fence acquires it.
    pub heard: Set,
}

/// The state of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) threads: Vec<ThreadState>,
    /// Of each word: the store that is visible.
    visible: Vec<u8>,
    /// Of each word: the store that was made durable last.
    durable_last: Vec<u8>,
    /// Stores to PM that were executed.
    pub(super) executed: Set,
    /// Those that are durable.
    pub(super) durable: Set,
    /// Of each store: those that must be durable before.
    pub(super) waits_for: Vec<Set>,
    /// Of each store: what it hands on.
    pub(super) handed: Vec<Handed>,
    pub(super) registers: Vec<u8>,
    pub(super) marks: u16,
    /// Launches of whose end the host was told.
    pub(super) ended: u8,
}

impl State {
    pub(super) fn new(test: &Test, stores: usize) -> State {
        State {
            threads: vec![ThreadState::default(); test.threads.len()],
            visible: vec![NONE; test.words.len()],
            durable_last: vec![NONE; test.words.len()],
            executed: 0,
            durable: 0,
            waits_for: vec![0; stores],
            handed: vec![Handed::default(); stores],
            registers: vec![EMPTY_REGISTER; test.registers.len()],
            marks: 0,
            ended: 0,
        }
    }

    pub(super) fn visible_store(&self, word: usize) -> Option<usize> {
        Some(usize::from(self.visible[word])).filter(|store| *store < usize::from(NONE))
    }

    pub(super) fn durable_store(&self, word: usize) -> Option<usize> {
        Some(usize::from(self.durable_last[word])).filter(|store| *store < usize::from(NONE))
    }

    pub(super) fn make_visible(&mut self, store: usize, word: usize) {
        self.visible[word] = store as u8;
    }

    pub(super) fn make_durable(&mut self, store: usize, word: usize) {
        self.durable |= bit(store);
        self.durable_last[word] = store as u8;
    }
}
