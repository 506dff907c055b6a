//! Every order of two or three threads that operate on one bucket, with at most so many
//! preemptions, and crashes at every store and fence of each.

use std::collections::HashSet;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use nearpm_gphash::Op;
use nearpm_gpmbench::record;
use nearpm_gpu::{Changes, Choice, Schedule, States, Survives, every_schedule};
use serde::{Deserialize, Serialize};

use crate::campaign::Tally;
use crate::subject::Subject;
use crate::trial::{Shape, Trial};

/// What is gone through.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// Times that a thread that could go on is made to wait.
    pub preemptions: u32,
    /// Most schedules, or states, of a trial.
    pub limit: u64,
    /// Whether it is crashed at each store and fence, and what survives of what pends there.
    pub crashes: Option<Survivors>,
    /// How they are gone through.
    pub by: By,
}

/// What survives of the stores that pend at a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Survivors {
    /// None, all of one thread, or all but those of one
    OfThreads,
    /// Any set that coherence allows; by states alone
    Any,
}

/// How all orders are gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// Each state once, whatever the schedules that lead to it
    States,
    /// Each schedule from its beginning to its end
    Schedules,
}

/// Most images of one crash.
const MOST_IMAGES: u128 = 1 << 20;

impl Bounds {
    /// Refuses what cannot be gone through.
    ///
    /// # Errors
    /// Everything that may survive of each schedule.
    pub fn check(&self) -> Result<()> {
        let every = self.by == By::Schedules && self.crashes == Some(Survivors::Any);
        ensure!(!every, "whatever may survive a crash is gone through by states alone: leave --by out");
        Ok(())
    }
}

/// What was gone through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gone {
    /// Trials: operations of each thread, and what was there before.
    pub trials: u64,
    /// Trials that were gone through wholly, within the bounds.
    pub complete: u64,
    /// States with a choice, where they are gone through by states.
    pub states: u64,
    /// Schedules (by states: ways to an end) and crashes that differ (by states: images that ends
    /// and crashes leave).
    pub tally: Tally,
}

impl Gone {
    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &Gone) -> Gone {
        Gone {
            trials: self.trials + other.trials,
            complete: self.complete + other.complete,
            states: self.states + other.states,
            tally: self.tally.plus(&other.tally),
        }
    }
}

/// Operations that threads do at the same time: the kinds that differ, reads with an update aside.
const OPS: [Op; 5] = [Op::Get, Op::Insert, Op::Update, Op::Put, Op::Delete];

/// What a trial's threads do with one key, one operation each, and whether the key is there before.
pub type Ops = (Vec<Op>, bool);

/// All that `threads` threads may do.
pub fn trials(threads: u32) -> Vec<Ops> {
    let chosen = |number: usize| -> Vec<Op> {
        (0..threads).map(|thread| OPS[number / OPS.len().pow(thread) % OPS.len()]).collect()
    };
    // Threads are alike: one order of each choice is enough, and reads alone show nothing.
    let differs = |ops: &Vec<Op>| ops.is_sorted_by_key(|&op| op as u32) && ops.iter().any(|&op| op != Op::Get);
    let all = (0..OPS.len().pow(threads)).map(chosen).filter(differs);
    all.flat_map(|ops| [(ops.clone(), false), (ops, true)]).collect()
}

/// Trials, and what they come to.
///
/// # Errors
/// The first schedule that is not (durably) linearizable.
pub fn all(subject: &Subject, threads: u32, bounds: Bounds, trials: &[Ops], gone: &mut Gone) -> Result<()> {
    let shape = Shape { warps: threads, lanes: 1, rounds: 1, keys: 1 };
    for (ops, is_there) in trials {
        let ops = ops.iter().map(|&op| (op, 1)).collect();
        let trial = Trial::of(subject, shape, ops, if *is_there { vec![1] } else { vec![] })?;
        one(&trial, threads, bounds, gone)?;
    }
    Ok(())
}

/// How far exhaustive schedules have come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What is tried.
    pub subject: String,
    /// Threads on the bucket.
    pub threads: u32,
    /// Within these bounds.
    pub bounds: Bounds,
    /// What was gone through; trials in their order.
    pub gone: Gone,
}

impl Record {
    /// Of nothing yet.
    pub fn new(subject: &str, threads: u32, bounds: Bounds) -> Record {
        Record { subject: subject.to_owned(), threads, bounds, gone: Gone::default() }
    }

    /// Reads a record, or begins one where there is no file.
    ///
    /// # Errors
    /// A file of something else.
    pub fn load(path: &Path, subject: &str, threads: u32, bounds: Bounds) -> Result<Record> {
        let new = Record::new(subject, threads, bounds);
        let record: Record = record::read(path)?.unwrap_or_else(|| new.clone());
        let same = Record { gone: new.gone, ..record.clone() } == new;
        ensure!(same, "{} is of other schedules: {record:?}", path.display());
        Ok(record)
    }
}

/// What a trial, or a crash of it, may leave, each judged.
pub type Images = HashSet<Rc<Changes>>;

/// Every order of a trial. Gives what it may leave.
///
/// # Errors
/// The first schedule that is not (durably) linearizable.
pub fn one(trial: &Trial<'_>, threads: u32, bounds: Bounds, gone: &mut Gone) -> Result<Images> {
    gone.trials += 1;
    match bounds.by {
        By::States => by_states(trial, threads, bounds, gone),
        By::Schedules => by_schedules(trial, threads, bounds, gone),
    }
}

fn by_states(trial: &Trial<'_>, threads: u32, bounds: Bounds, gone: &mut Gone) -> Result<Images> {
    let survives = match bounds.crashes {
        None => Survives::These(Vec::new()),
        Some(Survivors::OfThreads) => Survives::These(of_threads(threads)),
        Some(Survivors::Any) => Survives::Any { limit: MOST_IMAGES },
    };
    let Bounds { preemptions, limit, .. } = bounds;
    let (visited, images) = trial.every_state(&States { preemptions, limit, survives })?;
    gone.states += visited.states;
    gone.tally.histories += visited.ends;
    gone.tally.crashes += images.len() as u64;
    gone.complete += u64::from(visited.complete);
    Ok(images.into_iter().collect())
}

fn by_schedules(trial: &Trial<'_>, threads: u32, bounds: Bounds, gone: &mut Gone) -> Result<Images> {
    bounds.check()?;
    let (tally, mut judged, mut ends) = (&mut gone.tally, HashSet::new(), HashSet::new());
    let explored = every_schedule(bounds.preemptions, bounds.limit, |run| {
        let (events, end) = trial.replay(&mut run.schedule).with_context(|| trial.told(&run.schedule))?;
        tally.histories += 1;
        ends.insert(Rc::new(end));
        match bounds.crashes {
            Some(_) => crashes(trial, threads, &run.schedule, events, tally, &mut judged),
            None => Ok(()),
        }
    })?;
    gone.complete += u64::from(explored.complete);
    judged.extend(ends);
    Ok(judged)
}

/// One thread held up behind each of its first `steps` instructions, while all others run to their
/// ends: few schedules, but long waits, which no bound on preemptions allows for.
///
/// # Errors
/// As for [`one`].
pub fn held(trial: &Trial<'_>, threads: u32, steps: std::ops::Range<u64>, crash: bool, gone: &mut Gone) -> Result<()> {
    gone.trials += 1;
    let mut judged = HashSet::new();
    for (block, steps) in (0..u64::from(threads)).flat_map(|block| steps.clone().map(move |steps| (block, steps))) {
        let mut schedule = Schedule::Held { block, steps };
        let (events, _) = trial.replay(&mut schedule).with_context(|| trial.told(&schedule))?;
        gone.tally.histories += 1;
        if crash {
            crashes(trial, threads, &schedule, events, &mut gone.tally, &mut judged)?;
        }
    }
    gone.complete += 1;
    Ok(())
}

/// Crashes a schedule at each of its stores and fences. Of what is pending nothing persists, all of
/// one thread's, or all but one's. What several of these leave alike is counted once, and judged
/// once of all schedules of the trial.
fn crashes(
    trial: &Trial<'_>,
    threads: u32,
    schedule: &Schedule,
    events: u64,
    tally: &mut Tally,
    judged: &mut HashSet<Rc<Changes>>,
) -> Result<()> {
    tally.crashes += trial.crash_everywhere(schedule, events, &of_threads(threads), judged)?;
    Ok(())
}

/// None, all of one thread's stores, or all but one's.
fn of_threads(threads: u32) -> Vec<Choice> {
    let of = |warp: u32| [Choice::OnlyThread(32 * u64::from(warp)), Choice::AllButThread(32 * u64::from(warp))];
    std::iter::once(Choice::None).chain((0..threads).flat_map(of)).collect()
}
