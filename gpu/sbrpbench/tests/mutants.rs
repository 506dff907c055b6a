//! Each rule of the persist buffer is needed: without it, the model or a recovery finds something wrong.

use nearpm_gpusim::Rule;
use nearpm_sbrpbench::kernels::{KERNELS, changes};
use nearpm_sbrpbench::mutants::{Seen, harmless, look, look_at_change};

#[test]
fn each_rule_is_missed_or_harmless_by_the_model() {
    for rule in Rule::ALL {
        let seen = look(rule).unwrap();
        assert_eq!(seen == Seen::Nobody, harmless(rule).is_some(), "{rule:?}: {seen:?}");
    }
}

/// Undo logs and coefficients that are not ordered before the data. What crashes of the others show: `nearpm gpusim mutants`, `docs/gpusim.md`.
#[test]
fn a_log_without_its_fence_is_seen_by_a_crash() {
    for kernel in ["sbrp_kvs_put", "sbrp_hm_put", "sbrp_srad_noise"] {
        let change = changes(kernel).into_iter().next().unwrap();
        assert!(change.right.starts_with("fence"), "{change:?}");
        assert_ne!(look_at_change(&change).unwrap(), Seen::Nobody, "{change:?}");
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
