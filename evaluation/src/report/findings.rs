//! What was found, for the page: sections of `docs/evaluation.md`, which is the one place where
//! they are written.

use anyhow::{Context, Result};
use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The page of the documentation.
const DOCUMENT: &str = include_str!("../../../docs/evaluation.md");
/// Its sections that are shown: anchor here, and heading there.
pub const SECTIONS: [(&str, &str); 2] = [("found", "What was found"), ("not-done", "What this does not do")];

/// What stands below a heading of the second level.
fn below<'d>(document: &'d str, heading: &str) -> Option<&'d str> {
    let start = format!("\n## {heading}\n");
    let (_, rest) = document.split_once(&start)?;
    Some(rest.split("\n## ").next().unwrap_or(rest))
}

/// Markdown as HTML that needs nothing else: what is linked to is not there, so that links are
/// their text alone. Tables scroll in a frame of their own.
fn rendered(markdown: &str) -> Markup {
    let frame = |tag: &'static str| Event::Html(tag.into());
    let events = Parser::new_ext(markdown, Options::ENABLE_TABLES).flat_map(|event| match event {
        Event::Start(Tag::Link { .. }) | Event::End(TagEnd::Link) => vec![],
        Event::Start(Tag::Table(_)) => vec![frame("<div class=\"wide\">"), event],
        Event::End(TagEnd::Table) => vec![event, frame("</div>")],
        _ => vec![event],
    });
    let mut text = String::new();
    pulldown_cmark::html::push_html(&mut text, events);
    PreEscaped(text)
}

/// The sections of the page.
///
/// # Errors
/// If the document has no such section.
pub fn sections() -> Result<Markup> {
    let of = |(id, heading): (&str, &str)| -> Result<Markup> {
        let text =
            below(DOCUMENT, heading).with_context(|| format!("docs/evaluation.md has no section {heading:?}"))?;
        Ok(html! { section id=(id) { h2 { (heading) } (rendered(text)) } })
    };
    let all = SECTIONS.into_iter().map(of).collect::<Result<Vec<Markup>>>()?;
    Ok(html! {
        @for section in all { (section) }
        p { "Both are of " code { "docs/evaluation.md" } ", about the quick form's results with one seed; what the figures show are the results of this page." }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_ends_where_the_next_one_begins() {
        let document = "# Page\n\n## One\n\nfirst\n\n### Part\n\nsecond\n\n## Two\n\nthird\n";
        assert_eq!(below(document, "One"), Some("\nfirst\n\n### Part\n\nsecond\n"));
        assert_eq!(below(document, "Two"), Some("\nthird\n"));
        assert_eq!(below(document, "Part"), None);
    }

    #[test]
    fn what_is_rendered_links_to_nothing_and_frames_its_tables() {
        let html = rendered("See [figures](figures.md).\n\n| a | b |\n|---|---|\n| 1 | <2 |\n").into_string();
        assert!(html.contains("See figures.") && !html.contains("href"), "{html}");
        assert!(html.contains("<div class=\"wide\"><table>") && html.contains("</table>\n</div>"), "{html}");
        assert!(html.contains("&lt;2"), "{html}");
    }
}
