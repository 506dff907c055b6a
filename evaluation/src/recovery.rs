//! Time of a recovery: the power is cut while a transaction, an epoch or an applied log is under
//! way, comes back, and the pool is opened.
//!
//! The time is simulated, from power-up until the library has the pool open: the card boots and
//! finishes the commands that its save kept, the driver brings it up, and the library reads the
//! log, restores or applies what has to be, and reads the tables of the heap. The processor's
//! instructions and the operating system's boot are not in it. Recoveries are checked: a run in
//! which a page that was under way holds anything but what it must is an error.

use anyhow::{Context, Result, bail, ensure};
use nearpm::{Durability, Engine, Error, Mechanism, Options, Pool};
use nearpm_sim::host::{Cut, Event};
use nearpm_sim::machine::{Machine, until_power_cut};
use nearpm_sim::profile::Profile;

use crate::computer::Computer;
use crate::meter::Noted;

/// Pools of [`Recoveries::by_pool`], in bytes.
pub const POOLS: [u64; 5] = [16 << 20, 32 << 20, 64 << 20, 128 << 20, 256 << 20];
/// Bytes under way of [`Recoveries::by_work`].
pub const WORK: [u64; 6] = [0, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
/// The pool of [`Recoveries::by_work`].
pub const POOL_BYTES: u64 = 64 << 20;
/// Bytes under way of [`Recoveries::by_pool`].
pub const WORK_BYTES: u64 = 64 << 10;
/// Log ring: the most that is under way fits, with its entries' heads.
const RING_BYTES: u32 = 4 << 20;
/// Writes are pages, each logged by itself.
const PAGE: u64 = 4096;
/// What the object holds before, and what is written over it.
const OLD: u8 = 0x11;
const NEW: u8 = 0x22;
/// What the card's memory does with writes that the cut meets.
const SEED: u64 = 1;

/// A recovery.
#[derive(Clone, Debug)]
pub struct Point {
    /// Size of the pool.
    pub pool_bytes: u64,
    /// Bytes of the program's that were under way.
    pub work_bytes: u64,
    /// From power-up until the driver has the card.
    pub card_ns: f64,
    /// From there until the pool is open.
    pub pool_ns: f64,
    /// Where the time went.
    pub noted: Noted,
    /// Log entries that were rolled back or applied again.
    pub entries: u64,
}

impl Point {
    /// From power-up until the pool is open.
    pub fn ns(&self) -> f64 {
        self.card_ns + self.pool_ns
    }
}

/// The recoveries of a mechanism that the report shows.
pub struct Recoveries {
    /// Which.
    pub mechanism: Mechanism,
    /// With [`WORK`] under way, in pools of [`POOL_BYTES`].
    pub by_work: Vec<Point>,
    /// Of pools of [`POOLS`], with [`WORK_BYTES`] under way.
    pub by_pool: Vec<Point>,
}

/// Those of all mechanisms.
///
/// # Errors
/// See [`run`].
pub fn all(profile: &Profile) -> Result<Vec<Recoveries>> {
    let of = |mechanism| {
        Ok(Recoveries {
            mechanism,
            by_work: WORK.into_iter().map(|bytes| run(profile, mechanism, POOL_BYTES, bytes)).collect::<Result<_>>()?,
            by_pool: POOLS
                .into_iter()
                .map(|bytes| run(profile, mechanism, bytes, WORK_BYTES))
                .collect::<Result<_>>()?,
        })
    };
    Mechanism::ALL.into_iter().map(of).collect()
}

fn options(mechanism: Mechanism, id: u32) -> Options {
    // Epochs end where they are told to, and never here.
    let options = Options::new().mechanism(mechanism).engine(Engine::Card).lanes(1).ring_bytes(RING_BYTES);
    options.epoch_ops(0).durability(Durability::Durable).id(id)
}

/// Writes every second page of an object, `bytes` in all: neighbours would have one log entry
/// together.
fn write(pool: &Pool, object: u64, bytes: u64, value: u8) -> Result<(), Error> {
    pool.tx(|tx| (0..bytes / PAGE).try_for_each(|page| tx.write(object + 2 * page * PAGE, &[value; PAGE as usize])))
}

/// One recovery. Under way is: with undo logging a transaction that has written everything and not
/// committed; with redo logging one that has just committed, whose log is being applied; with
/// checkpointing and shadow paging an epoch that has written everything and not ended.
///
/// # Errors
/// If a pool of this size does not take so much, or does not hold what it must afterwards.
pub fn run(profile: &Profile, mechanism: Mechanism, pool_bytes: u64, work_bytes: u64) -> Result<Point> {
    ensure!(work_bytes.is_multiple_of(PAGE), "{work_bytes} bytes are no whole pages");
    let mut computer = Computer::new(profile, 1, profile.units(), profile.parameters(), pool_bytes)?;
    let (location, id) = (computer.location("pool"), computer.pool_id(0));
    let written = work_bytes.max(PAGE);
    let pool = options(mechanism, id).create(&location, pool_bytes).context("the pool cannot be made")?;
    let object = pool.tx(|tx| tx.alloc(2 * written))?;
    write(&pool, object, written, OLD)?;
    pool.tx(|tx| tx.set_root(object))?;
    pool.cut()?;
    pool.persist()?;
    computer.machine.settle();
    // What the process knows of the pool goes with the power: it is dropped while the core unwinds.
    let machine = computer.machine.clone();
    let cut = until_power_cut(move || under_way(&pool, &machine, mechanism, object, work_bytes));
    if let Ok(ended) = cut {
        ended?;
        bail!("the power was not cut");
    }
    recover(&mut computer, &location, options(mechanism, id), (mechanism, work_bytes))
}

/// Does what the power cut is to meet, and cuts the power.
fn under_way(pool: &Pool, machine: &Machine, mechanism: Mechanism, object: u64, bytes: u64) -> Result<(), Error> {
    if mechanism == Mechanism::Undo && bytes > 0 {
        // The commit logs all pages, stores new values and ends; the cut comes when the card has
        // the last page's log.
        let (event, count) = (Event::CommandAccepted, bytes / PAGE);
        machine.arm_cut(Cut::AfterEvent { event, count, delay_cycles: 1 }, SEED);
    }
    write(pool, object, bytes, NEW)?;
    if mechanism.has_epochs() {
        machine.settle();
    }
    machine.cut_now(SEED);
    pool.tx(|tx| tx.read_u64(object)).map(drop)
}

fn recover(
    computer: &mut Computer,
    location: &str,
    options: Options,
    (mechanism, work_bytes): (Mechanism, u64),
) -> Result<Point> {
    computer.machine.power_up(&*computer.power);
    computer.meter.take();
    let machine = computer.machine.clone();
    let start_ps = machine.now_ps();
    computer.open_cards()?;
    let card_ps = machine.now_ps() - start_ps;
    let pool = options.open(location).context("the pool does not recover")?;
    let pool_ps = machine.now_ps() - start_ps - card_ps;
    let noted = computer.meter.take();
    let expected = if mechanism == Mechanism::Redo && work_bytes > 0 { NEW } else { OLD };
    let object = pool.root()?;
    for page in 0..(work_bytes / PAGE).max(1) {
        let found = pool.tx(|tx| tx.read_vec(object + 2 * page * PAGE, PAGE as usize))?;
        let right = found.iter().all(|byte| *byte == expected);
        ensure!(right, "{}: page {page} of the recovered pool is wrong", mechanism.name());
    }
    let recovery = pool.recovery();
    Ok(Point {
        pool_bytes: pool.bytes(),
        work_bytes,
        card_ns: card_ps as f64 / 1000.0,
        pool_ns: pool_ps as f64 / 1000.0,
        noted,
        entries: recovery.undone + recovery.redone,
    })
}
