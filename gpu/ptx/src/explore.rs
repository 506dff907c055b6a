//! Every state that a small launch can come to, each once. Schedules that have come to the same
//! state go on from there alike, so that the first of them does for all: model checking that keeps
//! fingerprints of states (hash compaction, Wolper and Leroy 1993).

use std::collections::{HashMap, HashSet};

use crate::drive::drive;
use crate::state::{self, Saved};
use crate::{Choices, Ended, Entry, Gpu, Launch, LaunchError, Persistence, Run, Schedule, Stop};

/// What [`every_state`] went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visited {
    /// States at which there was a choice, and those that were gone on from: each once, but for
    /// those that were come to again with more preemptions left.
    pub states: u64,
    /// Ways on from them, and the one from the beginning: each goes to the next choice, or to the
    /// end.
    pub ways: u64,
    /// Ways that came to an end.
    pub ends: u64,
    /// Whether all was gone through (false: `limit` was reached).
    pub complete: bool,
}

/// Where [`every_state`] has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// So many persist events: what a crash may leave has changed, to what it was nowhere before.
    Event(u64),
    /// The end, after so many: everything has persisted.
    End(u64),
}

/// Goes through all that [`crate::every_schedule`] does, by its states: where a state comes up
/// again, what follows it is not gone through again. `look` is called at each persist event behind
/// which a crash may leave what it could not before, and at each end; the GPU is as it is there,
/// and can be looked at ([`Gpu::crash_image`], [`Gpu::images`], [`Gpu::persistent`]) beside the
/// schedule that led there. It ends with `limit` states. What the GPU's memories hold then is what
/// the last way has left.
///
/// # Errors
/// The first of `look`, or of the launch.
pub fn every_state<E: From<LaunchError>>(
    gpu: &mut Gpu,
    entry: &Entry,
    launch: &Launch,
    (preemptions, limit): (u32, u64),
    mut look: impl FnMut(&Gpu, Reached, &Schedule) -> Result<(), E>,
) -> Result<Visited, E> {
    let schedule = Schedule::Replay(Choices::asked_for(preemptions));
    let mut run = Run { schedule, stop_at: Stop::Step(0), persistence: Persistence::Tracked, ..Run::default() };
    gpu.launch(entry, launch, &mut run)?;
    let mut search = Search::default();
    let outcome = search.all(gpu, &mut run, limit, &mut look);
    // The launch is over: no part of it is to be gone on with.
    *gpu.under_way().0 = None;
    outcome.map(|()| search.visited)
}

#[derive(Default)]
struct Search {
    /// Fingerprints of states, with the preemptions spent when they were come to.
    known: HashMap<u128, u32>,
    /// Fingerprints of what crashes may leave.
    crashes: HashSet<u128>,
    /// States with choices that were not taken yet: the next of so many.
    open: Vec<(Saved, u32, u32)>,
    visited: Visited,
}

impl Search {
    fn all<E: From<LaunchError>>(
        &mut self,
        gpu: &mut Gpu,
        run: &mut Run,
        limit: u64,
        look: &mut impl FnMut(&Gpu, Reached, &Schedule) -> Result<(), E>,
    ) -> Result<(), E> {
        while (self.known.len() as u64) < limit {
            self.visited.ways += 1;
            if let Some(options) = self.go_on(gpu, run, look)? {
                self.keep(gpu, options);
            }
            if !self.next(gpu) {
                self.visited.complete = true;
                break;
            }
        }
        Ok(())
    }

    /// Runs to the next choice, of which the number of options is given, or to the end.
    fn go_on<E: From<LaunchError>>(
        &mut self,
        gpu: &mut Gpu,
        run: &mut Run,
        look: &mut impl FnMut(&Gpu, Reached, &Schedule) -> Result<(), E>,
    ) -> Result<Option<u32>, E> {
        loop {
            let (running, memory) = gpu.under_way();
            let running = running.as_mut().expect("it was launched, and is not taken away for long");
            run.stop_at = Stop::PersistEvent(running.counts.persist_events + 1);
            let ended = drive(running, memory, run).map_err(LaunchError::from)?;
            let schedule = running.picker.schedule.clone();
            let events = running.counts.persist_events;
            if ended == Ended::Done {
                self.visited.ends += 1;
                let running = gpu.under_way().0.take();
                let looked = look(gpu, Reached::End(events), &schedule);
                *gpu.under_way().0 = running;
                return looked.map(|()| None);
            }
            if let Some(options) = running.picker.undecided() {
                return Ok(Some(options));
            }
            if self.crashes.insert(state::of_persistent(running, memory)) {
                look(gpu, Reached::Event(events), &schedule)?;
            }
        }
    }

    /// Keeps a state to be gone on from, unless it was.
    fn keep(&mut self, gpu: &mut Gpu, options: u32) {
        let (Some(running), memory) = gpu.under_way() else { return };
        let spent = running.picker.spent();
        let known = self.known.entry(state::of(running, memory)).or_insert(u32::MAX);
        if spent < *known {
            *known = spent;
            self.visited.states += 1;
            self.open.push((Saved::new(running, memory), 0, options));
        }
    }

    /// Takes the next choice of the last state that has one. False where none has.
    fn next(&mut self, gpu: &mut Gpu) -> bool {
        let Some((saved, next, options)) = self.open.last_mut() else { return false };
        let (Some(running), memory) = gpu.under_way() else { return false };
        saved.restore(running, memory);
        running.picker.decide(*next);
        *next += 1;
        if next == options {
            self.open.pop();
        }
        true
    }
}
