//! Runs cases that have no result yet, several at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use nearpm_sim::profile::Profile;

use crate::case::Case;
use crate::compute::{Compute, processor_time};
use crate::device::MakeRtl;
use crate::results::{Record, Results, Took, charged};
use crate::run;

/// What came of a case.
pub enum Event<'e> {
    /// It had a result.
    Found(&'e Case),
    /// It was run.
    Ran(&'e Record),
    /// It failed.
    Failed(&'e Case, &'e anyhow::Error),
}

/// Runs the cases that have no result, `jobs` at once. Their results are kept as they come; `tell`
/// is told of each. `rtl` makes the cards of cases on the RTL.
///
/// # Errors
/// If a profile is wrong, or cases fail: the others are run all the same.
pub fn run_all(
    cases: &[Case],
    results: &Results,
    jobs: usize,
    rtl: Option<&MakeRtl<'_>>,
    tell: &(dyn Fn(Event<'_>) + Sync),
) -> Result<Vec<Record>> {
    run_all_charged(&Compute::stored()?, cases, results, jobs, rtl, tell)
}

/// The same, with instructions charged as `compute` has them.
///
/// # Errors
/// As [`run_all`].
pub fn run_all_charged(
    compute: &Compute,
    cases: &[Case],
    results: &Results,
    jobs: usize,
    rtl: Option<&MakeRtl<'_>>,
    tell: &(dyn Fn(Event<'_>) + Sync),
) -> Result<Vec<Record>> {
    let mut profiles = HashMap::new();
    for case in cases {
        if !profiles.contains_key(&case.profile) {
            profiles.insert(case.profile.clone(), Profile::load(&case.profile)?);
        }
    }
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<Record>)>> = Mutex::default();
    let one = |case: &Case| -> Result<Record> {
        let profile = &profiles[&case.profile];
        let charges = charged(case, profile, compute);
        if let Some(record) = results.find(case, &charges) {
            tell(Event::Found(case));
            return Ok(record);
        }
        // A case is simulated by this thread alone, so that the thread's own clock is what it
        // takes, whatever else the machine has to do.
        let (start, busy) = (Instant::now(), processor_time()?);
        let outcome = run::run(case, profile, compute, rtl)?;
        let cpu_s = (processor_time()? - busy).as_secs_f64();
        let record = results.keep(case, charges, outcome, Took { wall_s: start.elapsed().as_secs_f64(), cpu_s })?;
        tell(Event::Ran(&record));
        Ok(record)
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let Some((number, case)) = take(&next, cases) {
                    let record = one(case);
                    if let Err(error) = &record {
                        tell(Event::Failed(case, error));
                    }
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((number, record));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    let failed = done.iter().filter(|(_, record)| record.is_err()).count();
    if failed > 0 {
        let first = done.into_iter().find_map(|(_, record)| record.err()).context("one has failed")?;
        bail!(first.context(format!("{failed} of {} cases failed; the first of them", cases.len())));
    }
    done.into_iter().map(|(_, record)| record).collect()
}

/// The next case that nobody has begun.
fn take<'c>(next: &AtomicUsize, cases: &'c [Case]) -> Option<(usize, &'c Case)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    Some((number, cases.get(number)?))
}
