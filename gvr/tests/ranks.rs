//! Ranks as processes: the demonstration, and ranks that are killed.

use std::path::Path;
use std::process::{Command, Output};

fn gvr(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearpm-gvr")).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn demo(folder: &Path, more: &[&str]) -> Output {
    gvr(&[&["demo", folder.to_str().unwrap(), "--side", "8"], more].concat())
}

#[test]
fn a_killed_rank_costs_no_version() {
    for (ranks, kill_at) in [("2", "2"), ("3", "5"), ("4", "9")] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job");
        let output = demo(&path, &["--ranks", ranks, "--kill-at", kill_at]);
        let said = text(&output);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("SIGKILL"), "{said}");
        assert!(said.contains(&format!("went on with iteration {kill_at}")), "{said}");
        let named = said.matches("is gone: nothing more is shared with it").count();
        assert_eq!(named as u64 + 1, ranks.parse::<u64>().unwrap(), "each other rank is told: {said}");
        let checked = gvr(&["check", path.to_str().unwrap()]);
        assert!(checked.status.success(), "{}", text(&checked));
    }
}

#[test]
fn versions_are_listed_and_restored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job");
    assert!(demo(&path, &["--kill-at", "3"]).status.success());
    let again = demo(&path, &[]);
    assert!(!again.status.success() && text(&again).contains("there is a job already"), "{}", text(&again));
    let path = path.to_str().unwrap();
    let listed = text(&gvr(&["versions", path]));
    let newest = listed.lines().rfind(|line| line.contains("version")).unwrap().to_owned();
    let number: u64 = newest.split_whitespace().nth(1).unwrap().parse().unwrap();
    let old = (number - 3).to_string();
    let restored = gvr(&["restore", path, "--array", "x", "--array", "r", "--array", "p", "--version", &old]);
    assert!(restored.status.success(), "{}", text(&restored));
    assert!(text(&gvr(&["versions", path])).contains(&format!("version {} \"version {old} again\"", number + 1)));
    let scrubbed = gvr(&["scrub", path]);
    assert!(scrubbed.status.success() && text(&scrubbed).contains("0 were damaged"), "{}", text(&scrubbed));
    let missing = gvr(&["restore", path, "--array", "x", "--version", "999999"]);
    assert!(!missing.status.success() && text(&missing).contains("is not kept"), "{}", text(&missing));
}

#[test]
fn a_figure_that_there_is_not_is_refused() {
    let output = gvr(&["bench", "--only", "puts"]);
    assert!(!output.status.success() && text(&output).contains("no figure's name holds \"puts\""), "{}", text(&output));
}

#[test]
fn what_is_no_job_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    for command in ["check", "versions", "scrub"] {
        let output = gvr(&[command, path]);
        assert!(!output.status.success() && text(&output).contains("there is no job"), "{}", text(&output));
    }
    std::fs::write(folder.path().join("job"), "nonsense").unwrap();
    let output = gvr(&["check", path]);
    assert!(!output.status.success() && text(&output).contains("does not hold two numbers"), "{}", text(&output));
}

#[test]
fn a_campaign_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let state = state.to_str().unwrap();
    assert!(gvr(&["campaign", "histories", "--count", "20", "--state", state]).status.success());
    let output = text(&gvr(&["campaign", "histories", "--count", "30", "--state", state]));
    assert!(output.contains("going on with seed 20") && output.contains("30 seeds, nothing found"), "{output}");
}

#[test]
fn ranks_that_are_killed_at_any_moment_lose_no_version() {
    let output = gvr(&["campaign", "kills", "--count", "12"]);
    assert!(output.status.success() && text(&output).contains("12 seeds, nothing found"), "{}", text(&output));
}

#[test]
fn a_reader_that_goes_away_ends_it_without_a_word() {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;
    let mut command = Command::new(env!("CARGO_BIN_EXE_nearpm-gvr"));
    let mut child = command.arg("--help").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It starts later than this, and writes to nobody.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.signal().is_some() || output.status.success(), "{}", output.status);
}
