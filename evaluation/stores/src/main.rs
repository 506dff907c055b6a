//! The library beside embedded stores (redb, LMDB, fjall), durable, in turn in one run on one file
//! system.
//!
//! `cargo run --release -p nearpm-stores -- --folder FOLDER` inserts values under numbers of eight
//! bytes, so many in a transaction, each transaction durable when it returns. Every round has new
//! files. Within it the stores take turns every few transactions, so that what else the machine
//! does meets all of them; the order moves on by one from turn to turn. The first turn of each is
//! not counted: there its file gets room. When the clock has stopped, every store is closed, opened
//! again, and each value is read back and compared before the rates count. One more round, of one
//! turn each, is not timed: there the file system is synchronised around each turn, and the disk's
//! own counters are read.

mod disk;
mod report;
mod stores;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use disk::{Counters, Disk};
use stores::{Embedded, Fjall, Lmdb, Ours, Redb};
use tempfile::TempDir;

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
    /// Order of the keys
    #[arg(long, value_delimiter = ',', default_values = ["rising"])]
    keys: Vec<Keys>,
    /// New objects of the library of at least so many bytes are written once [default: the
    /// library's]
    #[arg(long)]
    once_from: Option<u64>,
    /// Transactions of a round
    #[arg(long, default_value_t = 100)]
    transactions: u64,
    /// Transactions of a turn
    #[arg(long, default_value_t = 10)]
    turn: u64,
    /// MiB that a store may have
    #[arg(long, default_value_t = 1024)]
    room: u64,
    /// Copy the new files of each store before it is used: what is written by long writes lies in
    /// long folios of the page cache
    #[arg(long)]
    copied: bool,
}

/// In which order the keys come.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Keys {
    /// Each is the one before and one more.
    Rising,
    /// All over the range of numbers.
    Scattered,
}

impl Keys {
    /// The key of an insert.
    fn key(self, number: u64) -> u64 {
        match self {
            Keys::Rising => number,
            // Odd, so that no two numbers have one product.
            Keys::Scattered => number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        }
    }
}

/// A way to open a store in a folder.
type Open = fn(&Path, &Arguments) -> Result<Box<dyn Embedded>>;

const STORES: [(&str, Open); 4] = [
    ("libnearpm", |at, of| Ok(Box::new(Ours::open(at, of.room << 20, of.once_from)?))),
    ("redb", |at, _| Ok(Box::new(Redb::open(at)?))),
    ("LMDB", |at, of| Ok(Box::new(Lmdb::open(at, of.room << 20)?))),
    ("fjall", |at, _| Ok(Box::new(Fjall::open(at)?))),
];

/// What is measured at once.
struct Cell {
    bytes: usize,
    inserts: u64,
    keys: Keys,
    transactions: u64,
}

/// What an insert took.
#[derive(Clone, Copy, Default)]
struct Cost {
    microseconds: f64,
    /// Bytes that it logged, where the store tells.
    logged: f64,
    /// Bytes that the process gave to the device, as the system counts them.
    written: f64,
    /// Microseconds that the thread had a processor: what is left of the time is waiting.
    processor: f64,
    /// What the disk has counted, in a round for that.
    disk: Counters,
}

/// The value of an insert: no block of it is like another.
fn value(number: u64, bytes: usize) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
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

/// Bytes that this process has caused to be written to a device, page by page (`proc_pid_io(5)`).
fn written() -> Result<u64> {
    let counters = fs::read_to_string("/proc/self/io").context("the system counts no writes of a process")?;
    let line = counters.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    Ok(line.context("the system counts no bytes")?.parse()?)
}

/// Microseconds that this thread has had a processor so far (`proc_pid_schedstat(5)`).
fn processor() -> Result<f64> {
    let counters = fs::read_to_string("/proc/thread-self/schedstat").context("the system counts no time")?;
    let nanoseconds: u64 = counters.split_whitespace().next().context("the system counts no time")?.parse()?;
    Ok(nanoseconds as f64 / 1e3)
}

/// A store in a round.
struct Place {
    open: Open,
    folder: TempDir,
    store: Box<dyn Embedded>,
    done: u64,
    cost: Cost,
}

impl Place {
    fn new(open: Open, of: &Arguments) -> Result<Place> {
        let mut folder = tempfile::tempdir_in(&of.folder)?;
        let mut store = open(folder.path(), of)?;
        if of.copied {
            drop(store);
            let copy = tempfile::tempdir_in(&of.folder)?;
            copy_files(folder.path(), copy.path())?;
            folder = copy;
            store = open(folder.path(), of)?;
        }
        Ok(Place { open, folder, store, done: 0, cost: Cost::default() })
    }

    /// Makes some transactions; with a disk it is synchronised before and behind them.
    fn turn(&mut self, transactions: u64, cell: &Cell, values: &[Vec<u8>], disk: Option<&Disk>) -> Result<()> {
        let settled = disk.map(Disk::settled).transpose()?;
        let (logged, before) = (self.store.logged(), written()?);
        // The clock of the wall is the inner one: asking for the other takes longer.
        let busy = processor()?;
        let start = Instant::now();
        for _ in 0..transactions {
            let numbers = self.done..self.done + cell.inserts;
            let pairs: Vec<_> = numbers.map(|number| (cell.keys.key(number), value_of(values, number))).collect();
            self.store.insert(&pairs)?;
            self.done += cell.inserts;
        }
        self.cost.microseconds += start.elapsed().as_secs_f64() * 1e6;
        self.cost.processor += processor()? - busy;
        self.cost.logged += (self.store.logged() - logged) as f64;
        self.cost.written += (written()? - before) as f64;
        if let Some((disk, before)) = disk.zip(settled) {
            self.cost.disk += disk.settled()? - before;
        }
        Ok(())
    }

    /// Closes the store, opens it again, and compares every value; gives what an insert took, of so
    /// many that were measured.
    fn verify(self, inserts: u64, cell: &Cell, values: &[Vec<u8>], of: &Arguments) -> Result<Cost> {
        drop(self.store);
        let store = (self.open)(self.folder.path(), of)?;
        for number in 0..self.done {
            let found = store.get(cell.keys.key(number))?;
            ensure!(found.as_deref() == Some(value_of(values, number)), "insert {number} has another value");
        }
        let Cost { microseconds, logged, written, processor, disk } = self.cost;
        let of = |all: f64| all / inserts as f64;
        let [microseconds, logged, written, processor] = [microseconds, logged, written, processor].map(of);
        Ok(Cost { microseconds, logged, written, processor, disk })
    }
}

/// Copies what is in a folder. Not by the system's call, which shares extents where it can.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir(&to)?;
            copy_files(&entry.path(), &to)?;
        } else {
            fs::write(&to, fs::read(entry.path())?)?;
            fs::File::open(&to)?.sync_all()?;
        }
    }
    Ok(())
}

fn value_of(values: &[Vec<u8>], number: u64) -> &[u8] {
    &values[(number % values.len() as u64) as usize]
}

/// What an insert takes in new stores, in turns of so many transactions.
fn round(first: usize, cell: &Cell, of: &Arguments, each: u64, disk: Option<&Disk>) -> Result<[Cost; STORES.len()]> {
    let values: Vec<Vec<u8>> = (0..256).map(|number| value(number, cell.bytes)).collect();
    let mut places = STORES.iter().map(|(_, open)| Place::new(*open, of)).collect::<Result<Vec<_>>>()?;
    let turns = cell.transactions.div_ceil(each);
    for turn in 0..=turns {
        for at in 0..STORES.len() {
            let place = &mut places[(first + turn as usize + at) % STORES.len()];
            if turn == 1 {
                place.cost = Cost::default();
            }
            place.turn(each, cell, &values, disk)?;
        }
    }
    let mut costs = [Cost::default(); STORES.len()];
    for (cost, place) in costs.iter_mut().zip(places) {
        *cost = place.verify(turns * each * cell.inserts, cell, &values, of)?;
    }
    Ok(costs)
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    ensure!(arguments.turn > 0 && arguments.rounds > 0, "a round has turns, and a turn has transactions");
    let disk = Disk::under(&arguments.folder)?;
    let mut table = report::Table::new(STORES.map(|(name, _)| name));
    for &keys in &arguments.keys {
        for &inserts in &arguments.inserts {
            for &bytes in &arguments.bytes {
                // As many bytes as a pool has room for.
                let most = ((arguments.room << 18) / (inserts * bytes as u64)).max(4);
                let cell = Cell { bytes, inserts, keys, transactions: arguments.transactions.min(most) };
                let timed = |first| round(first, &cell, &arguments, arguments.turn, None);
                let rounds: Vec<_> = (0..arguments.rounds).map(timed).collect::<Result<_>>()?;
                // One turn alone: what a synchronisation adds is spread over all transactions.
                let counted = |disk| round(0, &cell, &arguments, cell.transactions, Some(disk));
                let counted = disk.as_ref().map(counted).transpose()?;
                let counted = counted.map(|costs| costs.map(|cost| cost.disk));
                table.add(&cell, &rounds, counted);
            }
        }
    }
    table.end(disk.as_ref());
    Ok(())
}
