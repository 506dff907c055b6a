//! Direct pools on a card.

use nearpm_driver::mock::{MockCard, MockOptions};

use super::{POOL_BYTES, Registered, look, mock, say};
use crate::direct::tests::store::{self, Model, Operations};
use crate::direct::{DirectPool, Mode};
use crate::options::Options;
use crate::{Durability, Error, Mechanism};

fn options(durability: Durability, mechanism: Option<Mechanism>) -> Options {
    store::options(Mode::WorkingCopy).durability(durability).mechanism(mechanism)
}

/// Transactions and persists until the card has gone; gives the states that may survive.
fn work(pool: &DirectPool, seed: u64, durability: Durability) -> Result<Vec<Model>, String> {
    let mut states = vec![store::empty()];
    let mut operations = Operations::new(seed, pool.root());
    for number in 0..20 {
        let before = states.last().expect("there is always a state").clone();
        let done = if operations.once_in(4) {
            let mut model = before.clone();
            let range = operations.persist(pool, &mut model);
            states.push(model);
            pool.persist(&[range]).map(|()| true)
        } else {
            operations.transaction(pool, &before).and_then(|(tx, after, commits)| {
                if commits {
                    states.push(after);
                    tx.commit(pool)?;
                } else {
                    tx.abort(pool)?;
                }
                Ok(durability == Durability::Durable)
            })
        };
        let waited = match done {
            Ok(durable) if number % 7 == 6 && !durable => pool.wait_durable().map(|()| true),
            done => done,
        };
        match waited {
            Ok(true) => drop(states.drain(..states.len() - 1)),
            Ok(false) => {}
            Err(Error::Card(_) | Error::Poisoned) => return Ok(states),
            Err(other) => return Err(other.to_string()),
        }
    }
    Ok(states)
}

/// What a pool holds that a card has which powers up with this memory.
fn found(seed: u64, medium: Vec<u8>, options: &Options) -> Result<Model, String> {
    let model = look(seed, medium, |card| {
        let pool = DirectPool::open(&card.pool(), options)?;
        let found = store::contents(&pool, 1);
        pool.close()?;
        Ok(found)
    })?;
    Ok(model?.remove(0))
}

/// Cuts on the way through operations.
pub fn cuts(durability: Durability, mechanism: Option<Mechanism>, seed: u64) -> Result<(), String> {
    let options = options(durability, mechanism);
    let card = Registered::new(MockCard::new(mock(seed)), seed)?;
    let pool = DirectPool::create(&card.pool(), POOL_BYTES, &options).map_err(say)?;
    store::prepare(&pool, 1).map_err(say)?;
    drop(pool);
    let image = card.mock.power_cut();
    let dry = Registered::new(MockCard::with_medium(mock(seed), image.clone()), seed)?;
    let pool = DirectPool::open(&dry.pool(), &options).map_err(say)?;
    let opened = dry.mock.accesses();
    let states = work(&pool, seed, durability)?;
    let span = dry.mock.accesses() - opened;
    pool.close().map_err(say)?;
    let last = found(seed, dry.mock.power_cut(), &options)?;
    super::same(last == states[states.len() - 1], true, "an orderly end keeps everything")?;
    let cuts = 3;
    for cut in 0..cuts {
        let cut_after = opened + (seed.wrapping_mul(7919) + cut * span / cuts) % span;
        let card = MockCard::with_medium(MockOptions { cut_after: Some(cut_after), ..mock(seed) }, image.clone());
        let card = Registered::new(card, seed)?;
        let pool = DirectPool::open(&card.pool(), &options).map_err(say)?;
        let states = work(&pool, seed, durability)?;
        let medium = card.mock.power_cut();
        drop(pool);
        if !states.contains(&found(seed, medium, &options)?) {
            return Err(format!("none of {} states", states.len()));
        }
    }
    Ok(())
}
