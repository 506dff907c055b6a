//! The manual has a page for every function, and each says what it must.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use super::interface;

/// What a page shows: its lines without formatting.
fn shown(page: &str) -> String {
    let plain = |line: &str| {
        let text = ["\\fB", "\\fI", "\\fR"].iter().fold(line.to_owned(), |text, font| text.replace(font, ""));
        text.replace("\\-", "-").replace("\\*(Aq", "'").replace("\\(aq", "'").replace("\\&", "").replace("\\\\", "\\")
    };
    let unquoted = |line: String| if line.starts_with(".SH") { line.replace('"', "") } else { line };
    page.lines().map(plain).map(unquoted).collect::<Vec<_>>().join("\n")
}

/// The text of a section.
fn section<'a>(page: &'a str, title: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!("\n.SH {title}\n"))?;
    Some(rest.split("\n.SH ").next().unwrap_or(rest))
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn each_function_has_a_page_with_every_section() {
    let interface = interface();
    let pages = interface.manual();
    let names: BTreeSet<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), interface.functions().count() + 1, "one page each, and nearpm.7");
    for function in interface.functions() {
        let file = format!("{}.3", function.name);
        let (_, page) = pages.iter().find(|(name, _)| *name == file).expect("a page");
        let page = shown(page);
        let get = |title: &str| section(&page, title).unwrap_or_else(|| panic!("{file} has no section {title}"));
        assert!(get("NAME").starts_with(&format!("{} - ", function.name)), "{file}: {}", get("NAME"));
        let synopsis = squeezed(get("SYNOPSIS"));
        assert!(synopsis.contains("#include <nearpm.h>"), "{file}: {synopsis}");
        assert!(synopsis.contains(&squeezed(&function.prototype)), "{file}: {synopsis}");
        assert!(squeezed(&interface.header).contains(&squeezed(&function.prototype)), "{file}");
        for title in ["DESCRIPTION", "RETURN VALUE", "ERRORS"] {
            assert!(!get(title).trim().is_empty(), "{file}: {title} is empty");
        }
        for other in get("SEE ALSO").split(',').map(squeezed) {
            let (name, number) = other.trim_end_matches(')').split_once('(').expect("a page with its section");
            assert!(names.contains(format!("{name}.{number}").as_str()), "{file}: there is no {other}");
        }
    }
}

/// Pages speak of functions, values and types that exist.
#[test]
fn pages_name_what_there_is() {
    let interface = interface();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let known: BTreeSet<&str> = interface.header.split(|c| !is_name(c)).collect();
    for (file, page) in interface.manual() {
        let page = shown(&page);
        let names = page.split(|c| !is_name(c)).filter(|word| word.to_lowercase().starts_with("nearpm_"));
        for name in names {
            let title = name.chars().all(|c| !c.is_lowercase()) && page.starts_with(&format!(".TH {name} "));
            assert!(title || known.contains(name), "{file} speaks of {name}");
        }
    }
}

/// mandoc finds nothing to complain of but the date, which pages have not. Passes untried where it
/// is not installed, unless it was to be.
#[test]
fn mandoc_accepts_the_pages() {
    let folder = tempfile::tempdir().unwrap();
    if Command::new("mandoc").arg("/dev/null").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        assert!(std::env::var_os("NEARPM_TOOLS_INSTALLED").is_none(), "mandoc is not installed, and was to be");
        eprintln!("SKIPPED: mandoc is not installed (Debian: mandoc)");
        return;
    }
    let mut command = Command::new("mandoc");
    command.args(["-T", "lint", "-W", "warning"]);
    for (name, page) in interface().manual() {
        let path = folder.path().join(name);
        std::fs::write(&path, page).unwrap();
        command.arg(path);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let complaints: Vec<&str> = text.lines().filter(|line| !line.contains("missing date")).collect();
    assert_eq!(complaints, Vec::<&str>::new());
}
