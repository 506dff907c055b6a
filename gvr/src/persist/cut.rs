//! A cut: what it brings to the pools of a rank, and how it is sealed there.

use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use nearpm::Ptr;

use super::encode;
use super::format::Head;
use super::object::{Form, Kept};
use super::pool::{NewVersion, RankPool};
use crate::array::{Blocks, Changed, Core};
use crate::error::{Error, Result};
use crate::rma::{Rma, Work};

/// What a cut has of one array in one rank's part.
pub(super) struct Share {
    pub blocks: Blocks,
    pub rank: usize,
    /// Where the pool has the array.
    pub head: Ptr<Head>,
    pub version: u64,
    pub changed: Vec<Changed>,
    /// Root of the version before.
    pub before: u64,
    pub compress: bool,
}

/// An array of which a pool may hold more versions than are kept.
pub(super) struct Overdue {
    pub name: String,
    pub rank: usize,
    pub head: Ptr<Head>,
    pub kept: u64,
}

/// A pool, and what a cut brings to it.
pub(super) struct Delivery {
    pool: Arc<RankPool>,
    pub shares: Vec<Share>,
    pub overdue: Vec<Overdue>,
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
    pub committed: u64,
    pub label: String,
    pub own: Delivery,
    /// What goes to the pool that the rank holds for another one.
    pub held: Option<Delivery>,
}

/// What is noted between the meetings of a version.
pub(super) type Prepared = (Cut, Vec<Rc<Core>>);

impl Share {
    /// How each block is to be kept.
    fn plan(&self, rma: &dyn Rma) -> Result<NewVersion> {
        let size = self.blocks.size();
        let (mut now, mut then) = (vec![0; size], vec![0; size]);
        let mut blocks = Vec::with_capacity(self.changed.len());
        // Blocks in a row that were other ones.
        let mut others = 0;
        for changed in &self.changed {
            let whole = Kept { block: changed.block, form: Form::Logged(changed.logical), sum: 0 };
            if !self.compress && self.is_another(rma, changed, others)? {
                others += 1;
                blocks.push(whole);
                continue;
            }
            others = 0;
            self.blocks.read(rma, self.rank, changed.logical, &mut now)?;
            match self.blocks.find(rma, self.rank, self.before, changed.block)? {
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

    /// Whether a large block differs from what it was wherever it is looked at, behind so many in a
    /// row that did.
    fn is_another(&self, rma: &dyn Rma, changed: &Changed, others: usize) -> Result<bool> {
        let Some(mut samples) = encode::samples(self.blocks.size(), others) else { return Ok(false) };
        if samples.len() == 0 {
            return Ok(true);
        }
        let (now, before) = (changed.logical, self.blocks.find(rma, self.rank, self.before, changed.block)?);
        samples.try_fold(true, |another, inside| {
            let word = |logical| self.blocks.word(rma, self.rank, logical, inside);
            Ok(another && word(now)? != if before == 0 { 0 } else { word(before)? })
        })
    }
}

impl Overdue {
    /// Folds versions that are kept no more into the base.
    pub fn fold(&self, pool: &RankPool) -> Result<()> {
        while pool.count_versions(self.head)? > self.kept {
            if let Err(bad) = pool.fold(self.head)? {
                let (array, rank, block, version) = (self.name.clone(), self.rank, bad.block, bad.version);
                return Err(Error::Damaged { array, rank, block, version, place: "the pool" });
            }
        }
        Ok(())
    }
}

impl Delivery {
    pub fn new(pool: &Arc<RankPool>, shares: Vec<Share>) -> Delivery {
        Delivery { pool: Arc::clone(pool), shares, overdue: Vec::new(), sums: Mutex::default() }
    }

    /// Folds what is kept no more, then seals.
    fn seal(&self, rma: &dyn Rma, cut: u64, committed: u64, label: &str) -> Result<Result<()>> {
        let mut done = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        if done.is_some() {
            return Ok(Ok(()));
        }
        let folded = self.overdue.iter().try_for_each(|overdue| overdue.fold(&self.pool));
        let versions: Vec<NewVersion> = self.shares.iter().map(|share| share.plan(rma)).collect::<Result<_>>()?;
        let read = |at: usize, logical, words: &[AtomicU64]| {
            let share: &Share = &self.shares[at];
            share.blocks.read_words(rma, share.rank, logical, words)
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
