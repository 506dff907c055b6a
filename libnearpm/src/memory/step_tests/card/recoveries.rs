//! Recoveries: cut at each of their steps, and what becomes of the pool afterwards; and pools that
//! were closed in order.

use nearpm_driver::mock::{MockCard, MockOptions};

use super::super::common::{Model, check_leaks, contents, create, operations};
use super::{POOL_BYTES, Registered, died, last, mock, options, options_of, recovers, same, say, work};
use crate::{Caching, Mechanism};

/// Accesses between two cuts of an opening. Other seeds cut in between.
const STRIDE: u64 = 7;

/// A cut in the middle of the work, cuts of the recovery at one access in a few, and a little work
/// in what the last one leaves.
pub fn recoveries(mechanism: Mechanism, seed: u64) -> Result<(), String> {
    let card = Registered::new(MockCard::new(mock(seed)), seed)?;
    let pool = options_of(mechanism, seed).create(&card.pool(), POOL_BYTES).map_err(say)?;
    create(&pool).and_then(|()| pool.persist()).map_err(say)?;
    card.mock.cut_in(150 + seed * 37 % 400);
    let states = work(&pool, &operations(seed, 30, 300), Model::new())?;
    let image = card.mock.power_cut();
    drop(pool);

    let powered = |medium: Vec<u8>| Registered::new(MockCard::with_medium(mock(seed), medium), seed);
    let dry = powered(image.clone())?;
    let before = dry.mock.accesses();
    drop(options(mechanism).open(&dry.pool()).map_err(say)?);
    let span = dry.mock.accesses() - before;
    for moment in (seed % STRIDE..span).step_by(STRIDE as usize) {
        let cut = powered(image.clone())?;
        cut.mock.cut_in(moment);
        let opened = options(mechanism).open(&cut.pool());
        let medium = cut.mock.power_cut();
        drop(opened);
        // Durable work at once, which takes the place of what was there.
        let next = powered(medium)?;
        let pool = options(mechanism).open(&next.pool()).map_err(say)?;
        let found = contents(&pool).map_err(say)?;
        same(states.contains(&found), true, "one of the states")?;
        check_leaks(&pool, &found).map_err(say)?;
        let states = work(&pool, &operations(seed + moment, 1 + moment as usize % 3, 100), found)?;
        let medium = next.mock.power_cut();
        drop(pool);
        recovers(mechanism, seed, medium, &states)?;
    }
    Ok(())
}

/// Processes on one boot that close the pool in order, each with another mechanism and another kind
/// of window, and a power cut.
pub fn reopened(seed: u64) -> Result<(), String> {
    let mechanism = |n: u64| Mechanism::ALL[(seed + n * (1 + seed / 4)) as usize % 4];
    let mut card = Registered::new(MockCard::new(mock(seed)), seed)?;
    let mut model = Model::new();
    let pool = options(mechanism(0)).create(&card.pool(), POOL_BYTES).map_err(say)?;
    create(&pool).and_then(|()| pool.persist()).map_err(say)?;
    pool.close().map_err(say)?;
    for n in 1..5 {
        card = Registered::new(card.mock.clone(), seed)?;
        let pool = options(mechanism(n)).open(&card.pool()).map_err(say)?;
        same(contents(&pool).map_err(say)?, model.clone(), "the next process")?;
        let states = work(&pool, &operations(seed + n, 8, 300), model)?;
        model = states[states.len() - 1].clone();
        if n < 4 {
            pool.close().map_err(say)?;
            continue;
        }
        // The last one dies with the power.
        let medium = card.mock.power_cut();
        drop(pool);
        recovers(mechanism(n), seed, medium, &states)?;
    }
    Ok(())
}

/// A process that closes the pool in order, one that reaches it around the cache and dies, and one
/// that has both before it; and the same with one that closes it in order.
pub fn uncached(seed: u64) -> Result<(), String> {
    let settings = MockOptions { evict_one_in: 20, ..mock(seed) };
    let first = Registered::new(MockCard::new(settings), seed)?;
    let pool = options(Mechanism::Undo).create(&first.pool(), POOL_BYTES).map_err(say)?;
    create(&pool).map_err(say)?;
    let mut model = last(work(&pool, &operations(seed, 8, 300), Model::new())?);
    pool.close().map_err(say)?;
    let mut graves = Vec::new();
    for dies in [true, false] {
        let second = Registered::new(first.mock.clone(), seed)?;
        let pool = options(Mechanism::Redo).caching(Caching::Uncached).open(&second.pool()).map_err(say)?;
        model = last(work(&pool, &operations(seed + 1 + u64::from(dies), 8, 300), model)?);
        if dies {
            graves.push(died(pool, &[&second]));
        } else {
            pool.close().map_err(say)?;
        }
        let third = Registered::new(first.mock.clone(), seed)?;
        let pool = options(Mechanism::Undo).open(&third.pool()).map_err(say)?;
        same(contents(&pool).map_err(say)?, model.clone(), "through the cache")?;
        pool.close().map_err(say)?;
    }
    Ok(())
}
