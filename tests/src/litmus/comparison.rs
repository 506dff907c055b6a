//! What runs of litmus tests showed, beside what the model allows.

use std::collections::BTreeSet;

use nearpm_ppo::litmus::Test;
use nearpm_ppo::verdict::{expected, printed};

/// The sum of all tests that were run.
#[derive(Default)]
pub struct Comparison {
    /// Tests.
    pub tests: usize,
    /// States that the model allows.
    pub allowed: usize,
    /// Those among them that were shown.
    pub reached: usize,
    /// What was shown and is not allowed.
    pub wrong: Vec<String>,
    /// What is allowed and was not shown, as `test | state`.
    pub missing: BTreeSet<String>,
}

impl Comparison {
    /// Adds what the runs of a test showed, and prints what they did not.
    pub fn take(&mut self, name: &str, test: &Test, shown: &BTreeSet<Vec<String>>) {
        let may = expected(test);
        self.wrong.extend(shown.difference(&may).map(|state| format!("{name}: {}", printed(test, state))));
        let missing: Vec<String> = may.difference(shown).map(|state| printed(test, state)).collect();
        println!("{name:<44} {}/{} {}", may.len() - missing.len(), may.len(), missing.join("; "));
        self.missing.extend(missing.iter().map(|state| format!("{name} | {state}")));
        self.tests += 1;
        self.allowed += may.len();
        self.reached += may.len() - missing.len();
    }
}
