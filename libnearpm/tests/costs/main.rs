//! What operations cost, held by tables: fences, flushed lines, commands and logged bytes to the
//! digit, and instructions to 2 %.
//!
//! | file | holds |
//! |---|---|
//! | `operations.rs` | the operations, the same code for every pool |
//! | `pools.rs` | the pools, and memories that count |
//! | `counts.tsv` | counts of [`RUN`] operations |
//! | `instructions.tsv` | instructions of one operation, as callgrind counts them (with `NEARPM_THOROUGH=1`) |
//!
//! `NEARPM_BLESS=1 cargo nextest run --release -p nearpm --test
//! costs` writes the tables anew: where less is spent, so that it stays so. What is to cost more
//! needs a reason in the message of its commit.

mod operations;
mod pools;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use operations::Operation;
use pools::{Cost, Kind, Opened};

/// Operations that are counted, behind as many that are not.
const RUN: u64 = 256;
/// Operations of two runs whose difference is that of [`RUN`].
const RUNS: [u64; 2] = [64, 64 + RUN];
/// Percents that an operation may have more instructions.
const MORE: u64 = 2;
/// Says to this program, run again under callgrind, what it is to do: pool, operation and how
/// often.
const TASK: &str = "NEARPM_COSTS_TASK";

/// A table of numbers by pool and operation.
type Table = BTreeMap<(String, String), Vec<u64>>;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/costs").join(name)
}

/// A table as its file has it.
fn written(table: &Table, columns: &[&str]) -> String {
    let head = format!("pool\toperation\t{}\n", columns.join("\t"));
    let line = |((pool, operation), numbers): (&(String, String), &Vec<u64>)| {
        let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
        format!("{pool}\t{operation}\t{}\n", numbers.join("\t"))
    };
    std::iter::once(head).chain(table.iter().map(line)).collect()
}

/// The stored table, or the one that was found, which is then stored.
fn stored(name: &str, found: &Table, columns: &[&str]) -> Table {
    if std::env::var_os("NEARPM_BLESS").is_some() {
        std::fs::write(file(name), written(found, columns)).expect("the table can be written");
    }
    let text = std::fs::read_to_string(file(name)).expect("the table is there");
    let row = |line: &str| {
        let mut cells = line.split('\t').map(str::to_owned);
        let key = (cells.next().expect("a pool"), cells.next().expect("an operation"));
        (key, cells.map(|cell| cell.parse().expect("a number")).collect())
    };
    text.lines().skip(1).map(row).collect()
}

fn each() -> impl Iterator<Item = (Kind, Operation)> {
    pools::all().into_iter().flat_map(|kind| Operation::ALL.map(|operation| (kind, operation)))
}

/// Opens a pool and does an operation so many times; gives the pool and the number of the next.
fn done(kind: Kind, operation: Operation, times: u64) -> Opened {
    let pool = Opened::create(kind);
    (0..times).for_each(|number| pool.run(operation, number));
    pool
}

#[test]
fn operations_have_the_fences_and_lines_of_the_table() {
    let counted = |(kind, operation): (Kind, Operation)| {
        let pool = done(kind, operation, RUN);
        let before = pool.cost();
        (RUN..2 * RUN).for_each(|number| pool.run(operation, number));
        pool.check(operation, 2 * RUN);
        ((kind.name(), operation.name().to_owned()), pool.cost().since(&before).numbers())
    };
    let found: Table = each().map(counted).collect();
    let table = stored("counts.tsv", &found, &Cost::NAMES);
    assert_eq!(found.keys().collect::<Vec<_>>(), table.keys().collect::<Vec<_>>(), "another pool or operation");
    let differs = |(key, now): (&(String, String), &Vec<u64>)| {
        (table[key] != *now).then(|| format!("{key:?}: {:?}, formerly {:?}", now, table[key]))
    };
    let differing: Vec<String> = found.iter().filter_map(differs).collect();
    assert!(
        differing.is_empty(),
        "{:?} of {RUN} operations (see above for what less and more need):\n{}",
        Cost::NAMES,
        differing.join("\n")
    );
}

/// What is run under callgrind.
#[test]
fn a_task() {
    let Ok(task) = std::env::var(TASK) else { return };
    let [pool, operation, times] = task.split(' ').collect::<Vec<_>>()[..] else { panic!("{task}") };
    let is_it = |(kind, of): &(Kind, Operation)| kind.name() == pool && of.name() == operation;
    let (kind, operation) = each().find(is_it).expect("it is one of them");
    done(kind, operation, times.parse().expect("a number"));
}

/// Instructions of a run of this program.
fn instructions(kind: Kind, operation: Operation, times: u64) -> u64 {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let out = folder.path().join("out");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", &format!("--callgrind-out-file={}", out.display())])
        .arg(std::env::current_exe().expect("the program has a path"))
        .args(["a_task", "--exact", "--test-threads", "1"])
        .env(TASK, format!("{} {} {times}", kind.name(), operation.name()))
        .output()
        .expect("valgrind runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let line = text.lines().find_map(|line| line.split("Collected :").nth(1)).expect("callgrind says it");
    line.trim().parse().expect("a number")
}

#[test]
fn operations_have_hardly_more_instructions_than_the_table() {
    if !nearpm_tier::thorough() {
        eprintln!("SKIPPED: of the thorough tier (NEARPM_THOROUGH=1)");
        return;
    }
    if cfg!(debug_assertions) || Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("SKIPPED: needs optimised code and valgrind");
        return;
    }
    let counted = |(kind, operation): (Kind, Operation)| {
        let [few, many] = RUNS.map(|times| instructions(kind, operation, times));
        ((kind.name(), operation.name().to_owned()), vec![(many - few) / RUN])
    };
    let is_counted = |(kind, operation): &(Kind, Operation)| kind.has_instructions() && operation.is_short();
    let found: Table = each().filter(is_counted).map(counted).collect();
    let table = stored("instructions.tsv", &found, &["instructions"]);
    assert_eq!(found.keys().collect::<Vec<_>>(), table.keys().collect::<Vec<_>>(), "another pool or operation");
    let dearer = |(key, now): &(&(String, String), &Vec<u64>)| now[0] * 100 > table[*key][0] * (100 + MORE);
    let dearer: Vec<_> = found.iter().filter(dearer).map(|(key, now)| (key, now[0], table[key][0])).collect();
    assert!(dearer.is_empty(), "more than {MORE} % dearer, now and formerly: {dearer:?}");
}

/// A memory that is fenced once more is seen.
#[test]
fn another_fence_is_another_number() {
    let kind = pools::all()[0];
    let of = |fences: u64| {
        let pool = done(kind, Operation::Word, 8);
        (0..fences).for_each(|_| pool.fence());
        pool.cost().numbers()
    };
    let [none, one] = [of(0), of(1)];
    assert_eq!(none[0] + 1, one[0], "{none:?} {one:?}");
}
