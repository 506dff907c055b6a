//! Values and collections that programs look for first: options, spans of time, codes, sets, keys of bytes, both directions.

use std::num::NonZeroU32;
use std::time::Duration;

use nearpm::collections::{PBTreeSet, PBytes, PHashSet};
use nearpm::memory::VolatileMemory;
use nearpm::prelude::*;
use nearpm::typed::{PCode, PDuration, POption};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Light {
    Red,
    Green,
}

impl From<Light> for u64 {
    fn from(light: Light) -> u64 {
        light as u64
    }
}

impl TryFrom<u64> for Light {
    type Error = u64;
    fn try_from(code: u64) -> Result<Light, u64> {
        [Light::Red, Light::Green].get(code as usize).copied().ok_or(code)
    }
}

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Root {
    room: POption<u64>,
    stay: PDuration,
    light: PCode<Light>,
    number: Option<NonZeroU32>,
    rest: u32,
    words: PHashSet<PString>,
    ages: PBTreeSet<u32>,
    names: PBTreeMap<PBytes, u64>,
    text: POption<PString>,
    counts: PHashMap<u64, u64>,
}

fn pool() -> DirectPool {
    DirectPool::create_in(Box::new(VolatileMemory::new(1 << 20)), &Options::default()).unwrap()
}

fn used(pool: &DirectPool) -> u64 {
    pool.heap_state().used_bytes
}

#[test]
fn values_come_back_as_they_were() {
    let pool = pool();
    let root = pool.tx(|tx| tx.root_or_zeroed::<Root>()).unwrap();
    let fresh = pool.read(|from| from.get(root)).unwrap();
    assert_eq!((fresh.room.get(), fresh.stay.get(), fresh.light.get()), (None, Duration::ZERO, Ok(Light::Red)));
    assert_eq!(fresh.number, None);
    pool.tx(|tx| {
        tx.set(root.room(), Some(7).into())?;
        tx.set(root.stay(), Duration::new(3, 999_999_999).into())?;
        tx.set(root.light(), Light::Green.into())?;
        tx.set(root.number(), NonZeroU32::new(9))
    })
    .unwrap();
    let value = pool.read(|from| from.get(root)).unwrap();
    assert_eq!((value.room.get(), value.stay.get()), (Some(7), Duration::new(3, 999_999_999)));
    assert_eq!((value.light.get(), value.number), (Ok(Light::Green), NonZeroU32::new(9)));
    assert_ne!(value.room, POption::default());
    pool.tx(|tx| tx.write(Ptr::offset(root.light()), &77u64.to_le_bytes())).unwrap();
    assert_eq!(pool.read(|from| from.get(root.light())).unwrap().get(), Err(77));
}

#[test]
fn an_option_frees_what_it_owns() {
    let pool = pool();
    let root = pool.tx(|tx| tx.root_or_zeroed::<Root>()).unwrap();
    let before = used(&pool);
    pool.tx(|tx| {
        let text = PString::with(tx, "owned by an option")?;
        tx.set(root.text(), Some(text).into())
    })
    .unwrap();
    assert!(used(&pool) > before);
    pool.tx(|tx| tx.replace(root.text(), None.into())?.release(tx)).unwrap();
    assert_eq!(used(&pool), before);
}

#[test]
fn sets_hold_each_key_once_and_give_everything_back() {
    let pool = pool();
    let root = pool.tx(|tx| tx.root_or_zeroed::<Root>()).unwrap();
    let before = used(&pool);
    pool.tx(|tx| {
        for word in ["one", "two", "one", "three"] {
            assert_eq!(root.words().insert(tx, word)?, !(word == "one" && root.words().len(tx)? == 2));
        }
        for age in [30, 10, 20, 10] {
            root.ages().insert(tx, &age)?;
        }
        Ok::<_, Error>(())
    })
    .unwrap();
    pool.read(|from| {
        assert!(root.words().contains(from, "two")? && !root.words().contains(from, "four")?);
        let mut words = root.words().iter(from)?.collect::<Result<Vec<_>, _>>()?;
        words.sort();
        assert_eq!(words, ["one", "three", "two"]);
        assert_eq!(root.ages().iter(from)?.collect::<Result<Vec<_>, _>>()?, [10, 20, 30]);
        assert_eq!(root.ages().range_rev(from, ..30)?.collect::<Result<Vec<_>, _>>()?, [20, 10]);
        Ok::<_, Error>(())
    })
    .unwrap();
    pool.tx(|tx| {
        assert!(root.ages().remove(tx, &20)? && !root.ages().remove(tx, &20)?);
        root.words().clear(tx)?;
        root.ages().clear(tx)
    })
    .unwrap();
    assert_eq!(used(&pool), before);
}

#[test]
fn keys_of_bytes_and_first_values() {
    let pool = pool();
    let root = pool.tx(|tx| tx.root_or_zeroed::<Root>()).unwrap();
    let keys: [&[u8]; 4] = [b"", b"\0", b"a\0b", b"\xff\xfe"];
    pool.tx(|tx| {
        for (round, key) in keys.iter().cycle().take(9).enumerate() {
            let slot = root.names().slot_or_insert_with(tx, key, || 100)?;
            tx.update(slot, |count| count + 1)?;
            let slot = root.counts().slot_or_insert_with(tx, &(round as u64 % 3), || 5)?;
            tx.update(slot, |count| count + 1)?;
        }
        Ok::<_, Error>(())
    })
    .unwrap();
    pool.read(|from| {
        let entries = root.names().iter(from)?.collect::<Result<Vec<_>, _>>()?;
        let expected = [(keys[0], 103), (keys[1], 102), (keys[2], 102), (keys[3], 102)];
        assert_eq!(entries, expected.map(|(key, count)| (key.to_vec(), count)));
        assert_eq!(root.counts().get(from, &2)?, Some(8));
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn a_root_of_a_former_type_becomes_one_of_the_new_type_or_stays() {
    #[derive(Clone, Copy, Persistent)]
    #[repr(C)]
    struct Old {
        count: u64,
        names: PVec<u64>,
    }
    #[derive(Clone, Copy, Persistent)]
    #[repr(C)]
    struct New {
        names: PVec<u64>,
        count: u64,
        more: u64,
    }
    let pool = pool();
    let old = pool.tx(|tx| tx.root_or_zeroed::<Old>()).unwrap();
    pool.tx(|tx| (0..9).try_for_each(|n| old.names().push(tx, n))).unwrap();
    let before = used(&pool);
    let refused = pool.tx(|tx| tx.migrate_root(|_, _: Old| Err::<New, _>(Error::abort("not today"))));
    assert!(refused.is_err());
    assert_eq!(pool.read(|from| from.root::<Old>()).unwrap(), Some(old));
    let new = pool.tx(|tx| tx.migrate_root(|_, old: Old| Ok(New { names: old.names, count: old.count, more: 1 })));
    let new = new.unwrap();
    let read = pool.read(|from| Ok::<_, Error>((new.names().to_vec(from)?, from.get(new.more())?)));
    assert_eq!(read.unwrap(), ((0..9).collect(), 1));
    assert!(used(&pool) <= before + 32, "the old root is freed");
    let again = pool.tx(|tx| tx.migrate_root(|_, _: Old| panic!("it is new already")));
    assert_eq!(again.unwrap(), new);
    let other = pool.tx(|tx| tx.migrate_root(|_, _: Root| Ok([0u64; 2])));
    assert!(matches!(other, Err(Error::RootType { .. })));
}

proptest! {
    #[test]
    fn a_range_backwards_is_the_range_turned_round(
        keys in prop::collection::btree_set(0u64..2000, 0..400), start in 0u64..2100, length in 0u64..2100, ways in 0..4u8,
    ) {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        #[derive(Clone, Copy, Persistent)]
        #[repr(C)]
        struct Map { map: PBTreeMap<u64, u64> }
        let pool = pool();
        let map = pool.tx(|tx| tx.root_or_zeroed::<Map>()).unwrap().map();
        pool.tx(|tx| keys.iter().try_for_each(|key| map.insert(tx, key, key + 1).map(drop))).unwrap();
        let end = start + length;
        let bounds = match ways {
            0 => (Included(start), Excluded(end)),
            1 => (Excluded(start), Included(end)),
            2 => (Unbounded, Included(end)),
            _ => (Included(start), Unbounded),
        };
        let (there, back) = pool.read(|from| {
            let there = map.range(from, bounds)?.collect::<Result<Vec<_>, _>>()?;
            let back = map.range_rev(from, bounds)?.collect::<Result<Vec<_>, _>>()?;
            Ok::<_, Error>((there, back))
        }).unwrap();
        prop_assert!(back.iter().rev().eq(there.iter()));
        let expected = keys.iter().filter(|&&key| std::ops::RangeBounds::contains(&bounds, &key));
        prop_assert!(expected.map(|&key| (key, key + 1)).eq(there));
    }
}
