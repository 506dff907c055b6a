//! Every order of two or three threads that operate on one bucket, with at most so many preemptions, and crashes at every store and fence of each.

use anyhow::{Context, Result};
use nearpm_gphash::Op;
use nearpm_gpu::{Choice, every_schedule};

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
        for event in (1..=events).filter(|_| bounds.crashes) {
            // Threads of a warp each: of what is pending nothing, all of one, or all but one's.
            let of = |warp: u32| [Choice::OnlyThread(32 * u64::from(warp)), Choice::AllButThread(32 * u64::from(warp))];
            for choice in std::iter::once(Choice::None).chain((0..threads).flat_map(of)) {
                let mut schedule = run.schedule.clone();
                let said = || format!("{}, crash at {event}, {choice:?}", trial.told(&run.schedule));
                trial.replay(&mut schedule, Some((event, choice))).with_context(said)?;
                tally.crashes += 1;
            }
        }
        anyhow::Ok(())
    })?;
    gone.complete += u64::from(explored.complete);
    Ok(())
}
