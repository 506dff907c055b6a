//! Whose turn it is.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::memory::Windows;
use super::{Schedule, Stop};
use crate::error::{Error, Result};
use crate::rma::{HELPERS, Space};

/// A run that takes more steps hangs.
const MOST_STEPS: u64 = 20_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Running,
    /// In a meeting that not all have come to.
    Waiting,
    /// Stopped by the schedule: its next step fails.
    Stopped,
    Ended,
}

/// What is shared by all ranks, and changed by the one whose turn it is.
pub(super) struct State {
    pub memory: Windows,
    pub spaces: Vec<Space>,
    random: ChaCha8Rng,
    /// One in so many steps lets something arrive.
    laziness: u32,
    /// Of the ranks, then of their helpers, which are `Ended` until they are asked for.
    lives: Vec<Life>,
    /// Helpers that have not had their first turn.
    fresh: Vec<bool>,
    /// The first rank that others waited for in vain.
    lost: Option<usize>,
    /// Stopped ranks whose thread has ended.
    buried: Vec<bool>,
    turn: usize,
    step: u64,
    stopped: bool,
    /// What those have brought who came to the meeting.
    brought: Vec<Option<Vec<u8>>>,
    /// What the last meeting that took place handed out.
    met: Arc<Vec<Vec<u8>>>,
    meetings: u64,
}

/// The world of a run.
pub(super) struct Shared {
    state: Mutex<State>,
    turns: Vec<Condvar>,
    /// Told when an agent ends.
    ended: Condvar,
    stop: Option<Stop>,
    at_stop: Option<Arc<dyn Fn() + Send + Sync>>,
    halt: Option<Arc<AtomicBool>>,
}

/// A rank's part in the run; it ends when this goes.
pub(super) struct Part<W: Deref<Target = Shared>> {
    world: W,
    pub agent: usize,
}

impl State {
    /// A rank that will never come again.
    fn gone(&self) -> Option<usize> {
        self.dead().or_else(|| self.lives[..self.brought.len()].iter().position(|life| *life == Life::Ended))
    }

    /// A rank that was stopped.
    pub fn dead(&self) -> Option<usize> {
        self.lives[..self.brought.len()].iter().position(|life| *life == Life::Stopped)
    }

    pub fn land_all(&mut self, origin: usize, target: usize) {
        self.memory.land_all(origin, target, &mut self.random);
    }

    /// A helper when no rank is left.
    fn is_left_over(&self, agent: usize) -> bool {
        let ranks = self.brought.len();
        agent >= ranks && self.lives[..ranks].iter().all(|life| matches!(life, Life::Ended | Life::Stopped))
    }

    fn can_run(&self, rank: usize) -> bool {
        match self.lives[rank] {
            Life::Running => true,
            Life::Stopped => !self.buried[rank],
            Life::Waiting | Life::Ended => false,
        }
    }

    /// Chooses who runs next. Where nobody can, those who wait for somebody who is gone are told.
    fn choose(&mut self, from: usize) {
        if !(0..self.brought.len()).any(|rank| self.can_run(rank)) {
            self.lost = self.lost.or_else(|| self.gone());
            for life in self.lives.iter_mut().filter(|life| **life == Life::Waiting) {
                *life = Life::Running;
            }
        }
        if self.can_run(from) && self.random.random_bool(0.5) {
            self.turn = from;
            return;
        }
        let ready: Vec<usize> = (0..self.lives.len()).filter(|&rank| self.can_run(rank)).collect();
        if !ready.is_empty() {
            self.turn = ready[self.random.random_range(0..ready.len())];
        }
    }
}

impl Shared {
    pub fn new(ranks: usize, bytes: u64, schedule: &Schedule) -> Shared {
        let agents = (1 + HELPERS) * ranks;
        let mut random = ChaCha8Rng::seed_from_u64(schedule.seed);
        let laziness = [1, 2, 4, 16, 64][random.random_range(0..5_usize)];
        let state = State {
            memory: Windows::new(ranks, bytes),
            spaces: (0..ranks).map(|_| Space::new(bytes)).collect(),
            turn: random.random_range(0..ranks),
            random,
            laziness,
            lives: (0..agents).map(|agent| if agent < ranks { Life::Running } else { Life::Ended }).collect(),
            fresh: vec![false; agents],
            lost: None,
            buried: vec![false; agents],
            step: 0,
            stopped: false,
            brought: vec![None; ranks],
            met: Arc::default(),
            meetings: 0,
        };
        Shared {
            state: Mutex::new(state),
            turns: (0..agents).map(|_| Condvar::new()).collect(),
            ended: Condvar::new(),
            stop: schedule.stop,
            at_stop: schedule.at_stop.clone(),
            halt: schedule.halt.clone(),
        }
    }

    pub fn ranks(&self) -> usize {
        self.turns.len() / (1 + HELPERS)
    }

    pub fn steps(&self) -> u64 {
        self.lock().step
    }

    /// Waits for the helpers when all ranks have ended: until then a helper may still change what
    /// outlives the run.
    pub fn wait_for_helpers(&self) {
        let at_work = |state: &State| {
            let helpers = state.lives.iter().zip(&state.buried).skip(state.brought.len());
            helpers.into_iter().any(|(life, buried)| *life != Life::Ended && !buried)
        };
        let mut state = self.lock();
        while at_work(&state) {
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_turn<'s>(&self, mut state: MutexGuard<'s, State>, rank: usize) -> MutexGuard<'s, State> {
        while state.turn != rank {
            state = self.turns[rank].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    fn pass<'s>(&self, mut state: MutexGuard<'s, State>, rank: usize) -> MutexGuard<'s, State> {
        state.choose(rank);
        if state.turn != rank {
            self.turns[state.turn].notify_one();
        }
        state
    }

    /// A rank's thread begins, when it is its turn.
    pub fn begin(&self, rank: usize) -> Part<&Shared> {
        drop(self.wait_turn(self.lock(), rank));
        Part { world: self, agent: rank }
    }

    /// A rank's helper appears, unless it has one.
    pub fn appear(this: &Arc<Shared>, rank: usize) -> Option<Part<Arc<Shared>>> {
        let mut state = this.lock();
        let mut agents = (1..=HELPERS).map(|helper| helper * this.ranks() + rank);
        let agent = agents.find(|agent| state.lives[*agent] == Life::Ended && !state.buried[*agent])?;
        (state.lives[agent], state.fresh[agent]) = (Life::Running, true);
        Some(Part { world: Arc::clone(this), agent })
    }

    fn stop_if_due(&self, state: &mut State) {
        match self.stop {
            Some(Stop::All { step }) if state.step >= step && !state.stopped => {
                state.stopped = true;
                if let Some(at_stop) = &self.at_stop {
                    at_stop();
                }
            }
            Some(Stop::One { rank, step }) if state.step >= step && state.lives[rank] != Life::Ended => {
                state.lives[rank] = Life::Stopped;
                for helper in (1..=HELPERS).map(|helper| helper * self.ranks() + rank) {
                    if state.lives[helper] != Life::Ended {
                        state.lives[helper] = Life::Stopped;
                    }
                }
            }
            _ => {}
        }
        if self.halt.as_ref().is_some_and(|halt| halt.load(Ordering::SeqCst)) || state.step > MOST_STEPS {
            state.stopped = true;
        }
    }

    /// One step: others may run first, something may arrive, then `act` happens.
    pub fn step<R>(&self, rank: usize, act: impl FnOnce(&mut State) -> R) -> Result<R> {
        let mut state = self.lock();
        if std::mem::take(&mut state.fresh[rank]) {
            state = self.wait_turn(state, rank);
        }
        let state = self.pass(state, rank);
        let mut state = self.wait_turn(state, rank);
        self.act(&mut state, rank, act)
    }

    /// As [`Shared::step`], but mostly nobody comes in between.
    pub fn maybe_step<R>(&self, rank: usize, act: impl FnOnce(&mut State) -> R) -> Result<R> {
        let mut state = self.lock();
        if state.random.random_range(0..8) == 0 {
            drop(state);
            return self.step(rank, act);
        }
        self.act(&mut state, rank, act)
    }

    fn act<R>(&self, state: &mut State, rank: usize, act: impl FnOnce(&mut State) -> R) -> Result<R> {
        state.step += 1;
        self.stop_if_due(state);
        if state.stopped || state.lives[rank] == Life::Stopped || state.is_left_over(rank) {
            return Err(Error::Stopped { step: state.step });
        }
        if state.random.random_range(0..state.laziness) == 0 {
            let State { memory, random, .. } = state;
            memory.land_some(random);
        }
        Ok(act(state))
    }

    /// Comes to a meeting of all ranks with something, and gets what all brought.
    pub fn meet(&self, rank: usize, bring: Vec<u8>) -> Result<Arc<Vec<Vec<u8>>>> {
        let meeting = self.step(rank, |state| {
            state.brought[rank] = Some(bring);
            if state.brought.iter().all(Option::is_some) {
                state.met =
                    Arc::new(state.brought.iter_mut().map(|brought| brought.take().unwrap_or_default()).collect());
                state.meetings += 1;
                for life in state.lives.iter_mut().filter(|life| **life == Life::Waiting) {
                    *life = Life::Running;
                }
                return None;
            }
            state.lives[rank] = Life::Waiting;
            Some(state.meetings)
        })?;
        let Some(meeting) = meeting else { return Ok(Arc::clone(&self.lock().met)) };
        let state = self.pass(self.lock(), rank);
        let state = self.wait_turn(state, rank);
        if state.meetings > meeting {
            return Ok(Arc::clone(&state.met));
        }
        if state.stopped || state.lives[rank] == Life::Stopped {
            return Err(Error::Stopped { step: state.step });
        }
        let gone = state.lost.unwrap_or(rank);
        Err(Error::DeadRank { rank: gone, ranks: self.ranks() })
    }
}

impl<W: Deref<Target = Shared>> Drop for Part<W> {
    fn drop(&mut self) {
        let mut state = self.world.lock();
        if state.lives[self.agent] != Life::Stopped {
            state.lives[self.agent] = Life::Ended;
        } else {
            state.buried[self.agent] = true;
        }
        self.world.ended.notify_all();
        // One that was never given a turn has none to pass on.
        if state.turn == self.agent {
            drop(self.world.pass(state, self.agent));
        }
    }
}
