//! Cuts: sealed by each rank, then by all.

use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use nearpm::Ptr;

use super::flight::Flight;
use super::format::Head;
use super::object::{Form, Kept};
use super::pool::{NewVersion, RankPool};
use super::{Inner, Member, agree, encode};
use crate::array::{Blocks, Changed, Core, Fault, Sealer};
use crate::error::{Error, Result};
use crate::rma::{Rma, Work};

/// What a cut has of one array in one rank's part.
struct Share {
    blocks: Blocks,
    rank: usize,
    /// Where the pool has the array.
    head: Ptr<Head>,
    version: u64,
    changed: Vec<Changed>,
    /// Root of the version before.
    before: u64,
    compress: bool,
}

/// An array of which a pool may hold more versions than are kept.
struct Overdue {
    name: String,
    rank: usize,
    head: Ptr<Head>,
    kept: u64,
}

/// A pool, and what a cut brings to it.
struct Delivery {
    pool: Arc<RankPool>,
    shares: Vec<Share>,
    overdue: Vec<Overdue>,
    /// What the seal gave, when it was done.
    sums: Mutex<Option<Vec<Vec<u32>>>>,
}

/// What the sealing of a cut came to.
pub(super) type Outcome = Result<Sealed>;

/// A cut that a rank has sealed.
pub(super) struct Sealed {
    /// Checksums of the blocks of each array in this rank's part.
    pub sums: Vec<Vec<u32>>,
    /// Whether versions that are kept no more could be folded.
    pub folded: Result<()>,
}

/// One cut, as a rank is to seal it. Any thread can, with a handle of its rank.
pub(super) struct Cut {
    pub number: u64,
    /// The newest one that all ranks are known to have sealed.
    committed: u64,
    label: String,
    own: Delivery,
    held: Option<Delivery>,
}

impl Share {
    /// How each block is to be kept.
    fn plan(&self, rma: &dyn Rma) -> Result<NewVersion> {
        let size = self.blocks.size();
        let (mut now, mut then) = (vec![0; size], vec![0; size]);
        let mut blocks = Vec::with_capacity(self.changed.len());
        for changed in &self.changed {
            let before = self.blocks.find(rma, self.rank, self.before, changed.block)?;
            let whole = Kept { block: changed.block, form: Form::Logged(changed.logical), sum: 0 };
            if !self.compress && self.is_another(rma, changed.logical, before)? {
                blocks.push(whole);
                continue;
            }
            self.blocks.read(rma, self.rank, changed.logical, &mut now)?;
            match before {
                0 => then.fill(0),
                before => self.blocks.read(rma, self.rank, before, &mut then)?,
            }
            blocks.push(match encode::encode(&now, &then, self.compress) {
                None => whole,
                Some((form, bytes)) => {
                    Kept { block: changed.block, form: Form::Bytes(form, bytes), sum: crc32c::crc32c(&now) }
                }
            });
        }
        Ok(NewVersion { head: self.head, version: self.version, size, blocks })
    }

    /// Whether a large block differs from what it was wherever it is looked at.
    fn is_another(&self, rma: &dyn Rma, now: u64, before: u64) -> Result<bool> {
        let Some(mut samples) = encode::samples(self.blocks.size()) else { return Ok(false) };
        samples.try_fold(true, |another, inside| {
            let word = |logical| self.blocks.word(rma, self.rank, logical, inside);
            Ok(another && word(now)? != if before == 0 { 0 } else { word(before)? })
        })
    }
}

impl Delivery {
    /// Folds what is kept no more, then seals.
    fn seal(&self, rma: &dyn Rma, cut: u64, committed: u64, label: &str) -> Result<Result<()>> {
        let mut done = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        if done.is_some() {
            return Ok(Ok(()));
        }
        let folded = self
            .overdue
            .iter()
            .try_for_each(|Overdue { name, rank, head, kept }| fold(&self.pool, name, *rank, *head, *kept));
        let versions: Vec<NewVersion> = self.shares.iter().map(|share| share.plan(rma)).collect::<Result<_>>()?;
        let read = |at: usize, logical, data: &mut [u8]| {
            let share: &Share = &self.shares[at];
            share.blocks.read(rma, share.rank, logical, data)
        };
        *done = Some(self.pool.seal(cut, committed, label, &versions, &read)?);
        Ok(folded)
    }

    fn bytes(&self) -> u64 {
        self.shares.iter().map(|share| (share.changed.len() * share.blocks.size()) as u64).sum()
    }
}

impl Cut {
    /// Seals it in the pools that the rank holds. What was sealed before is not sealed again.
    pub fn seal(&self, rma: &dyn Rma) -> Outcome {
        let mut folded = self.own.seal(rma, self.number, self.committed, &self.label)?;
        if let Some(held) = &self.held {
            folded = folded.and(held.seal(rma, self.number, self.committed.min(self.number - 1), &self.label)?);
        }
        let bytes = self.own.bytes() + self.held.as_ref().map_or(0, Delivery::bytes);
        rma.work(Work::StoreNow { bytes })?;
        let sums = self.own.sums.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default();
        Ok(Sealed { sums, folded })
    }
}

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

    /// What the next cut brings to the pools that this rank holds. The rank of which it holds a copy has not closed its part yet.
    fn cut_of(&self, arrays: &[&Core], changed: &[Vec<Changed>], label: &str) -> Result<Cut> {
        let me = self.rma.rank();
        let own = |(core, changed): (&&Core, &Vec<Changed>)| {
            Ok(self.share(core, me, self.member(core)?.head, changed.clone()))
        };
        let deliver = |pool: &Arc<RankPool>, shares| Delivery {
            pool: Arc::clone(pool),
            shares,
            overdue: Vec::new(),
            sums: Mutex::default(),
        };
        let own = deliver(&self.pool, arrays.iter().zip(changed).map(own).collect::<Result<_>>()?);
        let held = self.partner.as_ref().map(|partner| -> Result<Delivery> {
            let theirs = |core: &&Core| {
                let head = self.member(core)?.held;
                let head = head.ok_or_else(|| Error::option("a partner's pool lacks an array"))?;
                Ok(self.share(core, partner.rank, head, core.changed_of(partner.rank)?))
            };
            Ok(deliver(&partner.pool, arrays.iter().map(theirs).collect::<Result<_>>()?))
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
    pub(crate) fn land(&self) -> Result<()> {
        self.flight.borrow().as_ref().map_or(Ok(()), Flight::land)
    }

    /// Waits until the newest cut is durable on all ranks.
    pub(crate) fn version_wait(&self) -> Result<()> {
        let arrived = self.arrived();
        if self.planted(Fault::AgreeBeforeSealed) {
            return arrived;
        }
        agree(&*self.rma, arrived)?;
        self.settled();
        self.folding.take().map_or(Ok(()), Err)
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
            for Overdue { name, rank, head, kept } in self.overdue(of_partner) {
                fold(pool, &name, rank, head, kept)?;
            }
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
}

/// What is noted between the meetings of a version.
pub(super) type Prepared = (Cut, Vec<Rc<Core>>);

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
