//! The file that says what to simulate. What is wrong in it is told with its line.

use serde::Deserialize;

use crate::{Changes, Config, names};

/// What to simulate.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFile {
    /// The program's name.
    pub program: String,
    /// Its size.
    pub size: String,
    /// The GPU.
    pub config: Config,
}

/// A file that says nothing that can be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: {reason}")]
pub struct RunFileError {
    /// Name of the file.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// What is wrong.
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    program: toml::Spanned<String>,
    #[serde(default)]
    size: Option<toml::Spanned<String>>,
    base: toml::Spanned<String>,
    #[serde(default)]
    config: Changes,
}

impl RunFile {
    /// Reads the text of a file. `programs` and `sizes` are those that there are; the size is
    /// `small` where none is given.
    ///
    /// # Errors
    /// Text that is no TOML, an unknown key, program, size or configuration, or a setting out of
    /// bounds.
    pub fn parse(file: &str, text: &str, programs: &[&str], sizes: &[&str]) -> Result<RunFile, RunFileError> {
        let error = |at: usize, reason: String| {
            let line = text.get(..at).unwrap_or(text).matches('\n').count() + 1;
            RunFileError { file: file.to_string(), line, reason }
        };
        let read: Text = toml::from_str(text)
            .map_err(|found| error(found.span().map_or(0, |span| span.start), found.message().to_string()))?;
        if !programs.contains(&read.program.get_ref().as_str()) {
            let reason = format!("no program {}: there are {}", read.program.get_ref(), programs.join(", "));
            return Err(error(read.program.span().start, reason));
        }
        if let Some(size) = read.size.as_ref().filter(|size| !sizes.contains(&size.get_ref().as_str())) {
            let reason = format!("no size {}: there are {}", size.get_ref(), sizes.join(", "));
            return Err(error(size.span().start, reason));
        }
        let Some(base) = Config::named(read.base.get_ref()) else {
            let reason = format!("no configuration {}: there are {}", read.base.get_ref(), names().join(", "));
            return Err(error(read.base.span().start, reason));
        };
        let config = base.with(&read.config);
        config.check().map_err(|found| error(place_of(text, found.setting), found.to_string()))?;
        let size = read.size.map_or_else(|| "small".to_string(), toml::Spanned::into_inner);
        Ok(RunFile { program: read.program.into_inner(), size, config })
    }
}

impl Changes {
    /// Settings as lines of TOML, `window = 4`.
    ///
    /// # Errors
    /// What is no setting, in words.
    pub fn parse(lines: &[String]) -> Result<Self, String> {
        toml::from_str(&lines.join("\n")).map_err(|error| error.message().to_string())
    }
}

/// Where a setting is written.
fn place_of(text: &str, setting: &str) -> usize {
    let starts =
        |line: &str| line.trim_start().strip_prefix(setting).is_some_and(|rest| rest.trim_start().starts_with('='));
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if starts(line) {
            return at;
        }
        at += line.len();
    }
    0
}
