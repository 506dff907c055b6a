//! What a commit of a pointer program takes on the simulated card, by each way home:
//! `cargo run --release -p nearpm-workloads --example pointer_commits`.
//!
//! Times are simulated: the transaction-level card at 300 MHz behind PCIe 3.0 x8, its memory cached
//! by the processor, memory accesses and checksums charged, instructions not. A transaction changes
//! words of eight bytes, far from each other, or a page. Each is durable when it returns; when all
//! are done the pool is closed and opened again, and every word that one of them has stored is held
//! against what the last of them stored there.
//!
//! Behind the first table stand the same transactions by offsets, whose changes wait in a write set
//! and whose reads look there first, and what they take over those by pointer. The second table is
//! of commits that are posted and not waited for one by one. That is the part in which a
//! transaction has the pool for itself, so that what a durable one takes over it is the most that
//! threads on one pool can gain beside what they do outside of the library.

use std::sync::Arc;

use nearpm::direct::DirectPool;
use nearpm::{Durability, Engine, Error, Mechanism, Options, cards};
use nearpm_driver::{Card, CardOptions};
use nearpm_interface::geometry::POOLS_BASE;
use nearpm_sim::core::{CardCore, Medium};
use nearpm_sim::host::Parameters;
use nearpm_sim::machine::Machine;
use nearpm_sim::model::{Config, ModelCard};

const POOL_BYTES: u64 = 16 << 20;
const OBJECT_BYTES: u64 = 1 << 20;
const TRANSACTIONS: u64 = 2000;
/// Ranges of a transaction, and bytes of each.
const SHAPES: [(&str, u64, u64); 4] = [("a word", 1, 8), ("4 words", 4, 8), ("16 words", 16, 8), ("a page", 1, 4096)];

fn power(medium: Medium) -> Box<dyn CardCore> {
    Box::new(ModelCard::new(Config::default(), medium))
}

/// Where a range of a transaction lies in the object: spread over it, the same for every way.
fn place(transaction: u64, range: u64, bytes: u64) -> u64 {
    let drawn = (transaction * 16 + range + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    drawn % (OBJECT_BYTES / bytes) * bytes
}

/// Stores words of a number.
fn store(pool: &DirectPool, offset: u64, bytes: u64, number: u64) {
    assert!(pool.heap().start <= offset && offset + bytes <= pool.heap().end);
    for at in (offset..offset + bytes).step_by(8) {
        // SAFETY: the word lies in the heap of the open pool, aligned, and this thread alone uses
        // it.
        unsafe { pool.base().add(at as usize).cast::<u64>().write(number) }
    }
}

/// A way home.
type Way = (Option<Mechanism>, Engine);

/// A computer with a card, and the card's name.
fn computer() -> Result<(Machine, cards::Registered), Error> {
    let size = (POOLS_BASE + POOL_BYTES).next_multiple_of(2 << 20) as usize;
    let machine = Machine::new(Parameters::default(), &power, Medium::blank(size));
    let firmware = Some(nearpm_firmware::standard().bytes().to_vec());
    let card = Card::open(Arc::new(machine.function()), CardOptions { firmware, ..CardOptions::default() })?;
    Ok((machine, cards::Registered::new(Arc::new(card))))
}

/// Nanoseconds and commands a transaction by offsets, whose reads and writes are calls: what a
/// card's undo logs took before pointer programs had them.
fn measured_by_offsets(engine: Engine, (_, ranges, bytes): (&str, u64, u64)) -> Result<[f64; 2], Error> {
    let (machine, name) = computer()?;
    let options = Options::new().mechanism(Mechanism::Undo).engine(engine);
    let pool = options.create(&name.pool("p"), POOL_BYTES)?;
    let object = pool.tx(|tx| {
        let object = tx.alloc(OBJECT_BYTES)?;
        tx.set_root(object)?;
        Ok(object)
    })?;
    for at in (0..OBJECT_BYTES).step_by(4096) {
        pool.tx(|tx| tx.write(object + at, &[0; 4096]))?;
    }
    let mut expected = vec![0; OBJECT_BYTES as usize];
    let (before, start_ps) = (pool.statistics(), machine.now_ps());
    for number in 1..=TRANSACTIONS {
        let words = number.to_le_bytes().repeat((bytes / 8) as usize);
        pool.tx(|tx| {
            (0..ranges).try_for_each(|range| {
                let inside = place(number, range, bytes);
                expected[inside as usize..][..words.len()].copy_from_slice(&words);
                tx.write(object + inside, &words)
            })
        })?;
    }
    let (ps, done) = (machine.now_ps() - start_ps, pool.statistics().since(&before));
    assert_eq!(done.transactions, TRANSACTIONS);
    pool.close()?;
    let pool = options.open(&name.pool("p"))?;
    let found = pool.tx(|tx| tx.read_vec(object, OBJECT_BYTES as usize))?;
    assert!(found == expected, "a word that is not what the last transaction has stored there");
    pool.close()?;
    Ok([ps as f64 / 1000.0 / TRANSACTIONS as f64, done.commands as f64 / TRANSACTIONS as f64])
}

/// Nanoseconds and commands a transaction.
fn measured(
    (by, engine): Way,
    durability: Durability,
    (_, ranges, bytes): (&str, u64, u64),
) -> Result<[f64; 2], Error> {
    let (machine, name) = computer()?;
    let options = Options::new().mechanism(by).engine(engine).durability(durability);
    let pool = DirectPool::create(&name.pool("p"), POOL_BYTES, &options)?;
    let mut tx = pool.begin()?;
    let object = tx.alloc(&pool, OBJECT_BYTES)?.offset;
    store(&pool, object, OBJECT_BYTES, 0);
    tx.set_root(object);
    tx.commit(&pool)?;
    let mut expected = vec![0; (OBJECT_BYTES / 8) as usize];
    let (before, start_ps) = (pool.statistics(), machine.now_ps());
    for number in 1..=TRANSACTIONS {
        let mut tx = pool.begin()?;
        for range in 0..ranges {
            let inside = place(number, range, bytes);
            tx.add(&pool, object + inside..object + inside + bytes)?;
            store(&pool, object + inside, bytes, number);
            expected[(inside / 8) as usize..][..(bytes / 8) as usize].fill(number);
        }
        tx.commit(&pool)?;
    }
    let (ps, done) = (machine.now_ps() - start_ps, pool.statistics().since(&before));
    if durability == Durability::Durable {
        assert_eq!(done.acknowledged, TRANSACTIONS, "each was durable when it returned");
    }
    pool.wait_durable()?;
    pool.close()?;
    let pool = DirectPool::open(&name.pool("p"), &Options::new())?;
    assert!(pool.heap().start <= pool.root() && pool.root() + OBJECT_BYTES <= pool.heap().end);
    // SAFETY: the object lies in the heap of the open pool, aligned, and this thread alone uses it.
    let found =
        unsafe { std::slice::from_raw_parts(pool.base().add(pool.root() as usize).cast::<u64>(), expected.len()) };
    let differs = found.iter().zip(&expected).position(|(found, expected)| found != expected);
    assert_eq!(differs, None, "a word that is not what the last transaction has stored there");
    let stored = expected.iter().filter(|&&number| number > 0).count() as u64;
    assert!(stored > TRANSACTIONS / 2, "most transactions have stored where no later one has: {stored} words");
    pool.close()?;
    Ok([ps as f64 / 1000.0 / TRANSACTIONS as f64, done.commands as f64 / TRANSACTIONS as f64])
}

/// Prints a row, and gives its nanoseconds.
fn row(name: &str, measured: impl Fn((&'static str, u64, u64)) -> Result<[f64; 2], Error>) -> Result<Vec<f64>, Error> {
    let cells: Vec<[f64; 2]> = SHAPES.into_iter().map(measured).collect::<Result<_, Error>>()?;
    let texts = cells.iter().map(|[ns, commands]| format!("{:>16}", format!("{ns:.0} ({commands:.1})")));
    println!("{name:<26}{}", texts.collect::<String>());
    Ok(cells.into_iter().map(|[ns, _]| ns).collect())
}

fn print(title: &str, ways: &[Way], durability: Durability) -> Result<Vec<Vec<f64>>, Error> {
    println!("{title}\n");
    let head: Vec<String> = SHAPES.iter().map(|(name, ..)| format!("{name:>16}")).collect();
    println!("{:<26}{}", "", head.concat());
    let row_of = |&(by, engine): &Way| {
        let name = format!("{}, {engine:?}", by.map_or("record", Mechanism::name));
        row(&name, |shape| measured((by, engine), durability, shape))
    };
    ways.iter().map(row_of).collect()
}

fn main() -> Result<(), Error> {
    let of = |mechanism| [(Some(mechanism), Engine::Cpu), (Some(mechanism), Engine::Card)];
    let all: Vec<Way> = [(None, Engine::Cpu)].into_iter().chain(Mechanism::ALL.into_iter().flat_map(of)).collect();
    let title = "ns a transaction (commands a transaction), simulated, durable when it returns";
    let durable = print(title, &all, Durability::Durable)?;
    row("by offsets, undo, Cpu", |shape| measured_by_offsets(Engine::Cpu, shape))?;
    let by_offsets = row("by offsets, undo, Card", |shape| measured_by_offsets(Engine::Card, shape))?;
    let undo = all.iter().position(|way| *way == (Some(Mechanism::Undo), Engine::Card)).expect("it is one of them");
    let over = by_offsets.iter().zip(&durable[undo]).map(|(offsets, pointer)| format!("{:>16.2}", offsets / pointer));
    println!("{:<26}{}\n", "over undo, Card", over.collect::<String>());
    print("the same, posted and not waited for", &all, Durability::Asynchronous).map(drop)
}
