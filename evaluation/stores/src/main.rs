//! The library beside embedded stores (redb, LMDB, fjall), durable, round by round in one run on one file system.
//!
//! `cargo run --release -p nearpm-stores -- --folder FOLDER` inserts values under rising numbers of eight bytes, so many in a transaction, each transaction durable
//! when it returns. Every round takes all stores in turn, each with a new file; the order moves on by one from round to round. After the clock has
//! stopped, the store is closed, opened again, and every value is read back and compared before the rate counts.

mod stores;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Parser;
use stores::{Embedded, Fjall, Lmdb, Ours, Redb};

/// Measure the library beside redb, LMDB and fjall: durable inserts.
#[derive(Parser)]
struct Arguments {
    /// A folder of the file system that is to be measured
    #[arg(long)]
    folder: PathBuf,
    /// Rounds of each cell
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Lengths of values, in bytes
    #[arg(long, value_delimiter = ',', default_values_t = [72, 1024, 16_384, 65_536])]
    bytes: Vec<usize>,
    /// Inserts of a transaction
    #[arg(long, value_delimiter = ',', default_values_t = [1, 100])]
    inserts: Vec<u64>,
    /// New objects of the library of at least so many bytes are written once [default: the library's]
    #[arg(long)]
    once_from: Option<u64>,
    /// Transactions of a round
    #[arg(long, default_value_t = 100)]
    transactions: u64,
}

/// A way to open a store in a folder.
type Open = fn(&Path, &Arguments) -> Result<Box<dyn Embedded>>;

const STORES: [(&str, Open); 4] = [
    ("libnearpm", |at, arguments| Ok(Box::new(Ours::open(at, arguments.once_from)?))),
    ("redb", |at, _| Ok(Box::new(Redb::open(at)?))),
    ("LMDB", |at, _| Ok(Box::new(Lmdb::open(at)?))),
    ("fjall", |at, _| Ok(Box::new(Fjall::open(at)?))),
];

/// The value of a key: no block of it is like another.
fn value(key: u64, bytes: usize) -> Vec<u8> {
    let mut state = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut value = Vec::with_capacity(bytes + 8);
    while value.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        value.extend_from_slice(&state.to_le_bytes());
    }
    value.truncate(bytes);
    value
}

/// Microseconds of an insert in a new store, and bytes that it logs.
fn measure(open: Open, of: &Arguments, bytes: usize, inserts: u64, transactions: u64) -> Result<[f64; 2]> {
    let place = tempfile::tempdir_in(&of.folder)?;
    let keys = inserts * transactions;
    let values: Vec<Vec<u8>> = (0..keys.min(256)).map(|key| value(key, bytes)).collect();
    let value_of = |key: u64| values[(key % values.len() as u64) as usize].as_slice();
    let mut store = open(place.path(), of)?;
    let start = Instant::now();
    for first in (0..keys).step_by(inserts as usize) {
        let pairs: Vec<_> = (first..first + inserts).map(|key| (key, value_of(key))).collect();
        store.insert(&pairs)?;
    }
    let (took, logged) = (start.elapsed(), store.logged());
    drop(store);
    let store = open(place.path(), of)?;
    for key in 0..keys {
        ensure!(store.get(key)?.as_deref() == Some(value_of(key)), "key {key} has another value");
    }
    Ok([took.as_secs_f64() * 1e6, logged as f64].map(|all| all / keys as f64))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    println!(
        "| bytes | inserts a transaction | libnearpm, us | logs, bytes | redb | LMDB | fjall | times the best of the others (least to greatest) |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut logs = Vec::new();
    for &inserts in &arguments.inserts {
        for &bytes in &arguments.bytes {
            // As many bytes as a pool has room for.
            let most = ((256 << 20) / (inserts * bytes as u64)).max(4);
            let transactions = arguments.transactions.min(most);
            let (mut took, mut logged) = ([const { Vec::new() }; STORES.len()], 0.0);
            for round in 0..arguments.rounds {
                for turn in 0..STORES.len() {
                    let at = (round + turn) % STORES.len();
                    let [time, bytes] = measure(STORES[at].1, &arguments, bytes, inserts, transactions)?;
                    took[at].push(time);
                    logged = bytes.max(logged);
                }
            }
            let best = |round: usize| took[1..].iter().map(|times| times[round]).fold(f64::MAX, f64::min);
            let mut ratios: Vec<f64> = (0..arguments.rounds).map(|round| best(round) / took[0][round]).collect();
            let ratio = median(&mut ratios);
            let [ours, redb, lmdb, fjall] = took.map(|mut times| median(&mut times));
            let (least, greatest) = (ratios[0], ratios[ratios.len() - 1]);
            println!(
                "| {bytes} | {inserts} | {ours:.1} | {logged:.0} | {redb:.1} | {lmdb:.1} | {fjall:.1} | {ratio:.2} ({least:.2} to {greatest:.2}) |"
            );
            logs.push(ratio.ln());
        }
    }
    println!("\ngeometric mean of the ratios: {:.2}", (logs.iter().sum::<f64>() / logs.len() as f64).exp());
    Ok(())
}
