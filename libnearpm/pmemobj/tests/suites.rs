//! `libnearpm/pmemobj/suites/run`, on a checkout that this test makes: every kind of outcome has
//! its row, nothing is left running or lying about, and what is no checkout is refused by a
//! sentence.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A PMDK of our own making: its build does nothing, its tests are scripts.
const FILES: &[(&str, &str)] = &[
    ("src/Makefile", "all:\n"),
    ("src/test/Makefile", "envconfig.sh envconfig.py:\n\ttouch $@\n"),
    ("src/test/unittest/Makefile", "all:\n"),
    ("src/test/unittest/unittest.sh", ""),
    ("src/test/obj_outcomes/Makefile", "all:\n"),
    ("src/test/obj_outcomes/TEST0", "echo PASS"),
    (
        "src/test/obj_outcomes/TEST1",
        "[ -e $PMDK_LIB_PATH_NONDEBUG/pmdk ] || { echo Error: 'a | b'; exit 1; }; echo PASS",
    ),
    ("src/test/obj_outcomes/TEST2", "[ -e $PMDK_LIB_PATH_NONDEBUG/pmdk ] || timeout 600 sleep 600; echo PASS"),
    (
        "src/test/obj_outcomes/TEST3",
        "[ -e $PMDK_LIB_PATH_NONDEBUG/pmdk ] || dd if=/dev/zero of=$SUITES_POOLS/f bs=1M count=20; sleep 2; echo PASS",
    ),
    ("src/test/obj_outcomes/TEST4", "echo 'obj/TEST4: SKIP: no device'"),
    ("src/test/obj_outcomes/TEST5", "[ $FS = non-pmem ] || { echo SKIP fs-type; exit 0; }; echo PASS"),
    ("src/test/obj_outcomes/TEST6", "echo Error: everywhere; exit 1"),
    ("src/test/obj_outcomes/TEST7", "[ -e $PMDK_LIB_PATH_NONDEBUG/pmdk ] || sleep 600; sleep 600"),
    // As PMDK's own check: the words of a message differ, the error does not; in the other one the
    // error does.
    ("src/test/obj_words/Makefile", "all:\n"),
    ("src/test/obj_words/TEST0", "echo 'pmemobj_open: ours: Invalid argument' >out0.log; echo MATCHING FAILED; exit 1"),
    ("src/test/obj_words/out0.log.match", "pmemobj_open: theirs $(N): Invalid argument\n"),
    ("src/test/obj_words/TEST1", "echo 'pmemobj_open: ours: Bad address' >out1.log; echo MATCHING FAILED; exit 1"),
    ("src/test/obj_words/out1.log.match", "pmemobj_open: theirs: Invalid argument\n"),
    (
        "src/test/obj_inner/Makefile",
        "TARGET = obj_inner\nall:\n\t@echo \"undefined reference to \\`heap_boot'\" >&2; false\n",
    ),
    ("src/test/obj_inner/TEST0", "echo PASS"),
    ("src/test/obj_sets/Makefile", "all:\n"),
    (
        "src/test/obj_sets/TEST0",
        "create_poolset() { [ -e $PMDK_LIB_PATH_NONDEBUG/pmdk ]; }; create_poolset && echo PASS",
    ),
];

/// Rows that the table must have.
const ROWS: &[&str] = &[
    "| `obj_inner/TEST0` | cannot run | cannot run | calls functions inside of PMDK: heap_boot |",
    "| `obj_outcomes/TEST0` | passes | passes |  |",
    "| `obj_outcomes/TEST1` | passes | fails | UNEXPLAINED: a \\| b |",
    "| `obj_outcomes/TEST2` | passes | fails | UNEXPLAINED: ran longer than 5 s |",
    "| `obj_outcomes/TEST3` | passes | fails | UNEXPLAINED: filled more than 8 MiB with files |",
    "| `obj_outcomes/TEST4` | not run | not run | no device |",
    "| `obj_outcomes/TEST5` | passes | passes |  |",
    "| `obj_outcomes/TEST6` | fails | fails | fails on PMDK too: everywhere |",
    "| `obj_outcomes/TEST7` | not run | not run | is beyond the bounds of this run already on PMDK: ran longer than 5 s |",
    "| `obj_sets/TEST0` | passes | fails | of pool sets: this library has those of one part alone |",
    "| `obj_words/TEST0` | passes | passes | error messages have other words; errno is the same |",
    "| `obj_words/TEST1` | fails | fails | fails on PMDK too: FAILED |",
];

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("a folder can be made");
    std::fs::write(path, text).expect("a file can be written");
}

/// The script with folders of its own, and stand-ins for the programs that this checkout does not
/// need.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Bench {
        let bench = Bench { folder: tempfile::tempdir().expect("a folder") };
        for program in ["pmempool", "perl", "pkg-config", "g++"] {
            let path = bench.path("bin").join(program);
            write(&path, "#!/bin/sh\n");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("a mode can be set");
        }
        for library in ["pmdk/libpmemobj.so.1", "pmdk/pmdk", "ours/libpmemobj.so.1", "pools/keep", "files/keep"] {
            write(&bench.path(library), "");
        }
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let path = std::env::var("PATH").expect("there is a PATH");
        let mut command = Command::new("python3");
        command.arg("-B").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("suites/run"));
        for (option, name) in [("--oracle", "pmdk"), ("--ours", "ours"), ("--work", "work"), ("--pools", "pools")] {
            command.arg(option).arg(self.path(name));
        }
        command.arg("--files").arg(self.path("files")).args(["--seconds", "5", "--mebibytes", "8", "--jobs", "8"]);
        command.args(arguments).env("PATH", format!("{path}:{}", self.path("bin").display()));
        command.output().expect("python3 runs")
    }

    fn entries(&self, name: &str) -> usize {
        std::fs::read_dir(self.path(name)).expect("the folder is there").count()
    }
}

fn programs_present() -> bool {
    let present = |name| Command::new(name).arg("--version").output().is_ok();
    let all = ["python3", "make", "gcc", "readelf"].into_iter().all(present);
    if !all {
        nearpm_pmemobj_programs::skip(
            "python3, make, gcc and readelf are not installed (Debian: python3 make gcc binutils)",
        );
    }
    all
}

#[test]
fn every_outcome_has_its_row() {
    if !programs_present() {
        return;
    }
    let bench = Bench::new();
    for (name, text) in FILES {
        write(&bench.path("checkout").join(name), text);
    }
    let page = bench.path("page.md");
    write(&page, "before\n<!-- begin: written by libnearpm/pmemobj/suites/run -->\nold\n<!-- end -->\nafter\n");
    let (checkout, output) = (bench.path("checkout"), page.display().to_string());
    let run = bench.run(&["--pmdk", &checkout.display().to_string(), "--output", &output]);
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(!run.status.success(), "failures that nobody explains are a failure: {said}");
    assert!(said.contains("12 tests, 3 pass on PMDK and fail here unexplained"), "{said}");

    let text = std::fs::read_to_string(&page).expect("the page is there");
    for row in ROWS {
        assert!(text.lines().any(|line| line == *row), "{row}\nis not in\n{text}\n{said}");
    }
    assert!(text.starts_with("before\n") && text.ends_with("after\n") && !text.contains("\nold\n"), "{text}");
    let unknown = "| PMDK's unit tests (`obj_*`) | unknown | 12 | 7 | 3 | 3 | 1 | 2 |";
    assert!(text.contains(unknown), "{text}");
    assert_eq!((bench.entries("pools"), bench.entries("files")), (1, 1), "tests leave nothing behind");
    assert!(!bench.path("checkout/src/test/testconfig.sh").exists(), "a checkout is left as it is");
}

#[test]
fn what_is_no_checkout_is_refused() {
    if !programs_present() {
        return;
    }
    let bench = Bench::new();
    let pools = bench.path("pools").display().to_string();
    let missing = bench.path("missing").display().to_string();
    for (arguments, sentence) in [
        (&["--pmdk", &pools][..], "is no checkout of PMDK: it has no src/test/unittest/unittest.sh"),
        (&["--cpp", &pools], "is no checkout of libpmemobj-cpp"),
        (&["--pmdk", &missing], "is no folder; --pmdk takes a checkout"),
        (&["--pmemkv", &pools], "--pmemkv needs --cpp"),
        (&[], "nothing to run: give --pmdk, --cpp, --pmemkv, or several"),
        (&["--pmdk", &pools, "--oracle", &missing], "no libpmemobj.so.1 of PMDK"),
    ] {
        let run = bench.run(arguments);
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.code() == Some(1) && said.starts_with("suites: ") && said.contains(sentence), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(!bench.path("work").exists(), "nothing was begun");
    }
}
