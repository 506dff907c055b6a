//! Speed beside the stock servers at equal durability, pair by pair in one run on one file system.
//!
//! `cargo run --release -p nearpm-serve --example speed -- --folder
//! FOLDER` needs the packages redis-server, redis-tools and memcached. All servers are processes of
//! their own, and each is idle while another one is measured. A cell of the tables is a level of
//! durability, a length of values, a number of clients and a pipeline; its ratio is the median of
//! those of its pairs, in which both servers do the same one after the other, each first as often
//! as the other. What a server was timed for is looked for before the rate counts: the keys are
//! there, and every byte of their values is read back.
//!
//! With `--record FILE` each pair is kept as a line of JSON, and a run that was ended goes on where
//! it was.
//!
//! | file | holds |
//! |---|---|
//! | `servers.rs` | servers, ours and the stock ones |
//! | `sets.rs` | SET of Redis's protocol by redis-benchmark, and whether it was done |
//! | `costs.rs` | what a SET costs, by counts of the system |
//! | `cache.rs` | memcached's protocol by the YCSB client, which checks what it reads |
//! | `record.rs` | what was measured |
//! | `table.rs` | tables of it |

#[path = "../../tests/servers/client.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod client;

mod cache;
mod costs;
mod record;
mod servers;
mod sets;
mod table;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Parser;
use record::{Cell, Pair, Record};
use servers::{Level, Running};

/// Measure our servers beside the stock ones at equal durability.
#[derive(Parser)]
pub struct Arguments {
    /// Where pools and append-only files lie: a folder of the file system that is to be measured
    #[arg(long)]
    folder: PathBuf,
    /// Keeps what was measured, so that a run that was ended goes on
    #[arg(long)]
    record: Option<PathBuf>,
    /// Pairs of each cell
    #[arg(long, default_value_t = 3)]
    pairs: u64,
    /// Seconds that the stock server is to take for a cell, about
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    /// One level alone
    #[arg(long, value_enum)]
    only: Option<Level>,
    /// Lengths of values, in bytes
    #[arg(long, value_delimiter = ',', default_values_t = [3, 1024, 65536])]
    bytes: Vec<u64>,
    /// Clients at a time
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16, 50])]
    clients: Vec<u64>,
    /// Requests that a client sends before it waits
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16])]
    pipelines: Vec<u64>,
    /// Our server, where it is not to be the one that was built with this program
    #[arg(long)]
    ours: Option<PathBuf>,
    /// Prints what the record holds, and measures nothing
    #[arg(long)]
    print: bool,
    /// Prints what so many SETs cost each server (bytes written, processor time, synchronisations),
    /// and what operations of memcached's protocol cost, and no rates; needs strace
    #[arg(long, value_name = "SETS")]
    costs: Option<u64>,
}

impl Arguments {
    /// The cells of a level.
    fn cells(&self, level: Level) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &clients in &self.clients {
            if level.is_cache() {
                cells.extend(cache::WORKLOADS.map(|work| Cell::of_cache(level, work, clients)));
                continue;
            }
            for &bytes in &self.bytes {
                cells.extend(self.pipelines.iter().map(|&pipeline| Cell::of_sets(level, bytes, clients, pipeline)));
            }
        }
        cells.sort_by_key(Cell::order);
        cells
    }

    fn levels(&self) -> impl Iterator<Item = Level> {
        Level::ALL.into_iter().filter(|level| self.only.is_none_or(|only| only == *level))
    }
}

/// Prints what SETs cost both servers of a level.
fn costs(level: Level, arguments: &Arguments, requests: u64) -> Result<()> {
    let place = tempfile::tempdir_in(&arguments.folder)?;
    let (stock, ours) =
        (servers::stock(level, place.path())?, servers::ours(level, place.path(), arguments.ours.as_deref())?);
    if level.is_cache() {
        println!("\n{}: us of processors for an operation, of {requests}\n", level.title());
        println!("| server | work | bytes | clients | the first time | the second time |");
        println!("|---|---|---:|---:|---:|---:|");
        for cell in arguments.cells(level) {
            costs::print_cache("stock", &stock, &cell, requests)?;
            costs::print_cache("ours", &ours, &cell, requests)?;
        }
        return Ok(());
    }
    println!("\n{}: what a SET costs, of {requests}\n", level.title());
    println!("| server | bytes | clients | pipeline | bytes written | us of processors | synchronisations |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for cell in arguments.cells(level) {
        costs::print("stock", &stock, &cell, requests)?;
        costs::print("ours", &ours, &cell, requests)?;
    }
    Ok(())
}

/// Requests of a cell at most.
const MOST_REQUESTS: u64 = 400_000;
/// How many times as many requests are tried where a run was too short to tell a rate.
const GROWTH: u64 = 16;

/// What one server does in a second.
fn rate(server: &Running, cell: &Cell, requests: u64) -> Result<f64> {
    if cell.level.is_cache() { cache::rate(server, cell, requests) } else { sets::rate(server, cell, requests) }
}

/// Requests after which the stock server has taken about as long as is asked for. A run of few
/// requests is mostly its start, so that they grow until they take a good part of that time.
fn requests(stock: &Running, cell: &Cell, seconds: f64) -> Result<u64> {
    let at_once = cell.clients * cell.pipeline;
    // Where the last turn of a client is not a whole pipeline, redis-benchmark now and then takes
    // its end for a lost connection.
    let least = (4 * at_once).max(200).next_multiple_of(at_once);
    let mut requests = least;
    loop {
        let rate = rate(stock, cell, requests)?;
        let wanted = ((rate * seconds) as u64).clamp(least, MOST_REQUESTS);
        if requests >= wanted / 2 {
            return Ok(wanted / at_once * at_once);
        }
        requests = wanted.min(requests * GROWTH) / at_once * at_once;
    }
}

/// Measures the pairs of a level that the record lacks.
fn measure(level: Level, arguments: &Arguments, record: &mut Record) -> Result<()> {
    let cells = arguments.cells(level);
    let lacks = |record: &Record, cell: &Cell| record.of(cell).count() < arguments.pairs as usize;
    if !cells.iter().any(|cell| lacks(record, cell)) {
        return Ok(());
    }
    let place = tempfile::tempdir_in(&arguments.folder)?;
    let (stock, ours) =
        (servers::stock(level, place.path())?, servers::ours(level, place.path(), arguments.ours.as_deref())?);
    for pair in 0..arguments.pairs {
        for cell in &cells {
            if record.of(cell).count() > pair as usize {
                continue;
            }
            let count = requests(&stock, cell, arguments.seconds)?;
            let (stock, ours) = if pair % 2 == 0 {
                let first = rate(&stock, cell, count)?;
                (first, rate(&ours, cell, count)?)
            } else {
                let first = rate(&ours, cell, count)?;
                (rate(&stock, cell, count)?, first)
            };
            eprintln!("{}: {count} requests, stock {stock:.0}/s, ours {ours:.0}/s, {:.2}", cell.name(), ours / stock);
            record.add(Pair { cell: cell.clone(), requests: count, stock, ours })?;
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    ensure!(!arguments.print || arguments.record.is_some(), "--print prints what --record names");
    let mut record = Record::open(arguments.record.as_deref())?;
    let load = || std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim().to_owned();
    let cores = std::thread::available_parallelism()?;
    println!("{cores} processors, load at the start {}", load());
    for level in arguments.levels() {
        if let Some(requests) = arguments.costs {
            costs(level, &arguments, requests)?;
            continue;
        }
        if !arguments.print {
            measure(level, &arguments, &mut record)?;
        }
        table::print(level, &record);
    }
    println!("\nload at the end {}", load());
    Ok(())
}
