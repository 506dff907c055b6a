//! A run on a simulated card, from power-up to power-up.
//!
//! A *life* is what lies between a power-up and the next power cut, or the end. The first one makes
//! pool and structure; every other one recovers, compares what it finds with the model, and goes on
//! with the operations that are missing. So a run through any cuts ends with all operations done,
//! and is checked once more.

use std::cell::Cell;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use indicatif::ProgressBar;
use nearpm::{Durability, Engine, Error, Options, Pool, Problem, Statistics};
use nearpm_driver::{Card, CardError, Posting};
use nearpm_sim::host::{Cut, Event, Parameters};
use nearpm_sim::machine::until_power_cut;
use nearpm_workloads::ops::Op;
use nearpm_workloads::run::{self, Progress};
use nearpm_workloads::{Map, check};

use super::arguments::RunArguments;
use super::report::{After, Crash, During, Fall, Measured, Recovered, Report};
use super::{bar, model_of};
use crate::cut::{Moment, PowerCut, Strike};
use nearpm_cards::{CardCounters, Cards, Rig, SimulatedCard};
use nearpm_sim::saved::Saved;
use nearpm_text::grouped;

/// A run on a simulated card.
pub struct Job {
    cards: Cards,
    parameters: Parameters,
    posting: Posting,
    options: Options,
    pool_bytes: u64,
    label: String,
    operations: Vec<Op>,
    strikes: Vec<Strike>,
    seed: u64,
    epoch: usize,
    /// What commits wait for.
    commits: Durability,
    /// Every cut is to come, behind the last operation at the latest.
    insists: bool,
}

/// How a run ended.
pub enum End {
    /// All operations are done and compared with the model, so many entries; measured where there
    /// was no cut.
    Done(usize, Option<Measured>),
    /// The card reported that the save, which had not energy enough, is torn.
    TornSaveReported,
}

/// What is known of the operations when a life begins: how many were acknowledged, and how many had
/// been begun.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    acknowledged: usize,
    started: usize,
}

impl Job {
    /// The job of these arguments; the card makes the copies.
    pub fn new(arguments: &RunArguments, cards: Cards) -> Job {
        Job::with_engine(arguments, cards, Engine::Card)
    }

    /// The same with the processor or the card making the copies.
    pub fn with_engine(arguments: &RunArguments, cards: Cards, engine: Engine) -> Job {
        let by = if engine == Engine::Cpu { ", copies by the processor" } else { "" };
        let card = match arguments.card {
            super::CardChoice::Rtl => SimulatedCard::Rtl,
            _ => SimulatedCard::Model,
        };
        Job {
            cards,
            parameters: arguments.parameters(),
            posting: arguments.posting.into(),
            options: arguments.pool_options(engine),
            pool_bytes: arguments.pool_bytes(),
            label: format!(
                "{} operations, {}, {}{by}, seed {}",
                grouped(arguments.ops as u64),
                arguments.mechanism.name(),
                card.named_with(arguments.memory_ports),
                arguments.seed
            ),
            operations: arguments.operations(),
            strikes: arguments.power_cut.strikes(arguments.ops, arguments.seed),
            seed: arguments.seed,
            epoch: arguments.epoch as usize,
            commits: arguments.durability(),
            insists: false,
        }
    }

    /// Makes every one of these cuts in the place of those of the arguments, each behind the last
    /// operation at the latest.
    pub fn insisting(self, strikes: Vec<Strike>) -> Job {
        Job { strikes, insists: true, ..self }
    }

    /// Runs to the end, through the power cuts, and checks everything.
    pub fn run<M: Map>(&self) -> Result<Report> {
        let title = format!("{}: {}", M::NAME, self.label);
        let bar = bar(self.operations.len(), &title);
        let mut crashes = Vec::new();
        let end = self.through::<M>("sim", &bar, &mut crashes);
        bar.finish_and_clear();
        let (entries, measured) = match end? {
            End::Done(entries, measured) => (Some(entries), measured),
            End::TornSaveReported => (None, None),
        };
        if crashes.len() < self.strikes.len() && entries.is_some() {
            eprintln!("the power cut would have come after the last operation");
        }
        Ok(Report { title, crashes, measured, entries })
    }

    /// The same on a computer whose card has a name that no other one has at the time. The cuts are
    /// noted as they come, so that they are known where the run fails.
    pub fn through<M: Map>(&self, name: &str, bar: &ProgressBar, crashes: &mut Vec<Crash>) -> Result<End> {
        let rig = Rig::new(self.cards.clone(), name, self.parameters, self.posting, self.pool_bytes);
        if self.insists {
            rig.watch_card();
        }
        let mut known = Known::default();
        loop {
            let before = crashes.last().and_then(|crash| crash.fall.card).map(|(_, saved)| saved);
            let life = Life {
                job: self,
                rig: &rig,
                bar,
                number: crashes.len(),
                strike: self.strikes.get(crashes.len()).map(|strike| strike.after(before)),
                before,
                known: Cell::new(known),
                progress: Progress::default(),
                during: Cell::new(During::Making),
                struck: Cell::new(None),
                after: Cell::new(After::NextCut),
            };
            let outcome = life.live::<M>();
            if let Some(crash) = crashes.last_mut() {
                crash.after = life.after.get();
            }
            if let Some(end) = outcome? {
                return Ok(end);
            }
            known = life.known();
            crashes.push(Crash { fall: life.fall(), after: After::NextCut });
            rig.power_up();
        }
    }
}

/// One life.
struct Life<'j> {
    job: &'j Job,
    rig: &'j Rig,
    bar: &'j ProgressBar,
    /// From 0: as many cuts were before it.
    number: usize,
    /// The cut that ends it.
    strike: Option<Strike>,
    /// What is known without this life's own operations.
    known: Cell<Known>,
    /// This life's own operations.
    progress: Progress,
    during: Cell<During>,
    /// Operation before which the power was cut at once.
    struck: Cell<Option<usize>>,
    /// What the last cut left in the save area.
    before: Option<Saved>,
    /// What came of the last cut.
    after: Cell<After>,
}

impl Life<'_> {
    /// Lives until the power is cut, which gives `None`, or to the end of the run.
    fn live<M: Map>(&self) -> Result<Option<End>> {
        let strike = self.strike;
        if let Some(strike) = strike.filter(|strike| strike.operation.is_none()) {
            self.arm(strike, strike.cut);
        }
        let outcome = until_power_cut(|| {
            let pending = Cell::new(strike.filter(|strike| strike.operation.is_some()));
            self.until_the_cut::<M>(&pending)
        });
        match outcome {
            Ok(Err(error)) => Err(error),
            Ok(Ok(end)) if self.rig.is_powered() => Ok(Some(end)),
            Ok(Ok(_)) | Err(_) => {
                ensure!(!self.rig.is_powered(), "the program was told of a power cut while the power is on");
                Ok(None)
            }
        }
    }

    /// Arms a cut, or makes it.
    fn arm(&self, strike: Strike, cut: Option<Cut>) {
        if let Some(Cut::AfterEvent { event: Event::Inside(_), .. }) = cut {
            self.rig.watch_card();
        }
        let save_cycles = strike.energy.unwrap_or(self.job.parameters.save_cycles);
        self.rig.cut(cut, save_cycles, self.job.seed.wrapping_add(self.number as u64));
    }

    fn until_the_cut<M: Map>(&self, pending: &Cell<Option<Strike>>) -> Result<End> {
        let start_ns = self.rig.now_ns();
        if self.number > 0 {
            self.during.set(During::Recovery);
        }
        let Some(card) = self.open_card()? else {
            self.after.set(After::TornSave);
            return Ok(End::TornSaveReported);
        };
        let pool = match self.number {
            0 => None,
            _ => self.reopen()?,
        };
        let found = pool.is_some();
        let pool = match pool {
            Some(pool) => pool,
            None => self.make()?,
        };
        let result = match found {
            true => self.check::<M>(&pool, start_ns),
            false => Ok(()),
        };
        let result = result.and_then(|()| self.work::<M>(&pool, &card, pending));
        if result.is_err() {
            // A cut that comes when the pool is closed on account of an error would hide it.
            self.rig.disarm();
        }
        let end = result?;
        pool.close().context("the pool cannot be closed")?;
        Ok(end)
    }

    /// Opens the card; `None` where it reports a torn save, as it has to.
    fn open_card(&self) -> Result<Option<Arc<Card>>> {
        let is_loss = self.before.is_some_and(|saved| saved.is_loss());
        let energy =
            self.number.checked_sub(1).and_then(|last| self.job.strikes.get(last)).and_then(|last| last.energy);
        match self.rig.open_card() {
            Ok(_) if is_loss => bail!("the save is torn, and the card does not report it"),
            Ok(card) => Ok(Some(card)),
            Err(CardError::Loss) if !is_loss => bail!("the card reports a torn save, and the save is whole"),
            Err(CardError::Loss) if energy.is_some() => Ok(None),
            Err(error) if self.number > 0 => Err(error).context("after the power cut"),
            Err(error) => Err(error).context("the simulated card does not open"),
        }
    }

    /// Makes the pool.
    fn make(&self) -> Result<Pool> {
        self.during.set(During::Making);
        self.rig.create_pool(&self.job.options, self.job.pool_bytes).context("the pool cannot be created")
    }

    /// Opens the pool of an earlier life, which recovers it; `None` where the cut came before it
    /// was made.
    fn reopen(&self) -> Result<Option<Pool>> {
        let Known { acknowledged, started } = self.known.get();
        match self.rig.open_pool(&self.job.options) {
            Ok(pool) => Ok(Some(pool)),
            Err(Error::Pool { problem: Problem::NotFound, .. }) if started == 0 => {
                self.after.set(After::NoPool);
                Ok(None)
            }
            Err(error) => Err(error)
                .with_context(|| format!("the pool that held {acknowledged} acknowledged operations does not open")),
        }
    }

    /// Does the operations that are missing, and checks the end.
    fn work<M: Map>(&self, pool: &Pool, card: &Card, pending: &Cell<Option<Strike>>) -> Result<End> {
        let operations = &self.job.operations;
        let kept = self.known.get().started;
        let map = match pool.root()? {
            0 => run::create::<M>(pool).context("the structure cannot be made")?,
            _ => run::open::<M>(pool)?,
        };
        self.during.set(During::Operations);
        let (before, counted, start_ns) = (pool.statistics(), self.rig.counters(card), self.rig.now_ns());
        run::run(pool, map, &operations[kept..], self.job.epoch, &self.progress, |i| {
            self.bar.set_position((kept + i) as u64);
            self.strike_at(kept + i, pending, false);
        })
        .context("an operation failed")?;
        let ns = self.rig.now_ns() - start_ns;
        self.strike_at(operations.len(), pending, self.job.insists);
        self.rig.disarm();
        let card = self.rig.counters(card);
        let measured = (self.number == 0).then(|| Measured {
            operations: operations.len(),
            ns,
            pool: difference(pool.statistics(), before),
            card: CardCounters { commands: card.commands - counted.commands, held: card.held - counted.held },
        });
        let found = check::contents::<M>(pool).context("the structure is damaged at the end")?;
        ensure!(found == model_of(operations), "the pool does not hold what the model holds at the end");
        Ok(End::Done(found.len(), measured))
    }

    /// Compares a recovered pool with the model. What it holds is known from then on.
    fn check<M: Map>(&self, pool: &Pool, start_ns: u64) -> Result<()> {
        let ns = self.rig.now_ns() - start_ns;
        let Known { acknowledged, started } = self.known.get();
        self.during.set(During::Check);
        let kept = check::prefix::<M>(pool, &self.job.operations, acknowledged, started, self.job.commits)
            .context("CRASH CONSISTENCY IS VIOLATED")?;
        self.known.set(Known { acknowledged: kept, started: kept });
        self.after.set(After::Recovered(Recovered { kept, recovery: pool.recovery(), ns: Some(ns) }));
        Ok(())
    }

    /// Arms or makes the pending cut if it belongs to this operation or an earlier one, or if it
    /// has to be now.
    fn strike_at(&self, operation: usize, pending: &Cell<Option<Strike>>, now: bool) {
        let due = |strike: &Strike| strike.operation.is_some_and(|at| at <= operation);
        if let Some(strike) = self.strike.filter(|_| now) {
            self.struck.set(Some(operation));
            return self.arm(strike, None);
        }
        if let Some(strike) = pending.get().filter(due) {
            pending.set(None);
            if strike.cut.is_none() {
                self.struck.set(Some(operation));
            }
            self.arm(strike, strike.cut);
        }
    }

    /// What is known when the power has failed in this life.
    fn known(&self) -> Known {
        let Known { acknowledged, started } = self.known.get();
        Known { acknowledged: acknowledged + self.progress.acknowledged(), started: started + self.progress.started() }
    }

    /// The cut that ended this life.
    fn fall(&self) -> Fall {
        let (record, saved) = self.rig.last_cut().expect("the power is off");
        let moment = self.struck.get().map_or_else(|| Moment::of(&record), Moment::Operation);
        // The next generation is armed when the replay is over.
        let during = match self.before {
            Some(before) if before.generation == saved.generation => match before.image {
                Some(image) if image.items() > 0 => During::Replay,
                _ => During::Boot,
            },
            _ => self.during.get(),
        };
        let Known { acknowledged, started } = self.known();
        let energy = self.strike.and_then(|strike| strike.energy);
        Fall {
            cut: PowerCut { moment, energy },
            card: Some((record, saved)),
            lost_lines: self.rig.lost_lines(),
            noticed_ns: self.rig.now_ns(),
            during,
            started,
            acknowledged,
        }
    }
}

/// What was counted between two moments.
fn difference(after: Statistics, before: Statistics) -> Statistics {
    Statistics {
        bytes_by_cpu: after.bytes_by_cpu - before.bytes_by_cpu,
        bytes_by_card: after.bytes_by_card - before.bytes_by_card,
        ..after
    }
}
