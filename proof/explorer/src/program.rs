//! Programs that are explored: transactions on a structure in a pool, and what a crash may leave of
//! them.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::crash::CrashMemory;
use crate::pools::Kind;
use crate::schedule::Schedule;
use crate::trace::{Bounds, Trace};

/// What is in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Structure {
    /// Objects that are allocated, resized, overwritten and freed.
    Slots,
    /// A vector of numbers.
    Vector,
    /// A vector of texts.
    Texts,
    /// A text.
    Text,
    /// A hash map of numbers.
    HashMap,
    /// A hash map of texts to vectors.
    HashMapOfTexts,
    /// An ordered map of numbers.
    OrderedMap,
    /// An ordered map of texts.
    OrderedMapOfTexts,
    /// A queue of long values.
    Queue,
    /// The B+tree of the paper's evaluation.
    Btree,
    /// Its red-black tree.
    Rbtree,
    /// Its skip list.
    Skiplist,
    /// Its hash map.
    Hashmap,
    /// TPC-C's new_order.
    Tpcc,
    /// TATP's update_location.
    Tatp,
    /// memcached's SET.
    Memcached,
    /// Redis' SET.
    Redis,
    /// pmemkv's put.
    Pmemkv,
}

impl Structure {
    /// Those of the library: its allocator and its collections.
    pub const LIBRARY: [Structure; 9] = [
        Structure::Slots,
        Structure::Vector,
        Structure::Texts,
        Structure::Text,
        Structure::HashMap,
        Structure::HashMapOfTexts,
        Structure::OrderedMap,
        Structure::OrderedMapOfTexts,
        Structure::Queue,
    ];

    /// The nine programs of the paper's evaluation.
    pub const PROGRAMS: [Structure; 9] = [
        Structure::Btree,
        Structure::Rbtree,
        Structure::Skiplist,
        Structure::Hashmap,
        Structure::Tpcc,
        Structure::Tatp,
        Structure::Memcached,
        Structure::Redis,
        Structure::Pmemkv,
    ];

    /// Every structure.
    pub fn all() -> impl Iterator<Item = Structure> {
        Structure::LIBRARY.into_iter().chain(Structure::PROGRAMS)
    }

    /// Bytes that it needs beside those of a small pool: the long values of redis are of many
    /// sizes, each of which takes a chunk of the heap.
    pub fn more_bytes(self) -> u64 {
        if self == Structure::Redis { 128 << 10 } else { 0 }
    }
}

/// An operation: each structure reads these numbers as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// What is done.
    pub kind: u8,
    /// Where.
    pub key: u8,
    /// With what.
    pub value: u32,
}

/// A transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transaction {
    /// The thread that runs it, 0 or 1.
    #[serde(default)]
    pub thread: usize,
    /// Its operations.
    pub operations: Vec<Operation>,
    /// It is taken back at its end.
    #[serde(default)]
    pub aborts: bool,
}

/// A program, from nothing to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The kind of pool.
    pub pool: Kind,
    /// What is in it.
    pub structure: Structure,
    /// Transactions before crashes begin.
    #[serde(default)]
    pub before: Vec<Transaction>,
    /// Those that crash.
    pub transactions: Vec<Transaction>,
    /// Of the write-backs and fences since crashes began (on a card also commands, reads that push,
    /// and waits for commands) the one of this number, from 0, is left out: a planted fault.
    #[serde(default)]
    pub leave_out: Option<usize>,
    /// Where it has two threads: who goes on at each event.
    #[serde(default)]
    pub schedule: Schedule,
    /// What a second thread reads beside the first.
    #[serde(default)]
    pub reader: Option<Reader>,
}

/// A thread that reads beside the one that has the transactions: all of the structure, twice, from
/// each of a few snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reader {
    /// From snapshots.
    Snapshots,
    /// From the pool itself, each load in a transaction of its own: a planted fault.
    Loads,
}

/// A program that has run.
pub struct Recorded {
    /// What it did.
    pub trace: Trace,
    /// Words of its memory.
    pub words: usize,
    /// Recovers and compares.
    pub checker: Box<dyn Checker>,
    /// Events at which either of its threads could go on.
    pub turns: usize,
    /// Transactions that did not fit into the pool or its log, and were taken back.
    pub refused: usize,
    /// Snapshots of its reader that were taken within a transaction, or that one was over beside.
    pub overlapped: usize,
}

/// Knows every state that the program was in.
pub trait Checker {
    /// Recovers the pool that a crash has left, and makes sure that it holds what it may; with a
    /// `probe`, also that a transaction can use it.
    ///
    /// # Errors
    /// What is wrong.
    fn check(&self, memory: &CrashMemory, bounds: &Bounds, probe: bool) -> Result<(), String>;
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): small, and the same on every machine.
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below another one.
    pub fn below(&mut self, end: u64) -> u64 {
        self.draw() % end
    }

    /// So many switches, or somewhat fewer.
    fn schedule(&mut self, switches: usize) -> Schedule {
        let mut schedule: Schedule = (0..switches).map(|_| self.below(TURNS) as usize).collect();
        schedule.sort_unstable();
        schedule.dedup();
        schedule
    }

    fn transaction(&mut self, thread: usize, operations: u64) -> Transaction {
        let operation = |random: &mut Random| Operation {
            // Mostly such as make the structure larger.
            kind: if random.below(3) == 0 { random.draw() as u8 } else { random.below(4) as u8 },
            key: random.draw() as u8,
            value: random.draw() as u32,
        };
        let operations = (0..1 + self.below(operations)).map(|_| operation(self)).collect();
        Transaction { thread, operations, aborts: self.below(6) == 0 }
    }
}

/// Events of two short transactions at which either thread can go on: a switch is drawn among so
/// many.
const TURNS: u64 = 48;

impl Program {
    /// Random transactions, the same for the same seed.
    pub fn random(pool: Kind, structure: Structure, seed: u64, transactions: usize, operations: u64) -> Program {
        let mut random = Random(seed);
        let mut draw = |number| (0..number).map(|_| random.transaction(0, operations)).collect();
        Program {
            pool,
            structure,
            before: draw(seed as usize % 4),
            transactions: draw(transactions),
            leave_out: None,
            schedule: Schedule::default(),
            reader: None,
        }
    }

    /// The same beside a reader of snapshots, by a schedule that is drawn, too.
    pub fn random_beside_reader(
        pool: Kind,
        structure: Structure,
        seed: u64,
        transactions: usize,
        operations: u64,
    ) -> Program {
        let program = Program::random(pool, structure, seed, transactions, operations);
        let schedule = Random(seed ^ 0x7265_6164).schedule(2 + 2 * (seed as usize % 2));
        Program { schedule, reader: Some(Reader::Snapshots), ..program }
    }

    /// The same by two threads, each of which has so many transactions, and which switch at a few
    /// events that are drawn, too.
    pub fn random_by_two(pool: Kind, structure: Structure, seed: u64, transactions: usize, operations: u64) -> Program {
        let mut random = Random(!seed);
        let mut draw = |number, threads| (0..number).map(|n| random.transaction(n % threads, operations)).collect();
        let (before, transactions) = (draw(seed as usize % 3, 1), draw(2 * transactions, 2));
        let switches = 1 + random.below(3) as usize;
        let schedule = random.schedule(switches);
        Program { pool, structure, before, transactions, leave_out: None, schedule, reader: None }
    }

    /// Threads that have transactions.
    pub fn threads(&self) -> usize {
        self.transactions.iter().map(|tx| tx.thread + 1).max().unwrap_or(1)
    }

    /// Whether a second thread runs, so that a schedule says who goes on.
    pub fn is_scheduled(&self) -> bool {
        self.threads() > 1 || self.reader.is_some()
    }
}
