//! What the README shows is what the program prints.

use std::fs;
use std::path::Path;
use std::process::Command;

mod shown;

use shown::{is_shown, shown};

/// Lines that the README may have.
const LINES: usize = 120;

fn readme() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).expect("the README can be read")
}

#[test]
fn the_run_that_the_readme_shows_prints_these_bytes() {
    let text = readme();
    let shown = shown(&text, "$ ./x run");
    assert!(shown.len() > 10 && shown.iter().filter(|line| line.starts_with("| ")).count() == 5, "{shown:?}");
    let output = Command::new(env!("CARGO_BIN_EXE_nearpm")).arg("demo").output().expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(is_shown(&shown, &lines), Ok(()), "{output}");
}

/// What a runner's summary says: tests that ran, and those that passed. `None` where a line is not
/// of nextest's form.
fn summary(line: &str) -> Option<(u32, u32)> {
    let (seconds, counts) = line.strip_prefix("     Summary [")?.split_once("s] ")?;
    seconds.trim_start().parse::<f64>().ok()?;
    let (run, rest) = counts.split_once(" tests run: ")?;
    let (passed, rest) = rest.split_once(" passed")?;
    let rest = rest.strip_prefix(" (").map_or(Some(rest), |slow| Some(slow.split_once(" slow)")?.1))?;
    rest.strip_prefix(", ")?.strip_suffix(" skipped")?.parse::<u32>().ok()?;
    Some((run.parse().ok()?, passed.parse().ok()?))
}

/// The run itself cannot be had here; its last line is one that the runner prints when all is well.
#[test]
fn the_tests_that_the_readme_shows_all_passed() {
    let text = readme();
    let shown = shown(&text, "$ ./x test");
    let [skipped, last] = shown[..] else { panic!("{shown:?}") };
    assert_eq!(skipped, "...");
    let (run, passed) = summary(last).unwrap_or_else(|| panic!("no summary of nextest: {last:?}"));
    assert_eq!(run, passed);
    assert!(run > 2000, "{run} tests are not all");
}

#[test]
fn a_summary_of_another_form_is_seen() {
    assert_eq!(summary("     Summary [   8.144s] 5 tests run: 5 passed, 143 skipped"), Some((5, 5)));
    assert_eq!(summary("     Summary [1975.742s] 56 tests run: 55 passed (17 slow), 2 skipped"), Some((56, 55)));
    for other in
        ["...", "     Summary [8s] 5 tests run: 4 passed, 1 failed, 2 skipped", "Summary [8s] 5 tests run: 5 passed"]
    {
        assert_eq!(summary(other), None, "{other}");
    }
}

#[test]
fn another_digit_is_seen() {
    let output = ["one", "two", "three", "four"];
    assert_eq!(is_shown(&["one", "...", "three"], &output), Ok(()));
    assert!(is_shown(&["one", "three"], &output).is_err());
    assert!(is_shown(&["one", "...", "3"], &output).is_err());
}

#[test]
fn the_program_that_the_readme_shows_is_an_example_that_builds() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../libnearpm/examples/guests.rs");
    let example = fs::read_to_string(example).expect("the example can be read");
    let (_, program) = example.split_once("\n\n").expect("a head and a program");
    assert!(program.contains("fn main"));
    assert!(readme().contains(&format!("```rust\n{program}```\n")), "the README shows another program than {program}");
}

#[test]
fn the_readme_is_short() {
    assert!(readme().lines().count() <= LINES);
}
