//! Looking for damage in memory and in the pool, and mending each from the other, and where both
//! are damaged from a partner's copy.

use super::format::{Head, Item};
use super::pool::{Found, RankPool};
use super::recover::open_pool;
use super::{Current, Holder, Inner, Storage, agree};
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

/// Scrubs until nothing is found. What a rank has lost wherever it had it is asked of its partner,
/// one block at a time. All ranks call it.
pub(super) fn scrub(inner: &Inner) -> Result<Scrubbed> {
    let rma = &*inner.rma;
    let mut mended = Scrubbed::default();
    loop {
        let mut seen = Scrubbed::default();
        let mine = scrub_once(inner, &mut seen);
        mended.mended_in_memory += seen.mended_in_memory;
        mended.mended_in_pool += seen.mended_in_pool;
        (mended.in_memory, mended.in_pool) = (seen.in_memory, seen.in_pool);
        if inner.partner.is_none() {
            return agree(rma, mine).map(|()| mended);
        }
        if let Err(error @ (Error::Stopped { .. } | Error::DeadRank { .. })) = mine {
            return Err(error);
        }
        let all = rma.allgather(&lost(inner, &mine))?;
        let Some(rank) = all.chunks_exact(WORDS).position(|said| said[0] != 0) else {
            return agree(rma, mine).map(|()| mended);
        };
        if !ask_partner(inner, rank, &all[WORDS * rank..][..WORDS])? {
            let mine = if rank == rma.rank() { mine } else { Ok(()) };
            return agree(rma, mine).map(|()| mended);
        }
        mended.mended_in_memory += u64::from(rank == rma.rank());
    }
}

/// Words by which a rank says which block it has nowhere: place of the array in the order of names
/// plus 1, block, version.
const WORDS: usize = 3;

fn lost(inner: &Inner, mine: &Result<()>) -> [u64; WORDS] {
    let Err(Error::Damaged { array, rank, block, version, .. }) = mine else { return [0; WORDS] };
    if *rank != inner.rma.rank() {
        return [0; WORDS];
    }
    let at = inner.arrays.borrow().keys().position(|name| name == array);
    [at.map_or(0, |at| at as u64 + 1), *block, *version]
}

/// A rank's partner hands out what it has of a block, and the rank mends its memory by it; its pool
/// is then mended from that. Tells whether it could.
fn ask_partner(inner: &Inner, rank: usize, lost: &[u64]) -> Result<bool> {
    let (me, ranks) = (inner.rma.rank(), inner.rma.ranks());
    let (block, version) = (lost[1], lost[2]);
    let member = inner.arrays.borrow().values().nth(lost[0] as usize - 1).cloned();
    let member = member.ok_or_else(|| Error::option("ranks do not hold the same arrays"))?;
    let mut data = Vec::new();
    if let (Some(partner), Some(head)) = (inner.partner.as_ref().filter(|partner| partner.rank == rank), member.held) {
        let head = partner.pool.head(head)?;
        let versions = partner.pool.versions(&head)?;
        data = partner.pool.block(&head, &versions, version, block)?.unwrap_or_default();
    }
    inner.rma.broadcast((rank + 1) % ranks, &mut data)?;
    let whole = data.len() as u64 == member.core.geometry.block;
    let mended = rank == me && whole && member.core.mend(version, block, &data)?;
    Ok(inner.rma.allgather(&[u64::from(mended)])?[rank] != 0)
}

fn scrub_once(inner: &Inner, all: &mut Scrubbed) -> Result<()> {
    for (name, member) in &*inner.arrays.borrow() {
        let head = inner.pool.head(member.head)?;
        let versions = inner.pool.versions(&head)?;
        let other = |version, block| inner.pool.block(&head, &versions, version, block);
        let (looked, mended) = member.core.scrub(name, &other)?;
        all.in_memory += looked;
        all.mended_in_memory += mended;
        let memory = |rank| move |version, block| member.core.block_of(rank, version, block);
        let rank = inner.rma.rank();
        scrub_pool(Copy { pool: &inner.pool, rank, other: &memory(rank) }, name, &head, &versions, all)?;
        if let (Some(partner), Some(head)) = (&inner.partner, member.held) {
            let head = partner.pool.head(head)?;
            let versions = partner.pool.versions(&head)?;
            let copy = Copy { pool: &partner.pool, rank: partner.rank, other: &memory(partner.rank) };
            scrub_pool(copy, name, &head, &versions, all)?;
        }
    }
    Ok(())
}

/// A pool, and the rank whose versions it holds.
struct Copy<'a> {
    pool: &'a RankPool,
    rank: usize,
    other: Other<'a>,
}

/// Gives a block as of a version from another copy, if that has it.
type Other<'a> = &'a dyn Fn(u64, u64) -> Result<Option<Vec<u8>>>;

/// Reads everything that a pool has of an array. What is damaged is taken from another copy of the
/// rank's versions.
fn scrub_pool(copy: Copy<'_>, name: &str, head: &Head, versions: &[Found], all: &mut Scrubbed) -> Result<()> {
    let size = head.block as usize;
    let mut image = vec![0; size * head.blocks as usize];
    let mut lost = vec![false; head.blocks as usize];
    let damaged = |item: &Item, version| Error::Damaged {
        array: name.to_owned(),
        rank: copy.rank,
        block: item.block,
        version,
        place: "the pool",
    };
    let first = versions.first().map_or(0, |found| found.head.version);
    for (block, item) in copy.pool.base(head)?.iter().enumerate() {
        all.in_pool += u64::from(item.at != 0);
        // What the base holds is in memory only while the version after it does not change the
        // block.
        lost[block] = !copy.pool.apply(item, &mut image[block * size..][..size])?;
    }
    let base_lost = lost.clone();
    for found in versions {
        for item in &found.items {
            all.in_pool += 1;
            let block = item.block as usize;
            let to = &mut image[block * size..][..size];
            let builds_on = super::format::builds_on(item.encoding);
            if !(builds_on && lost[block]) && copy.pool.apply(item, to)? {
                lost[block] = false;
                continue;
            }
            let data = (copy.other)(found.head.version, item.block)?;
            let Some(data) = data.filter(|data| crc32c::crc32c(data) == item.sum) else {
                return Err(damaged(item, found.head.version));
            };
            to.copy_from_slice(&data);
            copy.pool.mend(head, Some(found), item.block, &data)?;
            lost[block] = false;
            all.mended_in_pool += 1;
        }
    }
    for (block, item) in copy.pool.base(head)?.iter().enumerate().filter(|(block, _)| base_lost[*block]) {
        let changed = versions.first().is_some_and(|found| found.items.iter().any(|item| item.block == block as u64));
        let data = if changed { None } else { (copy.other)(first, block as u64)? };
        match data.filter(|data| crc32c::crc32c(data) == item.sum) {
            Some(data) => {
                copy.pool.mend(head, None, block as u64, &data)?;
                all.mended_in_pool += 1;
            }
            // Nothing builds on it any more, unless the oldest version does so by a delta, which
            // was mended above.
            None if changed => {
                copy.pool.forget(head, block as u64)?;
                all.mended_in_pool += 1;
            }
            None => return Err(damaged(&Item { block: block as u64, ..*item }, first)),
        }
    }
    Ok(())
}

/// A rank's pool and, where there are partners, the copy of it.
struct Pair {
    rank: usize,
    pools: Vec<RankPool>,
}

impl Pair {
    fn open(storage: &dyn Storage, current: Current, rank: usize) -> Result<Pair> {
        let mut pools = vec![open_pool(storage, current, rank, Holder::Owner, false)?];
        if current.partners {
            pools.push(open_pool(storage, current, rank, Holder::Partner, false)?);
        }
        Ok(Pair { rank, pools })
    }

    fn scrub(&self, all: &mut Scrubbed) -> Result<()> {
        for (at, pool) in self.pools.iter().enumerate() {
            let copy = self.pools.iter().enumerate().find(|(other, _)| *other != at).map(|(_, copy)| copy);
            for (_, head) in pool.arrays()? {
                let name = super::format::text(&head.name);
                let theirs = match copy {
                    Some(copy) => copy.arrays()?.into_iter().find(|(_, theirs)| theirs.name == head.name),
                    None => None,
                };
                let versions = pool.versions(&head)?;
                let copied = match (copy, theirs) {
                    (Some(copy), Some((_, theirs))) => Some((copy, theirs, copy.versions(&theirs)?)),
                    _ => None,
                };
                let other = |version, block| match &copied {
                    Some((copy, theirs, versions)) => copy.block(theirs, versions, version, block),
                    None => Ok(None),
                };
                scrub_pool(Copy { pool, rank: self.rank, other: &other }, &name, &head, &versions, all)?;
            }
        }
        Ok(())
    }
}

/// Reads every block of the pools of a job that nobody has open, and mends what is damaged from the
/// partner's copy.
///
/// # Errors
/// [`Error::Damaged`] where there is none, or it is damaged, too; those of the pools.
pub fn scrub_folder(storage: &dyn Storage) -> Result<Scrubbed> {
    let current = storage.current()?.ok_or_else(|| Error::Job {
        folder: storage.name(),
        what: "there is no job: give the folder of one".to_owned(),
    })?;
    let mut all = Scrubbed::default();
    for rank in 0..current.ranks {
        let pair = Pair::open(storage, current, rank)?;
        pair.scrub(&mut all)?;
        pair.pools.into_iter().try_for_each(|pool| pool.pool.close())?;
    }
    Ok(all)
}

/// Flips a bit of some block that the pool keeps, by a number that chooses it: damage for tests.
/// Tells whether there was one.
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
