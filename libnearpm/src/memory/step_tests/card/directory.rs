//! Pools that are made, removed and copied.

use std::collections::BTreeSet;

use nearpm_driver::mock::{MockCard, MockOptions};

use super::super::common::{Model, contents, create, operations};
use super::{POOL_BYTES, Registered, died, look, mock, options, say, used_memory, work};
use crate::{Error, Mechanism};

/// Room for three pools.
const PM_BYTES: usize = (1 << 20) + 3 * POOL_BYTES as usize;

fn settings(seed: u64) -> MockOptions {
    MockOptions { pm_bytes: PM_BYTES, ..mock(seed) }
}

/// The names of the pools on a card.
type Names = BTreeSet<String>;

fn names(card: &Registered) -> Result<Names, Error> {
    Ok(crate::list(card.name.name())?.into_iter().map(|pool| pool.name).collect())
}

/// What is done to the pools of a card.
#[derive(Clone, Copy)]
enum Change {
    Create(&'static str),
    Remove(&'static str),
}

/// The first one takes the place of a pool with contents, in the end.
const CHANGES: [Change; 6] = [
    Change::Create("b"),
    Change::Remove("a"),
    Change::Create("c"),
    Change::Remove("b"),
    Change::Remove("c"),
    Change::Create("d"),
];

impl Change {
    fn make(self, card: &Registered, mechanism: Mechanism, names: &mut Names) -> Result<(), Error> {
        match self {
            Change::Create(name) => {
                names.insert(name.to_owned());
                // The last two have the identifiers of the first two, whose entries may be in their
                // place.
                let id = if matches!(name, "a" | "c") { 9 } else { 10 };
                options(mechanism).id(id).create(&card.name.pool(name), POOL_BYTES).map(drop)
            }
            Change::Remove(name) => {
                names.remove(name);
                crate::remove(&card.name.pool(name))
            }
        }
    }
}

/// Makes the changes until the card has gone; gives the names that may be there.
fn change(card: &Registered, mechanism: Mechanism) -> Vec<Names> {
    let mut now = Names::from(["a".to_owned()]);
    for each in CHANGES {
        let before = now.clone();
        if each.make(card, mechanism, &mut now).is_err() {
            return vec![before, now];
        }
    }
    vec![now]
}

/// Cuts while pools are made and removed. Each pool that is there afterwards is whole: the first
/// has its contents, and a new one takes some.
pub fn directory(seed: u64) -> Result<(), String> {
    let mechanism = Mechanism::ALL[seed as usize % 4];
    let card = Registered::new(MockCard::with_medium(settings(seed), used_memory(PM_BYTES)), seed)?;
    let pool = options(mechanism).create(&card.name.pool("a"), POOL_BYTES).map_err(say)?;
    create(&pool).map_err(say)?;
    work(&pool, &operations(seed, 30, 300), Model::new())?;
    let held = contents(&pool).map_err(say)?;
    pool.close().map_err(say)?;
    let image = card.mock.power_cut();

    let powered = |cut_after| {
        let card = MockCard::with_medium(MockOptions { cut_after, ..settings(seed) }, image.clone());
        Registered::new(card, seed)
    };
    let dry = powered(None)?;
    let start = dry.mock.accesses();
    // The accesses before which the changes were done.
    let (mut ends, mut now) = (Vec::new(), Names::new());
    for each in CHANGES {
        each.make(&dry, mechanism, &mut now).map_err(say)?;
        ends.push(dry.mock.accesses() - start);
    }
    // One at any moment, two at the end of a change, where the table is written and the pool is
    // opened, one when all is done.
    let end = |n: u64| ends[(seed + n) as usize % ends.len()].saturating_sub(seed * 13 % 150);
    let span = ends[ends.len() - 1];
    for moment in [seed * 1009 % span, end(0), end(2), span] {
        let card = powered(Some(start + moment))?;
        let allowed = change(&card, mechanism);
        let medium = card.mock.power_cut();
        let found = look(seed, medium.clone(), names)?;
        if !allowed.contains(&found) {
            return Err(format!("{found:?} is none of {allowed:?}"));
        }
        for name in &found {
            lives_on(mechanism, seed, medium.clone(), name, if name == "a" { held.clone() } else { Model::new() })?;
        }
    }
    Ok(())
}

/// A pool holds what it is to hold, and what is put there next.
fn lives_on(mechanism: Mechanism, seed: u64, medium: Vec<u8>, name: &str, held: Model) -> Result<(), String> {
    let found = look(seed, medium.clone(), |card| {
        let pool = options(mechanism).open(&card.name.pool(name))?;
        pool.check()?;
        contents(&pool)
    })?;
    super::same(&found, &held, name)?;
    let card = Registered::new(MockCard::with_medium(settings(seed), medium), seed)?;
    let pool = options(mechanism).open(&card.name.pool(name)).map_err(say)?;
    if pool.root().map_err(say)? == 0 {
        create(&pool).and_then(|()| pool.persist()).map_err(say)?;
    }
    let states = work(&pool, &operations(seed + 1, 12, 200), held)?;
    drop(pool);
    super::recovers_named(mechanism, seed, card.mock.power_cut(), name, &states[states.len() - 1..])
}

/// A process dies and leaves lines of its pool in the cache; the next one makes another pool in
/// that place.
pub fn replaced(mechanism: Mechanism, seed: u64) -> Result<(), String> {
    let first = Registered::new(MockCard::with_medium(settings(seed), used_memory(PM_BYTES)), seed)?;
    let pool = options(Mechanism::Undo).create(&first.name.pool("a"), POOL_BYTES).map_err(say)?;
    create(&pool).map_err(say)?;
    work(&pool, &operations(seed, 20, 300), Model::new())?;
    // Dirty lines, which nobody flushes.
    for (object, bytes) in pool.objects().map_err(say)? {
        pool.store(object, &vec![0xd1; bytes as usize]).map_err(say)?;
    }
    let _grave = died(pool, &[&first]);
    let next = Registered::new(first.mock.clone(), seed)?;
    crate::remove(&next.name.pool("a")).map_err(say)?;
    let pool = options(mechanism).create(&next.name.pool("b"), POOL_BYTES).map_err(say)?;
    create(&pool).map_err(say)?;
    let states = work(&pool, &operations(seed + 9, 20, 300), Model::new())?;
    pool.close().map_err(say)?;
    super::recovers_named(mechanism, seed, next.mock.power_cut(), "b", &states[states.len() - 1..])
}

/// A process dies; the next one copies its pool to another card, which has an identifier for it,
/// and power fails while it does.
pub fn copies(mechanism: Mechanism, seed: u64) -> Result<(), String> {
    let cuts = 2;
    for cut in 0..=cuts {
        let first = Registered::new(MockCard::with_medium(settings(seed), used_memory(PM_BYTES)), seed)?;
        let pool = options(mechanism).create(&first.name.pool("a"), POOL_BYTES).map_err(say)?;
        create(&pool).and_then(|()| pool.persist()).map_err(say)?;
        let states = work(&pool, &operations(seed, 20, 300), Model::new())?;
        let _grave = died(pool, &[&first]);
        let next = Registered::new(first.mock.clone(), seed)?;
        let other = Registered::new(MockCard::with_medium(settings(seed + 1), used_memory(PM_BYTES)), seed)?;
        if cut < cuts {
            other.mock.cut_in(seed * 7 % 60 + cut * 60);
        }
        let copied = crate::check::copy(&next.name.pool("a"), &other.name.pool("b"), None);
        let medium = other.mock.power_cut();
        let is_there = look(seed, medium.clone(), names)?.contains("b");
        match (copied, is_there) {
            (_, true) => super::recovers_named(mechanism, seed, medium, "b", &states)?,
            (Ok(_), false) => return Err("the copy is not there".into()),
            (Err(error), false) if cut == cuts => return Err(error.to_string()),
            (Err(_), false) => {}
        }
    }
    Ok(())
}
