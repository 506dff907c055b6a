//! Each rule of the persist buffer is needed: without it, the model or a recovery finds something
//! wrong.

use nearpm_gpusim::Rule;
use nearpm_sbrpbench::kernels::{KERNELS, changes};
use nearpm_sbrpbench::mutants::{Seen, harmless, look, look_at_change, no_crash_shows};

#[test]
fn each_rule_is_missed_or_harmless_by_the_model() {
    for rule in Rule::ALL {
        let seen = look(rule).unwrap();
        assert_eq!(seen == Seen::Nobody, harmless(rule).is_some(), "{rule:?}: {seen:?}");
    }
}

/// Each fence of the programs left out, and each scope made narrower or none: a crash shows it, or
/// why none can is said.
#[test]
fn each_changed_operation_is_shown_by_a_crash_or_by_none() {
    for change in KERNELS.iter().flat_map(|kernel| changes(kernel)) {
        let seen = look_at_change(&change).unwrap();
        assert_eq!(seen == Seen::Nobody, no_crash_shows(&change).is_some(), "{change:?}: {seen:?}");
    }
}

#[test]
fn every_kernel_is_listed() {
    let listed = include_str!("../../kernels/ptx/sbrp.ptx").matches(".entry sbrp_").count();
    assert_eq!(listed, KERNELS.len());
    // The second step of SRAD orders nothing.
    let with = KERNELS.iter().filter(|kernel| !changes(kernel).is_empty()).count();
    assert_eq!(with, KERNELS.len() - 1);
}
