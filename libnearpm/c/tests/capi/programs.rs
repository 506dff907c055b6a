//! Examples and tests in C, run on the installed library.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::installed::{self, As, Program, install};
use super::{interface, library};

fn example(name: &str, language: As) -> Program {
    installed::get().compile(&library().join("examples").join(name).with_extension("c"), language)
}

const LANGUAGES: [As; 2] = [As::C, As::Cpp];

#[test]
fn what_is_installed_is_complete() {
    let installed = installed::get();
    let version = env!("CARGO_PKG_VERSION");
    let major = env!("CARGO_PKG_VERSION_MAJOR");
    let links = [
        ("libnearpm.so", format!("libnearpm.so.{major}")),
        (&format!("libnearpm.so.{major}"), format!("libnearpm.so.{version}")),
    ];
    for (link, target) in links {
        let found = std::fs::read_link(installed.folder.join("lib").join(link)).expect("a link");
        assert_eq!(found.to_str(), Some(target.as_str()), "{link}");
    }
    for file in ["lib/libnearpm.a", "include/nearpm.h", "include/nearpm_interface.h", "share/man/man7/nearpm.7"] {
        assert!(installed.folder.join(file).is_file(), "{file}");
    }
    for function in interface().functions() {
        let page = installed.folder.join("share/man/man3").join(&function.name).with_extension("3");
        assert!(page.is_file(), "{}", page.display());
    }
}

/// For packages: everything lies under DESTDIR, and says that it lies under the prefix.
#[test]
fn a_destination_stays_out_of_what_is_installed() {
    let folder = tempfile::tempdir().unwrap();
    install("/opt/nearpm".as_ref(), Some(folder.path()));
    let path = folder.path().join("opt/nearpm/lib/pkgconfig/nearpm.pc");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.starts_with("prefix=/opt/nearpm\n") && !text.contains('@'), "{text}");
}

/// The whole step, `./x install`, with a target folder of its own: it builds everything once more,
/// so that only thorough runs have it.
#[test]
fn the_install_step_installs_the_drop_in_aside() {
    if !nearpm_tier::thorough() {
        eprintln!("SKIPPED: NEARPM_THOROUGH is not set");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = library().parent().unwrap().to_owned();
    let mut command = std::process::Command::new(root.join("x"));
    command.args(["install", "--prefix", "/opt/nearpm", "--destdir"]).arg(folder.path());
    installed::succeed(command.env("CARGO_TARGET_DIR", folder.path().join("target")));
    let lib = folder.path().join("opt/nearpm/lib");
    assert!(lib.join("libnearpm.so").exists() && lib.join("nearpm/libpmemobj.so.1").is_file());
    // Who links or runs with this folder gets PMDK's library, if any.
    let names = std::fs::read_dir(lib).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.starts_with("libpmemobj")).count(), 0);
}

/// A program asks the loader for the name that stays the same as long as the interface is
/// compatible.
#[test]
fn programs_ask_for_the_major_version() {
    let program = example("counter", As::C);
    let mut command = program.command(&[]);
    let text = installed::succeed(command.env("LD_TRACE_LOADED_OBJECTS", "1"));
    assert!(text.contains(concat!("libnearpm.so.", env!("CARGO_PKG_VERSION_MAJOR"), " => ")), "{text}");
}

/// The examples of the manual pages compile.
#[test]
fn examples_of_the_manual_compile() {
    let mut source = "#include <nearpm.h>\n#include <stdio.h>\n".to_owned();
    // Results are for the reader.
    source += "#pragma GCC diagnostic ignored \"-Wunused-variable\"\n";
    let mut examples = 0;
    for function in interface().functions() {
        if let Some(code) = function.example() {
            examples += 1;
            let head = format!("void example_{}(struct nearpm_pool *pool, struct nearpm_tx *tx)", function.name);
            source += &format!("{head};\n{head}\n{{\n(void)pool;\n(void)tx;\n{code}\n}}\n");
        }
    }
    assert!(examples >= 6, "{examples}");
    source += "int main(void) { return 0; }\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("examples.c");
    std::fs::write(&path, source).unwrap();
    installed::get().compile(&path, As::C);
}

/// The program of the page for C programmers counts.
#[test]
fn the_program_of_the_page_works() {
    let page = std::fs::read_to_string(library().join("../../docs/c.md")).unwrap();
    let source = page.split("```c\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a program");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counter.c");
    std::fs::write(&path, source).unwrap();
    let program = installed::get().compile(&path, As::C);
    for round in 1..=3 {
        let text = installed::succeed(program.command(&[]).current_dir(folder.path()));
        assert_eq!(text, format!("{round}\n"));
    }
}

#[test]
fn counters_stay_equal_whenever_the_program_dies() {
    for language in LANGUAGES {
        let program = example("counter", language);
        for round in 1..=4 {
            assert_eq!(program.output(&["crash"]).status.code(), Some(3));
            let text = program.run(&[]);
            assert_eq!(text.trim(), format!("undo {round}, redo {round}, checkpoint {round}, shadow {round}"));
        }
    }
}

#[test]
fn a_list_is_whole_after_a_crash() {
    for language in LANGUAGES {
        let program = example("list", language);
        program.run(&["add", "5", "3", "8"]);
        for _ in 0..3 {
            assert_eq!(program.output(&["crash", "4"]).status.code(), Some(3));
            assert_eq!(program.run(&["show"]), "3 5 8\n");
        }
        program.run(&["remove", "3", "8"]);
        program.run(&["add", "9"]);
        assert_eq!(program.run(&["show"]), "5 9\n");
    }
}

/// Killed at moments of the system's choice, the map has what was acknowledged, or one transaction
/// more.
#[test]
fn a_map_survives_kills() {
    for language in LANGUAGES {
        let program = example("map", language);
        program.run(&["count", "pear", "apple", "pear"]);
        let mut last = 0;
        for round in 0..10 {
            let mut child = program.command(&["run"]).stdout(Stdio::piped()).spawn().unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let seen = lines.by_ref().take(1 + round * 7).map(Result::unwrap).last();
            child.kill().unwrap();
            child.wait().unwrap();
            // What it said before it died.
            let said = lines.map_while(Result::ok).filter_map(|line| line.parse().ok()).last();
            let acknowledged: u64 = said.unwrap_or_else(|| seen.unwrap().parse().unwrap());
            let text = program.run(&["show"]);
            let number = |word: &str| -> u64 {
                let line = text.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
                line.unwrap_or_else(|| panic!("{word} is not in {text:?}")).parse().unwrap()
            };
            assert_eq!((number("pear"), number("apple")), (2, 1));
            let (a, b) = (number("a"), number("b"));
            assert_eq!(a, b, "half a transaction");
            assert!((acknowledged..=acknowledged + 1).contains(&(a - last)), "{acknowledged} and {}", a - last);
            last = a;
        }
    }
}

/// Two threads, killed and run to the end, in both modes: no money appears or disappears.
#[test]
fn a_bank_keeps_its_money() {
    for language in LANGUAGES {
        for mode in ["working-copy", "in-place"] {
            let program = example("bank", language);
            for _ in 0..5 {
                let mut child = program.command(&["0", mode]).stdout(Stdio::piped()).spawn().unwrap();
                let mut line = String::new();
                BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
                assert_eq!(line, "running\n");
                std::thread::sleep(std::time::Duration::from_millis(20));
                child.kill().unwrap();
                assert!(!child.wait().unwrap().success());
            }
            let text = program.run(&["200", mode]);
            assert!(text.contains(" committed, "), "{text}");
        }
    }
}

/// What the second argument of the programs in `tests/c` asks for.
const OPTIONS: [&str; 6] = ["working-copy", "in-place", "undo", "redo", "checkpoint", "shadow"];

/// Every wrong argument is refused with a code and a message, and nothing is lost by it.
#[test]
fn misuse_is_refused() {
    let source = library().join("tests/c/misuse.c");
    for language in LANGUAGES {
        for options in OPTIONS {
            installed::get().compile(&source, language).run(&[options]);
        }
    }
}

/// With `lint` a program hears of a store that it has not added.
#[test]
fn a_faulty_program_is_told() {
    let program = installed::get().compile(&library().join("tests/c/faulty.c"), As::C);
    let output = program.output(&["working-copy"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("byte 800 of the object") && text.contains("had not added it"), "{text}");
}

/// Everything that the interface has, used as it is meant.
#[test]
fn everything_works_as_documented() {
    let source = library().join("tests/c/direct.c");
    for language in LANGUAGES {
        for options in OPTIONS {
            installed::get().compile(&source, language).run(&[options]);
        }
    }
}
