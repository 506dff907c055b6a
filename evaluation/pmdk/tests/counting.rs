//! Counting from outside, on a program of which everything is known.

use std::fs;
use std::process::Command;

use nearpm_bench::count::{Counted, Counts, Method, count};
use nearpm_bench::programs::compile;

/// Operations: the program says what each executes.
const OPS: u64 = 50;

#[test]
fn both_methods_count_what_is_known_and_nothing_beyond_the_marks() {
    let folder = tempfile::tempdir().expect("a folder");
    let sources = [
        ("known.c", include_str!("known.c")),
        ("common.c", include_str!("../programs/common.c")),
        ("common.h", include_str!("../programs/common.h")),
    ];
    for (name, text) in sources {
        fs::write(folder.path().join(name), text).expect("a source is written");
    }
    compile(folder.path(), "known", &["known.c", "common.c"]).expect("the program builds");
    let wanted = Counts { fences: 3 * OPS, locked: OPS, written_back: 2 * OPS, streamed: 2 * OPS };
    for method in [Method::Steps, Method::Breakpoints] {
        let mut command = Command::new(folder.path().join("known"));
        match count(command.arg(format!("--ops={OPS}")).arg("--counted"), method).expect("the program is counted") {
            Counted::NotPermitted => eprintln!("SKIPPED: this system does not let a process trace its children"),
            counted => assert_eq!(counted, Counted::Counts(wanted, "known\n".into()), "{method:?}"),
        }
    }
}

#[test]
fn a_program_that_fails_is_an_error() {
    for method in [Method::Steps, Method::Breakpoints] {
        let error = count(Command::new("false").arg("--counted"), method).expect_err("it never comes to a mark");
        assert!(format!("{error:#}").contains("did not come to the first mark"), "{error:#}");
    }
}
