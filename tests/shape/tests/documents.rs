//! Links in the documentation lead somewhere: to a file that is there, and to a heading that it
//! has. The book's table of contents has every page.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the package lies in the workspace").to_owned()
}

/// README, changelog, and all pages below `docs`.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md"), root().join("CHANGELOG.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// The lines that are not in a block of code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// What a link to a heading ends with: GitHub's way of making it.
fn anchors(page: &str) -> HashSet<String> {
    let headings = prose(page).filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let kept = heading.trim_start_matches('#').trim().to_lowercase();
        kept.chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect()
    };
    headings.map(anchor).collect()
}

/// Where a line's links lead to. What stands between backticks is no link.
fn links(line: &str) -> Vec<&str> {
    let mut links = Vec::new();
    for (index, part) in line.split('`').enumerate() {
        // A link whose text is code is cut after its bracket.
        let part = if index % 2 == 1 { "" } else { part };
        links.extend(part.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0)));
    }
    links.retain(|link| !link.contains("://"));
    links
}

/// What is wrong with a link of a page.
fn fault(page: &Path, link: &str) -> Option<String> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { page.to_owned() } else { page.parent().expect("a page has a folder").join(path) };
    if !target.exists() {
        return Some(format!("{link}: no such file"));
    }
    if anchor.is_empty() {
        return None;
    }
    let text = fs::read_to_string(&target).unwrap_or_default();
    (!anchors(&text).contains(anchor)).then(|| format!("{link}: no such heading"))
}

#[test]
fn every_link_of_the_documentation_leads_somewhere() {
    let mut tried = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("the page can be read");
        for link in prose(&text).flat_map(links) {
            tried += 1;
            assert_eq!(fault(&page, link), None, "{}", page.display());
        }
    }
    assert!(tried > 100, "links are not found any more: {tried}");
}

#[test]
fn a_link_to_nowhere_is_seen() {
    let page = root().join("README.md");
    assert_eq!(links("[`a`](docs/a.md), `[b](c.md)`, [d](https://e) [f](#g)"), ["docs/a.md", "#g"]);
    assert_eq!(fault(&page, "docs/contract.md"), None);
    assert_eq!(fault(&page, "#folders"), None);
    for link in ["docs/nowhere.md", "#nowhere", "docs/contract.md#nowhere"] {
        assert!(fault(&page, link).is_some(), "{link}");
    }
}

/// What is wrong with the book's table of contents: pages that it lacks, has twice, or has although
/// they are not there.
fn faults_of_contents(contents: &str, pages: &[PathBuf]) -> Vec<String> {
    let docs = root().join("docs");
    let listed: Vec<PathBuf> = prose(contents).flat_map(links).map(|link| docs.join(link)).collect();
    let mut faults = Vec::new();
    for page in pages.iter().filter(|page| page.starts_with(&docs) && !page.ends_with("SUMMARY.md")) {
        match listed.iter().filter(|listed| *listed == page).count() {
            1 => {}
            times => faults.push(format!("{} stands in docs/SUMMARY.md {times} times", page.display())),
        }
    }
    let is_a_page = |listed: &&PathBuf| pages.contains(listed);
    faults.extend(listed.iter().filter(|listed| !is_a_page(listed)).map(|gone| format!("{}: no page", gone.display())));
    faults
}

#[test]
fn every_page_is_in_the_book_once() {
    let contents = fs::read_to_string(root().join("docs/SUMMARY.md")).expect("the table of contents can be read");
    assert_eq!(faults_of_contents(&contents, &pages()), Vec::<String>::new());
}

#[test]
fn a_page_that_is_not_in_the_book_is_seen() {
    let pages = ["a.md", "b.md", "SUMMARY.md"].map(|name| root().join("docs").join(name));
    assert!(faults_of_contents("- [A](a.md)\n- [B](b.md)\n", &pages).is_empty());
    for contents in
        ["- [A](a.md)\n", "- [A](a.md)\n- [B](b.md)\n- [B](b.md)\n", "- [A](a.md)\n- [B](b.md)\n- [C](c.md)\n"]
    {
        assert_eq!(faults_of_contents(contents, &pages).len(), 1, "{contents}");
    }
}

/// The cells of a table's line.
fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_matches('|').split('|').map(str::trim).collect()
}

/// A row of the evaluation's first table: what it shows, and the rows of the predictions below that
/// it has its values from.
const FIGURES: [(&str, &str); 7] = [
    ("share of crash consistency on the processor", "share of crash consistency"),
    ("data movement in it", "data movement in it"),
    ("speed-up of the regions, two devices, delayed synchronisation", "regions, two devices, delayed sync"),
    ("speed-up of whole programs, one device", "whole programs, one device"),
    ("the same, two devices, software synchronisation", "whole programs, two devices, software sync"),
    ("the same, delayed synchronisation", "whole programs, two devices, delayed sync"),
    ("share in which card and processor work at once", "parallel share"),
];

#[test]
fn the_first_table_of_the_evaluation_has_the_values_of_the_tables_below() {
    let page = fs::read_to_string(root().join("docs/evaluation.md")).expect("the page can be read");
    let (first, below) = page.split_once("\n## ").expect("the page has sections");
    let (_, predictions) = below.split_once("<!-- nearpm bench: predictions -->").expect("the predictions are marked");
    // What the paper says and what we get, under the three mechanisms.
    let predicted = |row: &str, column: usize| {
        let value = |mechanism: &str| {
            let name = format!("{mechanism}: {row}");
            let line = predictions.lines().map(cells).find(|cells| cells[0] == name);
            line.unwrap_or_else(|| panic!("no row {name}"))[column].trim_end_matches(" %").to_owned()
        };
        ["logging", "checkpointing", "shadow paging"].map(value).join(" / ")
    };
    for (shown, row) in FIGURES {
        let line = first.lines().map(cells).find(|cells| cells.get(1) == Some(&shown));
        let line = line.unwrap_or_else(|| panic!("the first table has no row {shown:?}"));
        for (cell, column) in [(line[4], 1), (line[5], 2)] {
            assert_eq!(cell.trim_end_matches(" %"), predicted(row, column), "{shown}");
        }
    }
}

/// Who looks for a unit of the card finds it, with its tests and what is proved of it.
#[test]
fn every_unit_of_the_card_and_every_property_is_in_the_table_of_units() {
    let table = fs::read_to_string(root().join("docs/units.md")).expect("the page is there");
    for folder in ["hdl/src/units", "proof/hardware/properties"] {
        let entries = fs::read_dir(root().join(folder)).expect("the folder is there");
        let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name of letters"));
        let missing: Vec<String> =
            names.filter(|name| name != "mod.rs" && !table.contains(&format!("(../{folder}/{name})"))).collect();
        assert!(missing.is_empty(), "docs/units.md has no row of {missing:?} in {folder}");
    }
}
