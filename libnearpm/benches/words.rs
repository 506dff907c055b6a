//! What a word of a pool costs by typed objects, and by a raw pointer:
//! `cargo bench -p nearpm --bench words`.
//!
//! The words lie in a row that a transaction has added, and that the nearest cache holds, so that
//! nothing is measured but instructions. The raw loops access the words by relaxed atomics, which
//! keep the compiler from doing many at once, as it may not with a pool's either.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use nearpm::memory::VolatileMemory;
use nearpm::prelude::*;

const WORDS: u64 = 1024;
const PASSES: u64 = 200;
const ROUNDS: usize = 500;

#[inline(never)]
fn typed_sum(from: &Reader<'_>, row: Ptr<u64>) -> Result<u64, Error> {
    let mut sum = 0u64;
    for index in 0..WORDS {
        sum = sum.wrapping_add(from.get(Ptr::nth(row, index))?);
    }
    Ok(sum)
}

#[inline(never)]
fn raw_sum(row: &[AtomicU64]) -> u64 {
    row.iter().fold(0, |sum, word| sum.wrapping_add(word.load(Relaxed)))
}

#[inline(never)]
fn typed_fill(tx: &mut Tx<'_>, row: Ptr<u64>, value: u64) -> Result<(), Error> {
    (0..WORDS).try_for_each(|index| tx.set(Ptr::nth(row, index), value))
}

#[inline(never)]
fn raw_fill(row: &[AtomicU64], value: u64) {
    row.iter().for_each(|word| word.store(value, Relaxed));
}

/// Nanoseconds a word, the least of some rounds.
fn time(mut pass: impl FnMut(u64)) -> f64 {
    let round = |_| {
        let begun = Instant::now();
        (0..PASSES).for_each(&mut pass);
        begun.elapsed().as_nanos() as f64 / (PASSES * WORDS) as f64
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

fn main() -> Result<(), Error> {
    let memory = Box::new(VolatileMemory::new(1 << 20));
    let pool = DirectPool::create_in(memory, &Options::new())?;
    let row = pool.tx(|tx| tx.alloc_zeroed::<u64>(WORDS))?;
    let raw: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
    let get = pool.read(|from| {
        Ok(time(|_| {
            black_box(typed_sum(black_box(from), black_box(row)).expect("the row is there"));
        }))
    })?;
    let set = pool.tx(|tx| {
        tx.declare(Ptr::offset(row)..Ptr::offset(row) + 8 * WORDS)?;
        Ok(time(|pass| typed_fill(black_box(tx), black_box(row), pass).expect("the row is there")))
    })?;
    let load = time(|_| {
        black_box(raw_sum(black_box(&raw)));
    });
    let store = time(|pass| raw_fill(black_box(&raw), pass));
    // Every word has what the last pass stored, in both.
    let sums = [pool.read(|from| typed_sum(from, row))?, raw_sum(&raw)];
    assert_eq!(sums, [WORDS * (PASSES - 1); 2], "the stores were made");
    println!("ns a word        typed   raw");
    println!("load             {get:5.2} {load:5.2}");
    println!("store            {set:5.2} {store:5.2}");
    Ok(())
}
