//! Applies operations, one transaction each, and keeps what was started and what was acknowledged.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use nearpm::{Error, OffsetTx, Pool};

use crate::map::Map;
use crate::ops::Op;

/// How far a run got. It outlives a run that a power cut unwinds.
#[derive(Debug, Default)]
pub struct Progress {
    started: AtomicUsize,
    acknowledged: AtomicUsize,
}

impl Progress {
    /// Operations that were begun: their effects may be there after a crash.
    pub fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }
    /// Operations that were acknowledged: their effects must be there after a crash.
    pub fn acknowledged(&self) -> usize {
        self.acknowledged.load(Ordering::SeqCst)
    }
}

/// Makes an empty map and sets it as the pool's root, acknowledged.
pub fn create<M: Map>(pool: &Pool) -> Result<M, Error> {
    let map = pool.tx(|tx| {
        let map = M::create(tx)?;
        tx.set_root(map.offset())?;
        Ok(map)
    })?;
    pool.persist()?;
    Ok(map)
}

/// The map at the pool's root.
pub fn open<M: Map>(pool: &Pool) -> Result<M, Error> {
    Ok(M::at(pool.root()?))
}

/// Applies `ops`, one transaction each, as [`transactions`] does.
pub fn run<M: Map>(
    pool: &Pool,
    map: M,
    ops: &[Op],
    epoch: usize,
    progress: &Progress,
    each: impl FnMut(usize),
) -> Result<(), Error> {
    transactions(pool, 0..ops.len(), epoch, progress, each, |tx, i| {
        match &ops[i] {
            Op::Insert(key, value) => drop(map.insert(tx, *key, value)?),
            Op::Remove(key) => drop(map.remove(tx, *key)?),
            Op::Get(key) => drop(map.get(tx, *key)?),
        }
        Ok(())
    })
}

/// Runs transactions. What the library has not acknowledged by itself is acknowledged after every
/// `epoch` of them and at the end: epochs are cut, asynchronous commits made durable. A transaction
/// is acknowledged when the library says so. `each` is called before each one with its number.
pub fn transactions(
    pool: &Pool,
    numbers: Range<usize>,
    epoch: usize,
    progress: &Progress,
    mut each: impl FnMut(usize),
    mut body: impl FnMut(&mut OffsetTx<'_>, usize) -> Result<(), Error>,
) -> Result<(), Error> {
    pool.persist()?;
    let before = pool.statistics().acknowledged;
    let note = || {
        let acknowledged = pool.statistics().acknowledged - before;
        progress.acknowledged.store(acknowledged as usize, Ordering::SeqCst);
    };
    let count = numbers.len();
    for (i, number) in numbers.enumerate() {
        each(number);
        progress.started.store(i + 1, Ordering::SeqCst);
        pool.tx(|tx| body(tx, number))?;
        note();
        let behind = progress.acknowledged() < i + 1;
        if behind && ((i + 1) % epoch == 0 || i + 1 == count) {
            pool.cut()?;
            note();
        }
    }
    Ok(())
}

/// Runs transactions that are durable when they return, and acknowledges each then.
///
/// # Errors
/// That of `body`.
pub fn durable(
    count: usize,
    progress: &Progress,
    mut body: impl FnMut(usize) -> Result<(), Error>,
) -> Result<(), Error> {
    (0..count).try_for_each(|number| {
        progress.started.store(number + 1, Ordering::SeqCst);
        body(number)?;
        progress.acknowledged.store(number + 1, Ordering::SeqCst);
        Ok(())
    })
}
