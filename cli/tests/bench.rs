//! `nearpm bench` as a process: it is killed in the middle, and goes on where it was.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long a case may take on a busy machine.
const CASE: Duration = Duration::from_secs(300);

fn bench(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nearpm"));
    command.args(["bench", "--keep", "--jobs", "2", "--profiles", "vcu118-300", "--programs", "tatp"]);
    command.args(["--mechanisms", "undo,checkpoint", "--results"]).arg(folder);
    // The long form runs what it is there for: ten seeds of the paper's own numbers.
    if std::env::var_os("NEARPM_THOROUGH").is_some() {
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
