//! `nearpm bench` as a process: it is killed in the middle, and goes on where it was; and it
//! measures natively.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nearpm_evaluation::on_host::parse;

/// How long a case may take on a busy machine.
const CASE: Duration = Duration::from_secs(300);

fn bench(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nearpm"));
    command.args(["bench", "--keep", "--jobs", "2", "--profiles", "vcu118-300", "--programs", "tatp"]);
    command.args(["--mechanisms", "undo,checkpoint", "--results"]).arg(folder);
    // The long form runs what it is there for: ten seeds of the paper's own numbers.
    if nearpm_tier::thorough() {
        command.arg("--full");
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Names of the files of a folder that end so.
fn files(folder: &Path, end: &str) -> Vec<String> {
    let names = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.retain(|name| name.ends_with(end));
    names.sort();
    names
}

fn lines(output: &Output, what: &str) -> usize {
    String::from_utf8_lossy(&output.stderr).lines().filter(|line| line.contains(what)).count()
}

#[test]
fn a_bench_that_is_killed_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let mut process = bench(&results).spawn().unwrap();
    let end = Instant::now() + CASE;
    while files(&results, ".json").len() < 3 {
        assert!(process.try_wait().unwrap().is_none(), "it has ended before it could be killed");
        assert!(Instant::now() < end, "no results come");
        std::thread::sleep(Duration::from_millis(1));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    let there = files(&results, ".json");
    let kept = |name: &String| (name.clone(), fs::read(results.join(name)).unwrap());
    let before: Vec<(String, Vec<u8>)> = there.iter().map(kept).collect();
    // What a process leaves that is killed while it writes.
    fs::write(results.join(".unfinished-4294967295-x"), "{").unwrap();

    let output = bench(&results).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let all = files(&results, ".json");
    assert!(all.len() > there.len(), "{} results of {}", there.len(), all.len());
    assert_eq!(lines(&output, ": there"), there.len());
    assert_eq!(lines(&output, ", ran "), all.len() - there.len());
    let last = format!("{0} of {0}: ", all.len());
    assert_eq!(lines(&output, &last), 1, "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("The simulator: "));
    // What was there is as it was.
    assert!(before.iter().all(|(name, bytes)| fs::read(results.join(name)).unwrap() == *bytes));
    assert_eq!(files(&results, "").len(), all.len(), "something else is left");
    // And all of it is there the third time.
    let output = bench(&results).output().unwrap();
    assert_eq!((lines(&output, ": there"), lines(&output, ", ran ")), (all.len(), 0));
}

/// Runs `nearpm bench --native` with small numbers.
fn on_host(pools: &Path, further: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nearpm"));
    command.args(["bench", "--native", "--transactions", "130", "--repeats", "2", "--pool"]).arg(pools).args(further);
    command.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn programs_are_measured_natively() {
    let folder = tempfile::tempdir().unwrap();
    let (pools, table) = (folder.path().join("pools"), folder.path().join("native.csv"));
    fs::create_dir(&pools).unwrap();
    let table_name = table.to_str().unwrap();
    let chosen = ["--programs", "btree,tatp", "--mechanisms", "undo,shadow", "--csv", table_name];
    let output = on_host(&pools, &[&chosen[..], &["--survives", "as-persistent-memory"]].concat());
    let (text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    for wanted in ["measured natively on ", "no card", "2 rounds", "| tatp, released | ", "| shadow, corrected | "] {
        assert!(text.contains(wanted), "{wanted:?} is missing: {text}");
    }
    // Two programs with two kinds of inputs; each is said when it is done.
    assert_eq!((lines(&output, "4 of 4: tatp, released"), lines(&output, " of 4: ")), (1, 4), "{said}");
    assert_eq!(files(&pools, ""), Vec::<String>::new(), "pools are left");

    let rows = parse(&fs::read_to_string(&table).unwrap()).unwrap_or_else(|e| panic!("{e:#}"));
    // Each bare and with two mechanisms, and with lean undo where commits are durable.
    assert_eq!(rows.len(), 14);
    for row in &rows {
        assert_eq!((row.count, row.seed, row.rounds), (130, 1, 2));
        assert!(["cache-line write-backs and fences", "msync"].contains(&row.durable_by.as_str()), "{row:?}");
        assert_eq!((row.is_bare(), row.over_bare == 1.0), (row.fences == 0.0, row.is_bare()), "{row:?}");
    }
    // It is a table of the report's, and none of simulated results.
    let page = folder.path().join("page.html");
    let report = |of: &[&str]| {
        let mut report = Command::new(env!("CARGO_BIN_EXE_nearpm"));
        report.arg("report").args(of).arg("--output").arg(&page).output().unwrap()
    };
    let output = report(&["--results", table_name]);
    assert!(!output.status.success());
    assert_eq!(lines(&output, "is no table of results"), 1, "{}", String::from_utf8_lossy(&output.stderr));
    let simulated = concat!(env!("CARGO_MANIFEST_DIR"), "/../evaluation/results/quick.csv");
    let output = report(&["--results", simulated, "--native", simulated]);
    assert!(!output.status.success());
    assert_eq!(lines(&output, "is no table of `nearpm bench --native`"), 1);
    let output = report(&["--results", simulated, "--native", table_name]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = fs::read_to_string(&page).unwrap();
    assert!(page.contains("<section id=\"natively\">") && page.contains("2 rounds in turn"));
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for further in [
        &["--card", "model"][..],
        &["--device", "rtl"],
        &["--profiles", "vcu118-300"],
        &["--results", "x"],
        &["--jobs", "2"],
        &["--keep"],
        &["--json", "x.json"],
    ] {
        let output = on_host(folder.path(), further);
        assert_eq!(output.status.code(), Some(2), "{further:?}");
        assert_eq!(lines(&output, "cannot be used with"), 1, "{}", String::from_utf8_lossy(&output.stderr));
    }
    for alone in [["--repeats", "2"], ["--pool", "."], ["--survives", "power-cut"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_nearpm")).arg("bench").args(alone).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{alone:?}");
        assert_eq!(lines(&output, "--native"), 2, "{}", String::from_utf8_lossy(&output.stderr));
    }
    let output = on_host(folder.path(), &["--programs", "btree,nothing"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(lines(&output, "invalid value 'nothing'"), 1, "{}", String::from_utf8_lossy(&output.stderr));
    let output = on_host(&folder.path().join("missing/a.pool"), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(lines(&output, "there is no folder"), 1, "{}", String::from_utf8_lossy(&output.stderr));
}
