//! What the guest does: a B+tree in a pool, on the card or on other persistent memory, one
//! transaction an operation.

use std::fs::OpenOptions;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use nearpm::cards::Registered;
use nearpm::memory::{MappedMemory, Survives};
use nearpm::{Durability, Engine, Mechanism, Options, Pool};
use nearpm_driver::{Card, CardOptions, vfio};
use nearpm_workloads::ops::{self, Mix, Op};
use nearpm_workloads::run::{self, Progress};
use nearpm_workloads::{BTree, check};
use nix::sys::termios::tcdrain;

use crate::message::GuestMessage;
use crate::task::{Known, Task};

/// Bytes of the pool.
const POOL_BYTES: u64 = 1 << 20;
/// Bytes of its log ring.
const RING_BYTES: u32 = 64 << 10;
/// How long the card may take for anything: it is simulated, and so is the processor that waits.
const TIMEOUT_NS: u64 = 30_000_000_000;
/// Name of the pool.
const POOL: &str = "bank";

/// Opens the card through VFIO and makes it known to the library.
///
/// # Errors
/// If it does not open.
pub fn open_card(address: &str) -> Result<Registered> {
    let function = Arc::new(vfio::open(address)?);
    let firmware = Some(nearpm_firmware::standard().bytes().to_vec());
    let options = CardOptions { firmware, timeout_ns: TIMEOUT_NS, ..CardOptions::default() };
    Ok(Registered::new(Arc::new(Card::open(function, options).context("the card does not open")?)))
}

/// Where the pool is, and who makes its copies.
pub struct GuestPool {
    location: String,
    engine: Engine,
}

impl GuestPool {
    /// A pool on a card.
    pub fn card(card: &Registered) -> GuestPool {
        GuestPool { location: card.pool(POOL), engine: Engine::Card }
    }

    /// A pool in a folder, without a card.
    pub fn folder(folder: &str) -> GuestPool {
        GuestPool { location: format!("{folder}/{POOL}"), engine: Engine::Cpu }
    }

    /// Makes sure that the pool's file is mapped from persistent memory itself.
    ///
    /// # Errors
    /// If the file system gives no such mapping.
    pub fn check_dax(&self) -> Result<()> {
        let file = OpenOptions::new().read(true).write(true).open(&self.location)?;
        let memory = MappedMemory::map(file, self.location.as_ref(), Survives::PowerCut)?;
        ensure!(memory.is_dax(), "{} is mapped from the page cache", self.location);
        Ok(())
    }
}

fn options(at: &GuestPool) -> Options {
    Options::new()
        .mechanism(Mechanism::Undo)
        .engine(at.engine)
        .survives(Survives::PowerCut)
        .durability(Durability::Durable)
        .lanes(1)
        .ring_bytes(RING_BYTES)
}

/// The operations of a task.
fn operations(task: &Task) -> Vec<Op> {
    ops::generate(Mix::Churn, task.seed, task.operations)
}

/// Does operations and says after each one how many are acknowledged; `before` had been done in an
/// earlier life.
fn operate(pool: &Pool, map: BTree, all: &[Op], before: usize, progress: &Progress) -> Result<(), nearpm::Error> {
    let say = || {
        println!("{}", GuestMessage::Acknowledged(before + progress.acknowledged()));
        // Until the line is out, so that at most one operation is ahead of it. What is no terminal
        // has nothing to wait for.
        let _ = tcdrain(std::io::stdout());
    };
    run::run(pool, map, &all[before..], 1, progress, |number| {
        if number > 0 {
            say();
        }
    })?;
    say();
    Ok(())
}

/// The first life: makes a pool and works in it until the power of the card fails, which is what it
/// gives back. On other memory the machine ends with the power.
///
/// # Errors
/// If something else fails, or nothing does.
pub fn until_the_power_fails(at: &GuestPool, task: &Task) -> Result<GuestMessage> {
    let pool = options(at).create(&at.location, POOL_BYTES).context("the pool cannot be made")?;
    let map = run::create::<BTree>(&pool)?;
    let progress = Progress::default();
    let error = operate(&pool, map, &operations(task), 0, &progress).err();
    let error = error.context("all operations were done, and the power did not fail")?;
    let gone = GuestMessage::Gone {
        acknowledged: progress.acknowledged(),
        started: progress.started(),
        why: error.to_string(),
    };
    // The pool is left as it is, as the power would leave it: closing it would ask the card that
    // has gone.
    std::mem::forget(pool);
    Ok(gone)
}

/// The second life: recovers the pool, finds everything that was acknowledged and nothing in part,
/// and does the rest. Gives the operations that were found, and says so.
///
/// # Errors
/// Whatever is not as it must be.
pub fn after_the_cut(at: &GuestPool, task: &Task, known: Known) -> Result<usize> {
    let pool = options(at).open(&at.location).context("the pool does not open")?;
    let all = operations(task);
    let Known { acknowledged, started } = known;
    ensure!(acknowledged <= started && started <= all.len(), "{known:?} of {} operations make no sense", all.len());
    let kept = check::prefix::<BTree>(&pool, &all, acknowledged, started, Durability::Durable)?;
    println!("{}", GuestMessage::Kept(kept));
    let progress = Progress::default();
    operate(&pool, run::open::<BTree>(&pool)?, &all, kept, &progress)?;
    check::prefix::<BTree>(&pool, &all, all.len(), all.len(), Durability::Durable).context("at the end")?;
    pool.close()?;
    Ok(kept)
}
