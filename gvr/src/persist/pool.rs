//! A rank's pool: versions are sealed into it, folded into the base, and read from it.

use std::sync::atomic::AtomicU64;

use nearpm::direct::DirectPool;
use nearpm::prelude::*;

use super::encode;
use super::format::{self, Head, Item, RAW, Root, Sealed};
use super::object::{Form, Kept, items_at, nothing_logged, release, write_object};
use crate::error::Error;

type Result<T> = std::result::Result<T, Error>;

/// A version of one array.
pub struct NewVersion {
    pub head: Ptr<Head>,
    pub version: u64,
    /// Bytes of a block.
    pub size: usize,
    pub blocks: Vec<Kept>,
}

/// Reads a block of a version, by the version's place in a list, from the log.
pub type Read<'r> = &'r dyn Fn(usize, u64, &[AtomicU64]) -> Result<()>;

/// A version that the pool holds.
pub struct Found {
    pub place: Ptr<Sealed>,
    pub head: Sealed,
    pub items: Vec<Item>,
}

/// A damaged block: number and version.
pub struct Bad {
    pub block: u64,
    pub version: u64,
}

/// An open pool of a rank.
pub struct RankPool {
    pub pool: DirectPool,
}

impl RankPool {
    /// Makes the root of a new pool.
    pub fn found(pool: DirectPool, job: u64, rank: usize, ranks: usize) -> Result<RankPool> {
        pool.tx(|tx| {
            let root = tx.root_or_zeroed::<Root>()?;
            let (rank, ranks) = (rank as u32, ranks as u32);
            tx.set(root, Root { magic: format::MAGIC, job, rank, ranks, sealed: 0, committed: 0, arrays: None })
        })?;
        Ok(RankPool { pool })
    }

    /// Checks the root of a pool that was opened.
    pub fn opened(pool: DirectPool, name: &str, rank: usize, ranks: usize) -> Result<(RankPool, Root)> {
        let root = pool.read(|from| from.root::<Root>()?.map(|root| from.get(root)).transpose())?;
        match root {
            Some(root) if root.magic == format::MAGIC && root.rank as usize == rank && root.ranks as usize == ranks => {
                Ok((RankPool { pool }, root))
            }
            _ => {
                let what =
                    format!("the pool of rank {rank} of {ranks} is another one's: bring the files back as they were");
                Err(Error::Job { folder: name.to_owned(), what })
            }
        }
    }

    /// What the root says.
    pub fn root(&self) -> Result<Root> {
        let root = self.pool.read(|from| from.root::<Root>()?.map(|root| from.get(root)).transpose())?;
        root.ok_or_else(|| Error::option("the pool has lost its root: check it by `nearpm pool check`"))
    }

    /// The arrays, in the order of their making.
    pub fn arrays(&self) -> Result<Vec<(Ptr<Head>, Head)>> {
        let mut found = Vec::new();
        let mut next = self.root()?.arrays;
        while let Some(place) = next {
            let head = self.pool.read(|from| from.get(place))?;
            found.push((place, head));
            next = head.next;
        }
        found.reverse();
        Ok(found)
    }

    /// The arrays that have a version up to a cut. Others were made by some ranks and then never
    /// used by all.
    pub fn arrays_up_to(&self, cut: u64) -> Result<Vec<(Ptr<Head>, Head)>> {
        let mut arrays = self.arrays()?;
        let cuts = self.pool.read(|from| {
            let cut_of = |(_, head): &(Ptr<Head>, Head)| head.oldest.map(|oldest| from.get(oldest.cut())).transpose();
            arrays.iter().map(cut_of).collect::<std::result::Result<Vec<_>, nearpm::Error>>()
        })?;
        let mut cuts = cuts.into_iter();
        arrays.retain(|_| cuts.next().flatten().is_some_and(|oldest| oldest <= cut));
        Ok(arrays)
    }

    /// Removes an array that no rank has used, if there is one of the name.
    fn remove_unused(&self, name: &[u8; format::MOST_NAME]) -> Result<()> {
        let arrays = self.arrays()?;
        let Some(at) = arrays.iter().position(|(_, head)| head.name == *name && head.oldest.is_none()) else {
            return Ok(());
        };
        Ok(self.pool.tx(|tx| {
            let (place, head) = arrays[at];
            match arrays.get(at + 1) {
                Some((newer, _)) => tx.set(newer.next(), head.next)?,
                None => {
                    let root = tx.root_or_zeroed::<Root>()?;
                    tx.set(root.arrays(), head.next)?;
                }
            }
            head.base.map_or(Ok(()), |base| tx.free(base))?;
            tx.free(place)
        })?)
    }

    /// Adds an array without versions.
    pub fn add(&self, mut head: Head) -> Result<Ptr<Head>> {
        self.remove_unused(&head.name)?;
        let place = self.pool.tx(|tx| {
            let root = tx.root_or_zeroed::<Root>()?;
            let base = tx.alloc_zeroed::<Item>(head.blocks)?;
            (head.next, head.base) = (tx.get(root.arrays())?, Some(base));
            let place = tx.alloc(head)?;
            tx.set(root.arrays(), Some(place))?;
            Ok(place)
        })?;
        Ok(place)
    }

    /// Seals versions of arrays as one cut: all of them or none. `committed` is the newest cut that
    /// all ranks are known to have sealed. Gives the checksums of the blocks of each.
    pub fn seal(
        &self,
        cut: u64,
        committed: u64,
        label: &str,
        versions: &[NewVersion],
        read: Read<'_>,
    ) -> Result<Vec<Vec<u32>>> {
        self.pool.try_tx(|tx| {
            let mut sums = Vec::with_capacity(versions.len());
            for (at, new) in versions.iter().enumerate() {
                let head = Sealed {
                    next: None,
                    cut,
                    version: new.version,
                    label: format::field(label),
                    count: 0,
                    users: 1,
                    bytes: 0,
                    sum: 0,
                };
                let read = |logical, words: &[AtomicU64]| read(at, logical, words);
                let (place, items) = write_object(tx, head, new.size, &new.blocks, &read)?;
                match tx.get(new.head.newest())? {
                    Some(before) => tx.set(before.next(), Some(place))?,
                    None => tx.set(new.head.oldest(), Some(place))?,
                }
                tx.set(new.head.newest(), Some(place))?;
                sums.push(items.iter().map(|item| item.sum).collect());
            }
            let root = tx.root_or_zeroed::<Root>()?;
            tx.set(root.sealed(), cut)?;
            tx.set(root.committed(), committed)?;
            Ok(sums)
        })
    }

    /// Notes that all ranks have sealed a cut.
    pub fn commit(&self, cut: u64) -> Result<()> {
        if self.root()?.committed == cut {
            return Ok(());
        }
        Ok(self.pool.tx(|tx| {
            let root = tx.root_or_zeroed::<Root>()?;
            tx.set(root.committed(), cut)
        })?)
    }

    /// Takes back what was sealed behind a cut, as not all ranks have.
    pub fn take_back(&self, cut: u64) -> Result<()> {
        let arrays = self.arrays()?;
        let lists: Vec<Vec<Found>> = arrays.iter().map(|(_, head)| self.versions(head)).collect::<Result<_>>()?;
        Ok(self.pool.tx(|tx| {
            for ((place, _), versions) in arrays.iter().zip(&lists) {
                let kept = versions.iter().take_while(|found| found.head.cut <= cut).count();
                if kept == versions.len() {
                    continue;
                }
                let last = kept.checked_sub(1).map(|last| versions[last].place);
                match last {
                    Some(last) => tx.set(last.next(), None)?,
                    None => tx.set(place.oldest(), None)?,
                }
                tx.set(place.newest(), last)?;
                versions[kept..].iter().try_for_each(|found| release(tx, Ptr::offset(found.place), 1))?;
            }
            let root = tx.root_or_zeroed::<Root>()?;
            tx.set(root.sealed(), cut)?;
            tx.set(root.committed(), cut)
        })?)
    }

    /// What the pool says of an array now.
    pub fn head(&self, place: Ptr<Head>) -> Result<Head> {
        Ok(self.pool.read(|from| from.get(place))?)
    }

    /// Versions of an array.
    pub fn count_versions(&self, place: Ptr<Head>) -> Result<u64> {
        let mut next = self.head(place)?.oldest;
        let mut count = 0;
        while let Some(place) = next {
            next = self.pool.read(|from| from.get(place.next()))?;
            count += 1;
        }
        Ok(count)
    }

    /// Gives up what the base has of a block, which no version needs.
    pub fn forget(&self, head: &Head, block: u64) -> Result<()> {
        let Some(base) = head.base else { return Ok(()) };
        Ok(self.pool.tx(|tx| {
            let old = tx.replace(Ptr::nth(base, block), Item { block, ..Item::ZERO })?;
            release(tx, old.object, 1)
        })?)
    }

    /// A version that the pool has at a place.
    fn version_at(&self, place: Ptr<Sealed>) -> Result<Found> {
        let (head, items) = self.pool.read(|from| {
            let head = from.get(place)?;
            Ok((head, from.get_all(items_at(place), head.count)?))
        })?;
        if format::sum(&head, &items) != head.sum {
            let what = "a version's list of blocks is damaged: bring the pool back from a copy".to_owned();
            return Err(Error::Job { folder: format!("rank {}", self.root()?.rank), what });
        }
        Ok(Found { place, head, items })
    }

    /// The versions of an array, oldest first.
    pub fn versions(&self, head: &Head) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        let mut next = head.oldest;
        while let Some(place) = next {
            let version = self.version_at(place)?;
            next = version.head.next;
            found.push(version);
        }
        Ok(found)
    }

    /// The base of an array.
    pub fn base(&self, head: &Head) -> Result<Vec<Item>> {
        let Some(base) = head.base else { return Ok(Vec::new()) };
        Ok(self.pool.read(|from| from.get_all(base, head.blocks))?)
    }

    /// Brings a block from what it was before an item to what the item says. `false` if the bytes
    /// are damaged.
    pub fn apply(&self, item: &Item, block: &mut [u8]) -> Result<bool> {
        if item.at == 0 {
            block.fill(0);
            return Ok(true);
        }
        if item.encoding == RAW && item.bytes as usize == block.len() {
            self.pool.read(|from| from.read(item.at, block))?;
            return Ok(item.sum == item.kept_sum && crc32c::crc32c(block) == item.sum);
        }
        let mut kept = vec![0; item.bytes as usize];
        self.pool.read(|from| from.read(item.at, &mut kept))?;
        if crc32c::crc32c(&kept) != item.kept_sum {
            return Ok(false);
        }
        Ok(encode::decode(item.encoding, &kept, block) && crc32c::crc32c(block) == item.sum)
    }

    /// A block as of a version, `None` if it is damaged on the way there.
    pub fn block(&self, head: &Head, versions: &[Found], version: u64, block: u64) -> Result<Option<Vec<u8>>> {
        let mut data = vec![0; head.block as usize];
        let Some(base) = head.base else { return Ok(None) };
        let first = self.pool.read(|from| from.get(Ptr::nth(base, block)))?;
        let items = versions.iter().take_while(|found| found.head.version <= version).filter_map(|found| {
            found.items.binary_search_by_key(&block, |item| item.block).ok().map(|at| found.items[at])
        });
        // What is damaged may be mended by a later version that does not build on it.
        let mut good = true;
        for item in std::iter::once(first).chain(items) {
            good = (good || !format::builds_on(item.encoding)) && self.apply(&item, &mut data)?;
        }
        Ok(good.then_some(data))
    }

    /// Folds the oldest version into the base, which gives the space of what it replaces back.
    pub fn fold(&self, place: Ptr<Head>) -> Result<std::result::Result<(), Bad>> {
        let head = self.pool.read(|from| from.get(place))?;
        let (Some(oldest), Some(base)) = (head.oldest, head.base) else { return Ok(Ok(())) };
        let oldest = &self.version_at(oldest)?;
        let before = self.base(&head)?;
        let mut copied = Vec::new();
        for item in oldest.items.iter().filter(|item| format::builds_on(item.encoding)) {
            let mut block = vec![0; head.block as usize];
            if !(self.apply(&before[item.block as usize], &mut block)? && self.apply(item, &mut block)?) {
                return Ok(Err(Bad { block: item.block, version: oldest.head.version }));
            }
            copied.push(Kept { block: item.block, sum: crc32c::crc32c(&block), form: Form::Bytes(RAW, block) });
        }
        self.pool.try_tx(|tx| -> Result<()> {
            let mut new: Vec<Item> =
                oldest.items.iter().filter(|item| !format::builds_on(item.encoding)).copied().collect();
            // Items that were mended lie in objects of their own, which now belong to the base.
            let own = |item: &&Item| item.object == Ptr::offset(oldest.place);
            let users = new.iter().filter(own).count() as u64;
            if !copied.is_empty() {
                let head = Sealed { next: None, users: copied.len() as u64, ..oldest.head };
                new.extend(write_object(tx, head, 0, &copied, &nothing_logged)?.1);
            }
            // Neighbours together: a version that has changed everything is one store, not one for
            // each block.
            for run in new.chunk_by(|one, next| one.block + 1 == next.block) {
                tx.set_all(Ptr::nth(base, run[0].block), run)?;
            }
            let replaced = |item: &Item| before[item.block as usize].object;
            for run in new.chunk_by(|one, next| replaced(one) == replaced(next)) {
                release(tx, replaced(&run[0]), run.len() as u64)?;
            }
            tx.update(oldest.place.users(), |all| all + users)?;
            release(tx, Ptr::offset(oldest.place), 1)?;
            tx.set(place.oldest(), oldest.head.next)?;
            if oldest.head.next.is_none() {
                tx.set(place.newest(), None)?;
            }
            Ok(())
        })?;
        Ok(Ok(()))
    }

    /// Replaces what is kept of a block by the whole block: of a version by its number, of the base
    /// by `None`.
    pub fn mend(&self, head: &Head, version: Option<&Found>, block: u64, data: &[u8]) -> Result<()> {
        let kept = Kept { block, sum: crc32c::crc32c(data), form: Form::Bytes(RAW, data.to_vec()) };
        self.pool.try_tx(|tx| {
            let place = match version {
                None => head.base.map(|base| Ptr::nth(base, block)),
                Some(found) => {
                    let at = found.items.binary_search_by_key(&block, |item| item.block).ok();
                    at.map(|at| Ptr::nth(items_at(found.place), at as u64))
                }
            };
            let Some(place) = place else { return Ok(()) };
            let old = tx.get(place)?;
            let object =
                Sealed { next: None, cut: 0, version: 0, label: [0; 64], count: 0, users: 1, bytes: 0, sum: 0 };
            let (_, items) = write_object(tx, object, 0, std::slice::from_ref(&kept), &nothing_logged)?;
            tx.set(place, items[0])?;
            match version {
                None => release(tx, old.object, 1)?,
                Some(found) => {
                    let items = tx.get_all(items_at(found.place), found.head.count)?;
                    let sum = format::sum(&found.head, &items);
                    tx.set(found.place.sum(), sum)?;
                }
            }
            Ok(())
        })
    }

    /// Flips a bit, for tests.
    pub fn flip(&self, at: u64, bit: u8) -> Result<()> {
        Ok(self.pool.tx(|tx| {
            let mut byte = [0];
            tx.read(at, &mut byte)?;
            tx.write(at, &[byte[0] ^ 1 << (bit % 8)])
        })?)
    }
}
