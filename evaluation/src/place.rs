//! A program in a pool of its own, by the clock of the place where the pool lies: a card that is
//! there, or a file.
//!
//! What such a clock says is for whoever reads it: these results are never put among simulated
//! ones. They are not kept in a folder of results; the report shows those of files in a section of
//! their own ([`crate::on_host`]), and none of a card's.

use std::fs::File;

use anyhow::{Context, Result, bail, ensure};
use nearpm::direct::DirectPool;
use nearpm::memory::MappedMemory;
use nearpm::{Error, Location, Options, Problem, Statistics, Survives};
use nearpm_interface::media::PAGE_BYTES;
use nearpm_workloads::programs::Workload;
use nearpm_workloads::store::{Bare, Lean, Store};

use crate::case::{Case, Configuration};
use crate::compute::processor_time;
use crate::run::LEAN_LOG_BYTES;
use crate::served::{Alone, Served, synchronise};

/// Bytes of the log, least and most: with the most the pages of an epoch fit, as on the simulated
/// computers; with less epochs end earlier.
const RING_BYTES: [u64; 2] = [128 << 10, 4 << 20];
/// Part of the room that is the log's.
const RING_SHARE: u64 = 32;
/// Pools are multiples of this.
const GRAIN: u64 = 64 << 10;

/// A place for pools.
pub struct Place<'p> {
    /// What it is reached by, in the place of a profile's name.
    pub name: &'p str,
    /// Where a pool lies there.
    pub location: &'p dyn Fn(&str) -> String,
    /// Its clock, in nanoseconds.
    pub now_ns: &'p dyn Fn() -> u64,
    /// Bytes that a pool may take.
    pub room: u64,
    /// Units of a card.
    pub units: usize,
    /// What pools in files survive.
    pub survives: Survives,
    /// Before the clock starts, half of the log is made usable and every page of a file is mapped,
    /// so that no transaction waits for either.
    pub is_prepared: bool,
}

/// What a case took.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// What was run.
    pub case: Case,
    /// Nanoseconds of the place's clock a transaction, from the first one's beginning until all are
    /// durable.
    pub ns_per_transaction: f64,
    /// Nanoseconds a transaction in which this thread had a processor.
    pub processor_ns: f64,
    /// What the library counted meanwhile.
    pub counts: Statistics,
}

impl Place<'_> {
    fn ring_bytes(&self) -> u32 {
        (self.room / RING_SHARE / PAGE_BYTES * PAGE_BYTES).clamp(RING_BYTES[0], RING_BYTES[1]) as u32
    }

    /// Bytes of the pool of a program.
    pub fn pool_bytes(&self, program: &dyn Workload) -> u64 {
        (2 * program.bytes() + 4 * u64::from(self.ring_bytes())).next_multiple_of(GRAIN)
    }

    /// Bytes of the pool of a case.
    pub fn bytes(&self, case: &Case) -> u64 {
        self.pool_bytes(&*case.program.make(&case.setup(case.count, 0)))
    }

    fn options(&self) -> Options {
        Options::new().lanes(1).ring_bytes(self.ring_bytes()).survives(self.survives).prefault(self.is_prepared)
    }
}

/// Runs a case in a pool of its own, which is removed afterwards, and checks what it left.
///
/// # Errors
/// If the place or the library fails, or the pool does not hold what the program's model says.
pub fn run(place: &Place<'_>, case: &Case) -> Result<Timing> {
    let location = (place.location)(&format!("bench-{}", std::process::id()));
    let program = case.program.make(&case.setup(case.count, 0));
    let timing = match case.configuration {
        Configuration::Bare => floor(place, case, program, &location),
        Configuration::Lean => lean(place, case, program, &location),
        Configuration::WorkingCopy => copied(place, case, program, &location),
        _ => served(place, case, program, &location),
    };
    // What was there before is not this one's.
    let is_anothers = |error: &anyhow::Error| {
        let error = error.downcast_ref::<Error>();
        error.is_some_and(|error| matches!(error, Error::Pool { problem: Problem::Exists, .. }))
    };
    let removed = if timing.as_ref().is_err_and(is_anothers) { Ok(()) } else { nearpm::remove(&location) };
    let timing = timing.with_context(|| case.key())?;
    removed.with_context(|| format!("{case}: its pool cannot be removed"))?;
    Ok(timing)
}

/// Takes the time of some work.
fn timed(place: &Place<'_>, case: &Case, work: impl FnOnce() -> Result<()>) -> Result<Timing> {
    let busy = processor_time()?;
    let start_ns = (place.now_ns)();
    work()?;
    let ns = (place.now_ns)() - start_ns;
    let busy = processor_time()? - busy;
    Ok(Timing {
        case: case.clone(),
        ns_per_transaction: case.each(ns),
        processor_ns: case.each(busy.as_nanos() as u64),
        counts: Statistics::default(),
    })
}

fn served(place: &Place<'_>, case: &Case, program: Box<dyn Workload>, location: &str) -> Result<Timing> {
    let bytes = place.pool_bytes(&*program);
    let log_bytes = if place.is_prepared { u64::from(place.ring_bytes()) / 2 } else { 0 };
    let mut served = Served::prepare(case, program, &place.options(), location, bytes, log_bytes)?;
    let timing = timed(place, case, || {
        while served.is_due() {
            served.step()?;
        }
        Ok(served.pool.persist()?)
    })?;
    let counts = served.counts();
    let commands = counts.commands;
    ensure!(case.configuration.uses_card() == (commands > 0), "the card was given {commands} commands");
    // What another process would find.
    let served = served.reopen()?;
    served.check()?;
    served.pool.close()?;
    Ok(Timing { counts, ..timing })
}

/// What is no pool with a mechanism, in a mapped file: bare memory, or lean undo logging in place.
fn alone<S: Store>(
    place: &Place<'_>,
    case: &Case,
    program: Box<dyn Workload>,
    location: &str,
    make: impl FnOnce(MappedMemory) -> Result<S, Error>,
    memory: impl Fn(&S) -> &MappedMemory,
) -> Result<(Timing, Alone<S>)> {
    let Location::File(path) = Location::parse(location)? else { bail!("{case} has its memory in a file") };
    // A pool's file has its bytes reserved, so that no store finds the medium full. Its first page
    // is not touched, so that it is removed as a pool.
    let bytes = place.pool_bytes(&*program);
    // Lean undo has its log and its tables besides.
    let further = if case.configuration == Configuration::Lean { LEAN_LOG_BYTES + bytes / 32 } else { 0 };
    let bytes = (bytes + further).next_multiple_of(GRAIN);
    place.options().prefault(false).create(location, bytes)?.close()?;
    let file = File::options().read(true).write(true).open(&path)?;
    let survives = if case.configuration == Configuration::Bare { Survives::ProcessCrash } else { place.survives };
    let mut alone = Alone::prepare(program, make(MappedMemory::map(file, &path, survives)?)?)?;
    synchronise(location)?;
    if place.is_prepared {
        memory(alone.store()).populate();
    }
    let timing = timed(place, case, || {
        while alone.is_due() {
            alone.apply()?;
        }
        Ok(())
    })?;
    Ok((timing, alone))
}

/// The same loads and stores without crash consistency.
fn floor(place: &Place<'_>, case: &Case, program: Box<dyn Workload>, location: &str) -> Result<Timing> {
    let make = |memory| Ok(Bare::new(memory));
    let (timing, alone) = alone(place, case, program, location, make, Bare::memory)?;
    alone.check()?;
    Ok(timing)
}

fn lean(place: &Place<'_>, case: &Case, program: Box<dyn Workload>, location: &str) -> Result<Timing> {
    let make = |memory| Lean::create(memory, LEAN_LOG_BYTES);
    let (timing, alone) = alone(place, case, program, location, make, Lean::memory)?;
    let counted = alone.store().counts();
    let alone = alone.reopen(|store| Ok(Lean::open(store.into_memory(), LEAN_LOG_BYTES)?))?;
    alone.check()?;
    let counts = Statistics {
        log_entries: counted.entries,
        bytes_logged: counted.bytes_logged,
        fences: counted.fences,
        lines_written_back: counted.lines_written_back,
        ..Statistics::default()
    };
    Ok(Timing { counts, ..timing })
}

/// What users have: a working copy in ordinary memory, over a pool in a file.
fn copied(place: &Place<'_>, case: &Case, program: Box<dyn Workload>, location: &str) -> Result<Timing> {
    let filling = Options::new().survives(Survives::ProcessCrash);
    let bytes = place.pool_bytes(&*program);
    let filled = Alone::prepare(program, DirectPool::create(location, bytes, &filling)?)?;
    let options = Options::new().survives(place.survives).prefault(place.is_prepared);
    let anew = |pool: DirectPool| {
        pool.close()?;
        synchronise(location)?;
        Ok(DirectPool::open(location, &options)?)
    };
    let mut alone = filled.reopen(anew)?;
    let before = alone.store().statistics();
    let timing = timed(place, case, || {
        while alone.is_due() {
            alone.apply()?;
        }
        Ok(())
    })?;
    let counts = alone.store().statistics().since(&before);
    let alone = alone.reopen(anew)?;
    alone.check()?;
    Ok(Timing { counts, ..timing })
}
