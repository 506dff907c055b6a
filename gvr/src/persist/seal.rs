//! Cuts: sealed by each rank, then by all.

use super::pool::{Kept, NewVersion};
use super::{Inner, Member, agree, encode};
use crate::array::{Changed, Core, Fault, Sealer};
use crate::error::{Error, Result};

impl Inner {
    fn member(&self, core: &Core) -> Result<Member> {
        let arrays = self.arrays.borrow();
        let found = arrays.values().find(|member| std::ptr::eq(&*member.core, core)).cloned();
        found.ok_or_else(|| Error::option("an array of a job that was closed cannot be versioned"))
    }

    fn collect(&self, core: &Core, changed: &[Changed], label: &str) -> Result<NewVersion> {
        let member = self.member(core)?;
        let size = core.geometry.block as usize;
        let (mut now, mut then) = (vec![0; size], vec![0; size]);
        let mut blocks = Vec::with_capacity(changed.len());
        for changed in changed {
            core.block_at(changed.logical, &mut now)?;
            core.block_before(changed.block, &mut then)?;
            let (encoding, bytes) = encode::encode(&now, Some(&then), member.options.compress);
            blocks.push(Kept { block: changed.block, encoding, bytes, sum: crc32c::crc32c(&now) });
        }
        Ok(NewVersion { head: member.head, version: core.version(), label: label.to_owned(), blocks })
    }

    fn seal_mine(&self, cut: u64, arrays: &[&Core], changed: &[Vec<Changed>], label: &str) -> Result<()> {
        let versions = arrays.iter().zip(changed).map(|(core, changed)| self.collect(core, changed, label));
        let versions: Vec<NewVersion> = versions.collect::<Result<_>>()?;
        self.pool.seal(cut, &versions, self.planted(Fault::CommitBeforeAllreduce))
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
            self.pool.take_back(cut - 1)?;
        }
        all?;
        self.cut.set(cut);
        Ok(())
    }

    /// # Errors
    /// Of this rank's pool alone. The version is durable in any case.
    fn sealed_by_all(&self) -> Result<()> {
        self.pool.commit(self.cut.get())?;
        for (name, member) in &*self.arrays.borrow() {
            let head = member.head;
            while self.pool.count_versions(head)? > member.options.kept() {
                if let Err(bad) = self.pool.fold(head)? {
                    let (array, rank) = (name.clone(), self.rma.rank());
                    return Err(Error::Damaged {
                        array,
                        rank,
                        block: bad.block,
                        version: bad.version,
                        place: "the pool",
                    });
                }
            }
        }
        Ok(())
    }
}
