//! Files that become longer.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use super::is_full;
use crate::error::{Error, Problem};

/// Makes a file longer that has `former` bytes, with room on the medium for what comes. What it has
/// so far is left as it is, holes included; so is the file if that fails.
pub(crate) fn extend(path: &Path, file: &File, former: u64, bytes: u64) -> Result<(), Error> {
    if bytes <= former {
        return Ok(());
    }
    let allocate = |file: &File, bytes| super::allocate_range(file, former..bytes);
    let done = fill(file, bytes, allocate).and_then(|()| file.sync_all());
    done.map_err(|error| match is_full(&error) {
        true => Problem::NoSpace { needed: bytes - former }.at(path.display()),
        false => Error::system(format!("make {} longer", path.display()), error),
    })
}

/// Makes a file longer by reserving, and as long as it was if that fails: where the file system
/// cannot reserve, the system writes every block, and would otherwise leave the medium full.
pub(crate) fn fill(file: &File, bytes: u64, allocate: impl FnOnce(&File, u64) -> io::Result<()>) -> io::Result<()> {
    let former = file.metadata()?.len();
    // What can never fit does not fill the medium first, at the cost of everybody else who writes
    // to it.
    if super::free_bytes(file)?.is_some_and(|free| bytes.saturating_sub(former) > free) {
        return Err(ErrorKind::StorageFull.into());
    }
    allocate(file, bytes).inspect_err(|_| {
        // The error that led here is the one to report.
        let _ = file.set_len(former);
    })
}
