//! The interpreter of `nearpm-ptx` as a device: it copies PM in and out of media, counts transactions, and crashes as planned.

mod watch;

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;
use std::time::Duration;

use nearpm_ptx::{
    Arguments, Choice, Config, CostModel, Counts, Ended, Gpu, MemoryError, Persistence, PmRange, Run, Schedule, Stop,
};

use crate::device::{Aside, Attached, Device, Elapsed, Measured, check_range};
use crate::error::Error;
use crate::kernel::{Argument, Kernel, Launch, Module};
use crate::medium::Medium;
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
    /// At a store of the processor to PM, so many of them after the plan: some of its aligned words of 8 bytes have persisted.
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
    /// Stores and fences of the next launch, rising, at which it is looked at what a crash would leave.
    looks: Vec<(u64, Choice)>,
    /// What it would have left: of the first range.
    looked: Vec<Vec<u8>>,
    launches: u64,
    stores: u64,
    counts: Counts,
    /// Copies that go on: number, to, from, bytes. They happen when they are waited for, as late as may be, and in part at a crash.
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
                looks: Vec::new(),
                looked: Vec::new(),
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

    /// From now on looks at what crashes would leave in the first region, which has `base` now; nothing is crashed, no plan is followed.
    pub fn watch(&self, watch: Watch, base: Rc<[u8]>) {
        self.plan_crash(None);
        self.state.borrow_mut().watching = Some(Watching::new(watch, base));
    }

    /// Ends that, and gives what was seen; nothing where it was not begun.
    pub fn watched(&self) -> Watched {
        self.state.borrow_mut().watching.take().map(Watching::ended).unwrap_or_default()
    }

    /// Notes what a crash would leave at each of some stores or fences of the next launch, which goes on behind them: many crashes of one run.
    pub fn plan_looks(&self, mut looks: Vec<(u64, Choice)>) {
        looks.sort_by_key(|&(event, _)| event);
        let mut state = self.state.borrow_mut();
        (state.looks, state.looked) = (looks, Vec::new());
    }

    /// What each of these crashes would have left in the first range of PM, in the order of their events; those behind the launch's end are not there.
    pub fn take_looks(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.state.borrow_mut().looked)
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

thread_local! {
    /// Modules that were parsed: crash tests make many devices for the same few.
    static PARSED: RefCell<HashMap<u64, nearpm_ptx::Module>> = RefCell::default();
}

fn parsed(text: &Module) -> Result<nearpm_ptx::Module, nearpm_ptx::ParseError> {
    PARSED.with_borrow_mut(|parsed| match parsed.entry(text.identity()) {
        Entry::Occupied(loaded) => Ok(loaded.get().clone()),
        Entry::Vacant(place) => Ok(place.insert(nearpm_ptx::Module::parse(text.ptx())?).clone()),
    })
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
    /// The power fails: what of the pending stores, and of copies that go on, survives is chosen. Gives what replays it.
    fn crash(&mut self, choice: Choice) -> Result<String, Error> {
        let copies = self.copies();
        self.aside.clear();
        let crash = self.gpu.crash(choice).map_err(|error| Error::Kernel(error.to_string()))?;
        for (range, offset, copied) in copies {
            let all = self.gpu.persistent_mut(&range).map_err(memory)?;
            tear_at(all, &copied, offset, choice);
        }
        Ok(crash.replay)
    }

    /// Copies to PM that go on: where to, and what.
    fn copies(&self) -> Vec<(PmRange, u64, Vec<u8>)> {
        let copy = |&(_, to, from, bytes): &(u64, u64, u64, u64)| {
            let range = self.ranges.iter().find(|range| to >= range.address && to - range.address < range.len)?;
            let mut copied = vec![0; bytes as usize];
            // Memory that was freed is not copied.
            self.gpu.read(from, &mut copied).ok()?;
            Some((*range, to - range.address, copied))
        };
        self.aside.iter().filter_map(copy).collect()
    }

    fn range(&self, pm: &Attached) -> PmRange {
        self.ranges[pm.number]
    }

    fn arguments(launch: &Launch) -> Arguments {
        launch.arguments.iter().fold(Arguments::new(), |so_far, argument| match *argument {
            Argument::U32(value) => so_far.u32(value),
            Argument::U64(value) => so_far.u64(value),
            Argument::F32(value) => so_far.f32(value),
        })
    }

    fn launch(&mut self, kernel: Kernel<'_>, launch: &Launch) -> Result<(), Error> {
        let text = kernel.module;
        let refuse = |why: String| Error::Module { module: text.name().to_owned(), why };
        let module = parsed(text).map_err(|error| refuse(error.to_string()))?;
        let entry = module.entry(kernel.entry).map_err(|error| refuse(error.to_string()))?.clone();
        let now = self.launches;
        let plan = self.plan.and_then(|plan| match plan.moment {
            Moment::Launch { after, stop } if after == now => Some((stop, plan.choice)),
            _ => None,
        });
        self.launches += 1;
        let shape = nearpm_ptx::Launch::linear(launch.blocks, launch.threads, State::arguments(launch));
        if let Some(watching) = self.watching.take() {
            self.watching = Some(self.launch_watched(watching, &entry, &shape, now)?);
            return Ok(());
        }
        let looks = std::mem::take(&mut self.looks);
        if !looks.is_empty() {
            return self.launch_looked_at(&looks, &entry, &shape);
        }
        let mut run = Run {
            schedule: self.schedule.clone(),
            stop_at: plan.map_or(Stop::Never, |(stop, _)| stop),
            persistence: self.persistence,
            ..Run::default()
        };
        let outcome = self.gpu.launch(&entry, &shape, &mut run);
        self.schedule = run.schedule;
        let outcome = outcome.map_err(|error| Error::Kernel(error.to_string()))?;
        add(&mut self.counts, &outcome.counts);
        match (outcome.ended, plan) {
            (Ended::Stopped, Some((_, choice))) => {
                let replay = self.crash(choice)?;
                self.plan = None;
                Err(Error::Crashed(replay))
            }
            _ => Ok(()),
        }
    }
}

/// The same at a place of all bytes, if it lies in them.
fn tear_at(all: &mut [u8], from: &[u8], offset: u64, choice: Choice) {
    if let Some(place) = all.get_mut(offset as usize..).and_then(|rest| rest.get_mut(..from.len())) {
        tear(place, from, offset, choice);
    }
}

/// Stores some of the aligned words of 8 bytes.
fn tear(to: &mut [u8], from: &[u8], offset: u64, choice: Choice) {
    for (at, (to, &from)) in to.iter_mut().zip(from).enumerate() {
        let word = (offset + at as u64) / 8;
        let persists = match choice {
            Choice::All => true,
            Choice::Seeded(seed) => (word ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1,
            _ => false,
        };
        if persists {
            *to = from;
        }
    }
}

fn add(sum: &mut Counts, more: &Counts) {
    sum.warp_instructions += more.warp_instructions;
    sum.lane_instructions += more.lane_instructions;
    sum.pm_loads.add(&more.pm_loads);
    sum.pm_stores.add(&more.pm_stores);
    sum.pm_atomics += more.pm_atomics;
    sum.pm_bytes_stored += more.pm_bytes_stored;
    sum.pm_bytes_loaded += more.pm_bytes_loaded;
    sum.translation_misses += more.translation_misses;
    sum.walk_misses += more.walk_misses;
    sum.fences.block += more.fences.block;
    sum.fences.device += more.fences.device;
    sum.fences.system += more.fences.system;
    sum.barriers += more.barriers;
    sum.persist_events += more.persist_events;
}

impl Device for Interpreted {
    fn name(&self) -> String {
        "PTX interpreter (no GPU)".to_owned()
    }

    fn allocate(&self, bytes: u64) -> Result<u64, Error> {
        self.state.borrow_mut().gpu.allocate(bytes.max(1)).map_err(memory)
    }

    fn free(&self, address: u64) -> Result<(), Error> {
        self.state.borrow_mut().gpu.free(address).map_err(memory)
    }

    fn upload(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.state.borrow_mut().gpu.write(address, bytes).map_err(memory)
    }

    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.state.borrow().gpu.read(address, bytes).map_err(memory)
    }

    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        let mut piece = vec![0; bytes as usize];
        self.download(from, &mut piece)?;
        self.upload(to, &piece)
    }

    fn copy_aside(&self, to: u64, from: u64, bytes: u64) -> Result<Aside, Error> {
        let mut state = self.state.borrow_mut();
        let number = state.next_aside;
        state.next_aside += 1;
        state.aside.push((number, to, from, bytes));
        Ok(Aside(number))
    }

    fn wait_aside(&self, copy: Aside) -> Result<(), Error> {
        let found = {
            let mut state = self.state.borrow_mut();
            let at = state.aside.iter().position(|&(number, ..)| number == copy.0);
            at.map(|at| state.aside.remove(at))
        };
        match found {
            Some((_, to, from, bytes)) => self.copy(to, from, bytes),
            None => Err(Error::Invalid("a copy that this device has not begun, or that a crash ended".to_owned())),
        }
    }

    fn fill(&self, address: u64, byte: u8, bytes: u64) -> Result<(), Error> {
        self.upload(address, &vec![byte; bytes as usize])
    }

    fn attach(&self, medium: &Medium) -> Result<Attached, Error> {
        let mut state = self.state.borrow_mut();
        let range = state.gpu.map_persistent(medium.bytes().to_vec());
        state.ranges.push(range);
        Ok(Attached { address: range.address, bytes: range.len, number: state.ranges.len() - 1 })
    }

    fn detach(&self, attached: Attached, medium: &mut Medium) -> Result<(), Error> {
        let state = self.state.borrow();
        medium.bytes_mut().copy_from_slice(state.gpu.persistent(&state.range(&attached)));
        Ok(())
    }

    fn pm_read(&self, pm: &Attached, _: &Medium, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        check_range(pm, offset, bytes.len())?;
        let state = self.state.borrow();
        bytes.copy_from_slice(&state.gpu.persistent(&state.range(pm))[offset as usize..][..bytes.len()]);
        Ok(())
    }

    fn pm_write(&self, pm: &Attached, _: &mut Medium, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        check_range(pm, offset, bytes.len())?;
        let mut state = self.state.borrow_mut();
        let range = state.range(pm);
        let now = state.stores;
        if let Some(mut watching) = state.watching.take() {
            state.watch_store(&mut watching, range, offset, bytes);
            state.watching = Some(watching);
        }
        state.stores += 1;
        let crash = state.plan.filter(|plan| plan.moment == Moment::Store { after: now });
        let all = state.gpu.persistent_mut(&range).map_err(memory)?;
        let Some(plan) = crash else {
            all[offset as usize..][..bytes.len()].copy_from_slice(bytes);
            return Ok(());
        };
        tear(&mut all[offset as usize..][..bytes.len()], bytes, offset, plan.choice);
        state.crash(plan.choice)?;
        state.plan = None;
        Err(Error::Crashed(format!("store {now} of the processor, {:?}", plan.choice)))
    }

    fn launch(&self, kernel: Kernel<'_>, launch: &Launch) -> Result<(), Error> {
        self.state.borrow_mut().launch(kernel, launch)
    }

    fn synchronize(&self) -> Result<(), Error> {
        Ok(())
    }

    fn time(&self, work: &mut dyn FnMut() -> Result<(), Error>) -> Result<Elapsed, Error> {
        let model = CostModel::default();
        let before = model.nanoseconds(&self.state.borrow().counts);
        work()?;
        let after = model.nanoseconds(&self.state.borrow().counts);
        let time = Duration::from_nanos((after - before).max(0.0) as u64);
        Ok(Elapsed { time, source: Measured::Predicted })
    }

    fn counts(&self) -> Option<Counts> {
        Some(self.state.borrow().counts)
    }

    fn free_memory(&self) -> Result<u64, Error> {
        Ok(u64::MAX)
    }
}
