//! Whose turn it is: always the one whose time is the earliest.
//!
//! *Agents* are the ranks, and behind them their helpers, which may be asleep. An operation that is
//! on its way is an event of the target's memory at a time; before an agent does anything at its
//! time, all events up to then have happened. Equal times are settled by the order of issue, then
//! by number, so that a run is a function of its program and its profile.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::profile::{Picos, Profile};
use crate::error::{Error, Result};
use crate::rma::{HELPERS, Kind, Op, Place, Space};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Running,
    /// In a meeting that not all have come to.
    Meeting,
    /// Until a word of its window is another one.
    Word {
        at: Place,
        was: u64,
    },
    /// Ended, or a helper that was not asked for.
    Away,
}

/// What an operation does where it arrives.
pub(super) enum Moves {
    Write(Vec<u8>),
    Read(usize),
    Combine(Kind, Op, Vec<u8>),
    /// Bytes, and two words behind them to which 1 is added.
    Deliver(Vec<u8>, [u64; 2]),
}

struct Event {
    at: Place,
    moves: Moves,
}

/// What agents share; the one whose turn it is changes it.
pub(super) struct State {
    windows: Vec<Vec<u8>>,
    pub spaces: Vec<Space>,
    pub clocks: Vec<Picos>,
    lives: Vec<Life>,
    /// Helpers that have not had their first turn.
    fresh: Vec<bool>,
    turn: usize,
    /// Time and number of what is on its way.
    due: BinaryHeap<Reverse<(Picos, u64)>>,
    events: HashMap<u64, Event>,
    numbers: u64,
    /// Bytes of reads that have arrived at their target.
    reads: HashMap<u64, Vec<u8>>,
    /// When a rank's link is free, to send and to receive, and when its adapter is for an atomic.
    pub sends: Vec<Picos>,
    pub receives: Vec<Picos>,
    pub atomics: Vec<Picos>,
    /// When everything is done that an agent did to a rank.
    done: Vec<Vec<Picos>>,
    /// When a rank's storage has taken what it was given.
    pub storage: Vec<Picos>,
    brought: Vec<Option<Vec<u8>>>,
    met: Arc<Vec<Vec<u8>>>,
    meetings: u64,
    lost: Option<usize>,
    /// Messages that went from one rank to another.
    pub messages: u64,
}

/// A world in virtual time.
pub(super) struct Shared {
    state: Mutex<State>,
    turns: Vec<Condvar>,
    pub ranks: usize,
    pub profile: Profile,
}

/// An agent's part in the run; it ends when this goes.
pub(super) struct Part {
    shared: Arc<Shared>,
    pub agent: usize,
}

impl State {
    /// Changes one word at once.
    pub fn word<R>(&mut self, at: Place, change: impl FnOnce(&mut u64) -> R) -> R {
        let bytes = &mut self.windows[at.rank][at.offset as usize..][..8];
        let mut word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        let given = change(&mut word);
        bytes.copy_from_slice(&word.to_le_bytes());
        given
    }

    /// Bytes of a window.
    pub fn bytes(&mut self, at: Place, bytes: usize) -> &mut [u8] {
        &mut self.windows[at.rank][at.offset as usize..][..bytes]
    }

    pub fn copy_within(&mut self, rank: usize, from: u64, to: u64, bytes: u64) {
        self.windows[rank].copy_within(from as usize..(from + bytes) as usize, to as usize);
    }

    /// Puts an operation on its way.
    pub fn launch(&mut self, time: Picos, at: Place, moves: Moves) -> u64 {
        self.numbers += 1;
        self.due.push(Reverse((time, self.numbers)));
        self.events.insert(self.numbers, Event { at, moves });
        self.numbers
    }

    pub fn note_done(&mut self, agent: usize, target: usize, time: Picos) {
        let done = &mut self.done[agent][target];
        *done = (*done).max(time);
    }

    pub fn done(&self, agent: usize, target: usize) -> Picos {
        self.done[agent][target]
    }

    pub fn take_read(&mut self, number: u64) -> Vec<u8> {
        self.reads.remove(&number).unwrap_or_default()
    }

    /// Everything arrives that is due.
    fn arrive(&mut self, now: Picos, wake: Picos) {
        while let Some(Reverse((time, number))) = self.due.peek().copied().filter(|next| next.0.0 <= now) {
            self.due.pop();
            let Some(Event { at, moves }) = self.events.remove(&number) else { continue };
            match moves {
                Moves::Write(data) => self.bytes(at, data.len()).copy_from_slice(&data),
                Moves::Combine(kind, op, data) => kind.combine_bytes(op, self.bytes(at, data.len()), &data),
                Moves::Deliver(data, words) => {
                    self.bytes(at, data.len()).copy_from_slice(&data);
                    for offset in words {
                        self.word(Place { offset, ..at }, |word| *word = word.wrapping_add(1));
                    }
                }
                Moves::Read(bytes) => {
                    let data = self.bytes(at, bytes).to_vec();
                    self.reads.insert(number, data);
                }
            }
            self.wake(time + wake);
        }
    }

    /// Whoever waits for a word that has changed goes on.
    pub fn wake(&mut self, time: Picos) {
        for agent in 0..self.lives.len() {
            let Life::Word { at, was } = self.lives[agent] else { continue };
            if self.word(at, |word| *word) != was {
                self.lives[agent] = Life::Running;
                self.clocks[agent] = self.clocks[agent].max(time);
            }
        }
    }

    fn gone(&self, ranks: usize) -> Option<usize> {
        self.lives[..ranks].iter().position(|life| *life == Life::Away)
    }

    fn next_event(&self) -> Picos {
        self.due.peek().map_or(Picos::MAX, |next| next.0.0)
    }

    /// The agent whose time is the earliest. What arrives before is done first, as it may wake
    /// somebody; where nobody can go on, those who wait for somebody who is gone are told.
    fn choose(&mut self, ranks: usize, wake: Picos) {
        loop {
            let running = (0..self.lives.len()).filter(|&agent| self.lives[agent] == Life::Running);
            match running.min_by_key(|&agent| (self.clocks[agent], agent)) {
                Some(first) if self.clocks[first] <= self.next_event() => {
                    self.turn = first;
                    return;
                }
                _ if !self.due.is_empty() => self.arrive(self.next_event(), wake),
                _ => {
                    self.lost = self.lost.or_else(|| self.gone(ranks));
                    let waits = |life: &&mut Life| !matches!(life, Life::Away);
                    let mut told = 0;
                    self.lives.iter_mut().filter(waits).for_each(|life| {
                        *life = Life::Running;
                        told += 1;
                    });
                    if told == 0 {
                        return;
                    }
                }
            }
        }
    }
}

impl Shared {
    pub fn new(ranks: usize, bytes: u64, profile: Profile) -> Shared {
        let agents = (1 + HELPERS) * ranks;
        let state = State {
            windows: (0..ranks).map(|_| vec![0; bytes as usize]).collect(),
            spaces: (0..agents).map(|_| Space::new(bytes)).collect(),
            clocks: vec![0; agents],
            lives: vec![Life::Running; ranks],
            fresh: vec![false; agents],
            turn: 0,
            due: BinaryHeap::new(),
            events: HashMap::new(),
            numbers: 0,
            reads: HashMap::new(),
            sends: vec![0; ranks],
            receives: vec![0; ranks],
            atomics: vec![0; ranks],
            done: vec![vec![0; ranks]; agents],
            storage: vec![0; ranks],
            brought: vec![None; ranks],
            met: Arc::default(),
            meetings: 0,
            lost: None,
            messages: 0,
        };
        Shared { state: Mutex::new(state), turns: (0..agents).map(|_| Condvar::new()).collect(), ranks, profile }
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(&self, state: &mut State, agent: usize) {
        state.choose(self.ranks, self.profile.wake);
        if state.turn != agent {
            self.turns[state.turn].notify_one();
        }
    }

    fn wait_turn<'s>(&'s self, mut state: MutexGuard<'s, State>, agent: usize) -> MutexGuard<'s, State> {
        while state.turn != agent {
            state = self.turns[agent].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    /// A rank's thread begins, when it is its turn.
    pub fn begin(self: &Arc<Self>, agent: usize) -> Part {
        drop(self.wait_turn(self.lock(), agent));
        Part { shared: Arc::clone(self), agent }
    }

    /// A rank's helper appears, at the rank's time.
    pub fn appear(self: &Arc<Self>, rank: usize) -> Option<Part> {
        let mut state = self.lock();
        let mut agents = (1..=HELPERS).map(|helper| helper * self.ranks + rank);
        let agent = agents.find(|agent| state.lives.get(*agent).is_none_or(|life| *life == Life::Away))?;
        if state.lives.len() <= agent {
            state.lives.resize(agent + 1, Life::Away);
        }
        (state.lives[agent], state.fresh[agent]) = (Life::Running, true);
        state.clocks[agent] = state.clocks[rank];
        Some(Part { shared: Arc::clone(self), agent })
    }

    /// Lets an agent's time go on to `until`, and everything happen that is earlier.
    pub fn travel<'s>(&'s self, mut state: MutexGuard<'s, State>, agent: usize, until: Picos) -> MutexGuard<'s, State> {
        if std::mem::take(&mut state.fresh[agent]) {
            state = self.wait_turn(state, agent);
        }
        state.clocks[agent] = state.clocks[agent].max(until);
        self.pass(&mut state, agent);
        let mut state = self.wait_turn(state, agent);
        let now = state.clocks[agent];
        state.arrive(now, self.profile.wake);
        state
    }

    /// Goes on when it is an agent's turn at its own time.
    pub fn at_turn(&self, agent: usize) -> MutexGuard<'_, State> {
        self.travel(self.lock(), agent, 0)
    }

    fn dead(&self, state: &State, rank: usize) -> Error {
        Error::DeadRank { rank: state.lost.unwrap_or(rank), ranks: self.ranks }
    }

    /// Comes to a meeting of all ranks with something, and gets what all brought.
    pub fn meet(&self, rank: usize, bring: Vec<u8>) -> Result<Arc<Vec<Vec<u8>>>> {
        let mut state = self.at_turn(rank);
        let bytes = bring.len();
        state.brought[rank] = Some(bring);
        if state.brought.iter().all(Option::is_some) {
            state.met = Arc::new(state.brought.iter_mut().map(|brought| brought.take().unwrap_or_default()).collect());
            state.meetings += 1;
            let end = state.clocks[rank] + self.profile.meeting(self.ranks, bytes);
            for other in 0..self.ranks {
                if other == rank || state.lives[other] == Life::Meeting {
                    (state.lives[other], state.clocks[other]) = (Life::Running, end);
                }
            }
            return Ok(Arc::clone(&state.met));
        }
        let meeting = state.meetings;
        state.lives[rank] = Life::Meeting;
        self.pass(&mut state, rank);
        let state = self.wait_turn(state, rank);
        if state.meetings > meeting { Ok(Arc::clone(&state.met)) } else { Err(self.dead(&state, rank)) }
    }

    /// Waits until a word of a window is another one.
    pub fn wait_word(&self, agent: usize, at: Place, was: u64) -> Result<u64> {
        let mut state = self.at_turn(agent);
        let now = state.word(at, |word| *word);
        if now != was {
            return Ok(now);
        }
        state.lives[agent] = Life::Word { at, was };
        self.pass(&mut state, agent);
        let mut state = self.wait_turn(state, agent);
        match state.word(at, |word| *word) {
            now if now != was => Ok(now),
            _ => Err(self.dead(&state, at.rank)),
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.lives[self.agent] = Life::Away;
        if state.turn == self.agent {
            self.shared.pass(&mut state, self.agent);
        }
    }
}
