//! Fits the latencies of the transaction-level card to the RTL's times on micro-traces.

use nearpm_sim::model::Timing;

use crate::drive::{Outcome, Run};

/// What is compared of a run: cycles from the first submission to each acceptance, completion and
/// answer.
pub fn times(run: &Run) -> Vec<u64> {
    let mut times = Vec::new();
    for outcome in &run.outcomes {
        match outcome {
            Outcome::Command { accepted, done } => times.extend([accepted - run.start, done.cycle - run.start]),
            Outcome::Load { cycle, .. } | Outcome::Store { cycle } => times.push(cycle - run.start),
        }
    }
    times
}

/// Mean distance of two runs' times, as a share of the run's length (20 cycles at least).
pub fn distance(rtl: &[u64], model: &[u64]) -> f64 {
    assert_eq!(rtl.len(), model.len(), "both ran the same trace");
    let length = rtl.iter().copied().max().unwrap_or(0).max(20) as f64;
    let sum: f64 = rtl.iter().zip(model).map(|(a, b)| a.abs_diff(*b) as f64).sum();
    sum / length / rtl.len() as f64
}

/// Latencies that no micro-trace determines: registers, boot and save.
const OTHERS: [&str; 7] =
    ["host_refuse", "command_merge", "command_read", "register", "system_step", "quiet", "save_line"];
/// Steps that a descent tries with each latency.
const STEPS: [i64; 4] = [1, -1, 3, -3];

/// Where `timing` has the latencies that are fitted.
fn fitted(timing: &mut Timing) -> Vec<&mut u64> {
    let all = timing.latencies().into_iter();
    all.filter(|(name, _)| !OTHERS.contains(name)).map(|(_, value)| value).collect()
}

/// `timing` with some latencies moved; `None` where one would fall below 0.
fn moved(mut timing: Timing, moves: &[(usize, i64)]) -> Option<Timing> {
    for &(index, step) in moves {
        let value = &mut *fitted(&mut timing)[index];
        *value = value.checked_add_signed(step)?;
    }
    Some(timing)
}

/// Changes one latency after the other, and then two against each other, as long as `error` falls;
/// the result and its error.
pub fn descend(mut timing: Timing, error: impl Fn(Timing) -> f64) -> (Timing, f64) {
    let count = fitted(&mut timing).len();
    let mut best = error(timing);
    let single: Vec<Vec<(usize, i64)>> = (0..count).flat_map(|i| STEPS.map(|step| vec![(i, step)])).collect();
    let pairs = (0..count).flat_map(|i| (0..count).filter(move |j| *j != i).map(move |j| vec![(i, 1), (j, -1)]));
    let pairs: Vec<_> = pairs.collect();
    loop {
        let before = best;
        for moves in [&single, &pairs] {
            let mut improved = true;
            while improved {
                improved = false;
                for change in moves {
                    while let Some(next) = moved(timing, change) {
                        let found = error(next);
                        if found >= best {
                            break;
                        }
                        (timing, best, improved) = (next, found, true);
                    }
                }
            }
        }
        if best >= before {
            return (timing, best);
        }
    }
}
