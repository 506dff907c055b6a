//! Programs on what is no pool by offsets: bare memory, lean undo logging in place, a working copy.
//! One thread.

use anyhow::{Result, ensure};
use nearpm::Caching;
use nearpm::direct::DirectPool;
use nearpm::memory::{CardMemory, Memory};
use nearpm_interface::geometry::POOLS_BASE;
use nearpm_sim::profile::Profile;
use nearpm_workloads::programs::Workload;
use nearpm_workloads::store::{Bare, Lean, Store};

use super::touched::Touched;
use super::{Charged, Clock, GRAIN, Outcome, RING_BYTES};
use crate::case::{Case, Configuration};
use crate::computer::Computer;
use crate::device::MakeRtl;
use crate::meter::Kind;
use crate::served::Alone;
use crate::working_copy;

/// Bytes of the log of lean undo logging: more than a transaction of any program has.
pub const LEAN_LOG_BYTES: u64 = 8 << 20;
/// Room of a working copy's pool beside twice what the program needs: its segments and tables, a
/// mechanism's log and spare pages.
const COPY_ROOM: u64 = 48 << 20;

/// Runs a case.
pub(super) fn run(case: &Case, profile: &Profile, charged: Charged, rtl: Option<&MakeRtl<'_>>) -> Result<Outcome> {
    ensure!(case.threads == 1, "{case}: it has one thread");
    let program = case.program.make(&case.setup(case.count, 0));
    let further = match case.configuration {
        Configuration::Bare => 0,
        of if of.is_copy() => COPY_ROOM,
        _ => LEAN_LOG_BYTES,
    };
    let bytes = (2 * program.bytes() + further).next_multiple_of(GRAIN);
    let computer = Computer::of(case, profile, rtl, profile.parameters(), bytes)?;
    let is_forgiven = case.configuration != Configuration::Bare && !case.configuration.uses_card();
    let forgives = profile.parameters().fence_drain_ps > 0 && is_forgiven;
    let one = One { case, computer: &computer, charged, forgives };
    match case.configuration {
        of if of.is_copy() => one.copied(program, profile, bytes),
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
        let outcome = self.timed(|| self.all_of(&mut alone))?;
        alone.check()?;
        Ok(outcome)
    }

    fn lean(&self, program: Box<dyn Workload>, memory: CardMemory) -> Result<Outcome> {
        let mut alone = Alone::prepare(program, Lean::create(memory, LEAN_LOG_BYTES)?)?;
        let before = alone.store().counts();
        let mut outcome = self.timed(|| self.all_of(&mut alone))?;
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
        let options = working_copy::options(self.case, RING_BYTES).id(self.computer.pool_id(0));
        let filled = working_copy::prepare(program, &options, &location, bytes)?;
        let missed = |lines: u64| {
            let one_ns = profile.host.memory_ns.value;
            let all_ns = lines as f64 * one_ns / profile.host.load_parallelism.value;
            self.computer.miss(all_ns.max(one_ns));
        };
        let mut alone = filled.reopen(|pool| {
            pool.close()?;
            Ok(Touched::new(DirectPool::open(&location, &options)?, host.cache_lines, missed))
        })?;
        let before = alone.store().inner().statistics();
        let mut outcome = self
            .timed(|| working_copy::run(self.case, &mut alone, self.case.count, Touched::inner, || self.compute()))?;
        let alone = alone.reopen(|store| {
            let pool = store.into_inner();
            let counts = pool.statistics().since(&before);
            let uses_card = self.case.configuration.uses_card();
            ensure!(uses_card == (counts.commands > 0), "the card was given {} commands", counts.commands);
            for (name, count) in [
                ("log entries", counts.log_entries),
                ("bytes logged", counts.bytes_logged),
                ("shadow pages", counts.shadow_pages),
                ("epochs", counts.epochs),
                ("commands", counts.commands),
                ("fences", counts.fences),
                ("lines written back", counts.lines_written_back),
            ] {
                outcome.counts.insert(name.into(), count);
            }
            pool.close()?;
            Ok(DirectPool::open(&location, &options)?)
        })?;
        alone.check()?;
        Ok(outcome)
    }

    /// Charges a transaction with its instructions.
    fn compute(&self) {
        self.computer.compute(self.charged.program_ns);
        self.computer.compute(self.charged.library_ns);
    }

    fn all_of<S: Store>(&self, alone: &mut Alone<S>) -> Result<()> {
        while alone.is_due() {
            self.compute();
            alone.apply()?;
        }
        Ok(())
    }

    /// Takes the time of all transactions.
    fn timed(&self, transactions: impl FnOnce() -> Result<()>) -> Result<Outcome> {
        let clock = Clock::start(self.computer);
        let before_ps = self.computer.meter.idle_waits_ps();
        transactions()?;
        let mut outcome = clock.stop(self.case.count, Default::default());
        if self.forgives {
            let forgiven_ns = (self.computer.meter.idle_waits_ps() - before_ps) as f64 / 1000.0;
            outcome.ns -= forgiven_ns;
            *outcome.breakdown.entry(Kind::Wait.name().into()).or_default() -= forgiven_ns;
        }
        Ok(outcome)
    }
}
