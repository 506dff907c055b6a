//! What a long reader costs a writer: `cargo bench -p nearpm --bench snapshots`.
//!
//! A writer changes random entries of a map, two a transaction. Beside it nobody reads, or a thread
//! has one long read in which it adds all entries up again and again: of a snapshot, or a read
//! transaction, which a writer waits for. The three take turns; each line is the median of the
//! rounds. What was written is read back, and every sum that the reader makes must be that of some
//! moment: a transaction takes from one entry what it gives to another.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nearpm::memory::VolatileMemory;
use nearpm::prelude::*;
use nearpm_statistics::median;

const ENTRIES: u64 = 100_000;
const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_millis(400);

#[derive(Clone, Copy)]
enum Reading {
    Nobody,
    Snapshot,
    Transaction,
}

/// What a round has shown.
#[derive(Clone, Copy)]
struct Outcome {
    /// Transactions of the writer a second.
    writes: f64,
    /// Passes of the reader over all entries a second.
    scans: f64,
    /// The longest transaction of the writer, in milliseconds.
    longest: f64,
    /// MiB of the snapshot's copies.
    copied: f64,
}

type Map = Ptr<PBTreeMap<u64, u64>>;

fn sum(from: &impl Load, map: Map) -> Result<(), Error> {
    let mut sum = 0u64;
    let mut entries = 0;
    for entry in map.iter(from)? {
        sum = sum.wrapping_add(entry?.1);
        entries += 1;
    }
    assert_eq!((entries, sum), (ENTRIES, 0), "the sum of no moment");
    Ok(())
}

/// Moves something between two entries.
fn write(tx: &mut Tx<'_>, map: Map, number: u64) -> Result<(), Error> {
    let key = |of: u64| of.wrapping_mul(0x9e37_79b9_7f4a_7c15) % ENTRIES;
    for (key, by) in [(key(number), 1u64), (key(number + 7), u64::MAX)] {
        let slot = map.slot(tx, &key)?.expect("every key is there");
        tx.update(slot, |value| value.wrapping_add(by))?;
    }
    Ok(())
}

fn round(pool: &DirectPool, map: Map, reading: Reading, first: u64) -> (Outcome, u64) {
    let (scans, copied, begin) = (AtomicU64::new(0), AtomicU64::new(0), Barrier::new(2));
    let read = |from: &dyn Fn() -> Result<(), Error>| {
        begin.wait();
        let begun = Instant::now();
        while begun.elapsed() < ROUND {
            from()?;
            scans.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    let (number, longest, seconds) = std::thread::scope(|scope| {
        scope.spawn(|| {
            let done = match reading {
                Reading::Nobody => {
                    begin.wait();
                    Ok(())
                }
                Reading::Transaction => pool.read(|from| read(&|| sum(from, map))),
                Reading::Snapshot => pool.snapshot().and_then(|snapshot| {
                    snapshot.read(|from| read(&|| sum(from, map)))?;
                    copied.store(snapshot.copied_bytes(), Ordering::Relaxed);
                    Ok(())
                }),
            };
            done.expect("the pool can be read");
        });
        begin.wait();
        let (begun, mut number, mut longest) = (Instant::now(), first, Duration::ZERO);
        while begun.elapsed() < ROUND {
            let at = Instant::now();
            pool.tx(|tx| write(tx, map, number)).expect("the pool can be changed");
            longest = longest.max(at.elapsed());
            number += 1;
        }
        let seconds = begun.elapsed().as_secs_f64();
        (number, longest, seconds)
    });
    let outcome = Outcome {
        writes: (number - first) as f64 / seconds,
        scans: scans.load(Ordering::Relaxed) as f64 / seconds,
        longest: longest.as_secs_f64() * 1e3,
        copied: copied.load(Ordering::Relaxed) as f64 / f64::from(1 << 20),
    };
    (outcome, number)
}

fn main() -> Result<(), Error> {
    let pool = DirectPool::create_in(Box::new(VolatileMemory::new(64 << 20)), &Options::new())?;
    let map = pool.tx(|tx| {
        let map: Map = tx.root_or_zeroed()?;
        (0..ENTRIES).try_for_each(|key| map.insert(tx, &key, 0).map(drop))?;
        Ok(map)
    })?;
    let readings =
        [("nobody", Reading::Nobody), ("a snapshot", Reading::Snapshot), ("a read transaction", Reading::Transaction)];
    let mut outcomes = readings.map(|_| Vec::new());
    let mut number = 0;
    for _ in 0..ROUNDS {
        for ((_, reading), outcomes) in readings.iter().zip(&mut outcomes) {
            let (outcome, next) = round(&pool, map, *reading, number);
            outcomes.push(outcome);
            number = next;
        }
    }
    // Each number was written once, and each entry has what they gave it.
    let mut expected = vec![0u64; ENTRIES as usize];
    for number in 0..number {
        let key = |of: u64| (of.wrapping_mul(0x9e37_79b9_7f4a_7c15) % ENTRIES) as usize;
        expected[key(number)] = expected[key(number)].wrapping_add(1);
        expected[key(number + 7)] = expected[key(number + 7)].wrapping_sub(1);
    }
    let found = pool.read(|from| map.iter(from)?.map(|entry| Ok(entry?.1)).collect::<Result<Vec<_>, Error>>())?;
    assert_eq!(found, expected, "what was written is not there");
    println!("{ENTRIES} entries, {number} transactions, volatile memory, medians of {ROUNDS} rounds of {ROUND:?}");
    println!("{:22} {:>10} {:>9} {:>12} {:>11}", "one long read by", "writes/s", "scans/s", "longest ms", "copied MiB");
    for ((name, _), outcomes) in readings.iter().zip(&outcomes) {
        let of = |of: fn(&Outcome) -> f64| median(outcomes.iter().map(of));
        println!(
            "{name:22} {:10.0} {:9.1} {:12.2} {:11.2}",
            of(|o| o.writes),
            of(|o| o.scans),
            of(|o| o.longest),
            of(|o| o.copied)
        );
    }
    Ok(())
}
