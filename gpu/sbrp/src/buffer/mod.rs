//! The persist buffer of section 6 as a small machine: what the hardware unit does, event by event,
//! and a GPU of such buffers on which litmus tests run.
//!
//! Each rule of the hardware can be dropped ([`BufferRule`]). A litmus test then shows a state that
//! the model does not allow, or the rule was more than the model asks for.

mod gpu;
mod rules;
mod unit;

pub use gpu::{BufferGpu, GpuState};
pub use rules::{BufferRule, BufferRules};
pub use unit::{Answer, Entry, Flush, Kind, PersistBuffer, Sizes};

use std::collections::{BTreeSet, HashSet};

use crate::litmus::Test;
use crate::operational::TooLarge;
use crate::outcome::Outcome;

/// What a search of the buffers' states has found.
#[derive(Clone, Debug)]
pub struct BufferExploration {
    /// Different states.
    pub states: usize,
    /// The outcomes that a power failure may leave.
    pub outcomes: BTreeSet<Outcome>,
    /// A state was reached in which nothing goes on, and a buffer or a thread that waits for one is
    /// to blame.
    pub stuck: bool,
}

/// Searches all states of a test on buffers; ends early when `stop` says of an outcome that it is
/// enough.
///
/// # Errors
/// If there are more states than `bound`.
pub fn explore(
    test: &Test,
    rules: BufferRules,
    sizes: Sizes,
    bound: usize,
    stop: impl Fn(&Outcome) -> bool,
) -> Result<BufferExploration, TooLarge> {
    let gpu = BufferGpu::new(test, rules, sizes);
    let mut seen = HashSet::from([gpu.start()]);
    let mut open = vec![gpu.start()];
    let mut found = BufferExploration { states: 0, outcomes: BTreeSet::new(), stuck: false };
    while let Some(state) = open.pop() {
        let outcome = gpu.observe(&state);
        let enough = stop(&outcome);
        found.outcomes.insert(outcome);
        let next = gpu.steps(&state);
        found.stuck |= next.is_empty() && gpu.is_stuck(&state);
        for after in next {
            if !seen.contains(&after) {
                seen.insert(after.clone());
                open.push(after);
            }
        }
        if seen.len() > bound {
            return Err(TooLarge { bound });
        }
        if enough {
            break;
        }
    }
    found.states = seen.len();
    Ok(found)
}
