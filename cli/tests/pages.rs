//! Every `nearpm` command line that a page shows is one that the program takes.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use nearpm_cli::arguments::Arguments;

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

/// The commands in a page's blocks of code: lines behind a prompt, joined where a backslash ends them.
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

/// The arguments of each call of `nearpm` in a command, as a shell would give them; `None` where it calls another program.
fn calls(command: &str) -> Vec<Vec<String>> {
    // Comments are gone behind this; what a shell does with its output is none of the program's business.
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
