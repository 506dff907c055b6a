//! How much more threads do than one, all on one pool on the simulated card: `cargo run --release
//! -p nearpm-workloads --example threads_on_one_pool [WAY]`, where only ways whose names have WAY
//! in them are measured.
//!
//! Times are simulated, so that it does not matter how many processors this machine has: each
//! thread is a core of its own, of which always the one goes on whose time is least, also where it
//! waits for a lock or for the card. The card is as in `pointer_commits`: transaction-level at 300
//! MHz behind PCIe 3.0 x8, its memory cached by the processors; memory accesses and checksums are
//! charged, and the same time for the instructions of each transaction (`instructions.tsv` of the
//! library's costs, `evaluation/paths.toml`), before it begins. A
//! transaction changes one word or four of the thread's own object, far from each other, and is
//! durable when it returns. Behind the last one the pool is closed and opened again, and every word
//! is held against what was stored there last.
//!
//! Pools by offsets (`offsets, …`) have the option by which transactions are open beside each
//! other. There is no pointer to store by: a word is written by a call, and the instructions are
//! taken to be the same.
//!
//! A thread's first transaction makes its part of the log. It stands apart: *first* is the longest
//! of these. The others begin at one time. *Slowest* is what the thread that ends last takes over
//! what the one that ends first does, all with as many transactions: 1 where they get the same.
//! *Longest* is the longest transaction, in microseconds.

use std::sync::Arc;

use nearpm::direct::DirectPool;
use nearpm::{Engine, Error, Mechanism, Options, Pool, Statistics, cards};
use nearpm_driver::{Card, CardOptions};
use nearpm_interface::geometry::POOLS_BASE;
use nearpm_sim::core::{CardCore, Medium};
use nearpm_sim::host::Parameters;
use nearpm_sim::machine::Machine;
use nearpm_sim::model::{Config, ModelCard};

const POOL_BYTES: u64 = 32 << 20;
/// Bytes of a thread's object. The simulated machine has one cache for all cores, of one core's
/// size (1 MiB): those of 16 threads take half of it.
const OBJECT_BYTES: u64 = 32 << 10;
/// Transactions of a thread, its first one apart: of records so many that the log is truncated.
const BY_RECORDS: u64 = 4000;
const BY_MECHANISM: u64 = 500;
/// Words of a transaction.
const WORDS: [u64; 2] = [1, 4];
/// Instructions of a transaction: of a word in a working copy.
const INSTRUCTIONS: &str = include_str!("../../libnearpm/tests/costs/instructions.tsv");
/// What one of them takes.
const PATHS: &str = include_str!("../../evaluation/paths.toml");
/// When the measured transactions begin, behind the first ones.
const START_NS: u64 = 4_000_000;
const THREADS: [u64; 5] = [1, 2, 4, 8, 16];

fn power(medium: Medium) -> Box<dyn CardCore> {
    Box::new(ModelCard::new(Config::default(), medium))
}

/// Nanoseconds that the instructions of a transaction take.
fn instructions_ns() -> u64 {
    let number = |text: &str, before: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(before));
        found.and_then(|number| number.trim().parse::<f64>().ok()).expect("the file has the number")
    };
    (number(INSTRUCTIONS, "working-copy\tword\t") * number(PATHS, "ns_per_instruction = ")) as u64
}

/// Which word of its object a transaction changes.
fn word(thread: u64, transaction: u64, number: u64) -> u64 {
    let drawn = ((thread << 20 | transaction) * 4 + number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (drawn >> 20) % (OBJECT_BYTES / 8)
}

/// A pool of either kind.
enum Either {
    Direct(Box<DirectPool>),
    Offsets(Box<Pool>),
}

impl Either {
    fn create(way: Way, location: &str) -> Result<Either, Error> {
        let options = Options::new().mechanism(way.by).engine(way.engine);
        Ok(match way.by_offsets {
            true => Either::Offsets(options.lanes(1).concurrent(true).create(location, POOL_BYTES)?.into()),
            false => Either::Direct(DirectPool::create(location, POOL_BYTES, &options)?.into()),
        })
    }

    /// An object of zeros for each thread.
    fn objects(&self, threads: u64) -> Result<Vec<u64>, Error> {
        match self {
            Either::Direct(pool) => {
                let mut tx = pool.begin()?;
                let objects = (0..threads).map(|_| Ok(tx.alloc(pool, OBJECT_BYTES)?.offset));
                let objects = objects.collect::<Result<Vec<_>, Error>>()?;
                for &object in &objects {
                    (0..OBJECT_BYTES).step_by(8).for_each(|at| store(pool, object + at, 0));
                }
                tx.commit(pool)?;
                Ok(objects)
            }
            Either::Offsets(pool) => {
                let objects = (0..threads).map(|_| pool.tx(|tx| tx.alloc_zeroed(OBJECT_BYTES)));
                objects.collect::<Result<Vec<_>, Error>>()
            }
        }
    }

    /// Makes words a value in one transaction.
    fn change(&self, mut places: impl Iterator<Item = u64>, value: u64) -> Result<(), Error> {
        match self {
            Either::Direct(pool) => {
                let mut tx = pool.begin()?;
                for place in places {
                    tx.add(pool, place..place + 8)?;
                    store(pool, place, value);
                }
                tx.commit(pool)
            }
            Either::Offsets(pool) => pool.tx(|tx| places.try_for_each(|place| tx.write_u64(place, value))),
        }
    }

    fn statistics(&self) -> Statistics {
        match self {
            Either::Direct(pool) => pool.statistics(),
            Either::Offsets(pool) => pool.statistics(),
        }
    }

    fn close(self) -> Result<(), Error> {
        match self {
            Either::Direct(pool) => pool.close(),
            Either::Offsets(pool) => pool.close(),
        }
    }
}

fn store(pool: &DirectPool, offset: u64, value: u64) {
    assert!(pool.heap().start <= offset && offset + 8 <= pool.heap().end);
    // SAFETY: the word lies in the heap of the open pool, aligned, and one thread alone uses its
    // object.
    unsafe { pool.base().add(offset as usize).cast::<u64>().write(value) }
}

fn load(pool: &DirectPool, offset: u64) -> u64 {
    assert!(pool.heap().start <= offset && offset + 8 <= pool.heap().end);
    // SAFETY: the word lies in the heap of the open pool, aligned, and nobody stores there
    // meanwhile.
    unsafe { pool.base().add(offset as usize).cast::<u64>().read() }
}

/// Picoseconds of the transactions of a thread.
struct Worked {
    first: u64,
    longest: u64,
    /// All but the first.
    all: u64,
}

/// A way home, and what is done by it.
#[derive(Clone, Copy)]
struct Way {
    by: Option<Mechanism>,
    engine: Engine,
    by_offsets: bool,
    words: u64,
}

impl Way {
    fn transactions(self) -> u64 {
        if self.by.is_some() { BY_MECHANISM } else { BY_RECORDS }
    }
}

/// What some threads took.
struct Taken {
    /// Nanoseconds a transaction, of all threads together.
    each_ns: f64,
    /// The longest of the first ones.
    first_us: f64,
    slowest: f64,
    longest_us: f64,
}

fn work(pool: &Either, machine: &Machine, way: Way, (thread, object): (u64, u64), start: u64) -> Result<Worked, Error> {
    let instructions_ns = instructions_ns();
    let transaction = |number: u64| {
        machine.compute(instructions_ns);
        machine.let_others_catch_up();
        let began = machine.now_ps();
        let places = (0..way.words).map(|word_number| object + 8 * word(thread, number, word_number));
        pool.change(places, number)?;
        Ok::<u64, Error>(machine.now_ps() - began)
    };
    let first = transaction(1)?;
    let early = start.checked_sub(machine.now_ps()).expect("the first transactions are done by then");
    machine.compute(early.div_ceil(1000));
    let began = machine.now_ps();
    let mut longest = 0;
    for number in 2..=way.transactions() + 1 {
        longest = longest.max(transaction(number)?);
    }
    Ok(Worked { first, longest, all: machine.now_ps() - began })
}

fn measured(way: Way, threads: u64) -> Result<Taken, Error> {
    let words = way.words;
    let transactions = way.transactions();
    let size = (POOLS_BASE + POOL_BYTES).next_multiple_of(2 << 20) as usize;
    let machine = Machine::new(Parameters::default(), &power, Medium::blank(size));
    let firmware = Some(nearpm_firmware::standard().bytes().to_vec());
    let card = Card::open(Arc::new(machine.function()), CardOptions { firmware, ..CardOptions::default() })?;
    let name = cards::Registered::new(Arc::new(card));
    let pool = Either::create(way, &name.pool("p"))?;
    let objects = pool.objects(threads)?;
    let (before, start) = (pool.statistics(), machine.now_ps());
    (0..threads as usize).for_each(|core| machine.wait_on_core(core, start));
    let works = objects.iter().zip(0..).map(|(&object, thread)| {
        let (pool, machine) = (&pool, &machine);
        move || work(pool, machine, way, (thread, object), start + START_NS * 1000)
    });
    let worked = machine.on_cores(works.collect()).into_iter().collect::<Result<Vec<_>, Error>>()?;
    let done = pool.statistics().since(&before);
    assert_eq!(done.acknowledged, threads * (transactions + 1), "each was durable when it returned");
    pool.close()?;

    let pool = DirectPool::open(&name.pool("p"), &Options::new())?;
    for (&object, thread) in objects.iter().zip(0..) {
        let mut expected = vec![0; (OBJECT_BYTES / 8) as usize];
        for number in 1..=transactions + 1 {
            (0..words).for_each(|word_number| expected[word(thread, number, word_number) as usize] = number);
        }
        let found = (0..OBJECT_BYTES / 8).map(|at| load(&pool, object + 8 * at));
        assert!(found.eq(expected), "thread {thread}: a word that is not what the last transaction has stored there");
    }
    pool.close()?;
    let most = |of: fn(&Worked) -> u64| worked.iter().map(of).max().unwrap_or_default() as f64;
    let least = worked.iter().map(|of| of.all).min().unwrap_or_default() as f64;
    Ok(Taken {
        each_ns: most(|of| of.all) / 1e3 / (threads * transactions) as f64,
        first_us: most(|of| of.first) / 1e6,
        slowest: most(|of| of.all) / least,
        longest_us: most(|of| of.longest) / 1e6,
    })
}

fn main() -> Result<(), Error> {
    let asked = std::env::args().nth(1).unwrap_or_default();
    let of = |mechanism| [(Some(mechanism), Engine::Cpu), (Some(mechanism), Engine::Card)];
    let ways = [(None, Engine::Cpu)].into_iter().chain(Mechanism::ALL.into_iter().flat_map(of));
    let by_offsets = [Mechanism::Undo, Mechanism::Redo].into_iter().flat_map(of);
    let ways = ways.map(|way| (way, false)).chain(by_offsets.map(|way| (way, true)));
    let named = |((by, engine), by_offsets): ((Option<Mechanism>, Engine), bool)| {
        let kind = if by_offsets { "offsets, " } else { "" };
        let name = format!("{kind}{}, {engine:?}", by.map_or("record", Mechanism::name));
        (Way { by, engine, by_offsets, words: 0 }, name)
    };
    println!("{} ns of instructions before each transaction", instructions_ns());
    let ways: Vec<_> = ways.map(named).filter(|(_, name)| name.contains(&asked)).collect();
    assert!(!ways.is_empty(), "no way has \"{asked}\" in its name");
    let heads: Vec<String> = THREADS.iter().map(|threads| format!("{threads:>8}")).collect();
    for words in WORDS {
        println!(
            "\nns a transaction of {words} words, of all threads together, simulated, each durable when it returns\n"
        );
        let (heads, more) = (heads.concat(), "16 over 1");
        println!("{:<20}{heads}{more:>12}{:>10}{:>10}{:>10}", "threads", "slowest", "longest", "first");
        for (way, name) in &ways {
            let taken = THREADS.map(|threads| measured(Way { words, ..*way }, threads));
            let taken = taken.into_iter().collect::<Result<Vec<_>, Error>>()?;
            let each: Vec<String> = taken.iter().map(|taken| format!("{:>8.0}", taken.each_ns)).collect();
            let [one, .., all] = &taken[..] else { unreachable!("there are several numbers of threads") };
            let more = one.each_ns / all.each_ns;
            let Taken { slowest, longest_us, first_us, .. } = all;
            println!("{name:<20}{}{more:>12.2}{slowest:>10.2}{longest_us:>10.1}{first_us:>10.1}", each.concat());
        }
    }
    Ok(())
}
