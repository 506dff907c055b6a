//! The programs on a card that is there, whatever it is reached by: undo logging, checkpointing and shadow paging, in the time of its transport.
//!
//! On a board that is wall-clock time, and all of it: the program's instructions, the library's, the link and the card. What another transport's clock
//! says is for its label. These results are never put among simulated ones: they are not kept in a folder of results, and the report has no place for
//! them.

use anyhow::{Context, Result, ensure};
use nearpm::{Engine, Mechanism, PoolOptions};
use nearpm_interface::media::PAGE_BYTES;
use nearpm_workloads::check;
use nearpm_workloads::programs::ycsb::Mix;
use nearpm_workloads::programs::{Inputs, Program, Setup, Workload};

use crate::case::{Case, Configuration};
use crate::device::Device;
use crate::run::{EPOCH, fill};

/// Mechanisms that are run.
pub const MECHANISMS: [Mechanism; 3] = [Mechanism::Undo, Mechanism::Checkpoint, Mechanism::Shadow];
/// Who makes the copies.
pub const CONFIGURATIONS: [Configuration; 2] = [Configuration::Cpu, Configuration::Card];
/// What the paper's tables are divided by, the least that fits the card.
const SHARES: [usize; 6] = [1, 4, 20, 100, 500, 2_000];
/// Bytes of the log, least and most: with the most the pages of an epoch fit, as on the simulated computers; with less epochs end earlier.
const RING_BYTES: [u64; 2] = [128 << 10, 4 << 20];
/// Part of the card's room that is the log's.
const RING_SHARE: u64 = 32;
/// Pools are multiples of this.
const GRAIN: u64 = 64 << 10;

/// A card that is open.
pub struct Place<'p> {
    /// Name of its transport, in the place of a profile's.
    pub name: &'p str,
    /// Where a pool on it lies.
    pub location: &'p dyn Fn(&str) -> String,
    /// Its clock, in nanoseconds.
    pub now_ns: &'p dyn Fn() -> u64,
    /// Bytes that a pool may take.
    pub room: u64,
    /// Units of the card.
    pub units: usize,
}

/// The cases of some programs.
///
/// # Errors
/// If a program does not fit the card, however small.
pub fn cases(
    place: &Place<'_>,
    programs: &[Program],
    mechanisms: &[Mechanism],
    count: usize,
    seeds: u64,
) -> Result<Vec<Case>> {
    ensure!(count > 0, "no transactions to run");
    let mut cases = Vec::new();
    for &program in programs {
        let fits = |share: &usize| pool_bytes(place, &*program.make(&setup(*share, count, 1))) <= place.room;
        let share = SHARES.into_iter().find(fits);
        let share =
            share.with_context(|| format!("{} does not fit into {} bytes of the card", program.name(), place.room))?;
        for seed in 1..=seeds {
            for &mechanism in mechanisms {
                cases.extend(CONFIGURATIONS.map(|configuration| Case {
                    profile: place.name.into(),
                    program,
                    inputs: Inputs::Corrected,
                    mix: Mix::W1,
                    mechanism,
                    configuration,
                    devices: 1,
                    units: place.units,
                    threads: 1,
                    count,
                    share,
                    seed,
                    device: Device::Model,
                }));
            }
        }
    }
    Ok(cases)
}

fn setup(share: usize, count: usize, seed: u64) -> Setup {
    Setup { inputs: Inputs::Corrected, seed: seed.wrapping_mul(1_000), count, share, mix: Mix::W1 }
}

fn ring_bytes(place: &Place<'_>) -> u32 {
    (place.room / RING_SHARE / PAGE_BYTES * PAGE_BYTES).clamp(RING_BYTES[0], RING_BYTES[1]) as u32
}

fn pool_bytes(place: &Place<'_>, program: &dyn Workload) -> u64 {
    (2 * program.bytes() + 4 * u64::from(ring_bytes(place))).next_multiple_of(GRAIN)
}

/// What a case took.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// What was run.
    pub case: Case,
    /// Nanoseconds of the transport's clock a transaction, from the first one's beginning until all are durable.
    pub ns_per_transaction: f64,
    /// Commands that the card was given.
    pub commands: u64,
}

/// Runs a case in a pool of its own, which is removed afterwards, and checks what it left.
///
/// # Errors
/// If the card or the library fails, or the pool does not hold what the program's model says.
pub fn run(place: &Place<'_>, case: &Case) -> Result<Timing> {
    let location = (place.location)(&format!("bench-{}", std::process::id()));
    let timing = timed(place, case, &location);
    let removed = nearpm::remove(&location);
    let timing = timing.with_context(|| case.key())?;
    removed.with_context(|| format!("{case}: its pool cannot be removed"))?;
    Ok(timing)
}

fn timed(place: &Place<'_>, case: &Case, location: &str) -> Result<Timing> {
    let program = case.program.make(&setup(case.share, case.count, case.seed));
    let options = PoolOptions::new().lanes(1).ring_bytes(ring_bytes(place)).epoch_ops(EPOCH as u64);
    fill(&options, location, pool_bytes(place, &*program), &*program)?;
    let engine = if case.configuration.uses_card() { Engine::Card } else { Engine::Cpu };
    let pool = options.mechanism(case.mechanism).engine(engine).open(location)?;
    let (root, before) = (pool.root()?, pool.statistics());
    let start_ns = (place.now_ns)();
    for number in 0..program.count() {
        pool.tx(|tx| program.apply(tx, root, number))?;
    }
    pool.persist()?;
    let ns = (place.now_ns)() - start_ns;
    let commands = pool.statistics().commands - before.commands;
    ensure!(case.configuration.uses_card() == (commands > 0), "the card was given {commands} commands");
    let found = check::rows(&pool, &*program)?.context("the pool has a root")?;
    ensure!(found == program.after(program.count()), "the pool does not hold what the model says");
    pool.close()?;
    Ok(Timing { case: case.clone(), ns_per_transaction: ns as f64 / program.count() as f64, commands })
}
