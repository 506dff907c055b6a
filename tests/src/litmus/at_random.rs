//! A litmus test whose power fails at random moments, in copies of a process in which the cards are
//! open already.
//!
//! To power a Verilated card up and to open it takes longer than most programs. A copy does not
//! repeat that: it runs a program of its own, to a power failure of its own, and what the test
//! looks behind.

use std::collections::BTreeSet;

use nearpm_ppo::litmus::Test;
use nearpm_ppo::verdict::expected;
use nearpm_sim::host::Parameters;
use nearpm_sim::machine::Power;

use super::{Begun, links};
use crate::cuts::copies::{Copies, caught};
use crate::rig::{nearby_host, thorough};

/// Runs of a test in the ordinary form: some of each computer.
const RUNS: u64 = 2 * TOGETHER;
/// The same in the long form.
const MOST_RUNS: u64 = 3000;
/// Runs that begin with the same computer.
const TOGETHER: u64 = 32;

/// The host of a computer: in turns a server and one whose card is near, where what a program does
/// is closer together.
fn host(computer: u64) -> Parameters {
    let host = if computer.is_multiple_of(2) { Parameters::default() } else { nearby_host() };
    host.adversarial(computer)
}

/// Runs a test `least` times, and then for as long as an allowed state is not among those that are
/// `shown`; `jobs` copies at a time. Gives how often.
///
/// # Panics
/// If anything goes wrong in a run that no litmus test speaks of.
pub fn observe(test: &Test, power: &dyn Power, shown: &mut BTreeSet<Vec<String>>, least: u64, jobs: usize) -> u64 {
    let most = if thorough() { MOST_RUNS } else { RUNS };
    let may = expected(test);
    let mut copies = Copies::new(jobs);
    let taken = |ended: Result<Result<_, String>, String>| {
        ended.and_then(|found| found).unwrap_or_else(|words| panic!("in a run with a power failure: {words}"))
    };
    let mut run = 0;
    while run < least || run < most && !may.is_subset(shown) {
        let computer = run / TOGETHER;
        let begun = Begun::new(test, power, host(computer), links(computer));
        let end = most.min(run + TOGETHER);
        while run < end && (run < least || !may.is_subset(shown)) {
            shown.extend(copies.start(|| caught(|| begun.observe_apart(run))).map(taken));
            run += 1;
        }
    }
    while let Some(ended) = copies.oldest() {
        shown.insert(taken(ended));
    }
    run
}
