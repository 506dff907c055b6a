//! Transactions that are open beside each other, by turns from one thread as a seed says, and power
//! cuts in the middle of them: in a memory (`memory.rs`), on a card (`card.rs`), over several
//! memories behind links (`striped.rs`).
//!
//! Each transaction keeps to cells of its own; all allocate from one heap. The oracle: what
//! recovers must be the state after some commit between the last that was acknowledged when the
//! power failed and the one that was running; under mechanisms with epochs nothing between two
//! cuts.

use std::sync::Mutex;

use super::{OffsetTx, Shared};
use crate::memory::run_on_processor;
use crate::pool::striped_tests::links::Random;
use crate::{Durability, Error, Mechanism, Options, Pool};

mod card;
mod memory;
mod striped;

/// Transactions that are open at the same time, at most.
const OPEN: usize = 3;
/// Cells of each.
const OWN: usize = 2;
const CELLS: usize = OPEN * OWN;

/// Bytes of the object that a cell names, and what it is filled with.
type Cell = Option<(u64, u8)>;
type State = [Cell; CELLS];

/// What may be found after a cut.
#[derive(Default)]
struct Oracle {
    /// After each commit.
    states: Vec<State>,
    /// Index of the last that was acknowledged.
    acknowledged: usize,
}

impl Oracle {
    fn new() -> Oracle {
        Oracle { states: vec![State::default()], acknowledged: 0 }
    }

    fn judge(&self, mechanism: Mechanism, found: &State) -> Result<(), String> {
        let allowed = &self.states[self.acknowledged..];
        // Between two cuts of an epoch is nothing but what the running commit may have cut.
        let between = mechanism.has_epochs() && allowed.len() > 2;
        let is_allowed = |n: usize| !between || n == 0 || n + 2 >= allowed.len();
        if (0..allowed.len()).any(|n| allowed[n] == *found && is_allowed(n)) {
            return Ok(());
        }
        Err(format!("{found:?} is none of the {} states that may be: {allowed:?}", allowed.len()))
    }
}

fn options(mechanism: Mechanism) -> Options {
    let ring_bytes = if mechanism == Mechanism::Checkpoint { 128 << 10 } else { 16 << 10 };
    let options = Options::new().mechanism(mechanism).lanes(1).ring_bytes(ring_bytes).spare_pages(48);
    options.epoch_ops(4).id(7).concurrent(true)
}

fn create(pool: &Pool) -> Result<(), Error> {
    pool.tx(|tx| tx.alloc_zeroed(8 * CELLS as u64).and_then(|table| tx.set_root(table)))?;
    pool.persist()
}

/// Makes a cell name an object of so many bytes: the one that it names where that has as many.
fn put(tx: &mut OffsetTx<'_>, cell: usize, (bytes, fill): (u64, u8)) -> Result<(), Error> {
    let slot = tx.root()? + 8 * cell as u64;
    let old = tx.read_u64(slot)?;
    if old != 0 && tx.read_u64(old)? == bytes {
        tx.declare(old + 8, bytes)?;
        // By halves, and what was written is seen.
        tx.write(old + 8, &vec![fill; bytes as usize / 2])?;
        let written = tx.read_vec(old + 8, bytes as usize)?;
        assert!(written[..bytes as usize / 2].iter().all(|&byte| byte == fill), "own writes are seen");
        return tx.write(old + 8, &vec![fill; bytes as usize]);
    }
    let new = tx.alloc(8 + bytes)?;
    assert!(tx.size_of(new)? >= 8 + bytes);
    tx.write_u64(new, bytes)?;
    tx.write(new + 8, &vec![fill; bytes as usize])?;
    tx.write_u64(slot, new)?;
    if old == 0 { Ok(()) } else { free(tx, old) }
}

fn free(tx: &mut OffsetTx<'_>, object: u64) -> Result<(), Error> {
    tx.free(object)?;
    assert!(tx.size_of(object).is_err() && tx.free(object).is_err(), "it is free for this transaction");
    Ok(())
}

fn remove(tx: &mut OffsetTx<'_>, cell: usize) -> Result<(), Error> {
    let slot = tx.root()? + 8 * cell as u64;
    let old = tx.read_u64(slot)?;
    if old == 0 {
        return Ok(());
    }
    tx.write_u64(slot, 0)?;
    free(tx, old)
}

/// Allocates, and frees that again.
fn come_and_go(tx: &mut OffsetTx<'_>, bytes: u64) -> Result<(), Error> {
    let object = tx.alloc(bytes)?;
    tx.write(object, &vec![0xdd; bytes as usize])?;
    free(tx, object)
}

/// What is in the pool.
fn contents(pool: &Pool) -> Result<State, String> {
    pool.check().map_err(|e| format!("the check: {e}"))?;
    let mut state = State::default();
    let read = pool.tx(|tx| {
        let table = tx.root()?;
        for (number, cell) in state.iter_mut().enumerate() {
            let object = tx.read_u64(table + 8 * number as u64)?;
            if object != 0 {
                let bytes = tx.read_u64(object)?;
                if tx.size_of(object)? < 8 + bytes {
                    return Err(Error::abort(format!("an object of {bytes} bytes")));
                }
                let data = tx.read_vec(object + 8, bytes as usize)?;
                if data.iter().any(|&byte| byte != data[0]) {
                    let parts = data.chunk_by(|a, b| a == b).map(|part| (part[0], part.len()));
                    let parts: Vec<_> = parts.take(8).collect();
                    return Err(Error::abort(format!("cell {number} at {object} is torn: {parts:?}")));
                }
                *cell = Some((bytes, data[0]));
            }
        }
        Ok(())
    });
    read.map_err(|e| e.to_string())?;
    let expected = 1 + state.iter().flatten().count();
    let objects = pool.objects().map_err(|e| e.to_string())?.len();
    if objects == expected { Ok(state) } else { Err(format!("{objects} objects instead of {expected}")) }
}

/// An open transaction, and what its cells will be.
struct Open<'p> {
    tx: OffsetTx<'p>,
    own: [Cell; OWN],
}

/// What a run did.
#[derive(Debug, Default)]
struct Done {
    commits: u64,
    aborts: u64,
    too_large: u64,
    /// Commits while others were open.
    beside: u64,
}

/// Does so many steps, each of one of the open transactions, each of these on a processor of its
/// own. Ends with none open.
fn drive(
    shared: &Shared,
    pool: &Pool,
    (oracle, durability): (&Mutex<Oracle>, Durability),
    (seed, steps): (u64, u64),
    goes_on: &dyn Fn() -> bool,
) -> Result<Done, Error> {
    let mut random = Random(seed);
    let mut open: [Option<Open<'_>>; OPEN] = Default::default();
    let mut done = Done::default();
    for step in 0..steps {
        if !goes_on() {
            break;
        }
        let number = random.below(OPEN as u64) as usize;
        run_on_processor(number as u32 + 1);
        let mut ends = false;
        let beside = open.iter().flatten().count() > 1;
        match open[number].take() {
            None => {
                let last = oracle.lock().unwrap().states.last().copied().unwrap_or_default();
                let own = [0, 1].map(|cell| last[OWN * number + cell]);
                open[number] = Some(Open { tx: OffsetTx::buffered(shared), own });
            }
            Some(Open { mut tx, mut own }) if random.below(3) > 0 => {
                let cell = random.below(OWN as u64) as usize;
                let bytes = [40, 300, 3000, 3000, 20_000][random.below(5) as usize];
                let mut next = own[cell];
                let changed = match random.below(8) {
                    0 => come_and_go(&mut tx, bytes),
                    1 | 2 => {
                        next = None;
                        remove(&mut tx, OWN * number + cell)
                    }
                    3 => tx.root().and_then(|root| tx.set_root(root)),
                    _ => {
                        let value = (bytes, step as u8);
                        next = Some(value);
                        put(&mut tx, OWN * number + cell, value)
                    }
                };
                match changed {
                    // Nothing has happened, and the transaction goes on.
                    Err(Error::Full { .. }) => {}
                    changed => {
                        changed?;
                        own[cell] = next;
                    }
                }
                open[number] = Some(Open { tx, own });
            }
            Some(Open { tx, .. }) if random.below(4) == 0 => {
                ends = true;
                let given_up = tx.end(Err::<(), _>(Error::abort("given up")), durability);
                assert!(matches!(given_up, Err(Error::Aborted(_))), "{given_up:?}");
                done.aborts += 1;
            }
            Some(Open { tx, own }) => {
                ends = true;
                {
                    let mut oracle = oracle.lock().unwrap();
                    let mut next = *oracle.states.last().unwrap();
                    next[OWN * number..][..OWN].copy_from_slice(&own);
                    oracle.states.push(next);
                }
                match tx.end(Ok(()), durability) {
                    Err(Error::TooLarge { .. }) => {
                        oracle.lock().unwrap().states.pop();
                        done.too_large += 1;
                    }
                    ended => {
                        ended?;
                        done.commits += 1;
                        done.beside += u64::from(beside);
                        let statistics = pool.statistics();
                        if statistics.acknowledged == statistics.transactions {
                            let mut oracle = oracle.lock().unwrap();
                            oracle.acknowledged = oracle.states.len() - 1;
                        }
                    }
                }
            }
        }
        if ends {
            // What the others do is not seen.
            let last = *oracle.lock().unwrap().states.last().unwrap();
            let found = contents(pool).map_err(Error::abort)?;
            assert_eq!(found, last, "seed {seed}, step {step}: {done:?}");
        }
        match random.below(24) {
            0 => pool.check()?,
            1 => {
                pool.persist()?;
                let mut oracle = oracle.lock().unwrap();
                oracle.acknowledged = oracle.states.len() - 1;
            }
            _ => {}
        }
    }
    for Open { tx, .. } in open.into_iter().flatten() {
        drop(tx);
    }
    Ok(done)
}

/// Frees everything, so that what was lost would be missed.
fn clear(pool: &Pool) -> Result<u64, Error> {
    pool.tx(|tx| (0..CELLS).try_for_each(|cell| remove(tx, cell)))?;
    pool.check()?;
    pool.free_bytes()
}
