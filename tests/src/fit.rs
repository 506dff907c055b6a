//! Fits the latencies of the transaction-level card to the RTL's times on micro-traces.

use nearpm_sim::model::Timing;

use crate::drive::{Outcome, Run};

/// What is compared of a run: cycles from the first submission to each acceptance, completion and answer.
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

/// Steps that a descent tries with each latency.
const STEPS: [i64; 4] = [1, -1, 4, -4];

/// Changes one latency after the other as long as `error` falls; the result and its error.
pub fn descend(mut timing: Timing, error: impl Fn(Timing) -> f64) -> (Timing, f64) {
    let mut best = error(timing);
    loop {
        let before = best;
        for index in 0..timing.latencies().len() {
            for step in STEPS {
                loop {
                    let mut changed = timing;
                    let (_, value) = &mut changed.latencies()[index];
                    let Some(moved) = value.checked_add_signed(step) else { break };
                    **value = moved;
                    let found = error(changed);
                    if found >= best {
                        break;
                    }
                    (timing, best) = (changed, found);
                }
            }
        }
        if best >= before * 0.999 {
            return (timing, best);
        }
    }
}
