//! What must not compile does not, and the compiler says why.
//!
//! Each program in `misuse` begins with words, a line each, that errors in it must have: the rest
//! of the text changes with the compiler's version. All are built by one call of cargo, in a
//! workspace of their own with this library's lock file, and some in which nothing is wrong show
//! that the others fail for what is.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Words of a program that compiles.
const COMPILES: &str = "compiles";

/// Programs by name, with the words of their first lines.
fn programs(folder: &Path) -> Vec<(String, Vec<String>)> {
    let mut programs: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let words: Vec<_> = text.lines().map_while(|line| line.strip_prefix("//! ")).map(str::to_owned).collect();
            assert!(!words.is_empty(), "the words come first");
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), words)
        })
        .collect();
    programs.sort();
    programs
}

/// A manifest with all programs.
fn manifest(library: &Path, folder: &Path, programs: &[(String, Vec<String>)]) -> String {
    let mut text = String::from("[package]\nname = \"misuse\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n");
    // Nobody debugs them, or builds them again.
    text += "[profile.dev]\ndebug = false\nincremental = false\n";
    write!(text, "[dependencies]\nnearpm = {{ path = {library:?} }}\n").unwrap();
    for (name, _) in programs {
        let path = folder.join(format!("{name}.rs"));
        write!(text, "[[bin]]\nname = {name:?}\npath = {path:?}\n").unwrap();
    }
    text
}

#[test]
fn misuse_does_not_compile_and_the_compiler_says_why() {
    let library = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = library.join("tests/misuse");
    let programs = programs(&folder);
    assert!(programs.len() > 10);
    let project = Path::new(env!("CARGO_TARGET_TMPDIR")).join("misuse");
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join("Cargo.toml"), manifest(library, &folder, &programs)).unwrap();
    fs::copy(library.join("../Cargo.lock"), project.join("Cargo.lock")).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["build", "--bins", "--keep-going", "--offline", "--color=never"])
        .current_dir(&project)
        .env("CARGO_TARGET_DIR", project.join("target"))
        .output()
        .expect("cargo runs");
    let said = String::from_utf8_lossy(&output.stderr);
    for (name, words) in &programs {
        let place = format!("{name}.rs:");
        // The compiler puts an empty line behind each message.
        let errors: Vec<&str> =
            said.split("\n\n").filter(|text| text.contains(&place) && text.contains("error")).collect();
        if words[0] == COMPILES {
            let warnings = said.split("\n\n").filter(|text| text.contains(&place)).count();
            assert!(warnings == 0 && project.join("target/debug").join(name).exists(), "{name}: {said}");
            continue;
        }
        for words in words {
            assert!(errors.iter().any(|error| error.contains(words)), "{name} lacks {words:?}: {errors:#?}");
        }
    }
}
