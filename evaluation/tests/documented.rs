//! The stored results of the quick and of the full form, and the tables of `docs/evaluation.md`,
//! which are made of them.
//!
//! `nearpm bench stored` makes all simulated ones anew,
//! `nearpm bench --native --csv evaluation/results/native.csv` measures anew, and
//! `NEARPM_BLESS=1 cargo nextest run --workspace --release -E
//! 'binary(documented)'` writes the tables anew.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use nearpm::Mechanism;
use nearpm_evaluation::case::{Case, Configuration};
use nearpm_evaluation::compute::Compute;
use nearpm_evaluation::on_host;
use nearpm_evaluation::plan::{MANY_THREADS, OURS, PAPER, Scope, UNITS};
use nearpm_evaluation::report;
use nearpm_evaluation::results::Record;
use nearpm_evaluation::run;
use nearpm_evaluation::stored::{self, CHOICES};
use nearpm_evaluation::summary::Summary;
use nearpm_sim::profile::Profile;
use nearpm_workloads::programs::{Inputs, Program};

/// What stands before each block that is made of results, with its name behind it.
const MARK: &str = "<!-- nearpm bench: ";

fn path(below_this_package: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(below_this_package)
}

/// Tables of the document that are made of them.
const OF_CHOICES: [&str; 4] = ["choices", "copies", "ways", "ways by program"];
/// Tables of the document that are of the full form's results, too.
const OF_FULL: [&str; 6] = ["predictions", "programs", "programs on this card", "cheapest", "whereabouts", "ceilings"];

fn stored(table: &stored::Table) -> Vec<Record> {
    table.stored(&path("results")).unwrap_or_else(|e| panic!("{e:#}"))
}

/// Results of the quick form, and those of the full one with both profiles.
fn quick_and_full() -> [Vec<Record>; 2] {
    let of = |names: &[&str]| {
        let tables = stored::ALL.iter().filter(|table| names.contains(&table.name));
        tables.flat_map(stored).collect()
    };
    [of(&["quick"]), of(&["full-paper-vcu118", "full-vcu118-300"])]
}

/// The document with other text below its marks: each block ends where a line is empty.
fn with_blocks(document: &str, blocks: &[(String, String)]) -> String {
    let mut rest = document;
    let mut made = String::new();
    let mut used = HashSet::new();
    while let Some((before, marked)) = rest.split_once(MARK) {
        let (name, below) = marked.split_once(" -->\n").expect("a mark ends");
        let (_, block) = blocks.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no table {name}"));
        let end = below.find("\n\n").map_or(below.len(), |at| at + 1);
        assert!(used.insert(name), "{name} is there twice");
        made.push_str(&format!("{before}{MARK}{name} -->\n{block}"));
        rest = &below[end..];
    }
    let missing: Vec<&str> = blocks.iter().map(|(name, _)| &**name).filter(|name| !used.contains(name)).collect();
    assert!(missing.is_empty(), "the document has no {missing:?}");
    made + rest
}

#[test]
fn the_tables_of_the_documentation_are_those_of_the_stored_results() {
    let [quick, full] = quick_and_full();
    let recoveries = report::recoveries().unwrap_or_else(|e| panic!("{e:#}"));
    let tables =
        |records: &[Record]| report::tables(&Summary::new(records), &recoveries).unwrap_or_else(|e| panic!("{e:#}"));
    let mut blocks: Vec<(String, String)> =
        tables(&quick).iter().map(|table| (table.name.to_owned(), table.markdown())).collect();
    let measured = on_host::stored().unwrap_or_else(|e| panic!("{e:#}"));
    blocks.extend(report::on_host(&measured).map(|table| (table.name.to_owned(), table.markdown())));
    blocks.push(("natively run".to_owned(), report::described(&measured) + "\n"));
    let of_full = tables(&full).into_iter().filter(|table| OF_FULL.contains(&table.name));
    blocks.extend(of_full.map(|table| (format!("full {}", table.name), table.of_what_was_run().markdown())));
    let of_choices = tables(&stored(&CHOICES)).into_iter().filter(|table| OF_CHOICES.contains(&table.name));
    blocks.extend(of_choices.map(|table| (table.name.to_owned(), table.markdown())));
    let all: Vec<(stored::Table, Vec<Record>)> = stored::ALL.iter().map(|table| (*table, stored(table))).collect();
    blocks.push(("stored".to_owned(), report::stored(&all).markdown()));
    blocks.push(("speed".to_owned(), report::speed(&quick) + "\n"));
    blocks.push(("full speed".to_owned(), report::speed(&full) + "\n"));
    let file = path("../docs/evaluation.md");
    let found = std::fs::read_to_string(&file).expect("the document is there");
    let made = with_blocks(&found, &blocks);
    if std::env::var_os("NEARPM_BLESS").is_some() {
        std::fs::write(&file, &made).expect("the document can be written");
    } else if found != made {
        // Where one of them only goes on, no line differs.
        let (is, should) =
            found.lines().zip(made.lines()).find(|(is, should)| is != should).unwrap_or(("its end", "another end"));
        panic!("docs/evaluation.md has\n{is}\nwhere the results give\n{should}\n(NEARPM_BLESS=1 writes it anew)");
    }
}

/// A change of the library that only some configuration meets, under some mechanisms, has those
/// results made anew and no others; the page says which.
#[test]
fn the_stored_results_are_each_case_of_their_form_and_a_configuration_is_of_one_commit() {
    for table in stored::ALL {
        let (name, records) = (table.name, stored(&table));
        let cases: Vec<&Case> = records.iter().map(|record| &record.case).collect();
        assert_eq!(cases, (table.cases)().iter().collect::<Vec<&Case>>(), "{name}");
        let mut commits = HashMap::new();
        for record in &records {
            let of = (record.case.configuration.name(), record.case.mechanism.name());
            let commit = commits.entry(of).or_insert(&record.commit);
            assert_eq!(*commit, &record.commit, "{name}: {of:?}");
        }
        assert!(records.iter().all(|record| record.outcome.ns > 0.0 && record.cpu_s > 0.0), "{name}");
    }
}

/// Results that another program has given are not the documentation's.
#[test]
fn todays_program_gives_the_stored_results() {
    let compute = Compute::stored().unwrap();
    let [quick, full] = quick_and_full();
    let alone = |case: &Case| {
        // Of those charged by path another program, whose pools are made faster.
        let program = if case.charge.is_alike() { Program::Tpcc } else { Program::Btree };
        case.program == program && case.inputs == Inputs::Corrected && case.units == UNITS && case.threads == 1
    };
    // Each thread's pool is as dear as the first one's; how threads share a core, the link and a
    // card shows with two.
    let many = if nearpm_tier::thorough() { MANY_THREADS } else { 2 };
    let threads = |case: &Case| case.program == Program::Memcached && case.threads == many && case.units == UNITS;
    let tried_quick = |case: &Case| match &*case.profile {
        OURS => alone(case) || threads(case),
        // The making of its pools takes long.
        _ => threads(case) && case.configuration == Configuration::Card,
    };
    // Of the full form, whose cases take long, one program under one mechanism, with the last seed.
    let tried_full = |case: &Case| {
        let is_mechanism = case.mechanism == Mechanism::Checkpoint || case.configuration == Configuration::Bare;
        case.program == Program::Hashmap && is_mechanism && case.seed == Scope::FULL.seeds
    };
    let choices = stored(&CHOICES);
    let tried: Vec<&Record> = (quick.iter().chain(&choices).filter(|record| tried_quick(&record.case)))
        .chain(full.iter().filter(|record| tried_full(&record.case)))
        .collect();
    for profile in [OURS, PAPER] {
        for configuration in Configuration::ALL {
            let is_tried =
                |record: &&Record| record.case.configuration == configuration && record.case.profile == profile;
            assert!(tried.iter().any(is_tried), "{configuration:?} is not tried with {profile}");
        }
    }
    let mut differ = Vec::new();
    for record in tried {
        let profile = Profile::load(&record.case.profile).unwrap();
        let today = run::run(&record.case, &profile, &compute, None).unwrap_or_else(|e| panic!("{e:#}"));
        // To the digits that a file of results keeps: with fewer, what was rounded once is rounded
        // again.
        let [today, stored] = [&today, &record.outcome].map(|outcome| format!("{:.3}", outcome.per_transaction()));
        if today != stored {
            differ.push(format!("{}: {today} ns a transaction, stored {stored}", record.case));
        }
    }
    assert!(differ.is_empty(), "{} results are others today:\n{}", differ.len(), differ.join("\n"));
}

/// What holds the documentation to its results sees another digit.
#[test]
fn another_digit_is_seen() {
    let document = format!("text\n\n{MARK}one -->\n| 1 |\n\nmore\n\n{MARK}two -->\n| 2 |\n");
    let blocks = [("one", "| 1 |\n"), ("two", "| 3 |\n")].map(|(name, block)| (name.to_owned(), block.to_owned()));
    assert_eq!(with_blocks(&document, &blocks), document.replace("| 2 |", "| 3 |"));
}
