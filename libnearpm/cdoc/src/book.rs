//! The manual as one page of the book: the same documentation as the manual pages', in the Markdown
//! that it is written in.

use crate::source::Function;
use crate::{Group, Type};

/// What stands above the page's text.
const HEAD: &str = "# The C manual

<!-- Written from the documentation in libnearpm/c: `NEARPM_BLESS=1 cargo nextest run --release -p nearpm-c` writes it anew. -->

`#include <nearpm.h>`, and after `./x install` `man nearpm`: the same text. [Program in C](c.md) is where to begin.
";

/// The page.
pub fn page(overview: &str, groups: &[Group]) -> String {
    let (brief, text) = overview.split_once("\n\n").unwrap_or((overview, ""));
    let mut page = format!("{HEAD}\n{brief}\n\n{}\n", lowered(text.trim()));
    for group in groups {
        page += &format!("\n## {}\n\n| function | does |\n|---|---|\n", group.title);
        for function in &group.functions {
            page += &format!("| [`{0}`](#{1}) | {2} |\n", function.name, function.name.to_lowercase(), function.brief);
        }
        group.functions.iter().for_each(|function| page += &described(function));
        group.types.iter().for_each(|kind| page += &listed(kind));
    }
    page
}

/// A function: declaration, text, sections.
fn described(function: &Function) -> String {
    let mut text = format!("\n### {}\n\n```c\n{}\n```\n\n{}.\n", function.name, function.prototype, function.brief);
    if !function.description.is_empty() {
        text += &format!("\n{}\n", function.description);
    }
    for title in ["Returns", "Errors", "Safety", "Example"] {
        if let Some(section) = function.section(title) {
            text += &format!("\n**{title}**\n\n{section}\n");
        }
    }
    text
}

/// A structure or an enumeration with its members.
fn listed(kind: &Type) -> String {
    let mut text = format!("\n### {} {}\n\n{}\n\n", kind.kind, kind.name, kind.documentation);
    for (name, documentation) in &kind.members {
        text += &format!("- `{name}`: {}\n", documentation.replace('\n', " "));
    }
    text
}

/// The overview's headings stand below the page's.
fn lowered(text: &str) -> String {
    let line = |line: &str| if line.starts_with('#') { format!("#{line}") } else { line.to_owned() };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}
