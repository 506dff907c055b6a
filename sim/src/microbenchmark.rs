//! The paper's micro-benchmark (Fig. 17): one thread copies persistent data from place to place,
//! and waits for each copy.
//!
//! **Processor**: loads the source, stores the destination, writes it back and fences. **Card**:
//! posts a copy command. Both then load the last line of the destination from the card, which it
//! answers when all before it is done, so that the copy is durable at return in both. **Card, by
//! its record**: posts the command and waits for the completion record, which the card writes to
//! host memory when the copy is durable. No line is in a cache before. What the paper publishes of
//! it is [`PUBLISHED`]; everything else of its figure is not in its text.

use std::sync::Arc;

use nearpm_driver::card::PoolMapping;
use nearpm_driver::pci::Caching;
use nearpm_driver::{Card, CardError, CardOptions};
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::{LINE_U64, POOLS_BASE};
use nearpm_interface::media::{RING_HEAD_BYTES, entry_bytes};

use crate::bench::{CardBench, provisioned, undo_rate};
use crate::core::{CardCore, Medium};
use crate::figures::POOL;
use crate::machine::{Machine, Power};
use crate::model::ModelCard;
use crate::profile::Profile;

/// Sizes of the copies, in bytes.
pub const SIZES: [u32; 9] = [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384];
/// The paper's speed-ups that are in its text: (bytes, speed-up).
pub const PUBLISHED: [(u32, f64); 2] = [(64, 1.13), (16384, 5.57)];
/// Bytes of the pool that is copied in.
const POOL_BYTES: u64 = 8 << 20;
/// Bytes of its log ring, at its beginning.
const RING_BYTES: u64 = 1 << 20;
/// Page that commands are posted on.
const PAGE: usize = 1;

/// Times of a copy, medians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Bytes.
    pub bytes: u32,
    /// By the processor, in nanoseconds.
    pub cpu_ns: f64,
    /// By the card, in nanoseconds.
    pub card_ns: f64,
    /// By the card, waited for by its completion record, in nanoseconds.
    pub record_ns: f64,
    /// Of the load alone that both end with, in nanoseconds: what remains with a card that takes no
    /// time.
    pub wait_ns: f64,
}

impl Point {
    /// How much faster the card is.
    pub fn speed_up(&self) -> f64 {
        self.cpu_ns / self.card_ns
    }

    /// The same where the card's completion record is waited for.
    pub fn speed_up_by_record(&self) -> f64 {
        self.cpu_ns / self.record_ns
    }

    /// How much faster a card would be that takes no time.
    pub fn limit(&self) -> f64 {
        self.cpu_ns / self.wait_ns
    }
}

/// Transaction-level cards of a profile.
pub fn model(profile: &Profile) -> impl Power + use<> {
    let config = profile.card(profile.units());
    move |medium: Medium| Box::new(ModelCard::new(config, medium)) as Box<dyn CardCore>
}

/// Runs it for some sizes, `copies` of each, with the host and the link of a profile and any cards.
///
/// # Errors
/// If the card refuses something.
///
/// # Panics
/// If there are no copies.
pub fn run(profile: &Profile, cards: &dyn Power, sizes: &[u32], copies: u64) -> Result<Vec<Point>, CardError> {
    sizes.iter().map(|&bytes| point(profile, cards, bytes, copies)).collect()
}

/// A computer with a card, and a pool of its memory.
struct Rig {
    machine: Machine,
    card: Card,
}

impl Rig {
    fn new(profile: &Profile, cards: &dyn Power) -> Result<Rig, CardError> {
        let medium = Medium::blank((POOLS_BASE + POOL_BYTES) as usize);
        let machine = Machine::new(profile.parameters(), cards, medium);
        let firmware = Some(nearpm_firmware::standard().bytes().to_vec());
        let card = Card::open(Arc::new(machine.function()), CardOptions { firmware, ..CardOptions::default() })?;
        card.map_pool(PoolMapping {
            pool: 1,
            thread: 0,
            base: POOLS_BASE,
            bytes: POOL_BYTES,
            ring: 0,
            ring_bytes: RING_BYTES as u32,
            committed: 0,
        })?;
        Ok(Rig { machine, card })
    }
}

/// Nanoseconds of the processor for an undo log of `bytes` that it does not wait for, its fence
/// included, sustained over `count` of them.
///
/// # Errors
/// If the card refuses something.
pub fn asynchronous_log(profile: &Profile, cards: &dyn Power, bytes: u32, count: u64) -> Result<f64, CardError> {
    let Rig { machine, card } = Rig::new(profile, cards)?;
    let slot_bytes = entry_bytes(0, bytes);
    let slots = (RING_BYTES - RING_HEAD_BYTES) / slot_bytes;
    let places = (POOL_BYTES - RING_BYTES) / u64::from(bytes).next_multiple_of(LINE_U64);
    let start_ps = machine.now_ps();
    for n in 0..count {
        let log = Command {
            opcode: Opcode::UndoLog as u8,
            pool: 1,
            txid: 1,
            source: RING_BYTES + n % places * u64::from(bytes).next_multiple_of(LINE_U64),
            destination: RING_HEAD_BYTES + n % slots * slot_bytes,
            sequence: n,
            length: bytes,
            ..Command::default()
        };
        card.post(PAGE, log, false)?;
    }
    Ok((machine.now_ps() - start_ps) as f64 / 1000.0 / count as f64)
}

/// Undo logs of `bytes`, million a second, of a card with so many units that is never idle: `count`
/// logs, without a host.
///
/// # Panics
/// If the model has not so many units, or the card hangs.
pub fn log_rate(profile: &Profile, units: usize, bytes: u32, count: u64) -> f64 {
    let medium = provisioned((POOLS_BASE + POOL.bytes) as usize, nearpm_firmware::standard().bytes());
    let card = Box::new(ModelCard::new(profile.card(units), medium)) as Box<dyn CardCore>;
    let mut bench = CardBench::open(card, POOL);
    let period_ps = bench.card.period_ps();
    undo_rate(&mut bench, POOL, bytes, count).million_per_s(period_ps)
}

fn point(profile: &Profile, cards: &dyn Power, bytes: u32, copies: u64) -> Result<Point, CardError> {
    let Rig { machine, card } = Rig::new(profile, cards)?;
    let window = card.window(POOLS_BASE..POOLS_BASE + POOL_BYTES, Caching::WriteBack)?;
    let stride = u64::from(bytes).next_multiple_of(4096) * 2;
    let places = (POOL_BYTES - RING_BYTES) / stride;
    let source = |copy: u64| RING_BYTES + copy % places * stride;
    let target = |copy: u64| source(copy) + stride / 2;
    let mut data = vec![0; bytes as usize];
    let timed = |copy: &mut dyn FnMut(u64) -> Result<(), CardError>| -> Result<f64, CardError> {
        let mut times_ps = Vec::new();
        for n in 0..copies {
            machine.settle();
            window.invalidate(source(n), u64::from(bytes));
            window.invalidate(target(n), u64::from(bytes));
            window.fence();
            let start_ps = machine.now_ps();
            copy(n)?;
            times_ps.push(machine.now_ps() - start_ps);
        }
        // The median: single copies meet a refresh of the memory.
        times_ps.sort_unstable();
        Ok(times_ps[times_ps.len() / 2] as f64 / 1000.0)
    };
    let wait = |n: u64| {
        let mut last = [0; LINE_U64 as usize];
        window.load(target(n) + u64::from(bytes) - LINE_U64, &mut last);
    };
    let cpu_ns = timed(&mut |n| {
        window.load(source(n), &mut data);
        window.store(target(n), &data);
        window.invalidate(target(n), u64::from(bytes));
        window.fence();
        wait(n);
        Ok(())
    })?;
    let command = |n: u64| Command {
        opcode: Opcode::ShadowCopy as u8,
        pool: 1,
        source: source(n),
        destination: target(n),
        length: bytes,
        ..Command::default()
    };
    let card_ns = timed(&mut |n| {
        card.post(PAGE, command(n), false)?;
        wait(n);
        Ok(())
    })?;
    let record_ns = timed(&mut |n| {
        let ticket = card.post(PAGE, command(n), true)?;
        card.wait(ticket)
    })?;
    let wait_ns = timed(&mut |n| {
        wait(n);
        Ok(())
    })?;
    Ok(Point { bytes, cpu_ns, card_ns, record_ns, wait_ns })
}
