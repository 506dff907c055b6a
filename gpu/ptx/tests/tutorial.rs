//! The tutorial shows what the example prints.

use std::path::Path;
use std::process::Command;

#[test]
fn the_tutorial_shows_what_the_example_prints() {
    // Cargo builds examples for the tests of their package.
    let own = std::env::current_exe().expect("a test has a file");
    let example = own.parent().and_then(Path::parent).expect("it lies in deps").join("examples/missing_fence");
    let output = Command::new(&example).output().unwrap_or_else(|error| panic!("{}: {error}", example.display()));
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).expect("text");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorials/first-gpu-program.md");
    let page = std::fs::read_to_string(page).expect("the tutorial can be read");
    assert!(page.contains(&printed), "the tutorial does not show:\n{printed}");
}
