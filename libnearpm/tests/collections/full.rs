//! Pools that become full in the middle of a change.

use std::collections::BTreeMap;

use nearpm::direct::Mode;
use nearpm::memory::TestMemory;
use nearpm::prelude::*;
use nearpm::{Mechanism, Options};

use super::options;

/// The root: one map of each kind.
#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Maps {
    ordered: PBTreeMap<PString, u64>,
    hashed: PHashMap<PString, u64>,
}

/// Inserts into both maps, and goes on after an error as if nothing were; gives whether both had
/// room.
fn insert(tx: &mut impl Store, key: &str, value: u64) -> Result<bool, Error> {
    let maps = tx.root_or_zeroed::<Maps>()?;
    let room = |done: Result<Option<u64>, Error>| match done {
        Ok(_) => Ok(true),
        Err(Error::Full { .. }) => Ok(false),
        Err(other) => Err(other),
    };
    let ordered = room(maps.ordered().insert(tx, key, value))?;
    Ok(room(maps.hashed().insert(tx, key, value))? && ordered)
}

type Entries = BTreeMap<String, u64>;

/// What the two maps have of a key.
fn entries_of(from: &impl Load, key: &str) -> Result<(Option<u64>, Option<u64>), Error> {
    let maps = from.root::<Maps>()?.unwrap();
    Ok((maps.ordered().get(from, key)?, maps.hashed().get(from, key)?))
}

/// All entries of the two maps, which must be as many as they say.
fn entries(from: &impl Load) -> Result<(Entries, Entries), Error> {
    let maps = from.root::<Maps>()?.unwrap();
    let ordered: Entries = maps.ordered().iter(from)?.collect::<Result<_, _>>()?;
    let hashed: Entries = maps.hashed().iter(from)?.collect::<Result<_, _>>()?;
    assert_eq!((maps.ordered().len(from)?, maps.hashed().len(from)?), (ordered.len() as u64, hashed.len() as u64));
    Ok((ordered, hashed))
}

/// Inserts until the pool has been full for a while; gives what must be in the maps. `insert` is a
/// transaction, `entries_of` a look at one key.
fn fill(
    seed: u64,
    insert: impl Fn(&str, u64) -> Result<bool, Error>,
    entries_of: impl Fn(&str) -> Result<(Option<u64>, Option<u64>), Error>,
) -> (Entries, Entries) {
    let (mut models, mut draw, mut refused) = ((Entries::new(), Entries::new()), seed, 0);
    while refused < 40 {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let key = format!("{:020}", draw >> 20);
        match insert(&key, draw) {
            Ok(true) => {
                models.0.insert(key.clone(), draw);
                models.1.insert(key, draw);
                continue;
            }
            // One of the two has it, or none: what it was is looked up.
            Ok(false) => {
                let (ordered, hashed) = entries_of(&key).unwrap();
                models.0.extend(ordered.map(|value| (key.clone(), value)));
                models.1.extend(hashed.map(|value| (key.clone(), value)));
            }
            // Half done: everything was taken back.
            Err(Error::Aborted(_) | Error::Full { .. } | Error::TooLarge { .. }) => {}
            Err(other) => panic!("{other}"),
        }
        refused += 1;
    }
    models
}

#[test]
fn a_map_that_finds_no_room_keeps_its_entries() {
    for (mode, seeds) in [(Mode::WorkingCopy, 1..12), (Mode::InPlace, 12..20)] {
        for seed in seeds {
            let pool = DirectPool::create_in(Box::new(TestMemory::new(1 << 18)), &options(mode)).unwrap();
            let models = fill(
                seed,
                |key, value| pool.tx(|tx| insert(tx, key, value)),
                |key| pool.read(|from| entries_of(from, key)),
            );
            assert!(pool.read(|from| entries(from)).unwrap() == models, "{mode:?}, seed {seed}: entries are lost");
        }
    }
}

#[test]
fn nor_does_one_in_a_pool_with_a_mechanism_lose_any() {
    for mechanism in [Mechanism::Undo, Mechanism::Redo, Mechanism::Checkpoint, Mechanism::Shadow] {
        for seed in 1..4 {
            let pool = Options::new().mechanism(mechanism).ring_bytes(256 << 10).spare_pages(128).lanes(1);
            let pool = pool.create_in(Box::new(TestMemory::new(2 << 20))).unwrap();
            let models = fill(
                seed,
                |key, value| pool.tx(|tx| insert(&mut tx.typed(), key, value)),
                |key| pool.tx(|tx| entries_of(&tx.typed(), key)),
            );
            let found = pool.tx(|tx| entries(&tx.typed())).unwrap();
            assert!(found == models, "{mechanism:?}, seed {seed}: entries are lost");
        }
    }
}
