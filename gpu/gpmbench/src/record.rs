//! Records of campaigns: what was done, and where to go on.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads a record; none where there is no file.
///
/// # Errors
/// A file that cannot be read, or that is something else.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    if !path.exists() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} holds no record of a campaign", path.display())).map(Some)
}

/// Writes a record. A process that is killed meanwhile leaves the one before.
///
/// # Errors
/// What the system refuses.
pub fn write<T: Serialize>(path: &Path, record: &T) -> Result<()> {
    let text = serde_json::to_string_pretty(record)? + "\n";
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, path));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// How long a record on the disk is behind what was done, at most: that much a campaign loses which
/// is killed.
const BEHIND: Duration = Duration::from_secs(2);

/// Writes a record that changes often, now and then.
pub struct Saved(Instant);

impl Saved {
    /// Of a record that is on the disk as it is, or of nothing.
    #[must_use]
    pub fn now() -> Saved {
        Saved(Instant::now())
    }

    /// Writes the record if the one on the disk is two seconds old.
    ///
    /// # Errors
    /// As for [`write`].
    pub fn keep<T: Serialize>(&mut self, path: &Path, record: &T) -> Result<()> {
        if self.0.elapsed() < BEHIND {
            return Ok(());
        }
        self.0 = Instant::now();
        write(path, record)
    }
}
