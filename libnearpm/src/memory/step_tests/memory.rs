//! Pools in files and other memory of the processor: runs in front of its cache, which evicts lines
//! as it likes, with power cuts on the way.
//!
//! The cache is that of [`TestMemory`]. A cut leaves an image while the run goes on; each image is
//! recovered at once, and what it holds is compared.

mod creation;
mod scripts;
mod transactions;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::{Event, Image, TestMemory, planted};
use super::{same, say, thorough};
use crate::{Durability, Mechanism, Options, Pool};

const POOL_BYTES: usize = 512 * 1024;

/// Events behind a step that was left out, at each of which the power is cut.
const AIMED_EVENTS: u64 = 24;

/// What a run does.
#[derive(Clone, Copy, Debug)]
pub enum Scenario {
    /// Operations of a mechanism, the closing of the pool, and cuts.
    Cuts(Mechanism),
    /// Cuts at the steps of a recovery, and a little work behind it, with another cut.
    Recoveries(Mechanism),
    /// A process with this mechanism that closes the pool or dies, others behind it with any one,
    /// and cuts of their work.
    Succeeded(Mechanism),
    /// Cuts while a pool is made in the place of another one, and in its first use.
    Creation(Mechanism),
    /// Cuts while log rings are made and grow, over entries of another pool.
    Rings,
    /// Redo logs that use the slots of those before them again.
    SlotsUsedAgain,
    /// Commits that are made durable later.
    Persisted(Mechanism),
    /// Cuts in the recovery of a long redo log.
    LongLog,
    /// Room in the log of one processor that another one uses.
    Reserved(Mechanism),
    /// The primitives of the paper.
    Primitives,
}

impl super::Scenario for Scenario {
    const NOT_REQUIRED: &'static str = "libnearpm/src/memory/step_tests/memory/not_required.txt";
    const COHERENT: bool = true;

    fn all() -> Vec<Scenario> {
        let each = |of: fn(Mechanism) -> Scenario| Mechanism::ALL.map(of);
        let mut all = vec![Scenario::Primitives, Scenario::Rings, Scenario::SlotsUsedAgain, Scenario::LongLog];
        all.extend([Mechanism::Undo, Mechanism::Redo].map(Scenario::Reserved));
        all.extend(each(Scenario::Persisted));
        all.extend(each(Scenario::Succeeded));
        all.extend(each(Scenario::Cuts));
        all.extend(each(Scenario::Creation));
        all.extend(each(Scenario::Recoveries));
        all
    }

    fn seeds(self) -> u64 {
        let (each_time, thorough_form) = match self {
            Scenario::Recoveries(_) => (1, 6),
            // Each with each other one, and each evicting memory.
            Scenario::Succeeded(_) => (2, 24),
            _ => (2, 12),
        };
        if thorough() { thorough_form } else { each_time }
    }

    fn run(self, seed: u64) -> Result<(), String> {
        match self {
            Scenario::Cuts(mechanism) => transactions::cuts(mechanism, seed),
            Scenario::Recoveries(mechanism) => transactions::recoveries(mechanism, seed),
            Scenario::Succeeded(mechanism) => transactions::succeeded(mechanism, seed),
            Scenario::Creation(mechanism) => creation::creation(mechanism, seed),
            Scenario::Rings => creation::rings(seed),
            Scenario::SlotsUsedAgain => scripts::slots_used_again(seed),
            Scenario::Persisted(mechanism) => scripts::persisted(mechanism, seed),
            Scenario::Reserved(mechanism) => scripts::reserved(mechanism, seed),
            Scenario::LongLog => scripts::long_log(seed),
            Scenario::Primitives => scripts::primitives(seed),
        }
    }
}

/// Half of the commits wait for durability.
fn options(mechanism: Mechanism, seed: u64) -> Options {
    let durability = [Durability::Durable, Durability::Asynchronous][seed as usize % 2];
    let ring_bytes = if mechanism == Mechanism::Checkpoint { 64 * 1024 } else { 16 * 1024 };
    Options::new().mechanism(mechanism).durability(durability).lanes(2).ring_bytes(ring_bytes).epoch_ops(5).id(9)
}

/// Memory that holds this, behind a cache that evicts often, never, or now and then.
fn memory(image: Image, seed: u64) -> TestMemory {
    TestMemory::from_image(image).evict([5, 0, 2][seed as usize % 3], seed)
}

fn open(options: &Options, memory: &TestMemory) -> Result<Pool, String> {
    options.open_in(Box::new(memory.clone())).map_err(say)
}

/// States that may survive a cut: the last one that was acknowledged, and those that were begun
/// since.
struct Survivors<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Survivors<T> {
    fn clone(&self) -> Self {
        Survivors(self.0.clone())
    }
}

impl<T: Clone + PartialEq> Survivors<T> {
    fn new(state: T) -> Survivors<T> {
        Survivors(Arc::new(Mutex::new(vec![state])))
    }

    fn with<R>(&self, does: impl FnOnce(&mut Vec<T>) -> R) -> R {
        does(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn last(&self) -> T {
        self.with(|states| states.last().expect("some state survives").clone())
    }

    fn begin(&self, state: T) {
        self.with(|states| states.push(state));
    }

    fn acknowledge(&self) {
        self.with(|states| drop(states.drain(..states.len() - 1)));
    }

    fn check(&self, found: &T) -> Result<(), String> {
        let states = self.with(|states| if states.contains(found) { 0 } else { states.len() });
        if states == 0 { Ok(()) } else { Err(format!("none of {states} states")) }
    }
}

/// What survives a cut, and whether it is as it should be.
type Check = Box<dyn FnMut(Image) -> Result<(), String> + Send>;

/// Does something to a memory and looks at what cuts leave on the way: at each fence, at one event
/// in `one_in`, and at each event for some time behind a step that was left out.
fn with_cuts<R>(
    memory: &TestMemory,
    one_in: u64,
    mut check: Check,
    does: impl FnOnce() -> Result<R, String>,
) -> Result<R, String> {
    let failure: Arc<Mutex<Option<String>>> = Arc::default();
    let seen = failure.clone();
    let (mut omissions, mut aimed) = (planted::omissions(), 0);
    memory.probe(move |number, event, survive| {
        let mut failure = seen.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_some() {
            return;
        }
        if planted::omissions() > omissions {
            aimed = AIMED_EVENTS;
        }
        if aimed > 0 || event == Event::Fence || number % one_in == 0 {
            aimed = aimed.saturating_sub(1);
            // A pool that is broken enough panics, which must not unwind through the memory.
            let mut look = |image| {
                catch_unwind(AssertUnwindSafe(|| check(image))).unwrap_or_else(|_| Err("a panic".to_owned())).err()
            };
            *failure = (0..2).find_map(|flavour| look(survive(number * 2 + flavour)));
        }
        omissions = planted::omissions();
    });
    let done = does();
    memory.stop_probe();
    let failure = failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    failure.map_or(done, |failure| Err(format!("behind a cut: {failure}")))
}
