//! A read that threads share: one look at a page's status line answers all who wait for one at the
//! same time.
//!
//! What a thread has sent and fenced is ahead, on the link, of every read that begins later,
//! whichever thread makes it, and the card answers a read when all that arrived before is accepted
//! (C1). So an answer speaks for whoever asked before the read began, and for nobody else.
//!
//! Invariants:
//! - reads are numbered in the order in which they begin, from 1;
//! - who asks takes the answer of a read that begins after it has asked, never of one under way;
//! - a number of them is under way at most. Who finds so many waits for one to end, and then makes
//!   the next one, or is answered by it: all who wait together have one read;
//! - a read that fails, or whose thread unwinds, answers nobody else: who waited makes one of its
//!   own, and has its own error.

use super::sync::{Condvar, Mutex, MutexGuard};

/// What threads share to read together.
pub(crate) struct SharedRead<T> {
    at_once: u32,
    state: Mutex<State<T>>,
    ended: Condvar,
}

struct State<T> {
    /// Reads that have begun.
    begun: u64,
    under_way: u32,
    /// The newest one that was answered, and its answer.
    answered: Option<(u64, T)>,
}

impl<T: Copy> State<T> {
    /// The answer of a read with this number or a later one.
    fn answer(&self, number: u64) -> Option<T> {
        self.answered.filter(|&(newest, _)| newest >= number).map(|(_, answer)| answer)
    }
}

/// A read that a thread makes. It ends also by an error or a panic.
struct Read<'r, T: Copy> {
    of: &'r SharedRead<T>,
    number: u64,
    answer: Option<T>,
}

impl<T: Copy> Drop for Read<'_, T> {
    fn drop(&mut self) {
        let mut state = self.of.lock();
        state.under_way -= 1;
        if let Some(answer) = self.answer
            && state.answer(self.number).is_none()
        {
            state.answered = Some((self.number, answer));
        }
        drop(state);
        self.of.ended.notify_all();
    }
}

impl<T: Copy> SharedRead<T> {
    /// `at_once` reads may be under way.
    pub fn new(at_once: u32) -> SharedRead<T> {
        let state = State { begun: 0, under_way: 0, answered: None };
        SharedRead { at_once, state: Mutex::new(state), ended: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // What is behind it is whole between any two statements.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// An answer to a read that begins after this call: the caller's `read`, or one that another
    /// thread makes. `contended` is [`crate::pci::PciFunction::contended`].
    ///
    /// # Errors
    /// That of `read`.
    pub fn read<E>(&self, contended: impl Fn() -> bool, read: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let mut state = self.lock();
        let next = state.begun + 1;
        loop {
            if let Some(answer) = state.answer(next) {
                return Ok(answer);
            }
            if state.under_way < self.at_once {
                break;
            }
            state = self.wait(state, next, &contended);
        }
        state.begun += 1;
        let mut mine = Read { of: self, number: state.begun, answer: None };
        state.under_way += 1;
        drop(state);
        let answer = read()?;
        mine.answer = Some(answer);
        Ok(answer)
    }

    /// Lets time pass until a read has ended, or may have.
    fn wait<'s>(
        &'s self,
        state: MutexGuard<'s, State<T>>,
        next: u64,
        contended: impl Fn() -> bool,
    ) -> MutexGuard<'s, State<T>> {
        drop(state);
        let takes_turns = contended();
        let mut state = self.lock();
        while !takes_turns && state.answer(next).is_none() && state.under_way == self.at_once {
            state = self.ended.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        state
    }
}
