//! Every order of two or three threads that operate on one bucket, with at most so many preemptions, and crashes at every store and fence of each.

use anyhow::{Context, Result};
use nearpm_gphash::Op;
use nearpm_gpu::{Choice, Schedule, every_schedule};

use crate::campaign::Tally;
use crate::trial::{Shape, Subject, Trial};

/// What is gone through.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Times that a thread that could go on is made to wait.
    pub preemptions: u32,
    /// Most schedules of a trial.
    pub limit: u64,
    /// Whether each schedule is crashed at each of its stores and fences.
    pub crashes: bool,
}

/// What was gone through.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gone {
    /// Trials: operations of each thread, and what was there before.
    pub trials: u64,
    /// Trials of which every schedule within the bounds was run.
    pub complete: u64,
    /// Schedules and crashes.
    pub tally: Tally,
}

/// Operations that threads do at the same time: the kinds that differ, reads with an update aside.
const OPS: [Op; 5] = [Op::Get, Op::Insert, Op::Update, Op::Put, Op::Delete];

/// All trials of `threads` threads with one operation each on one key, which is there before or is not.
///
/// # Errors
/// The first schedule that is not (durably) linearizable.
pub fn all(subject: &Subject, threads: u32, bounds: Bounds) -> Result<Gone> {
    let mut gone = Gone::default();
    let shape = Shape { warps: threads, lanes: 1, rounds: 1, keys: 1 };
    for number in 0..OPS.len().pow(threads) {
        let chosen: Vec<Op> = (0..threads).map(|thread| OPS[number / OPS.len().pow(thread) % OPS.len()]).collect();
        // Threads are alike: one order of each choice is enough, and reads alone show nothing.
        if !chosen.is_sorted_by_key(|&op| op as u32) || chosen.iter().all(|&op| op == Op::Get) {
            continue;
        }
        for before in [vec![], vec![1]] {
            let ops = chosen.iter().map(|&op| (op, 1)).collect();
            let trial = Trial::of(subject, shape, ops, before)?;
            one(&trial, threads, bounds, &mut gone)?;
        }
    }
    Ok(gone)
}

/// Every schedule of a trial.
///
/// # Errors
/// The first that is not (durably) linearizable.
pub fn one(trial: &Trial<'_>, threads: u32, bounds: Bounds, gone: &mut Gone) -> Result<()> {
    gone.trials += 1;
    let tally = &mut gone.tally;
    let explored = every_schedule(bounds.preemptions, bounds.limit, |run| {
        let events = trial.replay(&mut run.schedule, None).with_context(|| trial.told(&run.schedule))?;
        tally.histories += 1;
        if bounds.crashes { crashes(trial, threads, &run.schedule, events, tally) } else { Ok(()) }
    })?;
    gone.complete += u64::from(explored.complete);
    Ok(())
}

/// One thread held up behind each of its first `steps` instructions, while all others run to their ends: few schedules, but long waits, which no bound on
/// preemptions allows for.
///
/// # Errors
/// As for [`one`].
pub fn held(trial: &Trial<'_>, threads: u32, steps: std::ops::Range<u64>, crash: bool, gone: &mut Gone) -> Result<()> {
    gone.trials += 1;
    for (block, steps) in (0..u64::from(threads)).flat_map(|block| steps.clone().map(move |steps| (block, steps))) {
        let mut schedule = Schedule::Held { block, steps };
        let events = trial.replay(&mut schedule, None).with_context(|| trial.told(&schedule))?;
        gone.tally.histories += 1;
        if crash {
            crashes(trial, threads, &schedule, events, &mut gone.tally)?;
        }
    }
    gone.complete += 1;
    Ok(())
}

/// Crashes a schedule at each of its stores and fences. Of what is pending nothing persists, all of one thread's, or all but one's.
fn crashes(trial: &Trial<'_>, threads: u32, schedule: &Schedule, events: u64, tally: &mut Tally) -> Result<()> {
    let of = |warp: u32| [Choice::OnlyThread(32 * u64::from(warp)), Choice::AllButThread(32 * u64::from(warp))];
    for event in 1..=events {
        for choice in std::iter::once(Choice::None).chain((0..threads).flat_map(of)) {
            let said = || format!("{}, crash at {event}, {choice:?}", trial.told(schedule));
            trial.replay(&mut schedule.clone(), Some((event, choice))).with_context(said)?;
            tally.crashes += 1;
        }
    }
    Ok(())
}
