//! Every fault still has its place, and no fault survives its tests.

use nearpm_mutants::{Verdict, Workshop, all, plant, workspace};

#[test]
fn every_fault_has_its_place() {
    let changed = plant(&workspace(), &all()).unwrap_or_else(|stale| panic!("{stale:#}"));
    assert!(changed.len() > 10, "the faults lie in {} files", changed.len());
}

#[test]
fn no_fault_survives() {
    if !nearpm_tier::thorough() {
        eprintln!("SKIPPED: NEARPM_THOROUGH is not set");
        return;
    }
    let mutants = all();
    let folder = workspace().join("target/mutants");
    let all = (1..=mutants.len()).collect();
    let workshop = Workshop::open(&folder, &mutants, &all, &mut |step| eprintln!("{step}")).unwrap();
    let mut survivors = Vec::new();
    for (number, mutant) in (1..).zip(&mutants) {
        let outcome = workshop.run(number, mutant).unwrap();
        eprintln!("{number:3} {:?} {:.1?} {}: {}", outcome.verdict, outcome.took, mutant.file, mutant.breaks);
        if outcome.verdict == Verdict::Passed {
            survivors.push(mutant.breaks);
        }
    }
    assert!(survivors.is_empty(), "{} of {} survive: {survivors:#?}", survivors.len(), mutants.len());
    eprintln!("{} faults, each noticed", mutants.len());
}
