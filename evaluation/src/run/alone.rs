//! Programs on what is no pool with a mechanism: bare memory, lean undo logging in place, a working copy. One thread, no card's commands.

use anyhow::{Result, ensure};
use nearpm::direct::DirectPool;
use nearpm::memory::{CardMemory, Memory};
use nearpm::{Caching, Options};
use nearpm_interface::geometry::POOLS_BASE;
use nearpm_sim::profile::Profile;
use nearpm_workloads::programs::Workload;
use nearpm_workloads::store::{Bare, Lean, Store};

use super::touched::Touched;
use super::{Charged, Clock, GRAIN, Outcome};
use crate::case::{Case, Configuration};
use crate::computer::Computer;
use crate::device::MakeRtl;
use crate::meter::Kind;
use crate::served::Alone;

/// Bytes of the log of lean undo logging: more than a transaction of any program has.
pub const LEAN_LOG_BYTES: u64 = 8 << 20;
/// Room of a working copy's pool beside twice what the program needs: its segments and tables.
const COPY_ROOM: u64 = 32 << 20;

/// Runs a case.
pub(super) fn run(case: &Case, profile: &Profile, charged: Charged, rtl: Option<&MakeRtl<'_>>) -> Result<Outcome> {
    ensure!(case.threads == 1, "{case}: it has one thread");
    let program = case.program.make(&case.setup(case.count, 0));
    let further = if case.configuration == Configuration::WorkingCopy { COPY_ROOM } else { LEAN_LOG_BYTES };
    let further = if case.configuration == Configuration::Bare { 0 } else { further };
    let bytes = (2 * program.bytes() + further).next_multiple_of(GRAIN);
    let computer = Computer::of(case, profile, rtl, profile.parameters(), bytes)?;
    let forgives = profile.parameters().fence_drain_ps > 0 && case.configuration != Configuration::Bare;
    let one = One { case, computer: &computer, charged, forgives };
    match case.configuration {
        Configuration::WorkingCopy => one.copied(program, profile, bytes),
        configuration => {
            let memory = CardMemory::map(computer.cards[0].clone(), None, POOLS_BASE, bytes, Caching::WriteBack)?;
            if configuration == Configuration::Lean { one.lean(program, memory) } else { one.bare(program, memory) }
        }
    }
}

/// A case on its computer.
struct One<'o> {
    case: &'o Case,
    computer: &'o Computer,
    charged: Charged,
    /// See [`super::Rules`].
    forgives: bool,
}

impl One<'_> {
    /// The floor: nothing is written back.
    fn bare(&self, program: Box<dyn Workload>, memory: CardMemory) -> Result<Outcome> {
        let bytes = memory.bytes();
        let mut alone = Alone::prepare(program, Bare::new(memory))?;
        alone.store().memory().write_back(0, bytes);
        alone.store().memory().drain()?;
        let outcome = self.timed(&mut alone)?;
        alone.check()?;
        Ok(outcome)
    }

    fn lean(&self, program: Box<dyn Workload>, memory: CardMemory) -> Result<Outcome> {
        let mut alone = Alone::prepare(program, Lean::create(memory, LEAN_LOG_BYTES)?)?;
        let before = alone.store().counts();
        let mut outcome = self.timed(&mut alone)?;
        let counts = alone.store().counts();
        outcome.counts.insert("log entries".into(), counts.entries - before.entries);
        outcome.counts.insert("bytes logged".into(), counts.bytes_logged - before.bytes_logged);
        outcome.counts.insert("fences".into(), counts.fences - before.fences);
        ensure!(counts.fences > before.fences, "{}: nothing was made durable", self.case);
        // What the next process would find.
        let alone = alone.reopen(|store| Ok(Lean::open(store.into_memory(), LEAN_LOG_BYTES)?))?;
        alone.check()?;
        Ok(outcome)
    }

    fn copied(&self, program: Box<dyn Workload>, profile: &Profile, bytes: u64) -> Result<Outcome> {
        let (location, host) = (self.computer.location("copy"), profile.parameters());
        let options = Options::new().id(self.computer.pool_id(0));
        let filled = Alone::prepare(program, DirectPool::create(&location, bytes, &options)?)?;
        let missed = |lines: u64| {
            let one_ns = profile.host.memory_ns.value;
            let all_ns = lines as f64 * one_ns / profile.host.load_parallelism.value;
            self.computer.miss(all_ns.max(one_ns));
        };
        let mut alone = filled.reopen(|pool| {
            pool.close()?;
            Ok(Touched::new(DirectPool::open(&location, &options)?, host.cache_lines, missed))
        })?;
        let mut outcome = self.timed(&mut alone)?;
        let alone = alone.reopen(|store| {
            let pool = store.into_inner();
            let counts = pool.statistics();
            outcome.counts.insert("log entries".into(), counts.log_entries);
            outcome.counts.insert("bytes logged".into(), counts.bytes_logged);
            outcome.counts.insert("fences".into(), counts.fences);
            pool.close()?;
            Ok(DirectPool::open(&location, &options)?)
        })?;
        alone.check()?;
        Ok(outcome)
    }

    /// Takes the time of all transactions.
    fn timed<S: Store>(&self, alone: &mut Alone<S>) -> Result<Outcome> {
        let clock = Clock::start(self.computer);
        let before_ps = self.computer.meter.idle_waits_ps();
        while alone.is_due() {
            self.computer.compute(self.charged.program_ns);
            self.computer.compute(self.charged.library_ns);
            alone.apply()?;
        }
        let mut outcome = clock.stop(self.case.count, Default::default());
        if self.forgives {
            let forgiven_ns = (self.computer.meter.idle_waits_ps() - before_ps) as f64 / 1000.0;
            outcome.ns -= forgiven_ns;
            *outcome.breakdown.entry(Kind::Wait.name().into()).or_default() -= forgiven_ns;
        }
        Ok(outcome)
    }
}
