//! Whatever stops the ranks, the newest cut that all had sealed is there again, on any number of ranks.

use nearpm_gvr::array::Fault;
use nearpm_gvr::campaign::crash::{Covered, Program, play};

#[test]
fn what_was_durable_is_there_after_any_stop() {
    let mut covered = Covered::default();
    for seed in 0..120 {
        covered += play(&Program { seed, fault: None }).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
    eprintln!("{covered:?}");
    assert!(
        covered.stops > 90 && covered.moved > 90 && covered.taken_back > 0 && covered.lost > 20,
        "the sample is too tame: {covered:?}"
    );
}

#[test]
fn a_cut_that_is_called_committed_too_early_is_found() {
    let wrong = |seed| play(&Program { seed, fault: Some(Fault::CommitBeforeAllreduce) }).err();
    assert!((0..300).filter_map(wrong).any(|wrong| wrong.contains("is committed on one rank")));
}
