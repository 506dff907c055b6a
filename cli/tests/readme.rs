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
