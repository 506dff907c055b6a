//! `entry` of both maps against that of the standard library's, and how often a key is compared.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use nearpm::collections::{Entry, PlainKey, Ranked};
use nearpm::direct::Mode;
use nearpm::memory::VolatileMemory;
use nearpm::prelude::*;
use proptest::prelude::*;

use crate::{objects, op, options};

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Maps {
    hashed: PHashMap<u64, u64>,
    hashed_texts: PHashMap<PString, u64>,
    ordered: PBTreeMap<u64, u64>,
    ordered_texts: PBTreeMap<PString, u64>,
    ranked: PBTreeMap<Ranked<u64>, u64>,
    lists: PBTreeMap<u64, PVec<u64>>,
}

fn pool() -> DirectPool {
    DirectPool::create_in(Box::new(VolatileMemory::new(4 << 20)), &options(Mode::WorkingCopy)).unwrap()
}

/// Does an operation by the entry of a key, and sees that both maps give the same. Maps have no
/// type in common.
macro_rules! by_entry {
    ($tx:expr, $map:expr, $key:expr, $model:expr, $model_key:expr, $op:expr) => {{
        let (map, key, model, value) = ($map, $key, &mut *$model, u64::from($op.value));
        let before = model.get(&$model_key).copied();
        let entry = map.entry($tx, key)?;
        assert_eq!(entry.key(), key);
        assert_eq!(matches!(entry, Entry::Occupied(_)), before.is_some());
        let slot = match $op.kind % 7 {
            0 => {
                let slot = entry.and_modify(|old| old ^ value)?.or_insert(value)?;
                model.entry($model_key).and_modify(|old| *old ^= value).or_insert(value);
                Some(slot)
            }
            1 => {
                let slot = entry.or_insert_with(|| value + 1)?;
                model.entry($model_key).or_insert(value + 1);
                Some(slot)
            }
            2 => {
                let slot = entry.or_default()?;
                model.entry($model_key).or_default();
                Some(slot)
            }
            3 => match entry {
                Entry::Occupied(mut entry) => {
                    assert_eq!(entry.key(), key);
                    assert_eq!(Some(entry.insert(value)?), before);
                    assert_eq!(entry.get()?, value);
                    model.insert($model_key, value);
                    Some(entry.slot())
                }
                Entry::Vacant(entry) => {
                    // Looked at, and left alone.
                    assert_eq!(entry.key(), key);
                    None
                }
            },
            4 => match entry {
                Entry::Occupied(mut entry) => {
                    assert_eq!(entry.update(|old| !old)?, !before.unwrap());
                    model.insert($model_key, !before.unwrap());
                    Some(entry.slot())
                }
                Entry::Vacant(entry) => {
                    model.insert($model_key, value);
                    Some(entry.insert(value)?)
                }
            },
            _ => {
                if let Entry::Occupied(entry) = entry {
                    assert_eq!(Some(entry.remove()?), before);
                    model.remove(&$model_key);
                }
                None
            }
        };
        if let Some(slot) = slot {
            assert_eq!($tx.get(slot)?, model[&$model_key], "the value lies where the entry says");
        }
        assert_eq!(map.slot($tx, key)?.is_some(), model.contains_key(&$model_key));
        if slot.is_some() {
            assert_eq!(map.slot($tx, key)?, slot);
        }
        assert_eq!(map.len($tx)?, model.len() as u64);
    }};
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 40 }, ..ProptestConfig::default() })]
    #[test]
    fn entries_do_what_those_of_the_standard_library_do(
        ops in prop::collection::vec((op(), any::<bool>()), 0..if cfg!(miri) { 30 } else { 900 }),
    ) {
        let pool = pool();
        let maps = pool.tx(|tx| tx.root_or_zeroed::<Maps>()).unwrap();
        let mut models: [BTreeMap<u64, u64>; 5] = Default::default();
        for some in ops.chunks(60) {
            pool.tx(|tx| {
                for (op, upper) in some {
                    // Insertions outnumber removals below a bound, so that nodes split and join.
                    let key = u64::from(op.key) + if *upper { 256 } else { 0 };
                    let text = format!("{key:04}");
                    by_entry!(tx, maps.hashed(), &key, &mut models[0], key, op);
                    by_entry!(tx, maps.ordered(), &key, &mut models[1], key, op);
                    by_entry!(tx, maps.ranked(), &key, &mut models[2], key, op);
                    by_entry!(tx, maps.hashed_texts(), text.as_str(), &mut models[3], key, op);
                    by_entry!(tx, maps.ordered_texts(), text.as_str(), &mut models[4], key, op);
                }
                Ok::<_, Error>(())
            }).unwrap();
        }
        pool.tx(|tx| {
            assert!(maps.ordered().iter(tx)?.collect::<Result<BTreeMap<_, _>, _>>()? == models[1]);
            assert!(maps.hashed().iter(tx)?.collect::<Result<BTreeMap<_, _>, _>>()? == models[0]);
            for (place, (&key, &value)) in models[2].iter().enumerate() {
                assert_eq!(maps.ranked().entry_at(tx, place as u64)?, Some((key, value)));
            }
            maps.hashed().clear(tx)?;
            maps.ordered().clear(tx)?;
            maps.ranked().clear(tx)?;
            maps.hashed_texts().clear(tx)?;
            maps.ordered_texts().clear(tx)
        }).unwrap();
        assert_eq!(objects(&pool), 1, "only the root is left: keys are freed with their entries");
    }
}

/// A collection is made by the entry and filled where it lies, also where nodes split meanwhile.
#[test]
fn collections_are_made_where_there_are_none() {
    let pool = pool();
    let maps = pool.tx(|tx| tx.root_or_zeroed::<Maps>()).unwrap();
    pool.tx(|tx| {
        for number in 0..2000u64 {
            let list = maps.lists().entry(tx, &(number * 7 % 100))?.or_default()?;
            list.push(tx, number)?;
        }
        Ok(())
    })
    .unwrap();
    pool.read(|from| {
        for key in 0..100 {
            let list = maps.lists().get(from, &key)?.unwrap().read(from)?;
            let expected: Vec<u64> = (0..2000).filter(|number| number * 7 % 100 == key).collect();
            assert_eq!(list, expected);
        }
        Ok(())
    })
    .unwrap();
    // An entry that is taken out gives the caller what the value owns.
    pool.tx(|tx| {
        for key in 0..100 {
            let Entry::Occupied(entry) = maps.lists().entry(tx, &key)? else { panic!("the key is there") };
            entry.remove()?.release(tx)?;
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(objects(&pool), 1, "only the root is left");
}

thread_local! {
    static COMPARED: Cell<u64> = const { Cell::new(0) };
}

/// A key that counts how often one is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Persistent)]
#[repr(C)]
struct Told(u64);

impl Ord for Told {
    fn cmp(&self, other: &Told) -> Ordering {
        COMPARED.set(COMPARED.get() + 1);
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Told {
    fn partial_cmp(&self, other: &Told) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PlainKey for Told {}

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct ToldMaps {
    hashed: PHashMap<Told, u64>,
    ordered: PBTreeMap<Told, u64>,
}

/// Comparisons that a call makes.
fn compared<R>(call: impl FnOnce() -> R) -> u64 {
    let before = COMPARED.get();
    call();
    COMPARED.get() - before
}

#[test]
fn a_key_is_looked_up_once() {
    let pool = pool();
    let maps = pool.tx(|tx| tx.root_or_zeroed::<ToldMaps>()).unwrap();
    pool.tx(|tx| {
        for number in 0..1000 {
            maps.hashed().insert(tx, &Told(2 * number), number)?;
            maps.ordered().insert(tx, &Told(2 * number), number)?;
        }
        Ok(())
    })
    .unwrap();
    macro_rules! looked_up_once {
        ($map:expr, $tx:ident) => {{
            let map = $map;
            for key in [Told(1), Told(502), Told(777), Told(1998), Told(2001)] {
                let once = compared(|| map.get($tx, &key).unwrap());
                let counted =
                    compared(|| map.entry($tx, &key).unwrap().and_modify(|n| n + 1).unwrap().or_insert(1).unwrap());
                assert_eq!(counted, once, "{key:?}, inserted or changed");
                let found = compared(|| map.get($tx, &key).unwrap());
                let removed = compared(|| match map.entry($tx, &key).unwrap() {
                    Entry::Occupied(entry) => entry.remove().unwrap(),
                    Entry::Vacant(_) => panic!("it was inserted"),
                });
                assert_eq!(removed, found, "{key:?}, removed");
                let missed = compared(|| map.get($tx, &key).unwrap());
                let inserted = compared(|| map.slot_or_insert_with($tx, &key, || 3).unwrap());
                assert_eq!(inserted, missed, "{key:?}, inserted where it was missing");
            }
        }};
    }
    pool.tx(|tx| {
        looked_up_once!(maps.ordered(), tx);
        looked_up_once!(maps.hashed(), tx);
        Ok(())
    })
    .unwrap();
    assert!(COMPARED.get() > 1000);
}
