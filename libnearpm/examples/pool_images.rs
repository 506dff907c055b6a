//! Makes images of pools as this library leaves them, closed and crashed, for later ones to open
//! (`tests/images`).
//!
//! ```console
//! $ cargo run --release -p nearpm --example pool_images -- libnearpm/tests/images/made/COMMIT
//! ```
//!
//! The images of an older commit are made by the older library: copy this file and `tests/images`
//! into a work tree of that commit.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

#[path = "../tests/images/contents.rs"]
mod contents;
#[path = "../tests/images/media.rs"]
mod media;
#[path = "../tests/images/schemes.rs"]
mod schemes;

use schemes::{Machine, Opened, Scheme};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Transactions before power may fail.
const BEFORE: u64 = 8;
/// Transactions in all.
const ALL: u64 = 14;
/// Where power fails on cards: at so many places of the transactions that may be hit.
const CUTS: u64 = 40;
/// Of the events of the processor's memory one in so many.
const ONE_IN: u64 = 5;
/// Crashed images of a scheme, at most.
const MOST: usize = 4;

/// What a power cut left.
struct Left {
    media: Vec<Vec<u8>>,
    /// Transactions that had returned.
    returned: u64,
}

/// The states after each transaction, from none on.
fn states(scheme: &Scheme) -> Result<Vec<String>> {
    let machine = Machine::blank(scheme);
    let pool = schemes::create(scheme.way, &machine)?;
    let mut states = vec![pool.read()?];
    for number in 1..=ALL {
        pool.change(number)?;
        states.push(pool.read()?);
    }
    Ok(states)
}

/// A pool with the first transactions done for good.
fn filled(scheme: &Scheme, machine: &Machine) -> Result<Opened> {
    let pool = schemes::create(scheme.way, machine)?;
    (1..=BEFORE).try_for_each(|number| pool.change(number))?;
    pool.persist()?;
    Ok(pool)
}

/// What media hold once a pool was closed.
fn closed(scheme: &Scheme) -> Result<Vec<Vec<u8>>> {
    let machine = Machine::blank(scheme);
    let pool = filled(scheme, &machine)?;
    (BEFORE + 1..=ALL).try_for_each(|number| pool.change(number))?;
    pool.close()?;
    Ok(machine.power_cut())
}

/// Cuts the power of the processor's memory while transactions run.
fn cut_memory(scheme: &Scheme) -> Result<Vec<Left>> {
    let machine = Machine::blank(scheme);
    let pool = filled(scheme, &machine)?;
    let Machine::Memory(memory) = &machine else { return Err("the scheme is one on cards".into()) };
    let returned = Arc::new(AtomicU64::new(BEFORE));
    let left: Arc<Mutex<Vec<Left>>> = Arc::default();
    let (sink, done) = (left.clone(), returned.clone());
    memory.probe(move |event, _, survive| {
        if event % ONE_IN == 0 {
            let left = Left { media: vec![survive(event)], returned: done.load(Ordering::Relaxed) };
            sink.lock().expect("nothing panics").push(left);
        }
    });
    for number in BEFORE + 1..=ALL {
        pool.change(number)?;
        returned.store(number, Ordering::Relaxed);
    }
    memory.stop_probe();
    let left = std::mem::take(&mut *left.lock().expect("nothing panics"));
    Ok(left)
}

/// Cuts the power of cards at one place while transactions run, and tells at how many accesses of
/// the first card they end.
fn cut_cards(scheme: &Scheme, accesses: Option<u64>) -> Result<(Left, u64)> {
    let machine = Machine::blank(scheme);
    let pool = filled(scheme, &machine)?;
    let Machine::Cards { mocks, .. } = &machine else { return Err("the scheme is one in memory".into()) };
    let first = mocks[0].accesses();
    if let Some(accesses) = accesses {
        mocks[0].cut_in(accesses);
    }
    let returned = (BEFORE + 1..=ALL).take_while(|number| pool.change(*number).is_ok()).count() as u64;
    let took = mocks[0].accesses() - first;
    let media = machine.power_cut();
    // Its process is gone.
    std::mem::forget(pool);
    Ok((Left { media, returned: BEFORE + returned }, took))
}

fn cuts(scheme: &Scheme) -> Result<Vec<Left>> {
    if scheme.is_in_memory() {
        return cut_memory(scheme);
    }
    let (_, accesses) = cut_cards(scheme, None)?;
    (1..CUTS).map(|cut| Ok(cut_cards(scheme, Some(accesses * cut / CUTS))?.0)).collect()
}

/// Opens media with the library that left them, and gives what it found: what was recovered and
/// what the pool holds.
fn recovered(scheme: &Scheme, media: &[Vec<u8>]) -> Result<(nearpm::Recovery, String)> {
    let machine = Machine::with(media.to_vec(), scheme);
    let pool = schemes::open(scheme.way, &machine)?;
    Ok((pool.recovery(), pool.read()?))
}

/// Crashed images that differ in what had to be done to recover them.
fn crashed(scheme: &Scheme) -> Result<Vec<(Vec<Vec<u8>>, String)>> {
    let states = states(scheme)?;
    let mut kinds = BTreeMap::new();
    for Left { media, returned } in cuts(scheme)? {
        let (recovery, found) = recovered(scheme, &media)?;
        let (at_least, at_most) = (if scheme.is_durable() { returned } else { BEFORE }, (returned + 1).min(ALL));
        let allowed = &states[at_least as usize..=at_most as usize];
        if !allowed.contains(&found) {
            return Err(format!("{}: {found} is none of {allowed:?}", scheme.name()).into());
        }
        let is_running = found == states[at_most as usize];
        let kind = (recovery.undone > 0, recovery.redone > 0, recovery.torn > 0, is_running);
        kinds.entry(kind).or_insert((media, found));
    }
    // What had most to be recovered first.
    Ok(kinds.into_values().rev().take(MOST).collect())
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).ok_or("the folder of images is missing")?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    let mut table = String::new();
    for scheme in schemes::all() {
        let closed = closed(&scheme)?;
        let (_, found) = recovered(&scheme, &closed)?;
        let all = std::iter::once((closed, found)).chain(crashed(&scheme)?);
        for (number, (media, found)) in all.enumerate() {
            let state = if number == 0 { "closed".to_owned() } else { format!("crashed-{number}") };
            let name = format!("{}-{state}", scheme.name());
            let file = media::pack(&media);
            assert_eq!(media::unpack(&file), media, "{name}");
            std::fs::write(folder.join(format!("{name}.image")), file)?;
            table.push_str(&format!("{name}\t{found}\n"));
        }
    }
    std::fs::write(folder.join("contents.tsv"), table)?;
    Ok(())
}
