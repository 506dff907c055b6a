//! Cuts: sealed by each rank, then by all.

use nearpm::Ptr;

use super::format::Head;
use super::pool::{Kept, NewVersion, RankPool};
use super::{Inner, Member, agree, encode};
use crate::array::{Changed, Core, Fault, Sealer};
use crate::error::{Error, Result};

impl Inner {
    fn member(&self, core: &Core) -> Result<Member> {
        let arrays = self.arrays.borrow();
        let found = arrays.values().find(|member| std::ptr::eq(&*member.core, core)).cloned();
        found.ok_or_else(|| Error::option("an array of a job that was closed cannot be versioned"))
    }

    /// What changed in a rank's part, as it is to be kept in a pool that has the array at `head`.
    fn collect(
        &self,
        core: &Core,
        rank: usize,
        head: Ptr<Head>,
        changed: &[Changed],
        label: &str,
    ) -> Result<NewVersion> {
        let compress = core.options.compress;
        let size = core.geometry.block as usize;
        let (mut now, mut then) = (vec![0; size], vec![0; size]);
        let mut blocks = Vec::with_capacity(changed.len());
        for changed in changed {
            core.block_at(rank, changed.logical, &mut now)?;
            core.block_before(rank, changed.block, &mut then)?;
            let (encoding, bytes) = encode::encode(&now, Some(&then), compress);
            blocks.push(Kept { block: changed.block, encoding, bytes, sum: crc32c::crc32c(&now) });
        }
        Ok(NewVersion { head, version: core.version(), label: label.to_owned(), blocks })
    }

    fn seal_mine(&self, cut: u64, arrays: &[&Core], changed: &[Vec<Changed>], label: &str) -> Result<()> {
        let me = self.rma.rank();
        let own =
            |(core, changed): (&&Core, &Vec<Changed>)| self.collect(core, me, self.member(core)?.head, changed, label);
        let versions: Vec<NewVersion> = arrays.iter().zip(changed).map(own).collect::<Result<_>>()?;
        self.pool.seal(cut, &versions, self.planted(Fault::CommitBeforeAllreduce))?;
        self.seal_partner(cut, arrays, label)
    }

    /// Seals the part of the rank that this one is the partner of, which waits meanwhile.
    fn seal_partner(&self, cut: u64, arrays: &[&Core], label: &str) -> Result<()> {
        let Some(partner) = &self.partner else { return Ok(()) };
        let theirs = |core: &&Core| {
            let head = self.member(core)?.held;
            let head = head.ok_or_else(|| Error::option("a partner's pool lacks an array"))?;
            self.collect(core, partner.rank, head, &core.changed_of(partner.rank)?, label)
        };
        let versions: Vec<NewVersion> = arrays.iter().map(theirs).collect::<Result<_>>()?;
        partner.pool.seal(cut, &versions, false)
    }

    /// The pools that this rank holds.
    pub(super) fn pools(&self) -> impl Iterator<Item = &RankPool> {
        std::iter::once(&self.pool).chain(self.partner.as_ref().map(|partner| &partner.pool))
    }
}

impl Sealer for Inner {
    fn seal(&self, arrays: &[&Core], changed: &[Vec<Changed>], label: &str) -> Result<()> {
        let cut = self.cut.get() + 1;
        let mine = self.seal_mine(cut, arrays, changed, label);
        let good = mine.is_ok();
        let all = agree(&*self.rma, mine);
        if all.is_err() && good && !matches!(all, Err(Error::Stopped { .. } | Error::DeadRank { .. })) {
            // Whoever opens the pools next would do the same.
            self.pools().try_for_each(|pool| pool.take_back(cut - 1))?;
        }
        all?;
        self.cut.set(cut);
        Ok(())
    }

    /// # Errors
    /// Of this rank's pool alone. The version is durable in any case.
    fn sealed_by_all(&self) -> Result<()> {
        self.pools().try_for_each(|pool| pool.commit(self.cut.get()))?;
        for (name, member) in &*self.arrays.borrow() {
            fold(&self.pool, name, self.rma.rank(), member.head, member.options.kept())?;
            if let (Some(partner), Some(head)) = (&self.partner, member.held) {
                fold(&partner.pool, name, partner.rank, head, member.options.kept())?;
            }
        }
        Ok(())
    }
}

/// Folds versions of an array that are kept no more into the base.
fn fold(pool: &RankPool, name: &str, rank: usize, head: Ptr<Head>, kept: u64) -> Result<()> {
    while pool.count_versions(head)? > kept {
        if let Err(bad) = pool.fold(head)? {
            let (array, block, version) = (name.to_owned(), bad.block, bad.version);
            return Err(Error::Damaged { array, rank, block, version, place: "the pool" });
        }
    }
    Ok(())
}
