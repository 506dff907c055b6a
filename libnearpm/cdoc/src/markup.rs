//! Documentation in Markdown as manual pages have it.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Parser, Tag, TagEnd};
use roff::{Inline, Roff, bold, italic, roman};

/// Text that gathers until its paragraph ends.
#[derive(Default)]
struct Writer {
    page: Roff,
    line: Vec<Inline>,
    emphasis: bool,
    code: bool,
    /// Depth of list items.
    items: u32,
    /// Whether a heading has just begun a paragraph.
    begun: bool,
}

/// Adds Markdown to a page, right after a heading. Headings become sections.
pub fn add(page: Roff, text: &str) -> Roff {
    write(Writer { page, begun: true, ..Writer::default() }, text)
}

/// Adds Markdown without a paragraph of its own: the text of a list's item.
pub fn add_line(page: Roff, text: &str) -> Roff {
    write(Writer { page, items: 1, ..Writer::default() }, text)
}

fn write(mut writer: Writer, text: &str) -> Roff {
    for event in Parser::new(text) {
        writer.event(event);
    }
    writer.flush();
    writer.page
}

impl Writer {
    fn flush(&mut self) {
        if !self.line.is_empty() {
            self.page.text(std::mem::take(&mut self.line));
        }
    }

    fn control<'a>(&mut self, name: &str, arguments: impl IntoIterator<Item = &'a str>) {
        self.flush();
        self.page.control(name, arguments);
    }

    fn paragraph(&mut self) {
        self.flush();
        if !std::mem::take(&mut self.begun) {
            self.page.control("PP", []);
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(Tag::Paragraph) if self.items == 0 => self.paragraph(),
            Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }) => self.flush(),
            Event::End(TagEnd::Heading(_)) => {
                let title: String = std::mem::take(&mut self.line).iter().map(plain).collect();
                self.page.control("SH", [title.to_uppercase().as_str()]);
                self.begun = true;
            }
            Event::Start(Tag::Item) => {
                self.control("IP", ["-", "2"]);
                self.items += 1;
            }
            Event::End(TagEnd::Item) => {
                self.flush();
                self.items -= 1;
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented)) => {
                self.paragraph();
                self.control("EX", []);
                self.code = true;
            }
            Event::End(TagEnd::CodeBlock) => {
                self.code = false;
                self.control("EE", []);
            }
            Event::Text(text) if self.code => {
                for line in text.lines() {
                    self.page.text([roman(line)]);
                }
            }
            Event::Text(text) if self.emphasis => self.line.push(italic(text.to_string())),
            Event::Text(text) => self.line.push(roman(text.to_string())),
            Event::Code(text) => self.line.push(bold(text.to_string())),
            Event::SoftBreak | Event::HardBreak => self.line.push(roman(" ")),
            Event::Start(Tag::Emphasis) => self.emphasis = true,
            Event::End(TagEnd::Emphasis) => self.emphasis = false,
            _ => {}
        }
    }
}

fn plain(part: &Inline) -> String {
    match part {
        Inline::Roman(text) | Inline::Italic(text) | Inline::Bold(text) => text.clone(),
        Inline::LineBreak => " ".to_owned(),
    }
}
