//! The tables of results that are stored: made anew in one go, and told by which commit's program
//! each was made.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Mutex;

use nearpm::Mechanism;
use nearpm_evaluation::bench::{Event, run_all_charged};
use nearpm_evaluation::case::{Case, Charge, Configuration};
use nearpm_evaluation::compute::Compute;
use nearpm_evaluation::plan::{OURS, Scope};
use nearpm_evaluation::report;
use nearpm_evaluation::results::{Record, Results};
use nearpm_evaluation::stored::{CHOICES, Table, cases, make};
use nearpm_workloads::programs::Program;

fn tiny(configurations: &[Configuration]) -> Vec<Case> {
    let case = |&of: &Configuration| Scope::TINY.case(OURS, Program::Tatp, Mechanism::Undo, of);
    configurations.iter().map(case).collect()
}

const ONE: Table =
    Table { name: "one", what: "", cases: || tiny(&[Configuration::Bare, Configuration::Cpu, Configuration::Card]) };
const OTHER: Table = Table { name: "other", what: "", cases: || tiny(&[Configuration::Software, Configuration::Cpu]) };

#[test]
fn each_table_has_its_cases_in_their_order_and_none_is_run_twice() {
    let compute = Compute::stored().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (tables, kept) = (folder.path().join("tables"), folder.path().join("kept"));
    let results = Results::open(&kept, "a commit", false).unwrap();
    let events: Mutex<(Vec<Case>, usize)> = Mutex::default();
    let tell = |event: Event<'_>| match event {
        Event::Ran(record) => events.lock().unwrap().0.push(record.case.clone()),
        Event::Found(_) => events.lock().unwrap().1 += 1,
        Event::Failed(case, error) => panic!("{case}: {error:#}"),
    };
    let both = [ONE, OTHER];
    make(&compute, &both, &cases(&both, &tables), &results, 1, &tables, &tell).unwrap();
    assert_eq!(events.lock().unwrap().0.len(), 4);
    assert_eq!(events.lock().unwrap().0.iter().collect::<HashSet<_>>().len(), 4);
    for table in [ONE, OTHER] {
        let stored = table.stored(&tables).unwrap();
        assert_eq!(stored.iter().map(|record| record.case.clone()).collect::<Vec<_>>(), (table.cases)());
        assert!(stored.iter().all(|record| record.commit == "a commit" && record.outcome.ns > 0.0));
    }
    // What took longest comes first; a second run finds all, and one of another commit nothing.
    let stored: Vec<Record> = [ONE, OTHER].iter().flat_map(|table| table.stored(&tables).unwrap()).collect();
    let longest = stored.iter().map(|record| record.cpu_s).fold(0.0, f64::max);
    let first = &cases(&[ONE, OTHER], &tables)[0];
    assert!(stored.iter().any(|record| record.case == *first && record.cpu_s == longest));
    make(&compute, &both, &cases(&both, &tables), &results, 2, &tables, &tell).unwrap();
    assert_eq!(events.lock().unwrap().1, 4);
    let another = Results::open(&kept, "another", false).unwrap();
    make(&compute, &[OTHER], &cases(&[OTHER], &tables), &another, 2, &tables, &tell).unwrap();
    assert_eq!(events.lock().unwrap().0.len(), 6);
    assert_eq!(ONE.stored(&tables).unwrap()[0].commit, "a commit");
    assert_eq!(OTHER.stored(&tables).unwrap()[0].commit, "another");
    // Of one configuration alone: the others stay.
    let third = Results::open(&kept, "a third", false).unwrap();
    make(&compute, &[OTHER], &tiny(&[Configuration::Cpu]), &third, 2, &tables, &tell).unwrap();
    let commits: Vec<String> = OTHER.stored(&tables).unwrap().into_iter().map(|record| record.commit).collect();
    assert_eq!(commits, ["another", "a third"]);
    let nowhere = make(&compute, &[OTHER], &[], &third, 2, &folder.path().join("empty"), &tell).unwrap_err();
    assert!(format!("{nowhere:#}").contains("is not made, and not stored"), "{nowhere:#}");
}

/// A count of instructions may be a file's: what was made with another one is not taken.
#[test]
fn results_with_other_charges_are_made_anew() {
    let mut compute = Compute::stored().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let results = Results::open(folder.path(), "a commit", false).unwrap();
    let alike = tiny(&[Configuration::Cpu]);
    let by_path = tiny(&[Configuration::Card]).into_iter().map(|case| Case { charge: Charge::Path, ..case });
    let cases: Vec<Case> = alike.into_iter().chain(by_path).collect();
    let ran = Mutex::new(0);
    let tell = |event: Event<'_>| *ran.lock().unwrap() += u32::from(matches!(event, Event::Ran(_)));
    let run = |compute: &Compute| {
        let records = run_all_charged(compute, &cases, &results, 1, None, &tell).unwrap();
        (records[1].outcome.ns, std::mem::take(&mut *ran.lock().unwrap()))
    };
    let (before, both) = run(&compute);
    assert_eq!((both, run(&compute)), (2, (before, 0)));
    compute.paths.ns_per_instruction *= 2.0;
    let (after, one) = run(&compute);
    assert!(one == 1 && after > before, "{one} anew; {before} ns, then {after} ns");
    compute.paths.ns_per_instruction /= 2.0;
    assert_eq!(run(&compute), (before, 1));
}

#[test]
fn results_of_another_commit_are_named() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    let mut records = CHOICES.stored(&folder).unwrap();
    records.iter_mut().for_each(|record| record.commit = "one".into());
    let of_one = report::stored(&[(CHOICES, records.clone())]);
    assert_eq!(of_one.rows[0][3], "`one`");
    let (configuration, mechanism) = (records[5].case.configuration.name(), records[5].case.mechanism.name());
    records[5].commit = "other".into();
    let of_two = report::stored(&[(CHOICES, records)]);
    assert_eq!(of_two.rows[0][3], format!("`one`; `other`: 1 cases ({configuration}; {mechanism})"));
}
