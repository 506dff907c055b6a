//! A soak: a process that sets batches on a GPU is killed, again and again, and what is left is
//! compared with the oracle.
//!
//! It can show that recovery works on hardware. It cannot show that a fence is missing: what a
//! killed process has stored is not lost, only what it had not stored yet. That is what the
//! interpreter is for.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nearpm_gpm::Outcome;
use nearpm_gpu::{Access, Device, PmRegion};

use crate::kernels::kvs as kvs_kernels;
use crate::kvs::{Kvs, Model, Sets, batch_of, region_bytes};

/// Sets of the table, as a power of two, and SETs of a batch: keys come again, so that sets
/// overflow and keys are duplicate.
const SET_BITS: u32 = 14;
const BATCH: usize = 1 << 17;
const KEYS: u64 = 1 << 17;

/// What was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Soaked {
    /// Processes killed.
    pub kills: u32,
    /// Kills that left a batch to be undone.
    pub undone: u32,
    /// Batches that the oracle has seen.
    pub batches: u32,
}

fn pairs_of(generation: u32) -> Vec<(u64, u64)> {
    batch_of(generation.into(), BATCH, KEYS)
}

/// The process that is killed: recovers the store at `path`, or makes it, says what it found, waits
/// for a line, and sets batches for ever.
///
/// # Errors
/// What the device or the region refuses.
pub fn child(device: Rc<dyn Device>, path: &Path) -> Result<()> {
    let (kvs, outcome) = if path.exists() {
        let region = PmRegion::map(device.clone(), path, 0, Access::Open)?;
        Kvs::open(&region, kvs_kernels())?
    } else {
        let region = PmRegion::map(
            device.clone(),
            path,
            region_bytes(SET_BITS, BATCH as u32).next_multiple_of(4096),
            Access::Create,
        )?;
        (Kvs::create(&region, SET_BITS, BATCH as u32, kvs_kernels())?, Outcome::Kept { generation: 0 })
    };
    let (generation, word) = match outcome {
        Outcome::Kept { generation } => (generation, "kept"),
        Outcome::Undone { generation } => (generation, "undone"),
    };
    let (offset, bytes) = kvs.table();
    println!("{generation} {word} {offset} {bytes}");
    std::io::stdin().lock().read_line(&mut String::new())?;
    for generation in generation + 1.. {
        let sets = Sets::new(&device, &pairs_of(generation))?;
        ensure!(kvs.set(&sets)? == generation, "a batch got another generation");
    }
    bail!("the generations are used up")
}

/// Kills `kills` processes that `command` makes, each of which runs [`child`] on `path`.
///
/// # Errors
/// The first difference from the oracle.
pub fn soak(command: &dyn Fn() -> Command, path: &Path, kills: u32) -> Result<Soaked> {
    let mut soaked = Soaked::default();
    let mut model = Model::new(SET_BITS);
    let mut seen = 0;
    let mut state = 0x1234_5678_9abc_def1u64;
    for kill in 0..=kills {
        let mut process =
            command().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start a process")?;
        let checked = check(&mut process, path, &mut model, &mut seen, &mut soaked);
        if checked.is_ok() && kill < kills {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            std::thread::sleep(Duration::from_micros(500 + state % 40_000));
            soaked.kills += 1;
        }
        // Its own process alone, by its handle.
        let _ = process.kill();
        let ended = process.wait().context("cannot wait for the process")?;
        checked.with_context(|| format!("after kill {kill}"))?;
        ensure!(ended.signal().is_some(), "after kill {kill}: the process ended by itself, {ended}");
        // Kernels go on for some milliseconds.
        std::thread::sleep(Duration::from_millis(50));
    }
    soaked.batches = seen;
    Ok(soaked)
}

/// Reads what the process found, and compares the table with the oracle's; then lets it go on.
fn check(process: &mut Child, path: &Path, model: &mut Model, seen: &mut u32, soaked: &mut Soaked) -> Result<()> {
    let mut line = String::new();
    let output = process.stdout.as_mut().context("the process has no output")?;
    BufReader::new(output).read_line(&mut line)?;
    let parts: Vec<&str> = line.split_whitespace().collect();
    let [generation, word, offset, bytes] = parts[..] else { bail!("the process ended before it was killed") };
    let (generation, undone): (u32, bool) = (generation.parse()?, word == "undone");
    ensure!(generation >= *seen, "generation {generation} is there, {seen} was before");
    for batch in *seen + 1..=generation {
        if !(undone && batch == generation) {
            model.apply(&pairs_of(batch));
        }
    }
    *seen = generation;
    soaked.undone += u32::from(undone);
    let mut table = vec![0; bytes.parse()?];
    std::fs::File::open(path)?.read_exact_at(&mut table, offset.parse()?)?;
    ensure!(model.equals(&table), "the table is not what batches up to {generation} ({word}) make");
    writeln!(process.stdin.as_mut().context("the process takes no input")?, "go")?;
    Ok(())
}
