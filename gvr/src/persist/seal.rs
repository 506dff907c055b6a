//! Cuts: sealed by each rank, then by all.

use nearpm::Ptr;

use super::cut::{Cut, Delivery, Overdue, Sealed, Share};
use super::flight::Flight;
use super::format::Head;
use super::pool::RankPool;
use super::{Inner, Member, agree};
use crate::array::{Changed, Core, Fault, Sealer};
use crate::error::{Error, Result};

impl Inner {
    fn member(&self, core: &Core) -> Result<Member> {
        let arrays = self.arrays.borrow();
        let found = arrays.values().find(|member| std::ptr::eq(&*member.core, core)).cloned();
        found.ok_or_else(|| Error::option("an array of a job that was closed cannot be versioned"))
    }

    fn share(&self, core: &Core, rank: usize, head: Ptr<Head>, changed: Vec<Changed>) -> Share {
        let (version, before, compress) = (core.version(), core.newest_root(rank), core.options.compress);
        Share { blocks: core.stored(), rank, head, version, changed, before, compress }
    }

    /// What the next cut brings to the pools that this rank holds. The rank of which it holds a
    /// copy has not closed its part yet.
    fn cut_of(&self, arrays: &[&Core], changed: &[Vec<Changed>], label: &str) -> Result<Cut> {
        let me = self.rma.rank();
        let own = |(core, changed): (&&Core, &Vec<Changed>)| {
            Ok(self.share(core, me, self.member(core)?.head, changed.clone()))
        };
        let own = Delivery::new(&self.pool, arrays.iter().zip(changed).map(own).collect::<Result<_>>()?);
        let held = self.partner.as_ref().map(|partner| -> Result<Delivery> {
            let theirs = |core: &&Core| {
                let head = self.member(core)?.held;
                let head = head.ok_or_else(|| Error::option("a partner's pool lacks an array"))?;
                Ok(self.share(core, partner.rank, head, core.changed_of(partner.rank)?))
            };
            Ok(Delivery::new(&partner.pool, arrays.iter().map(theirs).collect::<Result<_>>()?))
        });
        let number = self.cut.get() + 1;
        let early = self.planted(Fault::CommitBeforeAllreduce);
        let committed = if early { number } else { self.cut.get() };
        Ok(Cut { number, committed, label: label.to_owned(), own, held: held.transpose()? })
    }

    /// Arrays of which the pools may hold more versions than are kept.
    fn overdue(&self, of_partner: bool) -> Vec<Overdue> {
        let rank = if of_partner { self.partner.as_ref().map(|partner| partner.rank) } else { Some(self.rma.rank()) };
        let arrays = self.arrays.borrow();
        let overdue = |(name, member): (&String, &Member)| {
            let head = if of_partner { member.held? } else { member.head };
            Some(Overdue { name: name.clone(), rank: rank?, head, kept: member.options.kept() })
        };
        arrays.iter().filter_map(overdue).collect()
    }

    /// The pools that this rank holds.
    pub(super) fn pools(&self) -> impl Iterator<Item = &RankPool> {
        std::iter::once(&*self.pool).chain(self.partner.as_ref().map(|partner| &*partner.pool))
    }

    /// Waits until this rank's thread does nothing more.
    pub(super) fn land(&self) -> Result<()> {
        self.flight.borrow().as_ref().map_or(Ok(()), Flight::land)
    }

    /// Waits until the newest cut is durable on all ranks. Gives why this rank could not fold what
    /// is kept no more.
    pub(super) fn durable(&self) -> Result<Result<()>> {
        agree(&*self.rma, self.arrived())?;
        self.settled();
        Ok(self.folding.take().map_or(Ok(()), Err))
    }
}

impl Sealer for Inner {
    fn arrived(&self) -> Result<()> {
        self.flight.borrow().as_ref().map_or(Ok(()), Flight::arrived)
    }

    fn settled(&self) {
        let Some(flight) = self.flight.take() else { return };
        self.cut.set(flight.cut.number);
        let Some(Sealed { sums, folded }) = flight.sealed() else { return };
        for ((core, share), sums) in flight.cores.iter().zip(&flight.cut.own.shares).zip(&sums) {
            core.note_given_sums(&share.changed, sums);
        }
        self.folding.set(folded.err());
    }

    fn in_background(&self) -> bool {
        self.background.get()
    }

    fn seal(&self, arrays: &[&Core], changed: &[Vec<Changed>], label: &str) -> Result<Vec<Vec<u32>>> {
        let cut = self.cut.get() + 1;
        let mine = self.cut_of(arrays, changed, label).and_then(|cut| cut.seal(&*self.rma));
        let good = mine.is_ok();
        let all = agree(&*self.rma, mine);
        if all.is_err() && good && !matches!(all, Err(Error::Stopped { .. } | Error::DeadRank { .. })) {
            // Whoever opens the pools next would do the same.
            self.pools().try_for_each(|pool| pool.take_back(cut - 1))?;
        }
        let sealed = all?;
        self.cut.set(cut);
        Ok(sealed.sums)
    }

    /// # Errors
    /// Of this rank's pool alone. The version is durable in any case.
    fn sealed_by_all(&self) -> Result<()> {
        for (pool, of_partner) in self.pools().zip([false, true]) {
            self.overdue(of_partner).iter().try_for_each(|overdue| overdue.fold(pool))?;
        }
        Ok(())
    }

    fn prepare(&self, arrays: &[&Core], changed: &[Vec<Changed>], label: &str) -> Result<()> {
        let mut cut = self.cut_of(arrays, changed, label);
        if self.partner.is_some() {
            // Nobody closes a part of which another rank still looks up what changed.
            cut = agree(&*self.rma, cut);
        }
        let mut cut = cut?;
        cut.own.overdue = self.overdue(false);
        if let Some(held) = &mut cut.held {
            held.overdue = self.overdue(true);
        }
        let cores = arrays.iter().map(|core| Ok(self.member(core)?.core)).collect::<Result<_>>()?;
        self.prepared.replace(Some((cut, cores)));
        Ok(())
    }

    fn begin(&self) -> Result<()> {
        let Some((mut cut, cores)) = self.prepared.take() else { return Ok(()) };
        for delivery in std::iter::once(&mut cut.own).chain(&mut cut.held) {
            for (core, share) in cores.iter().zip(&mut delivery.shares) {
                let rank = share.rank;
                share.changed.iter_mut().try_for_each(|changed| core.where_now(rank, changed))?;
            }
        }
        self.flight.replace(Some(Flight::start(&self.rma, cut, cores)));
        self.folding.take().map_or(Ok(()), Err)
    }

    fn version_wait(&self) -> Result<()> {
        if self.planted(Fault::AgreeBeforeSealed) {
            return self.arrived();
        }
        agree(&*self.rma, self.durable()?)
    }
}
