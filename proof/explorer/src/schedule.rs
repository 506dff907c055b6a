//! Two threads that take turns at the events of memory, as a schedule says.
//!
//! One of them runs at a time, up to its next store, write-back or fence. There it goes on, unless
//! the schedule switches. A thread that waits for a lock of the library cannot go on: that is seen
//! in what Linux says of it, and its turn passes. When it gets the lock it runs beside the other
//! one up to its next event: what they do meanwhile has no order that a schedule could repeat.

use std::cell::Cell;
use std::fs;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

thread_local!(static PROCESSOR: Cell<u32> = const { Cell::new(0) });

/// Moves the calling thread to a processor.
pub fn run_on(processor: u32) {
    PROCESSOR.set(processor);
}

/// The processor that the calling thread is on.
pub fn processor() -> u32 {
    PROCESSOR.get()
}

/// Turns at which the other thread goes on: numbers of those events, from 0, at which both could.
pub type Schedule = Vec<usize>;

/// How long to wait between two looks at a thread that may wait for a lock.
const LOOK: Duration = Duration::from_micros(50);

#[derive(Default)]
struct State {
    /// The thread whose turn it is.
    current: usize,
    /// Waits here for its turn.
    parked: [bool; 2],
    done: [bool; 2],
    /// Its folder in /proc.
    folder: [Option<String>; 2],
    /// Turns so far.
    turns: usize,
}

/// Decides who goes on. The threads are on the processors 1 and 2; others are not asked.
pub struct Scheduler {
    switches: Schedule,
    state: Mutex<State>,
    changed: Condvar,
}

fn this_thread() -> Option<usize> {
    (processor() as usize).checked_sub(1)
}

/// Whether a thread sleeps, twice in a row.
fn sleeps(folder: &str) -> bool {
    let sleeps = || {
        let stat = fs::read_to_string(format!("/proc/{folder}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
    };
    sleeps() && {
        std::thread::sleep(LOOK);
        sleeps()
    }
}

impl Scheduler {
    /// A scheduler that switches at these turns.
    pub fn new(switches: Schedule) -> Scheduler {
        Scheduler { switches, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Turns so far.
    pub fn turns(&self) -> usize {
        self.lock().turns
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calling thread begins: it waits for the other one to be there, too.
    pub fn enter(&self) {
        let Some(me) = this_thread() else { return };
        let folder = fs::read_link("/proc/thread-self").expect("Linux tells a thread its number");
        let mut state = self.lock();
        state.folder[me] = Some(folder.to_string_lossy().into_owned());
        state.parked[me] = true;
        self.changed.notify_all();
        while state.folder.iter().any(Option::is_none) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        self.wait_for_turn(state, me);
    }

    /// The calling thread is done.
    pub fn leave(&self) {
        let Some(me) = this_thread() else { return };
        let mut state = self.lock();
        state.done[me] = true;
        state.current = 1 - me;
        self.changed.notify_all();
    }

    /// The calling thread is about to change memory.
    pub fn event(&self) {
        let Some(me) = this_thread() else { return };
        let other = 1 - me;
        let mut state = self.lock();
        state.parked[me] = true;
        self.changed.notify_all();
        // One that got the lock it waited for runs on to its next event; where it is must not
        // depend on time.
        while !state.done[other] && !state.parked[other] {
            let folder = state.folder[other].clone().expect("both have entered");
            drop(state);
            let waits = sleeps(&folder);
            state = self.lock();
            if waits && !state.parked[other] {
                break;
            }
        }
        state.current = me;
        if !state.done[other] && state.parked[other] {
            if self.switches.contains(&state.turns) {
                state.current = other;
                self.changed.notify_all();
            }
            state.turns += 1;
        }
        self.wait_for_turn(state, me);
    }

    fn wait_for_turn<'a>(&'a self, mut state: MutexGuard<'a, State>, me: usize) {
        let other = 1 - me;
        while state.current != me {
            state = self.changed.wait_timeout(state, LOOK * 4).unwrap_or_else(PoisonError::into_inner).0;
            if state.current == other && !state.parked[other] && !state.done[other] {
                let folder = state.folder[other].clone().expect("both have entered");
                drop(state);
                let waits = sleeps(&folder);
                state = self.lock();
                if waits && state.current == other && !state.parked[other] {
                    state.current = me;
                }
            }
        }
        state.parked[me] = false;
    }
}
