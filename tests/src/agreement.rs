//! Whether two cards have done the same, and how their times compare.

use std::collections::BTreeMap;

use nearpm_interface::command::Opcode;

use crate::drive::{Outcome, Run};
use crate::rig::without_save;

/// Durations by kind, of RTL and model.
pub type Durations = BTreeMap<String, [Vec<u64>; 2]>;

/// What is compared of a step.
pub struct Item {
    /// Cycles from the first submission on.
    pub submitted: u64,
    /// What it is counted as; `None` where its time does not count.
    pub kind: Option<String>,
}

/// What a command is counted as.
///
/// # Panics
/// If there is no such command.
pub fn command_kind(opcode: u8) -> String {
    format!("{:?}", Opcode::from_code(opcode).expect("a known command"))
}

/// Whether two times agree within 10 %, or 2 cycles where 10 % is less.
pub fn within_ten_percent(rtl: u64, model: u64) -> bool {
    rtl.abs_diff(model) * 10 <= rtl.max(20)
}

/// Compares everything but time, and adds the durations: of a command from acceptance to its
/// record, of a load from its submission on. Gives the total cycles of both.
///
/// # Panics
/// If they have not done the same.
pub fn compare(name: &str, items: &[Item], runs: [Run; 2], durations: &mut Durations) -> [u64; 2] {
    let [rtl, model] = &runs;
    for (i, pair) in rtl.outcomes.iter().zip(&model.outcomes).enumerate() {
        match pair {
            (Outcome::Command { done: a, .. }, Outcome::Command { done: b, .. }) => {
                assert_eq!((a.status, a.order), (b.status, b.order), "{name}, step {i}: {:?}", items[i].kind);
            }
            (Outcome::Load { data: a, .. }, Outcome::Load { data: b, .. }) => assert_eq!(a, b, "{name}, step {i}"),
            (Outcome::Store { .. }, Outcome::Store { .. }) => {}
            other => panic!("{name}, step {i}: {other:?}"),
        }
    }
    assert!(without_save(&rtl.medium) == without_save(&model.medium), "{name}: memory differs");
    for (card, run) in runs.iter().enumerate() {
        for (item, outcome) in items.iter().zip(&run.outcomes) {
            let cycles = match outcome {
                Outcome::Command { accepted, done } => done.cycle - accepted,
                Outcome::Load { cycle, .. } | Outcome::Store { cycle } => cycle - (run.start + item.submitted),
            };
            if let Some(kind) = &item.kind {
                durations.entry(kind.clone()).or_default()[card].push(cycles);
            }
        }
    }
    runs.map(|run| run.cycles)
}
