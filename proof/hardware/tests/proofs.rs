//! The proofs: the fast ones always, all of them with `NEARPM_THOROUGH`.

use std::path::Path;

use nearpm_proofs::edit;
use nearpm_proofs::property::{self, Property, Tier};
use nearpm_proofs::report;
use nearpm_proofs::run::{Runner, Verdict};
use nearpm_proofs::tools::Tools;

/// The tools, or `None` where they are not installed. Where everything is, by the word of whoever runs the tests, that is a failure.
fn tools() -> Option<Tools> {
    match Tools::find() {
        Ok(tools) => Some(tools),
        Err(why) => {
            assert!(std::env::var_os("NEARPM_TOOLS_INSTALLED").is_none(), "{why}");
            eprintln!("SKIPPED: {why}");
            None
        }
    }
}

fn runner(tools: Tools, name: &str) -> Runner {
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    Runner { tools, work, seconds: 1800, mutants: true, progress: |what| eprintln!("{what}") }
}

fn prove(tier: Tier) {
    let Some(tools) = tools() else { return };
    let runner = runner(tools, if tier == Tier::Fast { "fast" } else { "thorough" });
    let properties = property::all().expect("the properties are read");
    let outcomes: Vec<_> = properties
        .iter()
        .filter(|property| property.tier == tier)
        .map(|property| runner.run(property).expect("the tools run"))
        .collect();
    let table = report::table(&outcomes);
    println!("{table}");
    assert!(!outcomes.is_empty() && outcomes.iter().all(|outcome| outcome.holds()), "{table}");
}

#[test]
fn fast_properties_hold_and_their_mutants_do_not() {
    prove(Tier::Fast);
}

#[test]
fn thorough_properties_hold_and_their_mutants_do_not() {
    if nearpm_tier::thorough() {
        prove(Tier::Thorough);
    }
}

fn fifo() -> Property {
    let properties = property::all().expect("the properties are read");
    properties.into_iter().find(|property| property.name == "fifo").expect("there is a queue")
}

#[test]
fn a_property_that_is_not_attached_is_an_error() {
    let Some(tools) = tools() else { return };
    let runner = runner(tools, "unattached");
    let property = fifo();
    // An assertion too few, as where the tools drop one; and a name that is not there.
    let lost = Property { body: property.body.replace("counted: assert (used[3:0] == held);", ""), ..property.clone() };
    let error = runner.run(&lost).expect_err("an assertion is missing").to_string();
    assert!(error.contains("4 assertions") && error.contains("5 and 2 are declared"), "{error}");
    let misnamed = Property { body: property.body.replace("used <= 16", "usde <= 16"), ..property };
    assert!(runner.run(&misnamed).is_err());
}

#[test]
fn what_is_false_is_refuted_and_what_is_never_reached_is_told() {
    let Some(tools) = tools() else { return };
    let runner = Runner { mutants: false, ..runner(tools, "refuted") };
    let property = fifo();
    let wrong = Property { body: property.body.replace("used <= 16", "used <= 1"), ..property.clone() };
    assert!(
        matches!(runner.run(&wrong).unwrap().verdict, Verdict::Refuted(by) | Verdict::NotInductive(by) if !by.is_empty())
    );
    let barren = Property { body: property.body.replace("ahead == 15);", "ahead == 15 & ahead == 14);"), ..property };
    assert!(runner.run(&barren).is_ok_and(|outcome| matches!(outcome.verdict, Verdict::NotCovered(_))));
}

#[test]
fn every_mutant_finds_its_place() {
    for property in property::all().expect("the properties are read") {
        let verilog = property.unit.verilog();
        for mutant in &property.mutants {
            if let Err(stale) = edit::mutate(&verilog, mutant) {
                panic!("{}: {stale}", property.name);
            }
        }
    }
}

#[test]
fn the_page_holds_the_table_of_claims() {
    let page = include_str!("../../../docs/proofs.md");
    let claims = report::claims(&property::all().expect("the properties are read"));
    assert!(page.contains(&claims), "docs/proofs.md is stale: `nearpm-proofs --claims` prints the table");
}
