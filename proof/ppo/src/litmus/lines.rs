//! The outer form of a litmus file: sections of a head at the margin and an indented body. Other
//! models' litmus files have it, too.

use super::Value;
use super::error::ParseError;

/// A line of the file without its comment.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// Number of the line, from 1.
    pub number: usize,
    /// What stands there, trimmed.
    pub text: &'a str,
}

impl<'a> Text<'a> {
    /// An error at this line.
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
    /// What stands before the colon.
    pub key: &'a str,
    /// What stands behind it.
    pub value: Text<'a>,
    /// The indented lines.
    pub body: Vec<Text<'a>>,
}

impl<'a> Section<'a> {
    /// The instructions of the body: one a line, or several with semicolons between them.
    pub fn instructions(&self) -> Vec<Text<'a>> {
        let split = |line: &Text<'a>| {
            let number = line.number;
            line.text.split(';').map(move |text| Text { number, text: text.trim() }).collect::<Vec<_>>()
        };
        self.body.iter().flat_map(split).filter(|line| !line.text.is_empty()).collect()
    }

    /// The section's head as a line.
    pub fn head(&self) -> Text<'a> {
        Text { number: self.value.number, text: self.key }
    }
}

/// The value of a word.
///
/// # Errors
/// No number, or one that a word does not hold.
pub fn value(line: Text, text: &str) -> Result<Value, ParseError> {
    let value = text.parse().ok().filter(|v| *v <= 200);
    value.ok_or_else(|| line.error(format!("`{text}` is no value: a word holds 0 to 200")))
}

/// Refuses a name that could be read as something else, as `reserved` would be.
///
/// # Errors
/// It is no name.
pub fn check_name(line: Text, name: &str, reserved: &str) -> Result<(), ParseError> {
    let good = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if good && name != reserved { Ok(()) } else { Err(line.error(format!("`{name}` is no name"))) }
}

/// The section of a key.
pub fn find<'a, 'b>(sections: &'b [Section<'a>], key: &str) -> Option<&'b Section<'a>> {
    sections.iter().find(|s| s.key == key)
}

/// The section of a key, which must be there.
///
/// # Errors
/// It is missing.
pub fn required<'a, 'b>(sections: &'b [Section<'a>], key: &str, file: &str) -> Result<&'b Section<'a>, ParseError> {
    find(sections, key)
        .ok_or_else(|| ParseError { line: end(file), message: format!("the section `{key}` is missing") })
}

/// Number of a file's last line: where what is missing is reported.
pub fn end(file: &str) -> usize {
    file.lines().count()
}

/// Refuses sections that stand twice or are unknown, and values and bodies in the wrong place.
/// `single` have one value and no body, `bodies` a body and no value; `other` says of a key in
/// neither whether it is a program.
///
/// # Errors
/// The first such section.
pub fn check_heads(
    sections: &[Section],
    single: &[&str],
    bodies: &[&str],
    other: impl Fn(&str) -> bool,
) -> Result<(), ParseError> {
    for (i, section) in sections.iter().enumerate() {
        let (is_single, body) = (single.contains(&section.key), bodies.contains(&section.key));
        if !(is_single || body || other(section.key)) {
            return Err(section.value.error(format!("no section is called `{}`", section.key)));
        }
        if sections[..i].iter().any(|s| s.key == section.key) {
            return Err(section.value.error(format!("a second section `{}`", section.key)));
        }
        if let Some(line) = section.body.first().filter(|_| is_single) {
            return Err(line.error(format!("`{}` has one value and no body", section.key)));
        }
        if !is_single && !section.value.text.is_empty() {
            return Err(section.value.error(format!("what belongs to `{}` stands indented below it", section.key)));
        }
    }
    Ok(())
}

/// Takes a file apart.
///
/// # Errors
/// A line that is neither a section nor indented below one.
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
