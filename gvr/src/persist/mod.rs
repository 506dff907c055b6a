//! Versions that survive: every rank seals its part in a pool of its own, and a cut counts when all
//! have.
//!
//! A durable `version_inc`: (1) each rank writes what changed into its pool, in one transaction,
//! with checksums: the cut is *sealed* there; (2) all ranks tell each other whether that went well;
//! where it did not, all take it back; (3) each notes that the cut is *committed*, and folds
//! versions that are kept no more into the base. After a crash the newest cut that every pool has
//! sealed is taken, whether or not it was noted as committed; what some have sealed beyond it is
//! taken back. Versions that the cut before needs are folded only when all have sealed the next.
//!
//! | file | holds |
//! |---|---|
//! | `format.rs` | what a pool holds |
//! | `encode.rs` | how a block's bytes are kept |
//! | `storage.rs` | where pools lie |
//! | `inner.rs` | what arrays of a job share |
//! | `object.rs` | blocks in a pool |
//! | `pool.rs` | one rank's pool |
//! | `cut.rs` | what a cut brings to a rank's pools |
//! | `seal.rs` | cuts that all ranks seal |
//! | `flight.rs` | cuts that are sealed while the program goes on |
//! | `part.rs`, `recover.rs` | from pools to arrays, on any number of ranks |
//! | `scrub.rs` | looking for damage, and mending it |

mod cut;
mod encode;
mod flight;
mod format;
mod inner;
mod object;
mod part;
mod pool;
mod recover;
mod scrub;
mod seal;
mod storage;

use std::rc::Rc;
use std::sync::Arc;

use crate::array::{Array, Core, Element, Layout, Options, Protocol, Sealer};
use crate::error::{Error, Result};
use crate::rma::{Kind, Reduce, Rma};
use crate::world::World;
use format::MOST_NAME;
pub use inner::Inner;
use inner::{Member, Partner};
use pool::RankPool;
pub use recover::{Report, Restored, describe};
pub use scrub::{Scrubbed, scrub_folder};
#[doc(hidden)]
pub use storage::PowerCut;
pub use storage::{Current, Folder, Holder, Memories, Storage};

/// When versions are made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flush {
    /// Before `version_inc` returns: what it has closed survives from then on.
    #[default]
    Wait,
    /// In the background, by a thread of each rank. `version_inc` returns when the version is
    /// closed in memory; it is durable when the next one returns, or [`Job::version_wait`]. One cut
    /// is on its way at a time: a `version_inc` before it has arrived waits for it, and so does one
    /// whose logs have too little room for what is held meanwhile. After a crash the newest cut
    /// that all have sealed is there, as always.
    Background,
}

/// Durable arrays, in pools that each rank has one of.
///
/// ```
/// use nearpm_gvr::persist::Folder;
/// use nearpm_gvr::{Job, Options, World, rma::shm::Shm};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path();
/// let world = World::new(Shm::threads(1, 1 << 24)?.remove(0));
/// let job = Job::open_or_create(&world, &Folder::new(path), 1 << 22)?;
/// let steps = job.array::<u64>("steps", &[1000], Options::default())?;
/// steps.put(0..3, &[1, 2, 3])?;
/// steps.version_inc("first")?;
/// drop((steps, job));
///
/// let job = Job::open(&world, &Folder::new(path))?;
/// assert_eq!(job.array::<u64>("steps", &[1000], Options::default())?.get_vec(0..3)?, [1, 2, 3]);
/// # Ok::<(), nearpm_gvr::Error>(())
/// ```
pub struct Job {
    world: World,
    inner: Rc<Inner>,
    report: Report,
}

/// Every rank gets an error if one has one: its own, or one that says whose.
fn agree<T>(rma: &dyn Rma, mine: Result<T>) -> Result<T> {
    // A rank that was stopped says nothing to anybody.
    if let Err(error @ (Error::Stopped { .. } | Error::DeadRank { .. })) = mine {
        return Err(error);
    }
    let code = mine.as_ref().map_or_else(Error::code, |_| 0);
    let all = rma.allgather(&[code])?;
    let mine = mine?;
    all.iter().position(|code| *code != 0).map_or(Ok(mine), |rank| Err(Error::of_code(all[rank], rank)))
}

impl Job {
    /// Makes a job where there is none, with pools of `bytes` bytes; all ranks call it.
    ///
    /// # Errors
    /// On all ranks: [`Error::Job`] where there is one, those of the pools.
    pub fn create(world: &World, storage: &dyn Storage, bytes: u64) -> Result<Job> {
        let rma = &*world.rma;
        let found = agree(rma, storage.current())?;
        if found.is_some() {
            let what = "there is a job already: open it, or choose another folder".to_owned();
            return Err(Error::Job { folder: storage.name(), what });
        }
        let some = || Error::option("pools of 0 bytes hold no job: say how many bytes each rank's pool is to have");
        agree(rma, if bytes == 0 { Err(some()) } else { Ok(()) })?;
        // The same on all ranks; what it is matters to nobody.
        let number = rma.allreduce(Reduce::Max, rand::random())?;
        let current = Current { generation: 1, ranks: world.ranks(), partners: storage.partners() };
        let (pool, partner) = agree(rma, make_pools(world, storage, current, number, bytes))?;
        agree(rma, if world.rank() == 0 { storage.publish(current) } else { Ok(()) })?;
        Ok(Job::of(world, pool, partner, Report::default()))
    }

    /// Opens a job on any number of ranks, as of the newest cut that all of its pools have sealed;
    /// all ranks call it. On another number of ranks than it had new pools are made, as large as
    /// the largest before, and more if the ranks are fewer.
    ///
    /// # Errors
    /// On all ranks: [`Error::Job`], [`Error::MissingPool`], [`Error::Damaged`], those of the
    /// pools. Nothing was lost.
    pub fn open(world: &World, storage: &dyn Storage) -> Result<Job> {
        recover::open(world, storage)
    }

    /// Opens a job, or makes one where there is none.
    ///
    /// # Errors
    /// As [`Job::open`] or [`Job::create`].
    pub fn open_or_create(world: &World, storage: &dyn Storage, bytes: u64) -> Result<Job> {
        match agree(&*world.rma, storage.current())? {
            Some(_) => Self::open(world, storage),
            None => Self::create(world, storage, bytes),
        }
    }

    fn of(world: &World, pool: RankPool, partner: Option<Partner>, report: Report) -> Job {
        let inner = Inner::new(Rc::clone(&world.rma), pool, partner);
        Job { world: world.clone(), inner: Rc::new(inner), report }
    }

    /// What opening it found and did.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The world that it is open in.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// An array of the job, made if there is none of this name; all ranks call it alike. It must be
    /// a log. One that was restored keeps the options that it was made with.
    ///
    /// # Errors
    /// On all ranks: [`Error::OtherType`] if there is one of other elements or sizes,
    /// [`Error::BadOption`], those of the pools.
    pub fn array<T: Element>(&self, name: &str, dims: &[u64], options: Options) -> Result<Array<T>> {
        let (core, inner) = self.untyped(name, dims, T::KIND, options)?;
        Ok(Array::of(core, Some(inner)))
    }

    pub(crate) fn untyped(
        &self,
        name: &str,
        dims: &[u64],
        kind: Kind,
        options: Options,
    ) -> Result<(Rc<Core>, Rc<Inner>)> {
        // Nobody else works on the pool.
        self.inner.land()?;
        let known = self.inner.arrays.borrow().get(name).cloned();
        let fits = match &known {
            None => check_new(name, &options),
            Some(member) => {
                let (wanted, found) = (says(kind, dims), says(member.core.kind, member.core.shape.dims()));
                let other = || Error::OtherType { name: name.to_owned(), found: found.clone(), wanted: wanted.clone() };
                if wanted == found { Ok(()) } else { Err(other()) }
            }
        };
        agree(&*self.inner.rma, fits)?;
        // Where it is there on one rank it is on all.
        let asked = u64::from(crc32c::crc32c(name.as_bytes()));
        let asked = self.inner.rma.allgather(&[asked])?;
        if asked.iter().any(|other| *other != asked[0]) {
            return Err(Error::option("ranks ask for arrays of different names: nothing was made"));
        }
        let core = match known {
            Some(member) => member.core,
            None => self.inner.add(name, dims, kind, options)?,
        };
        Ok((core, Rc::clone(&self.inner)))
    }

    /// Arrays by name: kind, elements by dimension, and the versions that can be read.
    pub fn arrays(&self) -> Vec<Restored> {
        let arrays = self.inner.arrays.borrow();
        arrays.iter().map(|(name, member)| Restored::of(name, &member.core)).collect()
    }

    /// Says when versions are made durable from here on; all ranks call it alike. A cut that is on
    /// its way is waited for.
    ///
    /// # Errors
    /// [`Error::BadOption`] on all ranks where the backend of one gives it no second thread; those
    /// of the cut.
    pub fn set_flush(&self, flush: Flush) -> Result<()> {
        self.version_wait()?;
        let rma = &*self.inner.rma;
        agree(rma, if flush == Flush::Background { rma.helper().map(drop) } else { Ok(()) })?;
        self.inner.background.set(flush == Flush::Background);
        Ok(())
    }

    /// Waits until the newest version is durable on all ranks; all ranks call it.
    ///
    /// # Errors
    /// On all ranks: those of a pool. The version is not durable then; the next `version_inc` or
    /// `version_wait` tries again, and makes no other version before. [`Error::Damaged`] where it
    /// is durable, and the pool has a damaged version that is kept no more.
    pub fn version_wait(&self) -> Result<()> {
        self.inner.version_wait()
    }

    /// Looks at every block of every version in memory and in this rank's pool, and mends each from
    /// the other; all ranks call it, between a `version_inc` and the next put.
    ///
    /// # Errors
    /// On all ranks: [`Error::Damaged`] where both copies are.
    pub fn scrub(&self) -> Result<Scrubbed> {
        // Damage that was met meanwhile is looked for here.
        let _ = self.inner.durable()?;
        scrub::scrub(&self.inner)
    }

    /// Damages the pool, for tests.
    #[doc(hidden)]
    pub fn damage(&self, choice: u64, bit: u8) -> Result<bool> {
        self.inner.land()?;
        scrub::damage(&self.inner, choice, bit)
    }

    /// Closes this rank's pool; all ranks call it.
    ///
    /// # Errors
    /// Those of the pool; [`Error::BadOption`] while arrays are in use.
    pub fn close(self) -> Result<()> {
        let durable = self.version_wait();
        if let Err(Error::Stopped { .. } | Error::DeadRank { .. }) = durable {
            return durable;
        }
        if durable.is_ok() {
            let cut = self.inner.cut.get();
            self.inner.pools().try_for_each(|pool| pool.commit(cut))?;
        }
        let arrays = std::mem::take(&mut *self.inner.arrays.borrow_mut());
        for member in arrays.values() {
            member.core.free()?;
        }
        drop(arrays);
        match Rc::try_unwrap(self.inner) {
            Ok(inner) => {
                drop(inner.flight);
                inner.partner.map_or(Ok(()), |partner| close_pool(partner.pool))?;
                close_pool(inner.pool)?;
                durable
            }
            Err(_) => Err(Error::option("arrays of the job are in use: drop them, then close it")),
        }
    }
}

fn close_pool(pool: Arc<RankPool>) -> Result<()> {
    match Arc::try_unwrap(pool) {
        Ok(pool) => Ok(pool.pool.close()?),
        Err(_) => Err(Error::option("a pool is still in use: it is closed when that ends")),
    }
}

/// The rank of which a rank holds a second copy: the one before it.
fn partner_of(rank: usize, ranks: usize) -> usize {
    (rank + ranks - 1) % ranks
}

/// Makes the pools that a rank holds.
fn make_pools(
    world: &World,
    storage: &dyn Storage,
    current: Current,
    job: u64,
    bytes: u64,
) -> Result<(RankPool, Option<Partner>)> {
    let make = |rank: usize, holder: Holder| {
        let pool = storage.create(current.generation, rank, holder, bytes)?;
        RankPool::found(pool, job, rank, current.ranks)
    };
    let pool = make(world.rank(), Holder::Owner)?;
    let rank = partner_of(world.rank(), world.ranks());
    let partner = current.partners.then(|| make(rank, Holder::Partner)).transpose()?;
    Ok((pool, partner.map(|pool| Partner { rank, pool: Arc::new(pool) })))
}

/// Whether a durable array can be made so.
fn check_new(name: &str, options: &Options) -> Result<()> {
    if options.layout == Layout::Flat || options.protocol == Protocol::Paper {
        return Err(Error::option("durable arrays are logs of our protocol: give Layout::Log and Protocol::Batched"));
    }
    if name.is_empty() || name.len() > MOST_NAME || name.contains('\0') {
        return Err(Error::option(format!(
            "{name:?} is no name of an array: give 1 to {MOST_NAME} bytes without zeros"
        )));
    }
    Ok(())
}

/// Elements and sizes in words.
fn says(kind: Kind, dims: &[u64]) -> String {
    format!("{kind:?} in {dims:?}")
}
