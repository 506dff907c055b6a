//! The interpreter of `nearpm-ptx` as a device: it copies PM in and out of media, counts
//! transactions, and crashes as planned.

mod device;
mod explore;
mod launch;
mod tear;
mod watch;

use std::cell::RefCell;
use std::rc::Rc;

use nearpm_ptx::{Choice, Config, Counts, Gpu, MemoryError, Persistence, PmRange, Schedule, Stop};

use crate::device::Attached;
use crate::error::Error;
pub use explore::{Leaves, States, Survives};
use watch::Watching;
pub use watch::{Changes, Watch, Watched};

/// The moment of a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// In a launch, so many launches after the plan; it is no moment of a launch that ends before.
    Launch {
        /// Launches before it.
        after: u64,
        /// Where in it.
        stop: Stop,
    },
    /// At a store of the processor to PM, so many of them after the plan: some of its aligned words
    /// of 8 bytes have persisted.
    Store {
        /// Stores before it.
        after: u64,
    },
}

/// When the device is to crash, and what of the stores that had not persisted is to survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashPlan {
    /// When.
    pub moment: Moment,
    /// What survives.
    pub choice: Choice,
}

/// A GPU that is interpreted.
pub struct Interpreted {
    state: RefCell<State>,
}

struct State {
    gpu: Gpu,
    ranges: Vec<PmRange>,
    persistence: Persistence,
    schedule: Schedule,
    plan: Option<CrashPlan>,
    watching: Option<Watching>,
    launches: u64,
    stores: u64,
    counts: Counts,
    /// Copies that go on: number, to, from, bytes. They happen when they are waited for, as late as
    /// may be, and in part at a crash.
    aside: Vec<(u64, u64, u64, u64)>,
    next_aside: u64,
}

impl Interpreted {
    /// A device with `memory` bytes of volatile memory.
    pub fn new(memory: u64) -> Interpreted {
        let config = Config { device_memory: memory, ..Config::default() };
        Interpreted {
            state: RefCell::new(State {
                gpu: Gpu::new(config),
                ranges: Vec::new(),
                persistence: Persistence::Counted,
                schedule: Schedule::RoundRobin,
                plan: None,
                watching: None,
                launches: 0,
                stores: 0,
                counts: Counts::default(),
                aside: Vec::new(),
                next_aside: 0,
            }),
        }
    }

    /// Sets the order in which warps run, from now on.
    pub fn set_schedule(&self, schedule: Schedule) {
        self.state.borrow_mut().schedule = schedule;
    }

    /// That order; of [`Schedule::Replay`] with the choices that the last launch made.
    pub fn schedule(&self) -> Schedule {
        self.state.borrow().schedule.clone()
    }

    /// Plans a crash, or none. Launches are followed closely while one is planned.
    pub fn plan_crash(&self, plan: Option<CrashPlan>) {
        let mut state = self.state.borrow_mut();
        state.persistence = if plan.is_some() { Persistence::Tracked } else { Persistence::Counted };
        state.plan = plan;
        state.launches = 0;
        state.stores = 0;
    }

    /// From now on looks at what crashes would leave in the first region, which has `base` now;
    /// nothing is crashed, no plan is followed.
    pub fn watch(&self, watch: Watch, base: Rc<[u8]>) {
        self.plan_crash(None);
        self.state.borrow_mut().watching = Some(Watching::new(watch, base));
    }

    /// Ends that, and gives what was seen; nothing where it was not begun.
    pub fn watched(&self) -> Watched {
        self.state.borrow_mut().watching.take().map(Watching::ended).unwrap_or_default()
    }

    /// Launches since the last [`Interpreted::plan_crash`].
    pub fn launches(&self) -> u64 {
        self.state.borrow().launches
    }

    /// Stores of the processor to PM since then.
    pub fn stores(&self) -> u64 {
        self.state.borrow().stores
    }

    /// The power fails between launches: volatile memory is gone.
    ///
    /// # Errors
    /// Never where all launches have ended.
    pub fn crash(&self) -> Result<(), Error> {
        self.state.borrow_mut().crash(Choice::None).map(drop)
    }
}

fn memory(error: MemoryError) -> Error {
    match error {
        MemoryError::Full { bytes, free, total } => {
            Error::OutOfMemory { device: "the interpreter".to_owned(), needed: bytes, free, total }
        }
        other => Error::Invalid(other.to_string()),
    }
}

impl State {
    fn range(&self, pm: &Attached) -> PmRange {
        self.ranges[pm.number]
    }
}
