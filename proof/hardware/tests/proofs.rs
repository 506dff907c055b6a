//! The proofs: the fast ones always, all of them with `NEARPM_THOROUGH`.

use std::path::Path;

use nearpm_proofs::edit;
use nearpm_proofs::property::{self, Property, Tier};
use nearpm_proofs::report;
use nearpm_proofs::run::{Runner, Verdict};
use nearpm_proofs::tools::Tools;
use nearpm_verilate::{Maker, kept};

/// The tools, or `None` where they are not installed. Where everything is, by the word of whoever
/// runs the tests, that is a failure.
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

/// The code that asks: what an outcome hangs on besides the property, the unit as Verilog, and the
/// tools.
const ASKED_BY: Maker = Maker::Sources(concat!(
    include_str!("../src/edit.rs"),
    include_str!("../src/property.rs"),
    include_str!("../src/report.rs"),
    include_str!("../src/run.rs"),
    include_str!("../src/tools.rs")
));

/// Proves a property and refutes its mutants, unless the same was done before: the same question to
/// the same tools has the same answer, and only that of a property that holds is kept.
fn prove(name: &str) {
    let properties = property::all().expect("the properties are read");
    let property = properties.into_iter().find(|property| property.name == name).expect("there is such a property");
    let wanted = match property.tier {
        Tier::Fast => true,
        Tier::Thorough => nearpm_tier::thorough(),
        Tier::Open => false,
    };
    let Some(tools) = tools().filter(|_| wanted) else { return };
    let installed = tools.installed().expect("the tools say what they are");
    let runner = runner(tools, "proofs");
    let make = || {
        let outcome = runner.run(&property).expect("the tools run");
        let table = report::table(std::slice::from_ref(&outcome));
        assert!(outcome.holds(), "{table}");
        [table]
    };
    let question = format!("{property:?}\n{}\n{installed}", property.unit.verilog());
    let [table] = kept(ASKED_BY, &question, ["outcome"], make).expect("the cache of models can be used");
    // A file that lost its end with the machine's power is no proof.
    let row = table.lines().last().unwrap_or_default();
    assert!(
        row.starts_with(&format!("| `{name}` |")) && row.contains("| proved |") && row.ends_with(" s |"),
        "what is kept of {name} in target/verilated is no outcome, remove it: {table:?}"
    );
    println!("{table}");
}

/// A test for each property, so that one can be tried alone, and two at a time.
macro_rules! proofs {
    ($($name:ident),* $(,)?) => {
        const PROVED: &[&str] = &[$(stringify!($name)),*];
        mod holds_and_its_mutants_do_not {
            $(#[test]
            fn $name() {
                super::prove(stringify!($name));
            })*
        }
    };
}

proofs! {
    command_port_axi,
    completion_writer_axi,
    decoder_ranges,
    dependency_matrix,
    dispatcher_slots,
    dispatcher_time,
    dma_read_request,
    dma_write_request,
    fifo,
    host_port_axi,
    host_queue_lines,
    mapping_saved,
    memory_port_axi,
    memory_port_bursts,
    memory_port_time,
    memory_split_bursts,
    multi_device,
    ordering_point_queries,
    ordering_point_time,
    parked_places,
    persist_buffer_lines,
    persist_buffer_order,
    persist_buffer_progress,
    range_table,
    request_slots_saved,
    round_robin,
}

#[test]
fn each_property_has_its_test() {
    let properties = property::all().expect("the properties are read");
    let names: Vec<&str> = properties.iter().map(|property| &*property.name).collect();
    assert_eq!(names, PROVED);
    assert!(properties.iter().any(|property| property.tier == Tier::Fast));
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
