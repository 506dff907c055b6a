//! A page for each function, and one for all.

use roff::{Roff, bold, roman};

use crate::markup;
use crate::source::Function;
use crate::{Group, Type};

/// The title of a page. It bears no date, so that the same source gives the same page.
fn title(name: &str, section: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(".TH {} {section} \"\" \"NearPM {version}\" \"NearPM\"\n", name.to_uppercase())
}

/// The page of a function.
pub fn page(function: &Function, group: &Group) -> String {
    let mut page = Roff::new();
    page.control("SH", ["NAME"]);
    page.text([roman(format!("{} - {}", function.name, lower(&function.brief).replace('`', "")))]);
    page.control("SH", ["SYNOPSIS"]);
    page.control("nf", []);
    page.text([bold("#include <nearpm.h>")]);
    page.control("PP", []);
    for line in function.prototype.lines() {
        page.text([bold(line)]);
    }
    page.control("fi", []);
    page.control("SH", ["DESCRIPTION"]);
    page = markup::add(page, &format!("{}.\n\n{}", function.brief, function.description));
    let sections = [("Returns", "RETURN VALUE"), ("Errors", "ERRORS"), ("Safety", "NOTES"), ("Example", "EXAMPLES")];
    for (title, name) in sections {
        if let Some(text) = function.section(title) {
            page.control("SH", [name]);
            page = markup::add(page, text);
        }
    }
    page.control("SH", ["SEE ALSO"]);
    let others = group.functions.iter().filter(|other| other.name != function.name);
    let mut names: Vec<_> = others.map(|other| (other.name.as_str(), "(3), ")).collect();
    names.push(("nearpm", "(7)"));
    page.text(names.iter().flat_map(|&(name, rest)| [bold(name), roman(rest)]).collect::<Vec<_>>());
    title(&function.name, "3") + &page.to_roff()
}

/// The page of the whole interface.
pub fn overview(text: &str, groups: &[Group]) -> String {
    let mut page = Roff::new();
    let (brief, text) = text.split_once("\n\n").unwrap_or((text, ""));
    page.control("SH", ["NAME"]);
    let brief = brief.trim_start_matches("The C interface: ").trim_end_matches('.');
    page.text([roman(format!("nearpm - {brief}"))]);
    page.control("SH", ["SYNOPSIS"]);
    page.control("nf", []);
    page.text([bold("#include <nearpm.h>")]);
    page.control("fi", []);
    page.control("SH", ["DESCRIPTION"]);
    page = markup::add(page, text);
    for group in groups {
        page.control("SH", [group.title.to_uppercase().as_str()]);
        for function in &group.functions {
            page.control("TP", []);
            page.text([bold(&function.name), roman("(3)")]);
            page = markup::add_line(page, &format!("{}.", lower(&function.brief)));
        }
        for kind in &group.types {
            page = add_type(page, kind);
        }
    }
    title("nearpm", "7") + &page.to_roff()
}

fn add_type(mut page: Roff, kind: &Type) -> Roff {
    page.control("SS", [format!("{} {}", kind.kind, kind.name).as_str()]);
    page = markup::add_line(page, &kind.documentation);
    for (name, documentation) in &kind.members {
        page.control("TP", []);
        page.text([bold(name)]);
        page = markup::add_line(page, documentation);
    }
    page
}

/// With a small letter at the beginning.
fn lower(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|letter| letter.to_lowercase().to_string()).unwrap_or_default();
    first + letters.as_str()
}
