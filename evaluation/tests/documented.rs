//! The stored results of the quick form, and the tables of `docs/evaluation.md`, which are made of them.
//!
//! `nearpm bench --csv evaluation/results/quick.csv` stores results anew, and `NEARPM_BLESS=1 cargo nextest run --workspace --release -E 'binary(documented)'`
//! writes the tables anew.

use std::collections::HashSet;
use std::path::PathBuf;

use nearpm_evaluation::case::Case;
use nearpm_evaluation::plan::Scope;
use nearpm_evaluation::report;
use nearpm_evaluation::results::{Record, Results};
use nearpm_evaluation::summary::Summary;

/// What stands before each block that is made of results, with its name behind it.
const MARK: &str = "<!-- nearpm bench: ";

fn path(below_this_package: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(below_this_package)
}

fn stored() -> Vec<Record> {
    let (records, others) = Results::all(&path("results/quick.csv")).unwrap_or_else(|e| panic!("{e:#}"));
    assert!(others.is_empty());
    records
}

/// The document with other text below its marks: each block ends where a line is empty.
fn with_blocks(document: &str, blocks: &[(&str, String)]) -> String {
    let mut rest = document;
    let mut made = String::new();
    let mut used = HashSet::new();
    while let Some((before, marked)) = rest.split_once(MARK) {
        let (name, below) = marked.split_once(" -->\n").expect("a mark ends");
        let (_, block) = blocks.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no table {name}"));
        let end = below.find("\n\n").map_or(below.len(), |at| at + 1);
        assert!(used.insert(name), "{name} is there twice");
        made.push_str(&format!("{before}{MARK}{name} -->\n{block}"));
        rest = &below[end..];
    }
    let missing: Vec<&str> = blocks.iter().map(|(name, _)| *name).filter(|name| !used.contains(name)).collect();
    assert!(missing.is_empty(), "the document has no {missing:?}");
    made + rest
}

#[test]
fn the_tables_of_the_documentation_are_those_of_the_stored_results() {
    let records = stored();
    let recoveries = report::recoveries().unwrap_or_else(|e| panic!("{e:#}"));
    let tables = report::tables(&Summary::new(&records), &recoveries).unwrap_or_else(|e| panic!("{e:#}"));
    let mut blocks: Vec<(&str, String)> = tables.iter().map(|table| (table.name, table.markdown())).collect();
    blocks.push(("speed", report::speed(&records) + "\n"));
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

#[test]
fn the_stored_results_are_each_case_of_the_quick_form_of_one_commit() {
    let records = stored();
    let cases: Vec<&Case> = records.iter().map(|record| &record.case).collect();
    assert_eq!(cases, Scope::QUICK.cases().iter().collect::<Vec<&Case>>());
    let commits: HashSet<&str> = records.iter().map(|record| record.commit.as_str()).collect();
    assert_eq!(commits.len(), 1, "{commits:?}");
    assert!(records.iter().all(|record| record.outcome.ns > 0.0 && record.cpu_s > 0.0));
    let document = std::fs::read_to_string(path("../docs/evaluation.md")).expect("the document is there");
    for commit in commits {
        assert!(document.contains(&format!("`{commit}`")), "docs/evaluation.md does not name commit {commit}");
    }
}

/// What holds the documentation to its results sees another digit.
#[test]
fn another_digit_is_seen() {
    let document = format!("text\n\n{MARK}one -->\n| 1 |\n\nmore\n\n{MARK}two -->\n| 2 |\n");
    let blocks = [("one", "| 1 |\n".to_owned()), ("two", "| 3 |\n".to_owned())];
    assert_eq!(with_blocks(&document, &blocks), document.replace("| 2 |", "| 3 |"));
}
