//! `nearpm run`: operations, a power cut, recovery, and the check of what is left.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use nearpm::memory::{Image, TestMemory};
use nearpm::{Engine, Mechanism, Pool, PoolOptions, Statistics};
use nearpm_sim::host::Cut;
use nearpm_sim::machine::until_power_cut;
use nearpm_workloads::ops::{self, Mix, Op};
use nearpm_workloads::run::{self, Progress};
use nearpm_workloads::{BTree, HashMap, Map, Value, check};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::cut::PowerCut;
use crate::rig::{CardCounters, CardKind, Rig, pool_bytes, pool_options};
use crate::table::{grouped, size, time};

/// Structures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Workload {
    /// A B+tree
    Btree,
    /// A hash map that grows
    Hashmap,
}

/// What stands behind the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CardChoice {
    /// No card: the processor makes the copies, on simulated memory of its own
    None,
    /// The transaction-level card
    Model,
    /// The Verilated RTL
    Rtl,
}

/// Arguments of `nearpm run`.
#[derive(Args, Clone, Debug)]
pub struct RunArguments {
    /// Structure to work on
    #[arg(long, value_enum, default_value = "btree")]
    pub workload: Workload,
    /// Mechanism: undo, redo, checkpoint or shadow
    #[arg(long, default_value = "undo")]
    pub mechanism: Mechanism,
    /// Card
    #[arg(long, value_enum, default_value = "model")]
    pub card: CardChoice,
    /// Operations, each a transaction that inserts a random key
    #[arg(long, default_value_t = 10_000)]
    pub ops: usize,
    /// When the power fails: never, op:K, cycle:K or random
    #[arg(long, default_value = "random")]
    pub power_cut: PowerCut,
    /// Seed of keys, values and of what the power cut leaves
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Operations of an epoch (checkpoint and shadow paging)
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    pub epoch: u64,
}

/// Runs the command.
pub fn command(arguments: &RunArguments) -> Result<()> {
    let started = Instant::now();
    let report = match (arguments.card, arguments.workload) {
        (CardChoice::None, Workload::Btree) => without_card::<BTree>(arguments),
        (CardChoice::None, Workload::Hashmap) => without_card::<HashMap>(arguments),
        (CardChoice::Model, Workload::Btree) => Job::new(arguments, CardKind::Model).run::<BTree>(),
        (CardChoice::Model, Workload::Hashmap) => Job::new(arguments, CardKind::Model).run::<HashMap>(),
        (CardChoice::Rtl, Workload::Btree) => Job::new(arguments, CardKind::Rtl).run::<BTree>(),
        (CardChoice::Rtl, Workload::Hashmap) => Job::new(arguments, CardKind::Rtl).run::<HashMap>(),
    }?;
    print!("{report}");
    eprintln!("wall-clock time: {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// What a job found.
#[derive(Clone, Debug)]
pub struct Report {
    title: String,
    /// The cut: when, and how far the job had come.
    crash: Option<Crash>,
    /// Operations, time, and counters of the part before the cut, or of all where there was none.
    pub measured: Option<Measured>,
    /// Entries that were compared with the model at the end.
    entries: usize,
}

/// A power cut and its recovery.
#[derive(Clone, Debug)]
struct Crash {
    when: String,
    started: usize,
    acknowledged: usize,
    kept: usize,
    recovery: nearpm::Recovery,
    recovery_ns: Option<u64>,
}

/// A run to its end.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Operations.
    pub operations: usize,
    /// Simulated time of them.
    pub ns: u64,
    /// The library's counters.
    pub pool: Statistics,
    /// The card's counters.
    pub card: CardCounters,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.title)?;
        if let Some(crash) = &self.crash {
            writeln!(f, "  power cut      {}", crash.when)?;
            writeln!(
                f,
                "  at that time   {} operations begun, {} acknowledged",
                grouped(crash.started as u64),
                grouped(crash.acknowledged as u64)
            )?;
            let r = &crash.recovery;
            write!(f, "  recovery       {} undone, {} redone, {} written", r.undone, r.redone, size(r.bytes))?;
            match crash.recovery_ns {
                Some(ns) => writeln!(f, ", {} from power-up to an open pool (simulated)", time(ns))?,
                None => writeln!(f)?,
            }
            writeln!(
                f,
                "  found          exactly the first {} operations: nothing acknowledged lost, nothing half done",
                grouped(crash.kept as u64)
            )?;
        }
        if let Some(m) = &self.measured {
            writeln!(
                f,
                "  time           {} simulated, {} an operation; {} commands, {} conflicts held",
                time(m.ns),
                time(m.ns / m.operations.max(1) as u64),
                grouped(m.card.commands),
                grouped(m.card.held)
            )?;
            writeln!(
                f,
                "  copied         {} by the processor, {} by the card",
                size(m.pool.bytes_by_cpu),
                size(m.pool.bytes_by_card)
            )?;
        }
        writeln!(f, "  at the end     {} entries, all as in the model", grouped(self.entries as u64))
    }
}

/// A bar on standard error.
pub fn bar(operations: usize, what: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:40} [{bar:30}] {human_pos}/{human_len} {eta}")
        .expect("the template is right")
        .progress_chars("=> ");
    ProgressBar::new(operations as u64).with_style(style).with_message(what.to_string())
}

/// A run on a simulated card.
pub struct Job {
    kind: CardKind,
    options: PoolOptions,
    label: String,
    operations: Vec<Op>,
    power_cut: PowerCut,
    seed: u64,
    epoch: usize,
}

impl Job {
    /// The job of these arguments; the card makes the copies.
    pub fn new(arguments: &RunArguments, kind: CardKind) -> Job {
        Job::with_engine(arguments, kind, Engine::Card)
    }

    /// The same with the processor or the card making the copies.
    pub fn with_engine(arguments: &RunArguments, kind: CardKind, engine: Engine) -> Job {
        let by = if engine == Engine::Cpu { ", copies by the processor" } else { "" };
        Job {
            kind,
            options: pool_options(arguments.mechanism, engine),
            label: format!(
                "{} operations, {}, {}{by}, seed {}",
                grouped(arguments.ops as u64),
                arguments.mechanism.name(),
                kind.name(),
                arguments.seed
            ),
            operations: ops::generate(Mix::Inserts, arguments.seed, arguments.ops),
            power_cut: arguments.power_cut,
            seed: arguments.seed,
            epoch: arguments.epoch as usize,
        }
    }

    /// Runs to the end, through the power cut if there is one, and checks everything.
    pub fn run<M: Map>(&self) -> Result<Report> {
        let bytes = pool_bytes(self.operations.len());
        let rig = Rig::new(self.kind, bytes)?;
        let title = format!("{}: {}", M::NAME, self.label);
        let progress = Progress::default();
        if let PowerCut::Cycle(cycle) = self.power_cut {
            rig.cut(Some(Cut::AtCycle(cycle)), self.seed);
        }
        let bar = bar(self.operations.len(), &title);
        let outcome = until_power_cut(|| self.until_the_cut::<M>(&rig, bytes, &progress, &bar));
        if rig.is_powered() {
            let (measured, found) = outcome.expect("nothing unwinds while the power is on")?;
            bar.finish_and_clear();
            ensure!(found == model_of(&self.operations), "{title}: the pool does not hold what the model holds");
            if self.power_cut != PowerCut::Never {
                eprintln!("the power cut would have come after the last operation");
            }
            return Ok(Report { title, crash: None, measured: Some(measured), entries: found.len() });
        }
        let when =
            format!("noticed by the program {} after the machine was switched on (simulated)", time(rig.now_ns()));
        let (crash, entries) = self.after_the_cut::<M>(&rig, &progress, when, &bar)?;
        bar.finish_and_clear();
        Ok(Report { title, crash: Some(crash), measured: None, entries })
    }

    fn until_the_cut<M: Map>(
        &self,
        rig: &Rig,
        bytes: u64,
        progress: &Progress,
        bar: &ProgressBar,
    ) -> Result<(Measured, BTreeMap<u64, Value>)> {
        let card = rig.open_card()?;
        let pool = rig.create_pool(&self.options, bytes)?;
        let map = run::create::<M>(&pool).context("the structure cannot be made")?;
        let (before, counted) = (pool.statistics(), rig.counters(&card));
        let start_ns = rig.now_ns();
        let plan = self.power_cut.plan(self.operations.len(), self.seed);
        run::run(&pool, map, &self.operations, self.epoch, progress, |i| {
            bar.set_position(i as u64);
            if let Some(plan) = plan.filter(|plan| plan.operation == i) {
                rig.cut(plan.cut, self.seed);
            }
        })
        .context("an operation failed")?;
        let ns = rig.now_ns() - start_ns;
        rig.disarm();
        let card = rig.counters(&card);
        let measured = Measured {
            operations: self.operations.len(),
            ns,
            pool: difference(pool.statistics(), before),
            card: CardCounters { commands: card.commands - counted.commands, held: card.held - counted.held },
        };
        let found = check::contents::<M>(&pool).context("the structure is damaged")?;
        pool.close().context("the pool cannot be closed")?;
        Ok((measured, found))
    }

    /// Powers up, recovers, checks, does the operations that are missing, and checks again.
    fn after_the_cut<M: Map>(
        &self,
        rig: &Rig,
        progress: &Progress,
        when: String,
        bar: &ProgressBar,
    ) -> Result<(Crash, usize)> {
        let (acknowledged, started) = (progress.acknowledged(), progress.started());
        rig.power_up();
        let start_ns = rig.now_ns();
        rig.open_card().context("after the power cut")?;
        let Ok(pool) = rig.open_pool(&self.options) else {
            // The cut came before the pool was made, so nothing was promised.
            ensure!(started == 0, "the pool that held {acknowledged} acknowledged operations does not open");
            bail!("the power was cut before the pool was made: there is nothing to recover; cut later");
        };
        let recovery_ns = rig.now_ns() - start_ns;
        let recovery = pool.recovery();
        let kept = check::prefix::<M>(&pool, &self.operations, acknowledged, started)
            .context("CRASH CONSISTENCY IS VIOLATED")?;
        let entries = finish::<M>(&pool, &self.operations, kept, self.epoch, bar)?;
        pool.close().context("the pool cannot be closed")?;
        Ok((Crash { when, started, acknowledged, kept, recovery, recovery_ns: Some(recovery_ns) }, entries))
    }
}

/// Does the operations from `kept` on in a recovered pool, which shows that it works; gives the entries at the end.
fn finish<M: Map>(pool: &Pool, operations: &[Op], kept: usize, epoch: usize, bar: &ProgressBar) -> Result<usize> {
    let map = match pool.root()? {
        0 => run::create::<M>(pool)?,
        _ => run::open::<M>(pool)?,
    };
    run::run(pool, map, &operations[kept..], epoch, &Progress::default(), |i| bar.set_position((kept + i) as u64))
        .context("an operation failed after recovery")?;
    let found = check::contents::<M>(pool).context("the structure is damaged at the end")?;
    ensure!(found == model_of(operations), "the pool does not hold what the model holds at the end");
    Ok(found.len())
}

fn model_of(operations: &[Op]) -> BTreeMap<u64, Value> {
    let mut model = BTreeMap::new();
    operations.iter().for_each(|op| ops::apply(&mut model, op));
    model
}

/// What was counted between two moments.
fn difference(after: Statistics, before: Statistics) -> Statistics {
    Statistics {
        bytes_by_cpu: after.bytes_by_cpu - before.bytes_by_cpu,
        bytes_by_card: after.bytes_by_card - before.bytes_by_card,
        ..after
    }
}

/// A run without a card, on memory that knows what a power cut leaves.
fn without_card<M: Map>(arguments: &RunArguments) -> Result<Report> {
    if let PowerCut::Cycle(_) = arguments.power_cut {
        bail!("without a card there are no cycles: use --power-cut op:K or random");
    }
    let operations = ops::generate(Mix::Inserts, arguments.seed, arguments.ops);
    let options = pool_options(arguments.mechanism, Engine::Cpu);
    let memory = TestMemory::new(pool_bytes(arguments.ops) as usize);
    let pool = options.create_in(Box::new(memory.clone())).context("the pool cannot be created")?;
    let title = format!(
        "{}: {} operations, {}, no card, seed {}",
        M::NAME,
        grouped(arguments.ops as u64),
        arguments.mechanism.name(),
        arguments.seed
    );
    let bar = bar(arguments.ops, &title);
    let map = run::create::<M>(&pool).context("the structure cannot be made")?;
    let mut random = ChaCha8Rng::seed_from_u64(arguments.seed ^ 0x6375_7421);
    let (at, events) = match arguments.power_cut {
        PowerCut::Operation(at) => (Some(at), 0),
        PowerCut::Random => (Some(random.random_range(0..arguments.ops.max(1))), random.random_range(0..40u64)),
        PowerCut::Never | PowerCut::Cycle(_) => (None, 0),
    };
    let progress = Arc::new(Progress::default());
    let left: Arc<Mutex<Option<Left>>> = Arc::default();
    run::run(&pool, map, &operations, arguments.epoch as usize, &progress, |i| {
        bar.set_position(i as u64);
        if at == Some(i) {
            leave_image(&memory, events, arguments.seed, &progress, &left);
        }
    })
    .context("an operation failed")?;
    memory.stop_probe();
    let found = check::contents::<M>(&pool).context("the structure is damaged")?;
    ensure!(found == model_of(&operations), "{title}: the pool does not hold what the model holds");
    drop(pool);
    let left = left.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(left) = left else {
        bar.finish_and_clear();
        return Ok(Report { title, crash: None, measured: None, entries: found.len() });
    };
    let pool = options
        .open_in(Box::new(TestMemory::from_image(left.image)))
        .context("the pool that the power cut left does not open")?;
    let kept = check::prefix::<M>(&pool, &operations, left.acknowledged, left.started)
        .context("CRASH CONSISTENCY IS VIOLATED")?;
    let recovery = pool.recovery();
    let entries = finish::<M>(&pool, &operations, kept, arguments.epoch as usize, &bar)?;
    bar.finish_and_clear();
    let when = format!("event {} of memory in operation {}", left.event, left.started.saturating_sub(1));
    let (started, acknowledged) = (left.started, left.acknowledged);
    let crash = Crash { when, started, acknowledged, kept, recovery, recovery_ns: None };
    Ok(Report { title, crash: Some(crash), measured: None, entries })
}

/// What a power cut left, and how far the run had come.
struct Left {
    image: Image,
    event: u64,
    started: usize,
    acknowledged: usize,
}

/// Takes what would be left of a power cut some events from now.
fn leave_image(memory: &TestMemory, events: u64, seed: u64, progress: &Arc<Progress>, left: &Arc<Mutex<Option<Left>>>) {
    let (progress, left) = (Arc::clone(progress), Arc::clone(left));
    let wanted = memory.events() + 1 + events;
    memory.probe(move |number, _, surviving| {
        if number == wanted {
            *left.lock().unwrap_or_else(PoisonError::into_inner) = Some(Left {
                image: surviving(seed),
                event: number,
                started: progress.started(),
                acknowledged: progress.acknowledged(),
            });
        }
    });
}
