//! Power cuts of direct pools, at stores, write-backs and fences, in both modes, and again in the
//! recovery.

mod behind_a_link;
mod differences;
mod failures;
mod fragmentation;
mod home;
mod large;
mod mode_by_use;
mod old;
mod once;
mod past_the_mechanism;
mod reused_chunks;
mod scarce;
mod sites;
pub(crate) mod store;
mod threads;

use std::sync::{Arc, Mutex};

use nearpm_tier::thorough;
use store::{Model, Operations, contents, create, empty, options};

use super::slot::move_to;
use super::{DirectPool, Mode};
use crate::memory::{Event, Image, TestMemory, planted, run_on_processor};
use crate::options::Options;
use crate::{Durability, Mechanism};

/// Small, because a cut costs an open, which reads all of it.
const POOL_BYTES: usize = 1 << 19;

/// States that may survive a cut at this moment.
#[derive(Clone)]
struct Allowed(Vec<Model>);

fn open(image: Image, mode: Mode) -> Result<(TestMemory, DirectPool), String> {
    let memory = TestMemory::from_image(image);
    let pool = DirectPool::open_in(Box::new(memory.clone()), &options(mode)).map_err(|e| e.to_string())?;
    Ok((memory, pool))
}

fn verify(image: Image, mode: Mode, allowed: &Allowed) -> Result<(), String> {
    let (_, pool) = open(image, mode)?;
    let found = contents(&pool, 1)?.remove(0);
    if allowed.0.contains(&found) { Ok(()) } else { Err(format!("none of {} states: {found:?}", allowed.0.len())) }
}

/// Cuts during a recovery, and recovers from that. Gives the number of cuts.
fn cut_recovery(image: &Image, mode: Mode, allowed: &Allowed, cuts: Cuts) -> Result<u64, String> {
    let memory = TestMemory::from_image(image.clone());
    let images: Arc<Mutex<Vec<Image>>> = Arc::default();
    let sink = images.clone();
    let mut aim = Aim::new(cuts);
    memory.probe(move |number, event, survive| {
        let draws = aim.draws(number, event);
        sink.lock().unwrap().extend((0..draws).map(|draw| survive(number * 64 + draw)));
    });
    drop(DirectPool::open_in(Box::new(memory.clone()), &options(mode)).map_err(|e| e.to_string())?);
    memory.stop_probe();
    let images = std::mem::take(&mut *images.lock().unwrap());
    let number = images.len() as u64;
    images.into_iter().try_for_each(|image| verify(image, mode, allowed))?;
    Ok(number)
}

/// When power is cut.
#[derive(Clone, Copy)]
enum Cuts {
    /// At about one event in so many, and at every fence.
    OneIn(u64),
    /// At the events that follow a step that was left out.
    AfterOmissions,
}

/// Tells when to cut.
struct Aim {
    cuts: Cuts,
    omissions: u64,
    /// Events that are still worth a cut.
    armed: u64,
    /// Omissions that were followed already.
    followed: u64,
}

impl Aim {
    fn new(cuts: Cuts) -> Aim {
        Aim { cuts, omissions: planted::omissions(), armed: 0, followed: 0 }
    }

    /// How often to draw what survives a cut at this event.
    fn draws(&mut self, number: u64, event: Event) -> u64 {
        match self.cuts {
            Cuts::OneIn(_) if event == Event::Fence => 1,
            Cuts::OneIn(events) => u64::from((number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33).is_multiple_of(events)),
            Cuts::AfterOmissions => {
                if planted::omissions() != self.omissions {
                    self.omissions = planted::omissions();
                    // Those of the beginning, and some of later.
                    self.followed += 1;
                    self.armed = if self.followed < 12 || self.followed.is_multiple_of(37) { 66 } else { 0 };
                }
                self.armed = self.armed.saturating_sub(1);
                // Everything at once, then every fence until the next of the same processor.
                if self.armed >= 60 { 8 } else { 2 * u64::from(self.armed > 0 && event == Event::Fence) }
            }
        }
    }

    /// Omissions of a recovery that only looked are none.
    fn forget(&mut self) {
        self.omissions = planted::omissions();
    }
}

/// Cuts that were made, and the first that was not survived.
#[derive(Default)]
struct Verdict {
    cuts: u64,
    failure: Option<String>,
}

/// A run of random transactions with power cuts.
#[derive(Clone, Copy)]
struct Run {
    mode: Mode,
    seed: u64,
    transactions: usize,
    /// A dirty line is evicted at about one event in so many; 0 never.
    evict_one_in: u64,
    cuts: Cuts,
    durability: Durability,
    mechanism: Option<Mechanism>,
    pool_bytes: usize,
    /// A fence is that of all processors, as on a file: new objects are written once.
    one_domain: bool,
}

/// What has to do with one life of a pool, from one start of the machine to the next power cut.
struct Life {
    memory: TestMemory,
    allowed: Arc<Mutex<Allowed>>,
    verdict: Arc<Mutex<Verdict>>,
}

impl Life {
    fn new(memory: TestMemory, model: Model) -> Life {
        Life { memory, allowed: Arc::new(Mutex::new(Allowed(vec![model]))), verdict: Arc::default() }
    }

    /// These states may survive from now on.
    fn allow(&self, states: Vec<Model>) {
        self.allowed.lock().unwrap().0 = states;
    }
}

/// Power cuts that end the lives of a pool, before it is closed.
const LIVES: u64 = 3;

impl Run {
    fn memory(self, image: Image) -> TestMemory {
        let memory = TestMemory::from_image(image).evict(self.evict_one_in, self.seed);
        if self.one_domain { memory.one_domain() } else { memory }
    }

    fn options(self) -> Options {
        options(self.mode).durability(self.durability).mechanism(self.mechanism)
    }

    /// Makes the run; gives the number of cuts, or the first that was not survived.
    fn make(self) -> Result<u64, String> {
        let say = |error: crate::Error| error.to_string();
        // Memory that held something else before.
        let mut memory = self.memory(vec![0xa5; self.pool_bytes]);
        let mut pool = create(memory.clone(), &self.options(), 1).map_err(say)?;
        let (mut model, mut cuts) = (empty(), 8);
        for draw in 0..cuts {
            verify(memory.surviving(draw), self.mode, &Allowed(vec![empty()]))
                .map_err(|e| format!("as created: {e}"))?;
        }
        let mut operations = Operations::new(self.seed, pool.root());
        for number in 0..LIVES {
            let life = Life::new(memory.clone(), model);
            self.watch(&life);
            let done = self.operate(&pool, &mut operations, &life);
            memory.stop_probe();
            let mut verdict = life.verdict.lock().unwrap();
            cuts += verdict.cuts;
            verdict.failure.take().map_or(Ok(()), Err)?;
            model = done?;
            pool.wait_durable().map_err(say)?;
            let image = memory.surviving(self.seed + number);
            // What the former life still writes goes nowhere that matters.
            std::mem::forget(pool);
            memory = self.memory(image);
            pool = DirectPool::open_in(Box::new(memory.clone()), &self.options()).map_err(say)?;
            if contents(&pool, 1)? != [model.clone()] {
                return Err(format!("seed {}: the next life finds something else", self.seed));
            }
        }
        if self.mode == Mode::WorkingCopy {
            operations.stray(&pool, &mut model);
        }
        pool.close().map_err(say)?;
        verify(memory.durable(), self.mode, &Allowed(vec![model])).map_err(|e| format!("after an orderly end: {e}"))?;
        Ok(cuts)
    }

    /// Cuts power at random events.
    fn watch(self, life: &Life) {
        let (allowed, verdict) = (life.allowed.clone(), life.verdict.clone());
        let mut aim = Aim::new(self.cuts);
        life.memory.probe(move |number, event, survive| {
            let draws = aim.draws(number, event);
            // Each image of the log is worth some cuts of its recovery.
            let twice = if matches!(self.cuts, Cuts::AfterOmissions) {
                event == Event::Fence && number % 7 == 0
            } else {
                number % 5 == 0
            };
            let mut verdict = verdict.lock().unwrap();
            if verdict.failure.is_some() || (draws == 0 && !twice) {
                return;
            }
            let allowed = allowed.lock().unwrap().clone();
            let mut cut = |draw| {
                let image = survive(number * 16 + draw);
                verdict.cuts += 1;
                verify(image.clone(), self.mode, &allowed)?;
                if twice && draw == 0 {
                    verdict.cuts += cut_recovery(&image, self.mode, &allowed, self.cuts)?;
                }
                Ok(())
            };
            let result: Result<(), String> = (0..draws.max(1)).try_for_each(&mut cut);
            verdict.failure = result.err().map(|e| format!("seed {}, cut at event {number}: {e}", self.seed));
            aim.forget();
        });
    }

    /// Transactions and persists, each with its states allowed while it runs.
    fn operate(self, pool: &DirectPool, operations: &mut Operations, life: &Life) -> Result<Model, String> {
        let mut states = life.allowed.lock().unwrap().0.clone();
        let say = |error: crate::Error| error.to_string();
        for number in 0..self.transactions {
            // Three threads on four processors, one after the other.
            move_to(number % 3);
            run_on_processor(number as u32 % 4 + 1);
            let mut model = states.last().expect("there is always a state").clone();
            let durable = if operations.once_in(4) {
                let before = model.clone();
                let range = operations.persist(pool, &mut model);
                // The store itself may be evicted.
                states.extend([before, model]);
                life.allow(states.clone());
                pool.persist(&[range]).map_err(say)?;
                true
            } else {
                let (tx, after, commits) = operations.transaction(pool, &model).map_err(say)?;
                if commits {
                    states.push(after);
                    life.allow(states.clone());
                    tx.commit(pool).map_err(say)?;
                } else {
                    tx.abort(pool).map_err(say)?;
                }
                self.durability == Durability::Durable
            };
            let waits = number % 7 == 6;
            if waits {
                pool.wait_durable().map_err(say)?;
            }
            if durable || waits {
                states.drain(..states.len() - 1);
                life.allow(states.clone());
            }
            if life.verdict.lock().unwrap().failure.is_some() {
                break;
            }
            if contents(pool, 1)? != states[states.len() - 1..] {
                return Err(format!("seed {}: the program sees something else", self.seed));
            }
        }
        Ok(states.pop().expect("there is always a state"))
    }
}

fn cuts(mode: Mode, durability: Durability) -> u64 {
    let seeds = if thorough() { 20 } else { 4 };
    (0..seeds).map(|seed| run(mode, durability, None, seed).make().unwrap()).sum()
}

fn run(mode: Mode, durability: Durability, mechanism: Option<Mechanism>, seed: u64) -> Run {
    Run {
        mode,
        seed,
        transactions: 30,
        // The last kind stands for persistent caches: what is stored is durable at once.
        evict_one_in: [0, 7, 14, 1][seed as usize % 4],
        cuts: Cuts::OneIn(12),
        durability,
        mechanism,
        pool_bytes: POOL_BYTES,
        one_domain: durability == Durability::Asynchronous,
    }
}

#[test]
fn a_working_copy_survives_cuts() {
    let cuts = cuts(Mode::WorkingCopy, Durability::Durable);
    assert!(cuts > 200, "{cuts} cuts");
}

#[test]
fn in_place_survives_cuts() {
    let cuts = cuts(Mode::InPlace, Durability::Durable);
    assert!(cuts > 200, "{cuts} cuts");
}

#[test]
fn asynchronous_commits_survive_in_order() {
    let cuts = cuts(Mode::WorkingCopy, Durability::Asynchronous);
    assert!(cuts > 100, "{cuts} cuts");
}

/// Commits that a mechanism brings home, by the processor.
fn survives_cuts_by(mechanism: Mechanism) {
    for (durability, first) in [(Durability::Durable, 0), (Durability::Asynchronous, 1)] {
        let seeds = first..if thorough() { 20 } else { first + 1 };
        // Pages that have moved come home at each opening, and each cut is one.
        let transactions = if mechanism == Mechanism::Shadow { 15 } else { 30 };
        let run = |seed| Run { transactions, ..run(Mode::WorkingCopy, durability, Some(mechanism), seed) };
        let cuts: u64 = seeds.map(|seed| run(seed).make().unwrap()).sum();
        assert!(cuts > 50, "{durability:?}: {cuts} cuts");
    }
}

#[test]
fn a_working_copy_by_undo_logs_survives_cuts() {
    survives_cuts_by(Mechanism::Undo);
}

#[test]
fn a_working_copy_by_redo_logs_survives_cuts() {
    survives_cuts_by(Mechanism::Redo);
}

#[test]
fn a_working_copy_by_checkpoints_survives_cuts() {
    survives_cuts_by(Mechanism::Checkpoint);
}

#[test]
fn a_working_copy_by_shadow_pages_survives_cuts() {
    survives_cuts_by(Mechanism::Shadow);
}

#[test]
fn a_long_run_fills_the_log_many_times() {
    for mode in [Mode::WorkingCopy, Mode::InPlace] {
        let durability = Durability::Durable;
        let run = Run {
            mode,
            seed: 77,
            transactions: 60,
            evict_one_in: 0,
            cuts: Cuts::OneIn(5000),
            durability,
            mechanism: None,
            pool_bytes: 2 * POOL_BYTES,
            one_domain: false,
        };
        run.make().unwrap();
    }
}
