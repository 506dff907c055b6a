//! Runs a case on a simulated computer, and checks what it left against the program's model.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use nearpm::{Mechanism, Options};
use nearpm_sim::machine::run_on_core;
use nearpm_sim::profile::Profile;
use nearpm_workloads::programs::{Program, Workload};
use serde::{Deserialize, Serialize};

use crate::case::{Case, Charge, Configuration, pools};
use crate::compute::Compute;
use crate::computer::Computer;
use crate::device::{Device, MakeRtl};
use crate::meter::Kind;
use crate::served::Served;

mod alone;
mod touched;

pub use alone::LEAN_LOG_BYTES;

/// Bytes of the log ring: the pages of an epoch fit.
const RING_BYTES: u32 = 4 << 20;
/// Pools are multiples of this.
const GRAIN: u64 = 4 << 20;

/// What a case gave. Times are simulated, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// From the first transaction's beginning until the last one is durable.
    pub ns: f64,
    /// Transactions.
    pub transactions: usize,
    /// Where the processors' time went, all threads together.
    pub breakdown: BTreeMap<String, f64>,
    /// Time in which cards worked on commands; `None` where they do not say it, as the RTL does
    /// not.
    pub busy_ns: Option<f64>,
    /// Time in which cards worked on commands and no processor waited for a card's answer; `None`
    /// with it.
    pub overlap_ns: Option<f64>,
    /// The library's counters.
    pub counts: BTreeMap<String, u64>,
}

impl Outcome {
    /// Nanoseconds a transaction.
    pub fn per_transaction(&self) -> f64 {
        self.ns / self.transactions.max(1) as f64
    }
}

/// Runs a case. `rtl` makes the cards of those on the RTL.
///
/// # Errors
/// If the case makes no sense, something fails, or what is left is not what the model says.
pub fn run(case: &Case, profile: &Profile, compute: &Compute, rtl: Option<&MakeRtl<'_>>) -> Result<Outcome> {
    check_case(case)?;
    let times = charged(case, compute)?;
    let outcome = match case.configuration {
        of if of.is_copy() || !of.has_mechanism() => alone::run(case, profile, times, rtl),
        _ => Run::new(case, profile, times, rtl)?.run(),
    };
    run_on_core(0);
    outcome.with_context(|| case.key())
}

fn check_case(case: &Case) -> Result<()> {
    let several = matches!(case.configuration, Configuration::Software | Configuration::Delayed);
    ensure!(case.count > 0 && case.threads > 0, "{case}: nothing to run");
    ensure!((1..=8).contains(&case.devices), "{case}: one to eight devices");
    ensure!(several == (case.devices > 1), "{case}: the configuration has another number of devices");
    // The RTL for simulations is built without the port for other cards.
    ensure!(case.device == Device::Model || !several, "{case}: on the RTL one device is run");
    let serves = matches!(case.program, Program::Memcached | Program::Redis);
    ensure!(serves || case.threads == 1, "{case}: only memcached and redis have several threads");
    Ok(())
}

/// What a transaction's instructions take, in nanoseconds.
#[derive(Clone, Copy)]
struct Charged {
    program_ns: f64,
    library_ns: f64,
}

fn charged(case: &Case, compute: &Compute) -> Result<Charged> {
    let times = compute.of(case.program)?;
    let library_ns = match case.charge {
        _ if case.configuration == Configuration::Bare => 0.0,
        Charge::Path => compute.paths.library_ns(case)?,
        Charge::Alike => {
            let is_measured = Configuration::ALL.contains(&case.configuration);
            ensure!(is_measured, "{case}: its instructions are known of its own path alone");
            times.library(case.mechanism)
        }
    };
    Ok(Charged { program_ns: times.program(), library_ns })
}

/// Time of a run.
struct Clock<'c> {
    computer: &'c Computer,
    start_ps: u64,
}

impl<'c> Clock<'c> {
    fn start(computer: &'c Computer) -> Clock<'c> {
        computer.machine.settle();
        computer.meter.take();
        computer.take_busy();
        Clock { computer, start_ps: computer.machine.now_ps() }
    }

    /// Ends the run at the time of this thread's core.
    fn stop(&self, transactions: usize, counts: BTreeMap<String, u64>) -> Outcome {
        let end_ps = self.computer.machine.now_ps();
        let noted = self.computer.meter.take();
        self.computer.machine.settle();
        let inside = |(from, to): (u64, u64)| (from.clamp(self.start_ps, end_ps), to.clamp(self.start_ps, end_ps));
        let of_card = self.computer.take_busy().map(|spans| {
            let busy: Vec<(u64, u64)> = spans.into_iter().map(inside).filter(|(a, b)| a < b).collect();
            let busy_ps: u64 = busy.iter().map(|(from, to)| to - from).sum();
            (busy_ps, busy_ps.saturating_sub(common(&busy, &noted.waits)))
        });
        let ns = |ps: u64| ps as f64 / 1000.0;
        Outcome {
            ns: ns(end_ps - self.start_ps),
            transactions,
            breakdown: Kind::ALL.into_iter().map(|kind| (kind.name().to_owned(), ns(noted.of(kind)))).collect(),
            busy_ns: of_card.map(|(busy_ps, _)| ns(busy_ps)),
            overlap_ns: of_card.map(|(_, overlap_ps)| ns(overlap_ps)),
            counts,
        }
    }
}

/// Time that is in spans of both. Each list is in order, and its spans do not overlap.
fn common(one: &[(u64, u64)], other: &[(u64, u64)]) -> u64 {
    let (mut total, mut i, mut j) = (0, 0, 0);
    while i < one.len() && j < other.len() {
        let (from, to) = (one[i].0.max(other[j].0), one[i].1.min(other[j].1));
        total += to.saturating_sub(from);
        if one[i].1 < other[j].1 { i += 1 } else { j += 1 }
    }
    total
}

/// A pool that threads work on.
struct Pooled {
    served: Served,
    /// A thread holds the pool until then.
    free_ps: u64,
}

/// A case on pools of the library.
struct Run<'r> {
    case: &'r Case,
    times: Charged,
    computer: Computer,
    pools: Vec<Pooled>,
    fence_drain_ps: u64,
    fault_ns: f64,
}

impl<'r> Run<'r> {
    fn new(case: &'r Case, profile: &'r Profile, times: Charged, rtl: Option<&MakeRtl<'_>>) -> Result<Run<'r>> {
        let mut host = profile.parameters();
        if case.configuration == Configuration::PaperCpu {
            // A fence waits for the card, and what is logged is loaded when it is logged.
            (host.fence_drain_ps, host.fetches_ahead) = (host.load_miss_ps, false);
        }
        let fence_drain_ps = host.fence_drain_ps;
        let pools = pools(case.program, case.threads);
        let programs: Vec<_> =
            (0..pools).map(|thread| case.program.make(&case.setup(case.count / pools, thread))).collect();
        // Each member of a striped pool has a ring of its own.
        let rings = 3 * case.devices as u64 * u64::from(RING_BYTES);
        let bytes_of =
            |program: &dyn Workload| (2 * program.bytes() + rings).next_multiple_of(case.devices as u64 * GRAIN);
        let largest = programs.iter().map(|program| bytes_of(&**program)).max().context("there is a pool")?;
        let room = (largest + GRAIN) * pools as u64;
        let computer = Computer::of(case, profile, rtl, host, room)?;
        let fault_ns = profile.host.fault_ns.value;
        let mut run = Run { case, times, computer, pools: Vec::new(), fence_drain_ps, fault_ns };
        for (i, program) in programs.into_iter().enumerate() {
            let options = Options::new().ring_bytes(RING_BYTES).id(run.computer.pool_id(i as u32));
            let options = options.synchronisation(case.configuration.synchronisation());
            let location = run.computer.location(&format!("pool{i}"));
            // A pool grows its log once: half of it, behind which an epoch ends.
            let log_bytes = u64::from(RING_BYTES) / 2;
            let served = Served::prepare(case, program, &options, &location, largest, log_bytes)?;
            run.pools.push(Pooled { served, free_ps: 0 });
        }
        Ok(run)
    }

    fn run(mut self) -> Result<Outcome> {
        let computer = &self.computer;
        let clock = Clock::start(computer);
        // All cores begin at the same time.
        for core in 0..self.case.threads {
            computer.machine.wait_on_core(core, clock.start_ps);
        }
        let rules = Rules {
            case: self.case,
            times: &self.times,
            computer,
            waits_per_entry_ns: self.fence_drain_ps as f64 / 1000.0,
            fault_ns: self.fault_ns,
            forgives: self.fence_drain_ps > 0 && !self.case.configuration.uses_card(),
        };
        let cores = match &mut self.pools[..] {
            [pool] => rules.by_turns(pool)?,
            each => rules.each_on_its_own(each)?,
        };
        let now_ps = |core: usize| cores[core].now_ps(time_of(computer, core));
        let last = (0..cores.len()).max_by_key(|&core| now_ps(core)).context("there is a thread")?;
        run_on_core(last);
        let mut outcome = clock.stop(self.pools.iter().map(|pool| pool.served.done()).sum(), self.counts());
        if rules.forgives {
            outcome.ns -= cores[last].forgiven_ps as f64 / 1000.0;
            let forgiven_ns: f64 = cores.iter().map(|core| core.forgiven_ps as f64 / 1000.0).sum();
            *outcome.breakdown.entry(Kind::Wait.name().into()).or_default() -= forgiven_ns;
        }
        self.pools.iter().try_for_each(|pool| pool.served.check())?;
        Ok(outcome)
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for Pooled { served, .. } in &self.pools {
            let counted = served.counts();
            for (name, count) in [
                ("log entries", counted.log_entries),
                ("bytes logged", counted.bytes_logged),
                ("shadow pages", counted.shadow_pages),
                ("epochs", counted.epochs),
                ("bytes by CPU", counted.bytes_by_cpu),
                ("bytes by card", counted.bytes_by_card),
                ("commands", counted.commands),
                ("fences", counted.fences),
                ("lines written back", counted.lines_written_back),
                // They are counted when the pool is opened.
                ("fallbacks", served.pool.statistics().fallbacks),
            ] {
                *counts.entry(name.to_owned()).or_default() += count;
            }
        }
        counts
    }
}

/// A core, whose clock may be ahead of what it is charged with.
#[derive(Clone, Copy, Default)]
struct Core {
    /// Waits for read-backs that are not needed.
    forgiven_ps: u64,
}

impl Core {
    /// Its time when its clock says this.
    fn now_ps(self, clock_ps: u64) -> u64 {
        clock_ps - self.forgiven_ps
    }
}

fn time_of(computer: &Computer, core: usize) -> u64 {
    run_on_core(core);
    computer.machine.now_ps()
}

/// How a case's threads work on its pools.
struct Rules<'r> {
    case: &'r Case,
    times: &'r Charged,
    computer: &'r Computer,
    /// What the paper's baseline waits for each entry of its log but the last.
    waits_per_entry_ns: f64,
    /// What a first touch costs that is found by a fault.
    fault_ns: f64,
    /// Where fences wait for the card, a processor's commit is durable behind its fence, and the
    /// library's read-back behind it is not needed.
    forgives: bool,
}

impl Rules<'_> {
    /// Threads with a pool each: cores that meet on the link, in the cards and at the driver's
    /// locks.
    fn each_on_its_own(&self, pools: &mut [Pooled]) -> Result<Vec<Core>> {
        let work = |pool| move || self.all_of(pool);
        let cores = self.computer.machine.on_cores(pools.iter_mut().map(work).collect());
        cores.into_iter().collect()
    }

    fn all_of(&self, pool: &mut Pooled) -> Result<Core> {
        let mut core = Core::default();
        while pool.served.is_due() {
            self.step(pool, &mut core)?;
        }
        self.without_read_backs(&mut core, || pool.served.pool.persist())?;
        Ok(core)
    }

    /// Threads that share a pool, which one of them has at a time: the core that is behind goes
    /// next. What it does besides, the others do at the same time.
    fn by_turns(&self, pool: &mut Pooled) -> Result<Vec<Core>> {
        let mut cores = vec![Core::default(); self.case.threads];
        while pool.served.is_due() {
            let behind = |&core: &usize| (cores[core].now_ps(time_of(self.computer, core)), core);
            let core = (0..cores.len()).min_by_key(behind).context("there is a thread")?;
            run_on_core(core);
            self.step(pool, &mut cores[core])?;
        }
        for (number, core) in cores.iter_mut().enumerate() {
            run_on_core(number);
            self.without_read_backs(core, || pool.served.pool.persist())?;
        }
        Ok(cores)
    }

    /// The next transaction of a pool, on this thread's core.
    fn step(&self, pool: &mut Pooled, core: &mut Core) -> Result<()> {
        let (case, computer) = (self.case, self.computer);
        let Pooled { served, free_ps } = pool;
        let machine = &computer.machine;
        computer.compute(self.times.program_ns);
        let waits_ns = free_ps.saturating_sub(core.now_ps(machine.now_ps())) / 1000;
        machine.compute(waits_ns);
        computer.compute(self.times.library_ns);
        let before = served.pool.statistics();
        self.without_read_backs(core, || served.apply())?;
        let entries = served.pool.statistics().log_entries - before.log_entries;
        if case.configuration == Configuration::PaperCpu && case.mechanism == Mechanism::Undo {
            computer.compute(self.waits_per_entry_ns * entries.saturating_sub(1) as f64);
        }
        let touches = served.touches();
        if let Some(touches) = touches {
            computer.compute(touches as f64 * self.fault_ns);
        }
        if served.ends_an_epoch(touches) {
            self.without_read_backs(core, || served.pool.cut())?;
        }
        *free_ps = core.now_ps(machine.now_ps());
        Ok(())
    }

    /// Does something whose read-backs a core is forgiven, if any are: as long as they take from an
    /// idle card. What a busy one takes beyond that a fence would wait for as well.
    fn without_read_backs<T>(&self, core: &mut Core, work: impl FnOnce() -> T) -> T {
        let before_ps = self.computer.meter.idle_waits_ps();
        let done = work();
        if self.forgives {
            core.forgiven_ps += self.computer.meter.idle_waits_ps() - before_ps;
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_both_is_found() {
        assert_eq!(common(&[(0, 10), (20, 30)], &[(5, 25)]), 10);
        assert_eq!(common(&[(0, 10)], &[(1, 2), (3, 4), (9, 20)]), 3);
        assert_eq!(common(&[], &[(1, 2)]), 0);
    }
}
