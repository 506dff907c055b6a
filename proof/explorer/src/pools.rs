//! The kinds of pools, behind one face.

use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::ValueEnum;
use nearpm::direct::{DirectPool, Growth, Mode};
use nearpm::prelude::*;
use nearpm::{Engine, Mechanism, Pool};
use serde::{Deserialize, Serialize};

use crate::body::{Body, Look};
use crate::c::CPool;
use crate::card::{self, Rules};
use crate::crash::CrashMemory;
use crate::trace::Recorder;

/// A kind of pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Undo logging.
    Undo,
    /// Undo logging, commits not waited for.
    UndoAsynchronous,
    /// Redo logging.
    Redo,
    /// Redo logging, commits not waited for.
    RedoAsynchronous,
    /// Checkpointing, epochs of three transactions.
    Checkpoint,
    /// Shadow paging, epochs of three transactions.
    Shadow,
    /// Undo logging, transactions beside each other.
    UndoConcurrent,
    /// Redo logging, transactions beside each other.
    RedoConcurrent,
    /// Checkpointing, epochs of three transactions, which are beside each other.
    CheckpointConcurrent,
    /// Shadow paging, epochs of three transactions, which are beside each other.
    ShadowConcurrent,
    /// A direct pool with a working copy.
    WorkingCopy,
    /// A direct pool with a working copy, commits not waited for.
    WorkingCopyAsynchronous,
    /// A direct pool with a working copy, whose commits go home by undo logs.
    WorkingCopyByUndo,
    /// The same by redo logs.
    WorkingCopyByRedo,
    /// The same by checkpoints, each commit an epoch.
    WorkingCopyByCheckpoint,
    /// The same by shadow pages, each commit an epoch.
    WorkingCopyByShadow,
    /// A direct pool with a working copy as on a file, where all new objects but the shortest are
    /// written once, to their places.
    WrittenOnce,
    /// The same, commits not waited for.
    WrittenOnceAsynchronous,
    /// A direct pool with a working copy, which is small and grows.
    Growing,
    /// A direct pool in place.
    InPlace,
    /// A direct pool in place, which is small and grows.
    InPlaceGrowing,
    /// A direct pool with a working copy, through the C interface.
    CWorkingCopy,
    /// A direct pool in place, through the C interface.
    CInPlace,
    /// Undo logging by a card.
    CardUndo,
    /// Undo logging by a card, commits not waited for.
    CardUndoAsynchronous,
    /// Undo logging by a card, transactions beside each other.
    CardUndoConcurrent,
    /// Redo logging by a card.
    CardRedo,
    /// Redo logging by a card, commits not waited for.
    CardRedoAsynchronous,
    /// Checkpointing by a card, epochs of three transactions.
    CardCheckpoint,
    /// Shadow paging by a card, epochs of three transactions.
    CardShadow,
    /// A direct pool with a working copy on a card, whose commits go home by the card's undo logs.
    CardWorkingCopyByUndo,
    /// The same by its redo logs.
    CardWorkingCopyByRedo,
    /// The same by its checkpoints, each commit an epoch.
    CardWorkingCopyByCheckpoint,
    /// The same by its shadow pages, each commit an epoch.
    CardWorkingCopyByShadow,
    /// Undo logging by a card that does not order host accesses. There all commits are waited for.
    CardUndoUnordered,
    /// Redo logging by such a card.
    CardRedoUnordered,
    /// Checkpointing by such a card, epochs of three transactions.
    CardCheckpointUnordered,
    /// Shadow paging by such a card, epochs of three transactions.
    CardShadowUnordered,
}

/// Bytes of a pool that is to grow soon, and by how many.
const SMALL: u64 = 104 << 10;
const GROWTH: u64 = 64 << 10;

/// Lanes of undo logs, as many as programs have threads, and the bytes of each.
const THREADS: u16 = 2;
const RING_BYTES: u32 = 16 << 10;

/// New objects of at least so many bytes are written once where they are: in files it is 2 KiB, but
/// long objects would make few states of many.
const ONCE_FROM: u64 = 64;

/// An open pool.
pub enum Open {
    /// With a mechanism.
    Mechanism(Box<Pool>),
    /// Reached by pointer.
    Direct(Box<DirectPool>),
    /// Reached by pointer, through the C interface. One thread uses it.
    C(Mutex<CPool>),
}

fn lock(pool: &Mutex<CPool>) -> MutexGuard<'_, CPool> {
    pool.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 38] = [
        Kind::Undo,
        Kind::UndoAsynchronous,
        Kind::Redo,
        Kind::RedoAsynchronous,
        Kind::Checkpoint,
        Kind::Shadow,
        Kind::UndoConcurrent,
        Kind::RedoConcurrent,
        Kind::CheckpointConcurrent,
        Kind::ShadowConcurrent,
        Kind::WorkingCopy,
        Kind::WorkingCopyAsynchronous,
        Kind::WorkingCopyByUndo,
        Kind::WorkingCopyByRedo,
        Kind::WorkingCopyByCheckpoint,
        Kind::WorkingCopyByShadow,
        Kind::WrittenOnce,
        Kind::WrittenOnceAsynchronous,
        Kind::Growing,
        Kind::InPlace,
        Kind::InPlaceGrowing,
        Kind::CWorkingCopy,
        Kind::CInPlace,
        Kind::CardUndo,
        Kind::CardUndoAsynchronous,
        Kind::CardUndoConcurrent,
        Kind::CardRedo,
        Kind::CardRedoAsynchronous,
        Kind::CardCheckpoint,
        Kind::CardShadow,
        Kind::CardWorkingCopyByUndo,
        Kind::CardWorkingCopyByRedo,
        Kind::CardWorkingCopyByCheckpoint,
        Kind::CardWorkingCopyByShadow,
        Kind::CardUndoUnordered,
        Kind::CardRedoUnordered,
        Kind::CardCheckpointUnordered,
        Kind::CardShadowUnordered,
    ];

    /// Bytes of a pool: few, because each recovery begins with a copy of them.
    pub fn bytes(self) -> u64 {
        match self {
            _ if self.grows() => SMALL,
            _ if self.is_direct() && !self.is_on_card() => 160 << 10,
            _ => card::POOL_BYTES,
        }
    }

    /// Bytes that it may grow to.
    pub fn most_bytes(self) -> u64 {
        if self.grows() { SMALL + 2 * GROWTH } else { self.bytes() }
    }

    /// Whether it grows when it is full.
    pub fn grows(self) -> bool {
        matches!(self, Kind::Growing | Kind::InPlaceGrowing)
    }

    /// Whether new objects are written once.
    pub fn writes_once(self) -> bool {
        matches!(self, Kind::WrittenOnce | Kind::WrittenOnceAsynchronous)
    }

    /// Whether it is on a card.
    pub fn is_on_card(self) -> bool {
        self.rules().is_some()
    }

    /// What its card promises, where it is on one.
    pub fn rules(self) -> Option<Rules> {
        let host_ordered = match self {
            Kind::CardUndo
            | Kind::CardUndoAsynchronous
            | Kind::CardUndoConcurrent
            | Kind::CardRedo
            | Kind::CardRedoAsynchronous
            | Kind::CardCheckpoint
            | Kind::CardShadow
            | Kind::CardWorkingCopyByUndo
            | Kind::CardWorkingCopyByRedo
            | Kind::CardWorkingCopyByCheckpoint
            | Kind::CardWorkingCopyByShadow => true,
            Kind::CardUndoUnordered
            | Kind::CardRedoUnordered
            | Kind::CardCheckpointUnordered
            | Kind::CardShadowUnordered => false,
            _ => return None,
        };
        Some(Rules { host_ordered })
    }

    /// Whether programs reach it by pointer.
    pub fn is_direct(self) -> bool {
        matches!(self, Kind::WorkingCopy | Kind::WorkingCopyAsynchronous | Kind::InPlace)
            || self.writes_once()
            || self.grows()
            || self.is_c()
            || self.brings_home().is_some()
    }

    /// By what the commits of a working copy go home, unless records do.
    pub fn brings_home(self) -> Option<Mechanism> {
        match self {
            Kind::WorkingCopyByUndo | Kind::CardWorkingCopyByUndo => Some(Mechanism::Undo),
            Kind::WorkingCopyByRedo | Kind::CardWorkingCopyByRedo => Some(Mechanism::Redo),
            Kind::WorkingCopyByCheckpoint | Kind::CardWorkingCopyByCheckpoint => Some(Mechanism::Checkpoint),
            Kind::WorkingCopyByShadow | Kind::CardWorkingCopyByShadow => Some(Mechanism::Shadow),
            _ => None,
        }
    }

    /// Whether it is used through the C interface.
    pub fn is_c(self) -> bool {
        matches!(self, Kind::CWorkingCopy | Kind::CInPlace)
    }

    /// Whether two threads can be in transactions at the same time. Their commits are so, too, by
    /// records and by undo logs, which have a lane for each; by the other mechanisms one waits for
    /// the other.
    pub fn takes_threads(self) -> bool {
        (self.is_direct() && !self.is_c()) || self.is_concurrent()
    }

    /// Whether readers can have snapshots of it.
    pub fn has_snapshots(self) -> bool {
        self.takes_threads() && self.is_direct()
    }

    /// Whether it is read and written by offsets, in transactions beside each other.
    pub fn is_concurrent(self) -> bool {
        matches!(
            self,
            Kind::UndoConcurrent
                | Kind::RedoConcurrent
                | Kind::CheckpointConcurrent
                | Kind::ShadowConcurrent
                | Kind::CardUndoConcurrent
        )
    }

    /// Whether its memory has to make a fence that of all processors.
    pub fn is_one_domain(self) -> bool {
        self == Kind::WorkingCopyAsynchronous || self.writes_once()
    }

    fn durability(self) -> Durability {
        match self {
            Kind::UndoAsynchronous
            | Kind::RedoAsynchronous
            | Kind::WorkingCopyAsynchronous
            | Kind::WrittenOnceAsynchronous
            | Kind::CardUndoAsynchronous
            | Kind::CardRedoAsynchronous => Durability::Asynchronous,
            _ => Durability::Durable,
        }
    }

    fn mechanism(self) -> Options {
        let mechanism = match self {
            Kind::Redo
            | Kind::RedoAsynchronous
            | Kind::RedoConcurrent
            | Kind::CardRedo
            | Kind::CardRedoAsynchronous
            | Kind::CardRedoUnordered => Mechanism::Redo,
            Kind::Checkpoint | Kind::CheckpointConcurrent | Kind::CardCheckpoint | Kind::CardCheckpointUnordered => {
                Mechanism::Checkpoint
            }
            Kind::Shadow | Kind::ShadowConcurrent | Kind::CardShadow | Kind::CardShadowUnordered => Mechanism::Shadow,
            _ => Mechanism::Undo,
        };
        let options = Options::new().mechanism(mechanism).durability(self.durability()).id(card::POOL_ID).epoch_ops(3);
        options.lanes(1).ring_bytes(32 << 10).spare_pages(12).concurrent(self.is_concurrent())
    }

    fn direct(self) -> Options {
        let is_in_place = matches!(self, Kind::InPlace | Kind::InPlaceGrowing | Kind::CInPlace);
        let mode = if is_in_place { Mode::InPlace } else { Mode::WorkingCopy };
        let growth = self.grows().then(|| Growth { by: GROWTH, most: self.most_bytes() });
        let options = Options::new().mode(mode).mechanism(self.brings_home()).durability(self.durability());
        let options = if self.brings_home() == Some(Mechanism::Undo) {
            options.lanes(THREADS).ring_bytes(RING_BYTES)
        } else {
            options
        };
        options.id(card::POOL_ID).growth(growth).write_once_from(self.writes_once().then_some(ONCE_FROM))
    }

    fn enter(self, pool: DirectPool) -> Open {
        if self.is_c() { Open::C(CPool::new(pool).into()) } else { Open::Direct(pool.into()) }
    }

    /// Creates a pool in a memory, or on the card that the memory is of.
    ///
    /// # Errors
    /// As the library's.
    pub fn create(self, memory: Recorder) -> Result<Open, Error> {
        Ok(match memory.card() {
            Some((card, rules)) if self.is_direct() => card::create(rules, card, memory, |location| {
                Ok(self.enter(DirectPool::create(location, card::POOL_BYTES, &self.direct().engine(Engine::Card))?))
            })?,
            Some((card, rules)) => card::create(rules, card, memory, |location| {
                let pool = self.mechanism().engine(Engine::Card).create(location, card::POOL_BYTES)?;
                Ok(Open::Mechanism(pool.into()))
            })?,
            None if self.grows() => {
                // As in a file that an earlier growth has made longer: its memory is longer than
                // the pool, and has other bytes there.
                DirectPool::create_in(Box::new(memory.clone()), &self.direct().growth(None))?.close()?;
                memory.lengthen()?;
                self.enter(DirectPool::open_in(Box::new(memory), &self.direct())?)
            }
            None if self.is_direct() => self.enter(DirectPool::create_in(Box::new(memory), &self.direct())?),
            None => Open::Mechanism(self.mechanism().create_in(Box::new(memory))?.into()),
        })
    }

    /// Opens the pool that a crash has left, recovering it.
    ///
    /// # Errors
    /// As the library's.
    pub fn open(self, memory: CrashMemory) -> Result<Open, Error> {
        if let Some(rules) = self.rules() {
            let words = memory.words();
            return card::open(rules, memory, &words, |location| match self.is_direct() {
                true => Ok(self.enter(DirectPool::open(location, &self.direct().engine(Engine::Card))?)),
                false => Ok(Open::Mechanism(self.mechanism().engine(Engine::Card).open(location)?.into())),
            });
        }
        Ok(match self.is_direct() {
            true => self.enter(DirectPool::open_in(Box::new(memory), &self.direct())?),
            false => Open::Mechanism(self.mechanism().open_in(Box::new(memory))?.into()),
        })
    }
}

impl Open {
    /// Runs a transaction.
    ///
    /// # Errors
    /// As the body's and the commit's.
    pub fn tx(&self, body: &mut impl Body) -> Result<(), Error> {
        match self {
            Open::Mechanism(pool) => pool.tx(|tx| body.run(&mut tx.typed())),
            Open::Direct(pool) => pool.tx(|tx| body.run(tx)),
            Open::C(pool) => lock(pool).tx(body),
        }
    }

    /// Runs a transaction that holds a lock, beside others where the pool has such.
    ///
    /// # Errors
    /// As the body's and the commit's.
    pub fn locked(&self, lock: Ptr<PLock>, body: &mut impl Body) -> Result<(), Error> {
        match self {
            Open::Mechanism(_) | Open::C(_) => self.tx(body),
            Open::Direct(pool) => pool.locked(&[lock]).tx(|tx| body.run(tx)),
        }
    }

    /// Reads.
    ///
    /// # Errors
    /// As the body's.
    pub fn read<T: Look>(&self, look: &mut T) -> Result<T::Found, Error> {
        match self {
            Open::Mechanism(pool) => pool.tx(|tx| look.look(&tx.typed())),
            Open::Direct(pool) => pool.read(|from| look.look(from)),
            Open::C(pool) => lock(pool).look(look),
        }
    }

    /// Every allocated object, by offset: offset and usable bytes.
    ///
    /// # Errors
    /// The tables do not hold together.
    pub fn objects(&self) -> Result<Vec<(u64, u64)>, Error> {
        match self {
            Open::Mechanism(pool) => {
                pool.check()?;
                pool.objects()
            }
            Open::Direct(pool) => {
                let offsets = std::iter::successors(pool.next_object(0), |&object| pool.next_object(object));
                offsets.map(|offset| Ok((offset, pool.usable_bytes(offset)?))).collect()
            }
            Open::C(pool) => lock(pool).objects(),
        }
    }

    /// Whether every transaction that was committed survives a crash now.
    pub fn is_acknowledged(&self) -> bool {
        match self {
            Open::Mechanism(pool) => {
                let statistics = pool.statistics();
                statistics.acknowledged == statistics.transactions
            }
            Open::Direct(pool) => pool.durability() == Durability::Durable || pool.mode() == Mode::InPlace,
            Open::C(_) => true,
        }
    }

    /// Makes every transaction that was committed durable.
    ///
    /// # Errors
    /// Those of the medium.
    pub fn wait_durable(&self) -> Result<(), Error> {
        match self {
            Open::Mechanism(pool) => pool.persist(),
            Open::Direct(pool) => pool.wait_durable(),
            Open::C(pool) => lock(pool).wait_durable(),
        }
    }

    /// Closes it.
    ///
    /// # Errors
    /// Those of the medium.
    pub fn close(self) -> Result<(), Error> {
        match self {
            Open::Mechanism(pool) => pool.close(),
            Open::Direct(pool) => pool.close(),
            Open::C(pool) => pool.into_inner().unwrap_or_else(PoisonError::into_inner).close(),
        }
    }
}
