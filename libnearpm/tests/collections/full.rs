//! Pools that become full in the middle of a change.

use std::collections::BTreeMap;

use nearpm::direct::Mode;
use nearpm::memory::TestMemory;
use nearpm::prelude::*;

use super::options;

/// The root: one map of each kind.
#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Maps {
    ordered: PBTreeMap<PString, u64>,
    hashed: PHashMap<PString, u64>,
}

/// Inserts into both maps, and goes on after an error as if nothing were; gives whether both had room, or the error of the commit.
fn insert(pool: &DirectPool, key: &str, value: u64) -> Result<bool, Error> {
    pool.tx(|tx| {
        let maps = tx.root_or_zeroed::<Maps>()?;
        let room = |done: Result<Option<u64>, Error>| match done {
            Ok(_) => Ok(true),
            Err(Error::Full { .. }) => Ok(false),
            Err(other) => Err(other),
        };
        let ordered = room(maps.ordered().insert(tx, key, value))?;
        Ok(room(maps.hashed().insert(tx, key, value))? && ordered)
    })
}

#[test]
fn a_map_that_finds_no_room_keeps_its_entries() {
    for (mode, seed) in
        [(Mode::WorkingCopy, 1..12u64), (Mode::InPlace, 12..20)].into_iter().flat_map(|(m, s)| s.map(move |s| (m, s)))
    {
        let pool = DirectPool::create_in(Box::new(TestMemory::new(1 << 18)), &options(mode)).unwrap();
        let (mut models, mut draw, mut refused) = ((BTreeMap::new(), BTreeMap::new()), seed, 0);
        while refused < 40 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = format!("{:020}", draw >> 20);
            match insert(&pool, &key, draw) {
                Ok(true) => {
                    models.0.insert(key.clone(), draw);
                    models.1.insert(key, draw);
                    continue;
                }
                // One of the two has it, or none: what it was is looked up.
                Ok(false) => pool
                    .read(|from| {
                        let maps = from.root::<Maps>()?.unwrap();
                        models.0.extend(maps.ordered().get(from, &key)?.map(|value| (key.clone(), value)));
                        models.1.extend(maps.hashed().get(from, &key)?.map(|value| (key.clone(), value)));
                        Ok(())
                    })
                    .unwrap(),
                // Half done: everything was taken back.
                Err(Error::Aborted(_) | Error::Full { .. }) => {}
                Err(other) => panic!("{other}"),
            }
            refused += 1;
        }
        pool.read(|from| {
            let maps = from.root::<Maps>()?.unwrap();
            let ordered: BTreeMap<String, u64> = maps.ordered().iter(from)?.collect::<Result<_, _>>()?;
            let hashed: BTreeMap<String, u64> = maps.hashed().iter(from)?.collect::<Result<_, _>>()?;
            assert_eq!(maps.ordered().len(from)?, ordered.len() as u64, "seed {seed}");
            assert_eq!(maps.hashed().len(from)?, hashed.len() as u64, "seed {seed}");
            assert!(ordered == models.0 && hashed == models.1, "{mode:?}, seed {seed}: entries are lost");
            Ok(())
        })
        .unwrap();
    }
}
