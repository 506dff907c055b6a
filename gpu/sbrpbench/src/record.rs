//! Files that keep what was done, so that a command that was ended goes on where it was.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};

/// The text of a record; none where there is no file yet.
pub(crate) fn read(path: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

/// Beside it first, so that who is killed leaves a whole record.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    let beside = path.with_extension("part");
    std::fs::write(&beside, text)
        .and_then(|()| std::fs::rename(&beside, path))
        .with_context(|| format!("{} cannot be written", path.display()))
}
