//! The power goes at every cycle: of each mechanism, of the save, of the replay, of the second
//! replay. After each power-up the memory is compared in full with the oracle of what had been
//! accepted.

use crate::support::scenario::{cut_everywhere, cut_in_replay, cut_in_save, mechanisms};

#[test]
fn a_cut_at_every_cycle_of_every_mechanism_keeps_exactly_what_was_accepted() {
    for scenario in mechanisms() {
        cut_everywhere(&scenario, 1, None).unwrap();
    }
}

#[test]
fn a_save_with_too_little_energy_is_a_loss_and_never_something_else() {
    for scenario in mechanisms() {
        cut_in_save(&scenario, 60, 23, None).unwrap();
    }
}

#[test]
fn a_replay_may_be_cut_at_every_cycle_and_again() {
    for scenario in mechanisms() {
        for cycle in [25, 70, 130] {
            cut_in_replay(&scenario, cycle, 1, None).unwrap();
        }
    }
}
