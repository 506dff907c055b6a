//! Looking for damage in memory and in the pool, and mending each from the other.

use super::format::{Head, Item};
use super::pool::Found;
use super::{Inner, Member};
use crate::error::{Error, Result};

/// What a scrub looked at and mended, on this rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// Blocks of closed versions in memory.
    pub in_memory: u64,
    /// Blocks in the pool.
    pub in_pool: u64,
    /// Blocks in memory that were mended.
    pub mended_in_memory: u64,
    /// Blocks in the pool that were mended.
    pub mended_in_pool: u64,
}

pub(super) fn scrub(inner: &Inner) -> Result<Scrubbed> {
    let mut all = Scrubbed::default();
    for (name, member) in &*inner.arrays.borrow() {
        let head = inner.pool.head(member.head)?;
        let versions = inner.pool.versions(&head)?;
        let other = |version, block| inner.pool.block(&head, &versions, version, block);
        let (looked, mended) = member.core.scrub(name, &other)?;
        all.in_memory += looked;
        all.mended_in_memory += mended;
        scrub_pool(inner, name, member, &head, &versions, &mut all)?;
    }
    Ok(all)
}

/// Reads everything that the pool has of an array. What is damaged is taken from memory, which was found to be whole.
fn scrub_pool(
    inner: &Inner,
    name: &str,
    member: &Member,
    head: &Head,
    versions: &[Found],
    all: &mut Scrubbed,
) -> Result<()> {
    let size = head.block as usize;
    let mut image = vec![0; size * head.blocks as usize];
    let mut lost = vec![false; head.blocks as usize];
    let damaged = |item: &Item, version| Error::Damaged {
        array: name.to_owned(),
        rank: inner.rma.rank(),
        block: item.block,
        version,
        place: "the pool",
    };
    let first = versions.first().map_or(0, |found| found.head.version);
    for (block, item) in inner.pool.base(head)?.iter().enumerate() {
        all.in_pool += u64::from(item.at != 0);
        // What the base holds is in memory only while the version after it does not change the block.
        lost[block] = !inner.pool.apply(item, &mut image[block * size..][..size])?;
    }
    let base_lost = lost.clone();
    for found in versions {
        for item in &found.items {
            all.in_pool += 1;
            let block = item.block as usize;
            let to = &mut image[block * size..][..size];
            let builds_on = item.encoding == super::format::DELTA;
            if !(builds_on && lost[block]) && inner.pool.apply(item, to)? {
                lost[block] = false;
                continue;
            }
            let data = member.core.block_of(found.head.version, item.block)?;
            let Some(data) = data.filter(|data| crc32c::crc32c(data) == item.sum) else {
                return Err(damaged(item, found.head.version));
            };
            to.copy_from_slice(&data);
            inner.pool.mend(head, Some(found), item.block, &data)?;
            lost[block] = false;
            all.mended_in_pool += 1;
        }
    }
    for (block, item) in inner.pool.base(head)?.iter().enumerate().filter(|(block, _)| base_lost[*block]) {
        let changed = versions.first().is_some_and(|found| found.items.iter().any(|item| item.block == block as u64));
        let data = if changed { None } else { member.core.block_of(first, block as u64)? };
        match data.filter(|data| crc32c::crc32c(data) == item.sum) {
            Some(data) => {
                inner.pool.mend(head, None, block as u64, &data)?;
                all.mended_in_pool += 1;
            }
            // Nothing builds on it any more, unless the oldest version does so by a delta, which was mended above.
            None if changed => {
                inner.pool.forget(head, block as u64)?;
                all.mended_in_pool += 1;
            }
            None => return Err(damaged(&Item { block: block as u64, ..*item }, first)),
        }
    }
    Ok(())
}

/// Flips a bit of some block that the pool keeps, by a number that chooses it: damage for tests. Tells whether there was one.
pub(super) fn damage(inner: &Inner, choice: u64, bit: u8) -> Result<bool> {
    let mut places = Vec::new();
    for member in inner.arrays.borrow().values() {
        let head = inner.pool.head(member.head)?;
        let items = inner.pool.versions(&head)?.into_iter().flat_map(|found| found.items);
        places.extend(items.chain(inner.pool.base(&head)?).filter(|item| item.bytes > 0));
    }
    if places.is_empty() {
        return Ok(false);
    }
    let item = places[(choice % places.len() as u64) as usize];
    let at = item.at + choice / places.len() as u64 % u64::from(item.bytes);
    inner.pool.flip(at, bit)?;
    Ok(true)
}
