//! Putting pools right.
//!
//! What a repair changes is worked out in private pages: damage that can be put right, then the
//! recovery, then damage behind it. The lines that differ are what is written, behind a [`backup`]
//! of what they were.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nearpm_interface::geometry::{LINE, LINE_U64};

use super::{Class, Found, Image, Report};
use crate::error::{Error, Problem};
use crate::interval::IntervalSet;
use crate::memory::{Backing, Medium, PrivateMemory, private_view};
use crate::pool::backup::{self, Piece};
use crate::pool::{Location, file};

/// What a repair found and did.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// What was wrong.
    pub before: Report,
    /// What is wrong now: what could not be repaired.
    pub after: Report,
    /// Bytes that were written.
    pub bytes: u64,
    /// The file that holds what they were, if there are any.
    pub backup: Option<PathBuf>,
}

/// A moment of a repair, for tests that stop there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The backup is about to be written.
    Backup,
    /// A piece is about to be written to the pool.
    Piece,
    /// What was written is about to become durable.
    Sync,
    /// The backup is about to be put aside.
    Keep,
}

type Watch<'w> = &'w mut dyn FnMut(Step) -> Result<(), Error>;

/// Repairs a pool in a file: what can be put right without losing anything that was durable. A pool
/// that is sound is not touched; of one that is not, the log is read as well, unless damage is in
/// its way. The bytes that are overwritten are kept in a file beside the pool.
///
/// # Errors
/// [`Problem::InUse`]; [`Problem::Foreign`] for a file that was never a pool; what the system
/// refuses.
pub fn repair(location: &str) -> Result<Repair, Error> {
    repair_watched(location, &mut |_| Ok(()))
}

pub(super) fn repair_watched(location: &str, watch: Watch<'_>) -> Result<Repair, Error> {
    let Location::File(path) = Location::parse(location)? else {
        let what = "only a pool in a file is repaired";
        return Err(Problem::BadOption { what }.at(location));
    };
    let (file, bytes) = file::open_for_repair(&path)?;
    let interrupted = take_back(&path, &file, bytes)?;
    if bytes == 0 {
        return Err(Problem::Unfinished.at(location));
    }
    let pages = || -> Result<Medium, Error> {
        let file = file.try_clone().map_err(|error| Error::system(format!("read {}", path.display()), error))?;
        let memory = PrivateMemory::new(private_view(&file, &path, bytes)?, bytes, file);
        Ok(Medium::new(Backing::Private(memory)))
    };
    let mut damaged = Image::of(pages()?, location);
    damaged.refuse_foreign()?;
    let mut before = damaged.check();
    let (old, new) = differences(&pages()?, &plan(pages)?)?;
    let kept = if new.is_empty() { None } else { Some(apply(&path, &file, bytes, &old, &new, watch)?) };
    if interrupted {
        before.findings.insert(0, Found::new(Class::RepairInterrupted, 0).mend(Vec::new()).finding);
    }
    let after = Image::of(pages()?, location).check();
    Ok(Repair { before, after, bytes: new.iter().map(|(_, data)| data.len() as u64).sum(), backup: kept })
}

/// The lines in which the pool differs from what it should be: as they are, and as they should be.
/// Only what was stored to can differ.
fn differences(now: &Medium, then: &Medium) -> Result<(Vec<Piece>, Vec<Piece>), Error> {
    let mut changed = IntervalSet::default();
    for range in then.backing().stored() {
        changed.insert(range.start / LINE_U64 * LINE_U64..range.end.next_multiple_of(LINE_U64).min(now.bytes()));
    }
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for range in changed.iter() {
        let load = |medium: &Medium| medium.load_vec(range.start, range.end - range.start);
        let (before, behind) = (load(now), load(then));
        for line in backup::differing_lines(&before, &behind, LINE) {
            let at = range.start + line.start as u64;
            old.push((at, before[line.clone()].to_vec()));
            new.push((at, behind[line].to_vec()));
        }
    }
    // Zeros in the place of what could not be read are no state of the pool.
    now.backing().alive()?;
    then.backing().alive()?;
    Ok((old, new))
}

fn write_pieces(file: &File, path: &Path, pieces: &[Piece], watch: Watch<'_>) -> Result<(), Error> {
    let refuse = |error| Error::system(format!("write {}", path.display()), error);
    for (offset, data) in pieces {
        watch(Step::Piece)?;
        file.write_all_at(data, *offset).map_err(refuse)?;
    }
    watch(Step::Sync)?;
    file.sync_all().map_err(refuse)
}

/// Gives the pool back what a repair that was interrupted has overwritten. Says whether there was
/// one.
fn take_back(path: &Path, file: &File, bytes: u64) -> Result<bool, Error> {
    let Some(pieces) = backup::read(path, bytes)? else { return Ok(false) };
    write_pieces(file, path, &pieces, &mut |_| Ok(()))?;
    backup::remove(path, file)?;
    Ok(true)
}

/// Writes the new bytes, behind a backup of the old ones.
fn apply(
    path: &Path,
    file: &File,
    bytes: u64,
    old: &[Piece],
    new: &[Piece],
    watch: Watch<'_>,
) -> Result<PathBuf, Error> {
    watch(Step::Backup)?;
    backup::write(path, file, bytes, old)?;
    write_pieces(file, path, new, watch)?;
    watch(Step::Keep)?;
    backup::keep(path, file)
}

/// The patches that were not made before.
fn fresh(found: &[Found], made: &[Piece]) -> Vec<Piece> {
    let patches = found.iter().filter_map(|found| Some((found.finding.offset, found.patch.clone()?)));
    patches.filter(|patch| !made.contains(patch)).collect()
}

/// The pool as it should be, in private pages.
fn plan(pages: impl Fn() -> Result<Medium, Error>) -> Result<Medium, Error> {
    let mut made: Vec<Piece> = Vec::new();
    loop {
        let patched = || -> Result<Medium, Error> {
            let medium = pages()?;
            made.iter().for_each(|(offset, bytes)| medium.store(*offset, bytes));
            Ok(medium)
        };
        let mut image = Image::of(patched()?, "");
        let (found, report) = image.examine();
        if report.recovery.is_some() {
            // Nothing to put right: the log is left to whoever opens the pool.
            let idle = made.is_empty() && fresh(&found, &[]).is_empty();
            return if idle { pages() } else { Ok(finish(image, found)) };
        }
        // Only what lies in front of the log was looked at: nothing was recovered.
        let patches = fresh(&found, &made);
        if patches.is_empty() {
            return patched();
        }
        made.extend(patches);
    }
}

/// The log was read: what is wrong behind it is put right.
fn finish(mut image: Image, mut found: Vec<Found>) -> Medium {
    let mut made = Vec::new();
    loop {
        let patches = fresh(&found, &made);
        if patches.is_empty() {
            return image.medium;
        }
        patches.iter().for_each(|(offset, bytes)| image.medium.store(*offset, bytes));
        made.extend(patches);
        found = image.examine().0;
    }
}
