//! A rank's part of an array, as its pool has it, from version to version.

use memmap2::{Advice, MmapMut};

use super::format::{self, Head, MOST_NAME};
use super::pool::{Found, RankPool};
use crate::array::{Changed, Core, Sealer};
use crate::error::{Error, Result};

/// A rank's part of an array, as its pool has it, from version to version.
pub struct Part<'p> {
    pool: &'p RankPool,
    pub rank: usize,
    pub head: Head,
    pub versions: Vec<Found>,
    /// The part's bytes as of the version that was reached.
    pub image: MmapMut,
    /// Checksums of its blocks.
    pub sums: Vec<u32>,
}

/// A version of a part that is filled from a pool of the same blocks: their checksums are those of
/// the pool.
pub struct Known<'p> {
    pub sums: &'p [u32],
}

impl Sealer for Known<'_> {
    fn arrived(&self) -> Result<()> {
        Ok(())
    }

    fn settled(&self) {}

    fn in_background(&self) -> bool {
        false
    }

    fn seal(&self, _: &[&Core], changed: &[Vec<Changed>], _: &str) -> Result<Vec<Vec<u32>>> {
        let of = |changed: &Vec<Changed>| changed.iter().map(|changed| self.sums[changed.block as usize]).collect();
        Ok(changed.iter().map(of).collect())
    }

    fn sealed_by_all(&self) -> Result<()> {
        Ok(())
    }

    fn prepare(&self, _: &[&Core], _: &[Vec<Changed>], _: &str) -> Result<()> {
        Ok(())
    }

    fn begin(&self) -> Result<()> {
        Ok(())
    }

    fn version_wait(&self) -> Result<()> {
        Ok(())
    }
}

impl<'p> Part<'p> {
    pub fn new(rank: usize, pool: &'p RankPool, at: usize, name: &[u8; MOST_NAME], cut: u64) -> Result<Part<'p>> {
        let arrays = pool.arrays_up_to(cut)?;
        let Some((_, head)) = arrays.get(at).filter(|(_, head)| head.name == *name) else {
            return Err(lacks(&format!("the pool of rank {rank}"), &format::text(name)));
        };
        let mut versions = pool.versions(head)?;
        versions.retain(|found| found.head.cut <= cut);
        let image = zeros((head.blocks * head.block) as usize)?;
        let sums = vec![0; head.blocks as usize];
        Ok(Part { pool, rank, head: *head, versions, image, sums })
    }

    /// Brings the image to what it was before a version, and gives the blocks that are not zeros.
    pub fn begin(&mut self, first: u64, name: &str) -> Result<Vec<u64>> {
        let mut base = self.pool.base(&self.head)?;
        // What no version that is read here has, or builds on, need not be read.
        let replaced = |item: &format::Item| {
            let first = self.versions.first().filter(|found| found.head.version <= first)?;
            let at = first.items.binary_search_by_key(&item.block, |item| item.block).ok()?;
            Some(!format::builds_on(first.items[at].encoding))
        };
        base.retain(|item| item.at != 0 && replaced(item) != Some(true));
        let mut changed = self.apply(&base, first.saturating_sub(1), name)?;
        let later = self.versions.iter().position(|found| found.head.version >= first).unwrap_or(self.versions.len());
        for found in self.versions.drain(..later).collect::<Vec<_>>() {
            changed.extend(self.apply(&found.items, found.head.version, name)?);
        }
        changed.sort_unstable();
        changed.dedup();
        Ok(changed)
    }

    /// Applies items, and gives the blocks that they changed.
    pub fn apply(&mut self, items: &[format::Item], version: u64, name: &str) -> Result<Vec<u64>> {
        let size = self.head.block as usize;
        let mut changed = Vec::new();
        for item in items {
            let block = self.image.get_mut(item.block as usize * size..(item.block as usize + 1) * size);
            let good = match block {
                Some(block) => self.pool.apply(item, block)?,
                None => false,
            };
            if !good {
                let (array, rank, place) = (name.to_owned(), self.rank, "the pool");
                return Err(Error::Damaged { array, rank, block: item.block, version, place });
            }
            self.sums[item.block as usize] = item.sum;
            changed.push(item.block);
        }
        Ok(changed)
    }
}

/// Zeroed memory, in large pages where the system has them: it is written once, from end to end.
fn zeros(bytes: usize) -> Result<MmapMut> {
    let memory = MmapMut::map_anon(bytes.max(1)).map_err(Error::io("take memory for an array that is read"))?;
    let _ = memory.advise(Advice::HugePage);
    Ok(memory)
}

pub fn lacks(pool: &str, array: &str) -> Error {
    let what = format!("{pool} has no array {array:?}, which others have: bring the files back as they were");
    Error::Job { folder: "of the pools".to_owned(), what }
}
