//! The faults.

use crate::{Mutant, Tests};

mod by_mechanism;
mod capi;
mod card;
mod check;
mod concurrent;
mod direct;
mod driver;
mod mechanism;
mod objects;
mod pools;
mod striped;

/// All faults, numbered from 1 in this order.
pub fn all() -> Vec<Mutant> {
    [
        driver::MUTANTS,
        mechanism::MUTANTS,
        card::MUTANTS,
        direct::MUTANTS,
        by_mechanism::MUTANTS,
        pools::MUTANTS,
        striped::MUTANTS,
        objects::MUTANTS,
        capi::MUTANTS,
        check::MUTANTS,
        concurrent::MUTANTS,
    ]
    .concat()
}

/// Unit tests of the library.
const fn unit(filter: &'static str) -> Tests {
    Tests { package: "nearpm", target: "lib", filter }
}

/// Tests of the crash explorer.
const fn explorer(target: &'static str, filter: &'static str) -> Tests {
    Tests { package: "nearpm-explorer", target, filter }
}

/// Tests of the evaluation's programs on cards.
const fn programs(target: &'static str, filter: &'static str) -> Tests {
    Tests { package: "nearpm-workloads", target, filter }
}

/// Integration tests of the library.
const fn library(target: &'static str, filter: &'static str) -> Tests {
    Tests { package: "nearpm", target, filter }
}
