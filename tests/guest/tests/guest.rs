//! The guest test, of the thorough tier: it downloads a kernel and QEMU once, and boots two virtual
//! machines a test.

use std::path::Path;

use nearpm_guest::trial::{CxlTrial, Programs, Trial};

fn is_thorough() -> bool {
    let thorough = nearpm_tier::thorough();
    if !thorough {
        eprintln!("of the thorough tier: set NEARPM_THOROUGH=1");
    }
    thorough
}

fn programs() -> Programs {
    Programs::of(Path::new(env!("CARGO_BIN_EXE_nearpm-guest")).parent().unwrap()).unwrap()
}

fn trial(window: &str, seed: u64) -> Trial {
    Trial { window: window.into(), card: "model".into(), seed, operations: 120, cut_after: 60, untrue: 0 }
}

fn try_window(window: &str, seed: u64) {
    let trial = trial(window, seed);
    let verdict = trial.run(&programs(), &mut |line| println!("{line}")).unwrap();
    assert!(verdict.acknowledged >= trial.cut_after && verdict.kept < trial.operations, "{verdict:?}");
}

#[test]
fn what_a_guest_was_told_is_there_after_a_power_cut_with_a_trapping_window() {
    if is_thorough() {
        try_window("trapping", 1);
    }
}

#[test]
fn what_a_guest_was_told_is_there_after_a_power_cut_with_a_mapped_window() {
    if is_thorough() {
        try_window("mapped", 2);
    }
}

/// Cuts come somewhere in an operation; one in five or so finds commands or stores under way in the
/// card. It stops at the first.
#[test]
fn what_was_under_way_in_the_card_is_done_at_power_up() {
    if is_thorough() {
        let mut replayed = (10..40).map(|seed| {
            let trial = Trial { operations: 40, cut_after: 15, ..trial("trapping", seed) };
            trial.run(&programs(), &mut |line| println!("{line}")).unwrap().replayed
        });
        assert!(replayed.any(|items| items > 0), "no cut found anything under way");
    }
}

/// It builds the RTL first, which takes a minute where it is not in the cache.
#[test]
fn what_a_guest_was_told_is_there_after_a_power_cut_of_the_verilated_card() {
    if is_thorough() {
        let trial = Trial { card: "rtl".into(), operations: 40, cut_after: 15, ..trial("trapping", 6) };
        trial.run(&programs(), &mut |line| println!("{line}")).unwrap();
    }
}

/// What the second guest finds is less than it is told to find: the check in it is no formality.
#[test]
fn a_loss_of_what_was_acknowledged_is_seen() {
    if is_thorough() {
        let trial = Trial { untrue: 20, ..trial("mapped", 3) };
        let error = trial.run(&programs(), &mut |line| println!("{line}")).unwrap_err().to_string();
        assert!(error.contains("the second guest failed") && error.contains("no prefix"), "{error}");
    }
}

#[test]
fn a_pool_on_cxl_memory_keeps_what_a_guest_was_told() {
    if is_thorough() {
        let trial = CxlTrial { seed: 5, operations: 400, cut_after: 200 };
        let verdict = trial.run(&programs(), &mut |line| println!("{line}")).unwrap();
        assert!(verdict.acknowledged >= trial.cut_after && verdict.kept < trial.operations, "{verdict:?}");
    }
}
