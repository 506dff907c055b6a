//! Which of several cores goes on.

use std::sync::{Arc, Condvar};

use crate::host::{Blocked, HANG_CYCLES, Host};

/// What a core does.
#[derive(Clone, Copy)]
enum State {
    /// It goes on when its time is the least.
    Ready,
    /// It goes on when the card has answered.
    Waits(Blocked),
    /// It takes no part any more.
    Done,
}

/// Cores that take turns at the accesses of threads of their own.
pub(super) struct Turns {
    states: Vec<State>,
    /// The one that goes on.
    pub turn: usize,
    /// All wait, and no card answers: nobody goes on any more.
    pub hangs: bool,
    /// What the thread of each core sleeps on.
    wakes: Vec<Arc<Condvar>>,
}

impl Turns {
    /// So many cores, none of which has begun.
    pub fn new(cores: usize) -> Turns {
        Turns {
            states: vec![State::Ready; cores],
            turn: 0,
            hangs: false,
            wakes: (0..cores).map(|_| Arc::default()).collect(),
        }
    }

    /// Whether a core takes part.
    pub fn includes(&self, core: usize) -> bool {
        self.states.get(core).is_some_and(|state| !matches!(state, State::Done))
    }

    /// A core has come to a read that is not answered.
    pub fn wait_for(&mut self, core: usize, blocked: Blocked) {
        self.states[core] = State::Waits(blocked);
    }

    /// A core has ended its work.
    pub fn end(&mut self, core: usize) {
        self.states[core] = State::Done;
    }

    /// What a core's thread sleeps on.
    pub fn wake(&self, core: usize) -> Arc<Condvar> {
        self.wakes[core].clone()
    }

    /// Gives the turn to the core that can go on first, and says to which. The cards run until it
    /// is known: while the answer to one core may come before the others' time, and so never past a
    /// moment at which another core may send them something. Where all wait, and no card answers,
    /// every one is woken to learn that.
    pub fn choose(&mut self, host: &mut Host) -> Option<usize> {
        let end = host.fabric.cycle() + HANG_CYCLES;
        while !self.hangs && host.fabric.cycle() < end {
            let nexts: Vec<_> = (0..self.states.len()).filter_map(|core| self.next_of(core, host)).collect();
            let (_, core, is_known) = *nexts.iter().min()?;
            if is_known {
                if let State::Waits(blocked) = std::mem::replace(&mut self.states[core], State::Ready) {
                    let answer_ps = host.answer_ps(blocked).expect("it is known");
                    host.pass_to(core, answer_ps);
                }
                self.turn = core;
                return Some(core);
            }
            let first_known_ps = nexts.iter().filter(|next| next.2).map(|next| next.0).min();
            host.fabric.next_cycle(first_known_ps.unwrap_or(u64::MAX));
        }
        self.hangs = true;
        self.wakes.iter().for_each(|wake| wake.notify_one());
        None
    }

    /// When a core can go on at the earliest, and whether it can then.
    fn next_of(&self, core: usize, host: &mut Host) -> Option<(u64, usize, bool)> {
        let (earliest_ps, is_known) = match self.states[core] {
            State::Ready => (0, true),
            State::Waits(blocked) => match host.answer_ps(blocked) {
                Some(answer_ps) => (answer_ps, true),
                None => (host.fabric.first_answer_ps(), false),
            },
            State::Done => return None,
        };
        Some((earliest_ps.max(host.now_ps(core)), core, is_known))
    }
}
