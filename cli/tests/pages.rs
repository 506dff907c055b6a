//! Every `nearpm` command line that a page shows is one that the program takes, and the page of the
//! command line is its help. `NEARPM_BLESS=1 cargo test -p nearpm-cli --test pages` writes that
//! page anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use clap::{Command, CommandFactory, Parser};
use nearpm_cli::arguments::Arguments;

mod shown;

use shown::{is_shown, shown};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The README and all pages below `docs`.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            match path.extension() {
                Some(ending) if ending == "md" => pages.push(path),
                _ if path.is_dir() => folders.push(path),
                _ => {}
            }
        }
    }
    pages
}

/// The commands in a page's blocks of code: lines behind a prompt, joined where a backslash ends
/// them.
fn commands(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut is_code = false;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        is_code ^= line.trim_start().starts_with("```");
        let Some(command) = line.strip_prefix("$ ").or_else(|| line.strip_prefix("# ")) else { continue };
        if !is_code {
            continue;
        }
        let mut command = command.to_owned();
        while let Some(part) = command.strip_suffix('\\') {
            command = format!("{part}{}", lines.next().expect("a line goes on").trim_start());
        }
        commands.push(command);
    }
    commands
}

/// The arguments of each call of `nearpm` in a command, as a shell would give them; `None` where it
/// calls another program.
fn calls(command: &str) -> Vec<Vec<String>> {
    // Comments are gone behind this; what a shell does with its output is none of the program's
    // business.
    let words = shlex::split(command).unwrap_or_else(|| panic!("no shell reads {command:?}"));
    let ends = |word: &String| matches!(word.as_str(), "|" | "||" | "&&" | "&" | ";" | ">" | ">>" | "2>" | "<");
    let is_nearpm = |words: &&[String]| {
        words.first().is_some_and(|word| Path::new(word).file_name().is_some_and(|name| name == "nearpm"))
    };
    words.split(ends).filter(is_nearpm).map(<[String]>::to_vec).collect()
}

#[test]
fn every_command_line_that_a_page_shows_is_taken() {
    let mut tried = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("the page can be read");
        for call in commands(&text).iter().flat_map(|command| calls(command)) {
            tried += 1;
            if let Err(refused) = Arguments::try_parse_from(&call) {
                panic!("{} shows {:?}:\n{refused}", page.display(), call.join(" "));
            }
        }
    }
    assert!(tried > 30, "command lines are not found any more: {tried}");
}

#[test]
fn a_command_line_that_is_not_taken_is_seen() {
    let page =
        "$ nearpm none\n```\n$ target/release/nearpm run --ops 'a b' \\\n    --seed 1 > x # why\nnearpm none\n```\n";
    let found: Vec<_> = commands(page).iter().flat_map(|command| calls(command)).collect();
    assert_eq!(found, [["target/release/nearpm", "run", "--ops", "a b", "--seed", "1"]]);
    assert!(Arguments::try_parse_from(&found[0]).is_err());
    assert_eq!(calls("nearpm card list && ls | nearpm report").len(), 2);
    assert!(calls("cargo run -p nearpm").is_empty());
}

/// The help of a command and of those below it, a section each.
fn sections(command: &mut Command, name: &str) -> String {
    let help = command.render_help().to_string();
    let help: Vec<&str> = help.trim().lines().map(str::trim_end).collect();
    let mut text = format!("\n## {name}\n\n```text\n{}\n```\n", help.join("\n"));
    for below in command.get_subcommands_mut().filter(|below| below.get_name() != "help") {
        let name = format!("{name} {}", below.get_name());
        text += &sections(below, &name);
    }
    text
}

#[test]
fn the_page_of_the_command_line_is_the_programs_help() {
    let mut command = Arguments::command().bin_name("nearpm");
    command.build();
    let wanted = sections(&mut command, "nearpm");
    let path = root().join("docs/command-line.md");
    let page = fs::read_to_string(&path).expect("the page can be read");
    let at = page.find("\n## nearpm\n").expect("the page has a section for the program");
    if std::env::var_os("NEARPM_BLESS").is_some() {
        fs::write(&path, format!("{}{wanted}", &page[..at])).expect("the page can be written");
        return;
    }
    assert!(
        page[at..] == wanted,
        "docs/command-line.md is stale: run NEARPM_BLESS=1 cargo test -p nearpm-cli --test pages"
    );
}

/// Commands of tutorials and the like whose output is the same on every machine.
const HELD: [&str; 7] = [
    "nearpm run ",
    "nearpm card selftest ",
    "nearpm card firmware ",
    "nearpm firmware ",
    "nearpm gpu ",
    "nearpm gvr ",
    "nearpm verilog ",
];

/// Pages with such commands, in an order in which each finds the files of those before.
const SHOWING: [&str; 7] = [
    "tutorials/first-card.md",
    "tutorials/first-mechanism.md",
    "tutorials/first-workload.md",
    "tutorials/first-waveform.md",
    "tutorials/first-gpu-program.md",
    "tutorials/first-array.md",
    "how-to/synthesise.md",
];

#[test]
fn tutorials_show_what_the_program_prints() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = |name: &str| fs::read_to_string(root().join("docs").join(name)).expect("the page can be read");
    // The file that the reader has written by then, and the folder in which the reader is.
    let text = page("tutorials/first-mechanism.md");
    let (_, source) = text.split_once("```text\n; Snapshot").expect("the page shows the program");
    let (source, _) = source.split_once("```").expect("the block ends");
    fs::write(folder.path().join("snapshot.npm"), format!("; Snapshot{source}")).expect("the file can be written");
    let firmware = fs::canonicalize(root().join("firmware")).expect("the folder is there");
    std::os::unix::fs::symlink(firmware, folder.path().join("firmware")).expect("the link can be made");
    let program = Path::new(env!("CARGO_BIN_EXE_nearpm")).parent().expect("the program lies in a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut tried = 0;
    // One that writes waveforms prints nothing that is shown, and takes a traced model.
    let is_held = |command: &&String| HELD.iter().any(|held| command.starts_with(held)) && !command.contains("--waves");
    for name in SHOWING {
        let text = page(name);
        for command in commands(&text).iter().filter(is_held) {
            tried += 1;
            let mut shell = process::Command::new("sh");
            let output = shell.args(["-c", command]).env("PATH", &path).current_dir(&folder).output();
            let output = output.expect("the shell runs");
            let printed = String::from_utf8(output.stdout).expect("text");
            let printed: Vec<&str> = printed.lines().collect();
            assert_eq!(is_shown(&shown(&text, &format!("$ {command}")), &printed), Ok(()), "{name}: {command}");
        }
    }
    assert!(tried >= 13, "commands are not found any more: {tried}");
}

/// Names of all commands, as the files of their manual pages have them.
fn names(of: &Command, before: &str, to: &mut Vec<String>) {
    let name = format!("{before}{}", of.get_name());
    of.get_subcommands().for_each(|inner| names(inner, &format!("{name}-"), to));
    to.push(name);
}

#[test]
fn there_is_a_manual_page_for_each_command_and_a_shell_completes_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let nearpm = || process::Command::new(env!("CARGO_BIN_EXE_nearpm"));
    assert!(nearpm().arg("manual").arg(folder.path().join("man1")).status().expect("it runs").success());
    let mut all = Vec::new();
    names(&Arguments::command(), "", &mut all);
    for name in &all {
        let page = fs::read_to_string(folder.path().join(format!("man1/{name}.1"))).expect(name);
        assert!(page.contains(".SH SYNOPSIS"), "{name}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = nearpm().args(["completions", shell]).output().expect("it runs").stdout;
        let script = String::from_utf8(script).expect("text");
        assert!(script.contains("selftest") && script.contains("attach"), "{shell}");
    }
}
