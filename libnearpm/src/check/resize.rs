//! Pools that nobody has open become larger or shorter.

use std::path::Path;

use nearpm_interface::media::{CHUNK_BYTES, ChunkWord, PoolHead};

use super::{Tables, check};
use crate::Survives;
use crate::error::{Error, Problem};
use crate::heap::HeapLayout;
use crate::memory::{self, Backing, MappedMemory, Medium};
use crate::pool::{Location, file, format, grow};
use crate::recovery::recover;

/// A pool that has another size.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resized {
    /// Bytes that the pool had.
    pub former: u64,
    /// Bytes that it has.
    pub bytes: u64,
}

/// Gives a pool in a file another size, and recovers it. Objects stay where they are; nobody else
/// may have it open. It gets whole chunks, so that it may be somewhat shorter than `bytes`. A cut
/// or a full medium leaves it as it was.
///
/// # Errors
/// [`Problem::BadOption`] for a pool on a card, and one that the mechanisms made;
/// [`Problem::Corrupt`] for one that is not sound;
/// [`Problem::TooSmall`] where its objects, or what it was made with, need more;
/// [`Problem::NoSpace`]; [`Problem::InUse`].
pub fn resize(location: &str, bytes: u64) -> Result<Resized, Error> {
    let Location::File(path) = Location::parse(location)? else {
        return Err(Problem::BadOption { what: grow::ON_CARD }.at(location));
    };
    if let Some(finding) = check(location)?.findings.first() {
        let (what, offset) = (finding.class.what(), finding.offset);
        return Err(Problem::Corrupt { what, offset }.at(location));
    }
    let (file, file_bytes) = file::open_exclusive(&path)?;
    let map = |file: &std::fs::File| -> Result<Medium, Error> {
        let file = file.try_clone().map_err(|error| Error::system(format!("open {}", path.display()), error))?;
        Ok(Medium::new(Backing::Mapped(MappedMemory::map(file, &path, Survives::PowerCut)?)))
    };
    let medium = map(&file)?;
    let head = format::read(&medium).map_err(|problem| problem.at(location))?;
    grow::check(&head).map_err(|problem| problem.at(location))?;
    let former = grow::bytes(&head);
    let new = if bytes > former {
        let new = grow::plan(&head, bytes).map_err(|problem| problem.at(location))?;
        drop(medium);
        memory::extend(&path, &file, file_bytes, new.grown())?;
        let medium = map(&file)?;
        grow::settle_head(&medium, &head)?;
        recover(&medium, &head)?;
        grow::write(&medium, &head, &new)?
    } else {
        grow::settle_head(&medium, &head)?;
        recover(&medium, &head)?;
        let tables = Tables::load(&medium, &head)?;
        let new = shorter(&tables, &head, bytes).map_err(|problem| problem.at(location))?;
        if new.grown() != head.grown() {
            forget_runs(&medium, &tables, &new)?;
            grow::end_at(&medium, new)?;
        }
        drop(medium);
        cut(&path, &file, grow::bytes(&new))?;
        new
    };
    Ok(Resized { former, bytes: grow::bytes(&new) })
}

/// The head of a pool that has `bytes` bytes at most.
fn shorter(tables: &Tables, head: &PoolHead, bytes: u64) -> Result<PoolHead, Problem> {
    let layout = tables.layout();
    let used = tables.used_chunks().last().map_or(0, |(chunk, word, _)| match word {
        ChunkWord::Large { chunks } | ChunkWord::Run { chunks, .. } => chunk + chunks,
        _ => chunk + 1,
    });
    let made = head.with_grown(0);
    let base = HeapLayout::of(&made);
    let minimum = if used <= base.base() { head.bytes } else { layout.first + u64::from(used) * CHUNK_BYTES };
    if bytes < minimum {
        return Err(Problem::TooSmall { bytes, minimum });
    }
    Ok(match base.grown_to(bytes) {
        Some(shorter) if shorter.chunks < layout.chunks && shorter.chunks >= u64::from(used) => {
            head.with_grown(shorter.range().end)
        }
        None if used <= base.base() => made,
        _ => *head,
    })
}

/// Makes runs free chunks that hold nothing any more and go beyond the end that a pool is about to
/// get: their words would name chunks that it has not, now or when it has grown again.
fn forget_runs(medium: &Medium, tables: &Tables, new: &PoolHead) -> Result<(), Error> {
    let end = HeapLayout::of(new).chunks;
    let layout = tables.layout();
    for (chunk, _) in tables.empty_runs().filter(|&(chunk, chunks)| u64::from(chunk + chunks) > end) {
        medium.put_word(layout.word(chunk), layout.form.encode_chunk(ChunkWord::Free));
    }
    medium.drain()
}

/// Cuts what is no part of the pool off its file.
fn cut(path: &Path, file: &std::fs::File, bytes: u64) -> Result<(), Error> {
    let refuse = |error| Error::system(format!("cut {}", path.display()), error);
    if file.metadata().map_err(refuse)?.len() > bytes {
        file.set_len(bytes).and_then(|()| file.sync_all()).map_err(refuse)?;
    }
    Ok(())
}
