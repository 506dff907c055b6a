//! Applies operations, one transaction each, and keeps what was started and what was acknowledged.

use std::sync::atomic::{AtomicUsize, Ordering};

use nearpm::{Error, Pool};

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

/// Applies `ops`. What the library has not acknowledged by itself is acknowledged after every `epoch` operations and at the end:
/// epochs are cut, asynchronous commits made durable. An operation is acknowledged when the library says so. `each` is called before each operation with its index.
pub fn run<M: Map>(
    pool: &Pool,
    map: M,
    ops: &[Op],
    epoch: usize,
    progress: &Progress,
    mut each: impl FnMut(usize),
) -> Result<(), Error> {
    pool.persist()?;
    let before = pool.statistics().acknowledged;
    let note = || {
        let acknowledged = pool.statistics().acknowledged - before;
        progress.acknowledged.store(acknowledged as usize, Ordering::SeqCst);
    };
    for (i, op) in ops.iter().enumerate() {
        each(i);
        progress.started.store(i + 1, Ordering::SeqCst);
        pool.tx(|tx| {
            match op {
                Op::Insert(key, value) => drop(map.insert(tx, *key, value)?),
                Op::Remove(key) => drop(map.remove(tx, *key)?),
                Op::Get(key) => drop(map.get(tx, *key)?),
            }
            Ok(())
        })?;
        note();
        let behind = progress.acknowledged() < i + 1;
        if behind && ((i + 1) % epoch == 0 || i + 1 == ops.len()) {
            pool.cut()?;
            note();
        }
    }
    Ok(())
}
