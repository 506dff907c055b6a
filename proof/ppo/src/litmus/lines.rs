//! The outer form of a litmus file: sections of a head at the margin and an indented body.

use super::parse::ParseError;

/// A line of the file without its comment.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// Number of the line, from 1.
    pub number: usize,
    pub text: &'a str,
}

impl<'a> Text<'a> {
    pub fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError { line: self.number, message: message.into() }
    }

    /// The words of the line.
    pub fn words(&self) -> Vec<&'a str> {
        self.text.split_whitespace().collect()
    }
}

/// `key: value` with the indented lines below it.
#[derive(Debug)]
pub struct Section<'a> {
    pub key: &'a str,
    pub value: Text<'a>,
    pub body: Vec<Text<'a>>,
}

/// Takes a file apart.
pub fn sections(file: &str) -> Result<Vec<Section<'_>>, ParseError> {
    let mut found: Vec<Section> = Vec::new();
    for (index, whole) in file.lines().enumerate() {
        let text = whole.split('#').next().unwrap_or_default().trim_end();
        let line = Text { number: index + 1, text: text.trim_start() };
        if line.text.is_empty() {
            continue;
        }
        if text.starts_with(char::is_whitespace) {
            let Some(section) = found.last_mut() else {
                return Err(line.error("an indented line before the first section"));
            };
            section.body.push(line);
            continue;
        }
        let Some((key, value)) = text.split_once(':') else {
            return Err(line.error(format!("`{text}` is no section: a section is `key: value`")));
        };
        found.push(Section {
            key: key.trim(),
            value: Text { number: line.number, text: value.trim() },
            body: Vec::new(),
        });
    }
    Ok(found)
}
