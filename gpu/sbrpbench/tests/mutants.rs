//! Each rule of the persist buffer is needed: without it, the model or a recovery finds something wrong.

use nearpm_gpusim::Rule;
use nearpm_sbrpbench::mutants::{Seen, harmless, look};

#[test]
fn each_rule_is_missed_or_harmless_by_the_model() {
    for rule in Rule::ALL {
        let seen = look(rule).unwrap();
        assert_eq!(seen == Seen::Nobody, harmless(rule).is_some(), "{rule:?}: {seen:?}");
    }
}
