//! Transactions on a small store, and what a cut leaves of them.

use super::super::super::{Image, TestMemory};
use super::super::common::{Model, Operation, apply, check_leaks, contents, create, operations, put};
use super::{POOL_BYTES, Survivors, memory, open, options, same, say, with_cuts};
use crate::{Error, Mechanism, Options, Pool, check};

/// Does operations, one after another.
pub fn work(pool: &Pool, operations: &[Operation], survivors: &Survivors<Model>) -> Result<(), String> {
    let mut model = survivors.last();
    for operation in operations {
        let mut next = model.clone();
        operation.done_to(&mut next);
        survivors.begin(next);
        apply(pool, &mut model, operation).map_err(say)?;
        let statistics = pool.statistics();
        if statistics.acknowledged == statistics.transactions {
            survivors.acknowledge();
        }
    }
    Ok(())
}

/// What a pool holds; nothing has leaked.
pub fn found(pool: &Pool) -> Result<Model, String> {
    let found = contents(pool).map_err(say)?;
    check_leaks(pool, &found).map_err(say)?;
    Ok(found)
}

/// Recovers what a cut has left, and compares it with what may have survived. Nor does a check of
/// the file find anything.
fn recovers(options: &Options, image: Image, survivors: &Survivors<Model>) -> Result<(), String> {
    let memory = TestMemory::from_image(image);
    let pool = open(options, &memory)?;
    survivors.check(&found(&pool)?)?;
    drop(pool);
    let report = check::Image::open_in(&memory).check();
    if report.is_sound() { Ok(()) } else { Err(format!("the check finds {:?}", report.findings)) }
}

/// Checks what cuts leave in this way.
pub fn recovering(options: &Options, survivors: &Survivors<Model>) -> super::Check {
    let (options, survivors) = (options.clone(), survivors.clone());
    Box::new(move |image| recovers(&options, image, &survivors))
}

/// A pool with an empty store.
fn empty(options: &Options, seed: u64) -> Result<TestMemory, String> {
    let memory = memory(vec![0; POOL_BYTES], seed);
    let pool = options.create_in(Box::new(memory.clone())).map_err(say)?;
    create(&pool).and_then(|()| pool.persist()).map_err(say)?;
    pool.close().map_err(say)?;
    Ok(memory)
}

/// What a cut leaves in the middle of one more transaction.
fn amid(pool: &Pool, memory: &TestMemory, seed: u64) -> Result<Image, String> {
    let mut image = Image::new();
    let cut = pool.tx(|tx| {
        (0..4).try_for_each(|key| put(tx, key, &[seed as u8; 200]))?;
        image = memory.surviving(seed);
        Err::<(), _>(Error::abort("the power has failed"))
    });
    match cut {
        Err(Error::Aborted(_)) => Ok(image),
        other => Err(format!("{other:?}")),
    }
}

/// Closes a pool, which acknowledges what was begun.
fn close(pool: Pool, survivors: &Survivors<Model>) -> Result<(), String> {
    pool.close().map_err(say)?;
    survivors.acknowledge();
    Ok(())
}

pub fn cuts(mechanism: Mechanism, seed: u64) -> Result<(), String> {
    let options = options(mechanism, seed);
    let memory = empty(&options, seed)?;
    let survivors = Survivors::new(Model::new());
    with_cuts(&memory, 29, recovering(&options, &survivors), || {
        let pool = open(&options, &memory)?;
        work(&pool, &operations(seed, 30, 300), &survivors)?;
        close(pool, &survivors)
    })?;
    (0..4).try_for_each(|cut| recovers(&options, memory.surviving(cut), &survivors))
}

pub fn recoveries(mechanism: Mechanism, seed: u64) -> Result<(), String> {
    let options = options(mechanism, seed);
    let memory = empty(&options, seed)?;
    let survivors = Survivors::new(Model::new());
    let pool = open(&options, &memory)?;
    work(&pool, &operations(seed, 20 + seed as usize % 5, 300), &survivors)?;
    let image = amid(&pool, &memory, seed)?;
    drop(pool);
    let memory = super::memory(image, seed);
    let (behind, of) = (survivors.clone(), options.clone());
    let mut number = seed;
    let work_again = move |image: Image| {
        number += 1;
        let memory = super::memory(image, number);
        let pool = open(&of, &memory)?;
        let survived = found(&pool)?;
        behind.check(&survived)?;
        let again = Survivors::new(survived);
        work(&pool, &operations(number, 1 + number as usize % 3, 100), &again)?;
        recovers(&of, memory.surviving(number), &again)
    };
    with_cuts(&memory, 3, Box::new(work_again), || {
        let pool = open(&options, &memory)?;
        survivors.check(&found(&pool)?)?;
        drop(pool);
        Ok(())
    })
}

pub fn succeeded(first: Mechanism, seed: u64) -> Result<(), String> {
    let options = |n: u64| match n {
        0 => options(first, seed).ring_bytes(64 * 1024),
        _ => options(Mechanism::ALL[(seed * n) as usize % 4], seed / 4 + n).ring_bytes(64 * 1024),
    };
    let mut memory = empty(&options(0), seed)?;
    let survivors = Survivors::new(Model::new());
    for n in 0..4 {
        let check = recovering(&options(n + 1), &survivors);
        let image = with_cuts(&memory, 17, check, || {
            let pool = open(&options(n), &memory)?;
            same(found(&pool)?, survivors.last(), "the next process")?;
            work(&pool, &operations(seed + n, 8, 300), &survivors)?;
            if (seed >> n) % 2 == 1 {
                close(pool, &survivors)?;
                return Ok(memory.surviving(seed));
            }
            pool.persist().map_err(say)?;
            survivors.acknowledge();
            amid(&pool, &memory, seed + n)
        })?;
        memory = super::memory(image, seed / 2 + n);
    }
    Ok(())
}
