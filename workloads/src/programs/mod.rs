//! The paper's nine workloads (Table 4), as programs that transactions are asked of by number.
//!
//! A program is the same on every store, mechanism and engine, and its operations are the same for
//! the same seed. What it must have done after any number of transactions is known from a model in
//! ordinary memory.
//!
//! | module | programs |
//! |---|---|
//! | `inserts` | btree, rbtree, skiplist, hashmap: a random key and its value |
//! | `tatp` | TATP: update_location |
//! | `tpcc` | TPC-C: new_order |
//! | `pmemkv` | a concurrent hash map's put, fillrandom |
//! | `memcached` | SET into slabs, hash chain and LRU list |
//! | `redis` | SET into a dictionary |
//! | [`ycsb`] | requests of the last two |

use std::collections::BTreeMap;

use nearpm::Error;

use crate::map::Fault;
use crate::store::{Store, Transaction};
use crate::{BTree, HashMap, RbTree, SkipList};

mod chain;
mod inserts;
mod memcached;
mod pmemkv;
mod redis;
mod rows;
mod tatp;
mod tpcc;
pub mod ycsb;

use inserts::Inserts;
use ycsb::Mix;

/// What a store holds, by key or by table and row.
pub type Rows = BTreeMap<u64, Vec<u8>>;

/// Which inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Inputs {
    /// As the paper's text has them: values of 64 bytes, random subscribers whose entries are
    /// logged whole, populated tables.
    #[default]
    Corrected,
    /// As the authors' released code has them: values of 8 bytes, always subscriber 0 with 8 bytes
    /// logged, empty tables. Where the code does what the text says both are the same.
    Released,
}

impl Inputs {
    /// Both.
    pub const ALL: [Inputs; 2] = [Inputs::Corrected, Inputs::Released];

    /// Name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Inputs::Corrected => "corrected",
            Inputs::Released => "released",
        }
    }
}

/// What a run is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Which inputs.
    pub inputs: Inputs,
    /// Seed of everything random.
    pub seed: u64,
    /// Transactions.
    pub count: usize,
    /// Tables and populations are those of the paper divided by this; see [`Setup::SMALLEST`].
    pub share: usize,
    /// Requests of memcached and redis.
    pub mix: Mix,
}

impl Setup {
    /// The share with which tables are as small as the programs can be, for pools of a few pages.
    pub const SMALLEST: usize = usize::MAX;

    /// So many of the paper's rows, at least `least`; `smallest` of them with [`Setup::SMALLEST`].
    fn rows(&self, paper: usize, least: usize, smallest: usize) -> usize {
        if self.share == Setup::SMALLEST { smallest } else { (paper / self.share.max(1)).max(least) }
    }
}

/// A program. Its transactions may be asked of in any order, and more than once.
pub trait Workload: Send + Sync {
    /// Transactions that it has.
    fn count(&self) -> usize;
    /// Bytes that it needs at most, without what the library needs for itself.
    fn bytes(&self) -> u64;
    /// Makes what transactions work on, in several transactions; the last one sets the root.
    fn create(&self, store: &dyn Store) -> Result<(), Error>;
    /// What is there then.
    fn initial(&self) -> Rows;
    /// Does transaction `number` below the root.
    fn apply(&self, tx: &mut dyn Transaction, root: u64, number: usize) -> Result<(), Error>;
    /// Does it in the model.
    fn model(&self, rows: &mut Rows, number: usize);
    /// Reads everything and checks every invariant on the way.
    fn contents(&self, tx: &mut dyn Transaction, root: u64) -> Result<Rows, Fault>;

    /// What is there after the first `count` transactions.
    fn after(&self, count: usize) -> Rows {
        let mut rows = self.initial();
        (0..count).for_each(|number| self.model(&mut rows, number));
        rows
    }
}

/// The nine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Program {
    /// TPC-C new_order
    Tpcc,
    /// TATP update_location
    Tatp,
    /// B+tree
    Btree,
    /// Red-black tree
    Rbtree,
    /// Skip list
    Skiplist,
    /// Hash map
    Hashmap,
    /// memcached's SET
    Memcached,
    /// Redis' SET
    Redis,
    /// pmemkv's put
    Pmemkv,
}

impl Program {
    /// All, in the paper's order (Table 4).
    pub const ALL: [Program; 9] = [
        Program::Tpcc,
        Program::Tatp,
        Program::Btree,
        Program::Rbtree,
        Program::Skiplist,
        Program::Hashmap,
        Program::Memcached,
        Program::Redis,
        Program::Pmemkv,
    ];

    /// Name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Program::Tpcc => "tpcc",
            Program::Tatp => "tatp",
            Program::Btree => "btree",
            Program::Rbtree => "rbtree",
            Program::Skiplist => "skiplist",
            Program::Hashmap => "hashmap",
            Program::Memcached => "memcached",
            Program::Redis => "redis",
            Program::Pmemkv => "pmemkv",
        }
    }

    /// Transactions in the paper's set-up.
    pub fn paper_count(self) -> usize {
        match self {
            Program::Tpcc => 1_000,
            Program::Tatp => 30_000,
            _ => 10_000,
        }
    }

    /// The program with its operations.
    pub fn make(self, setup: &Setup) -> Box<dyn Workload> {
        let setup = *setup;
        match (self, setup.inputs) {
            (Program::Tpcc, _) => Box::new(tpcc::Tpcc::new(setup)),
            (Program::Tatp, _) => Box::new(tatp::Tatp::new(setup)),
            (Program::Btree, Inputs::Corrected) => Box::new(Inserts::<BTree>::new(setup, 64)),
            (Program::Btree, Inputs::Released) => Box::new(Inserts::<BTree<8>>::new(setup, 8)),
            (Program::Rbtree, Inputs::Corrected) => Box::new(Inserts::<RbTree>::new(setup, 64)),
            (Program::Rbtree, Inputs::Released) => Box::new(Inserts::<RbTree<8>>::new(setup, 8)),
            (Program::Skiplist, Inputs::Corrected) => Box::new(Inserts::<SkipList>::new(setup, 64)),
            (Program::Skiplist, Inputs::Released) => Box::new(Inserts::<SkipList<8>>::new(setup, 8)),
            (Program::Hashmap, Inputs::Corrected) => Box::new(Inserts::<HashMap>::new(setup, 64)),
            (Program::Hashmap, Inputs::Released) => Box::new(Inserts::<HashMap<8>>::new(setup, 8)),
            (Program::Memcached, _) => Box::new(memcached::Memcached::new(setup)),
            (Program::Redis, _) => Box::new(redis::Redis::new(setup)),
            (Program::Pmemkv, _) => Box::new(pmemkv::Pmemkv::new(setup)),
        }
    }
}

impl std::str::FromStr for Program {
    type Err = String;
    fn from_str(text: &str) -> Result<Program, String> {
        let names = || Program::ALL.map(Program::name).join(", ");
        Program::ALL
            .into_iter()
            .find(|program| program.name() == text)
            .ok_or_else(|| format!("there is no workload {text:?}, only {}", names()))
    }
}
