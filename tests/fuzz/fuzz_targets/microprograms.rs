//! Arbitrary programs for the units of the transaction-level card.

#![no_main]

use nearpm_sim::core::{CardCore, Medium};
use nearpm_sim::model::{Config, ModelCard};

fn power_up(medium: Medium) -> Box<dyn CardCore> {
    Box::new(ModelCard::new(Config::default(), medium))
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| nearpm_tests::fuzzing::microprograms(&power_up, data));
