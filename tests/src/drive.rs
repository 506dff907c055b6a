//! Runs a trace on a card and notes everything that can be seen from outside.

use nearpm_interface::geometry::LINE;
use nearpm_sim::bench::{CardBench, Done, Posted};
use nearpm_sim::core::{Access, CardCore, Medium, Ticket};

use crate::trace::{POOL, Step, Timed};

/// Cycles of energy that any power-fail save ends in.
pub const WHOLE_SAVE: u64 = 1 << 40;

/// What one step of a trace gave.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A command: accepted (or refused) at a cycle, done with a status.
    Command {
        /// Cycle at which its write was answered.
        accepted: u64,
        /// Its completion record.
        done: Done,
    },
    /// A load: answered at a cycle with data.
    Load {
        /// Cycle of the answer.
        cycle: u64,
        /// The line.
        data: [u8; LINE],
    },
    /// A store: answered at a cycle.
    Store {
        /// Cycle of the answer.
        cycle: u64,
    },
}

impl Outcome {
    /// Cycle at which the step was over.
    pub fn cycle(&self) -> u64 {
        match self {
            Outcome::Command { done, .. } => done.cycle,
            Outcome::Load { cycle, .. } | Outcome::Store { cycle } => *cycle,
        }
    }
}

/// Everything that a run gave.
pub struct Run {
    /// One outcome a step.
    pub outcomes: Vec<Outcome>,
    /// Cycle of the first submission, gap included.
    pub start: u64,
    /// Cycles from the first submission to the last outcome.
    pub cycles: u64,
    /// The medium after a power cut that followed the last outcome, with energy for the whole save.
    pub medium: Medium,
}

enum Pending {
    Command(Posted),
    Host(Ticket, bool),
}

/// Runs a trace.
///
/// # Panics
/// If the card hangs, or answers a host access of the trace with an error.
pub fn run(card: Box<dyn CardCore>, trace: &[Timed]) -> Run {
    let mut bench = CardBench::open(card, POOL);
    let start = bench.card.cycle();
    let mut pending = Vec::with_capacity(trace.len());
    let mut next = start;
    for timed in trace {
        next += timed.gap;
        bench.card.advance_to(next);
        pending.push(match &timed.step {
            Step::Command(command) | Step::Malformed(command) => Pending::Command(bench.post(*command)),
            Step::Host(access) => {
                let load = matches!(access, Access::PmRead { .. });
                Pending::Host(bench.card.submit(access.clone()), load)
            }
        });
    }
    let outcomes: Vec<Outcome> = pending
        .into_iter()
        .map(|p| match p {
            Pending::Command(posted) => {
                Outcome::Command { accepted: bench.accepted(posted), done: bench.finish(posted) }
            }
            Pending::Host(ticket, load) => {
                let answer = bench.card.wait(ticket, 1_000_000);
                assert!(!answer.error, "the card refused a host access of the trace");
                if load {
                    Outcome::Load { cycle: answer.cycle, data: answer.data }
                } else {
                    Outcome::Store { cycle: answer.cycle }
                }
            }
        })
        .collect();
    // A store is answered when it is accepted: give the memory time to take the last ones.
    let settle = bench.card.cycle() + 2_000;
    bench.card.advance_to(settle);
    let end = outcomes.iter().map(Outcome::cycle).max().unwrap_or(start);
    Run { outcomes, start, cycles: end - start, medium: bench.card.power_fail(WHOLE_SAVE, 0) }
}
