//! Values and collections that programs look for first: options, spans of time, codes, tuples,
//! enums, sets, keys of bytes, both directions, cursors, and what drains.

use std::borrow::Borrow;
use std::num::NonZeroU32;
use std::time::Duration;

use nearpm::collections::{Key, PBTreeSet, PBytes, PHashSet, Ranked};
use nearpm::memory::VolatileMemory;
use nearpm::prelude::*;
use nearpm::typed::{PCode, PDuration, PEnum, POption, PTuple2, PTuple3};
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

#[derive(Clone, Copy, Debug, PartialEq, nearpm::PersistentEnum)]
enum Shape {
    Nothing,
    Circle { radius: u32, name: PString2 },
    Line(u8, [u16; 3]),
    Inner(Option<Ptr<PEnum<Self>>>),
}

#[derive(Clone, Copy, Debug, PartialEq, nearpm::PersistentEnum)]
enum Lamp {
    Red,
    Green,
}

const WORDS: usize = 4;

/// Its fields' type has a name of the program.
#[derive(Clone, Copy, Debug, PartialEq, nearpm::PersistentEnum)]
enum Some4 {
    Words([u64; WORDS]),
}

#[test]
fn enums_without_fields_and_with_names_of_the_program_are_kept() {
    assert_eq!((size_of::<PEnum<Lamp>>(), size_of::<PEnum<Some4>>()), (8, 8 + 8 * WORDS));
    let pool = pool();
    let lamp = pool.tx(|tx| tx.alloc(PEnum::from(Lamp::Green))).unwrap();
    let words = pool.tx(|tx| tx.alloc(PEnum::from(Some4::Words([7; WORDS])))).unwrap();
    let read = pool.read(|from| Ok::<_, Error>((from.get(lamp)?, from.get(words)?))).unwrap();
    assert_eq!((read.0.get(), read.1.get()), (Ok(Lamp::Green), Ok(Some4::Words([7; WORDS]))));
    assert_ne!(read.0.get(), Ok(Lamp::Red));
}

/// A text that can be compared, for tests: the handle alone.
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
struct PString2(PString);

impl PartialEq for PString2 {
    fn eq(&self, other: &PString2) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

#[test]
fn enums_come_back_with_their_fields_and_free_what_they_own() {
    #[derive(Clone, Copy, Persistent)]
    #[repr(C)]
    struct Shapes {
        one: PEnum<Shape>,
        all: PVec<PEnum<Shape>>,
    }
    let pool = pool();
    let root = pool.tx(|tx| tx.root_or_zeroed::<Shapes>()).unwrap();
    let before = used(&pool);
    assert_eq!(pool.read(|from| from.get(root.one())).unwrap().get(), Ok(Shape::Nothing));
    assert_eq!(size_of::<PEnum<Shape>>(), 8 + 32, "the longest variant has 28 bytes");
    pool.tx(|tx| {
        let name = PString2(PString::with(tx, "owned by a variant")?);
        let circle = Shape::Circle { radius: u32::MAX, name };
        let inner = tx.alloc(PEnum::from(Shape::Line(3, [1, 2, 0xffff])))?;
        let all = [circle, Shape::Line(255, [9, 8, 7]), Shape::Nothing, Shape::Inner(Some(inner))];
        root.all().extend(tx, &all.map(PEnum::from))?;
        let read = root.all().to_vec(tx)?;
        assert_eq!(read.iter().map(|shape| shape.get().unwrap()).collect::<Vec<_>>(), all);
        assert_eq!(tx.get(inner)?, Shape::Line(3, [1, 2, 0xffff]).into());
        tx.free(inner)
    })
    .unwrap();
    assert!(used(&pool) > before);
    pool.tx(|tx| root.all().clear(tx)).unwrap();
    assert_eq!(used(&pool), before);
    pool.tx(|tx| tx.write(Ptr::offset(root.one()) + 32, &4u64.to_le_bytes())).unwrap();
    let unknown = pool.read(|from| from.get(root.one())).unwrap();
    assert_eq!(unknown.get(), Err(4));
    pool.tx(|tx| unknown.release(tx)).unwrap();
}

#[test]
fn tuples_are_keys_and_values() {
    type Sales = PBTreeMap<PTuple2<u32, [u8; 4]>, PTuple3<u64, PString, u64>>;
    let pool = pool();
    let sales = pool.tx(|tx| tx.root_or_zeroed::<Sales>()).unwrap();
    let before = used(&pool);
    pool.tx(|tx| {
        for (shop, day) in [(2, 1), (1, 2), (1, 1)] {
            let text = PString::with(tx, "what was sold")?;
            sales.insert(tx, &(shop, [day; 4]).into(), (u64::from(shop), text, 7).into())?;
        }
        let slot = sales.slot(tx, &PTuple2(1, [2; 4]))?.unwrap();
        tx.set(slot._2(), 9)
    })
    .unwrap();
    let keys = pool.read(|from| sales.iter(from)?.map(|sale| Ok((sale?.0).get())).collect::<Result<Vec<_>, _>>());
    assert_eq!(keys.unwrap(), [(1, [1; 4]), (1, [2; 4]), (2, [1; 4])]);
    let value = pool.read(|from| sales.get(from, &PTuple2(1, [2; 4]))).unwrap().unwrap();
    assert_eq!((value.0, value.2), (1, 9));
    pool.tx(|tx| sales.clear(tx)).unwrap();
    assert!(used(&pool) <= before);
}

#[test]
fn what_is_drained_is_the_callers() {
    #[derive(Clone, Copy, Persistent)]
    #[repr(C)]
    struct All {
        row: PVec<PString>,
        queue: PQueue<PString>,
        hash: PHashMap<PString, PString>,
        tree: PBTreeMap<PString, PString>,
    }
    let pool = pool();
    let all = pool.tx(|tx| tx.root_or_zeroed::<All>()).unwrap();
    let before = used(&pool);
    let names: Vec<String> = (0..100).map(|number| format!("number {number:03}")).collect();
    pool.tx(|tx| {
        for name in &names {
            let text = PString::with(tx, name)?;
            all.row().push(tx, text)?;
            let text = PString::with(tx, name)?;
            all.queue().push(tx, text)?;
            let text = PString::with(tx, name)?;
            all.hash().insert(tx, name, text)?;
            let text = PString::with(tx, name)?;
            all.tree().insert(tx, name, text)?;
        }
        Ok(())
    })
    .unwrap();
    pool.tx(|tx| {
        let middle = all.row().drain(tx, 10..=19)?;
        assert_eq!((middle.len(), middle[3].read(tx)?), (10, names[13].clone()));
        assert_eq!(all.row().len(tx)?, 90);
        assert_eq!(all.row().get(tx, 10)?.unwrap().read(tx)?, names[20]);
        assert!(all.row().drain(tx, 90..)?.is_empty());
        let rest = all.row().drain(tx, ..)?;
        assert_eq!((rest.len(), all.row().len(tx)?), (90, 0));
        let queue = all.queue().drain(tx)?;
        let mut hash = all.hash().drain(tx)?;
        hash.sort_by(|a, b| a.0.cmp(&b.0));
        let tree = all.tree().drain(tx)?;
        assert!(all.queue().is_empty(tx)? && all.hash().is_empty(tx)? && all.tree().is_empty(tx)?);
        assert!(tree.iter().map(|(key, _)| key).eq(&names) && hash.iter().map(|(key, _)| key).eq(&names));
        let values = tree.iter().chain(&hash).map(|(_, value)| value).chain(&queue);
        for (value, name) in values.zip(names.iter().cycle()) {
            assert_eq!(&value.read(tx)?, name);
        }
        let values = tree.into_iter().chain(hash).map(|(_, value)| value).chain(queue).chain(rest).chain(middle);
        values.into_iter().try_for_each(|value| value.release(tx))?;
        all.row().clear(tx)
    })
    .unwrap();
    assert_eq!(used(&pool), before);
}

#[test]
#[should_panic(expected = "values 1 to 3 of 2")]
fn what_is_drained_is_there() {
    let pool = pool();
    let row = pool.tx(|tx| tx.root_or_zeroed::<PVec<u64>>()).unwrap();
    pool.tx(|tx| row.extend(tx, &[1, 2]).and_then(|()| row.drain(tx, 1..3)).map(drop)).unwrap();
}

/// Moves a cursor, and changes a map and a sorted row beside it.
fn walk_and_change<K: Key>(
    tx: &mut impl Store,
    map: Ptr<PBTreeMap<K, u64>>,
    owned: impl Fn(u64) -> K::Owned,
    row: &mut Vec<(u64, u64)>,
    (start, behind): (u64, bool),
    steps: &[(u8, u64)],
) -> Result<(), Error>
where
    K::Owned: Borrow<K::Query> + PartialEq + std::fmt::Debug,
{
    let mut at = row.partition_point(|&(key, _)| if behind { key <= start } else { key < start });
    let bound = owned(start);
    let bound = std::ops::Bound::Included(bound.borrow());
    let mut cursor = if behind { map.upper_bound_mut(tx, bound)? } else { map.lower_bound_mut(tx, bound)? };
    for &(step, key) in steps {
        let entry = |at: Option<usize>| at.and_then(|at| row.get(at)).map(|&(key, value)| (owned(key), value));
        let (before, after) = (entry(at.checked_sub(1)), entry(Some(at)));
        assert_eq!(cursor.peek_prev()?, before);
        assert_eq!(cursor.peek_next()?, after);
        let (is_first, is_last) = (before.is_none(), after.is_none());
        match step {
            0 => {
                assert_eq!(cursor.next()?, after);
                at += usize::from(!is_last);
            }
            1 => {
                assert_eq!(cursor.prev()?, before);
                at -= usize::from(!is_first);
            }
            2 | 3 => {
                let fits = (is_first || row[at - 1].0 < key) && (is_last || key < row[at].0);
                let new = owned(key);
                let done = match step {
                    2 => cursor.insert_before(new.borrow(), key * 2),
                    _ => cursor.insert_after(new.borrow(), key * 2),
                };
                if !fits {
                    assert!(matches!(done, Err(Error::Aborted(_))));
                    continue;
                }
                done?;
                row.insert(at, (key, key * 2));
                at += usize::from(step == 2);
            }
            4 => {
                assert_eq!(cursor.remove_next()?, after);
                row.drain(at..at + usize::from(!is_last));
            }
            5 => {
                assert_eq!(cursor.remove_prev()?, before);
                row.drain(at - usize::from(!is_first)..at);
                at -= usize::from(!is_first);
            }
            6 => {
                assert_eq!(cursor.replace_next(key)?, after.map(|(_, value)| value));
                row.get_mut(at).into_iter().for_each(|entry| entry.1 = key);
            }
            _ => {
                assert_eq!(cursor.replace_prev(key)?, before.map(|(_, value)| value));
                row[..at].last_mut().into_iter().for_each(|entry| entry.1 = key);
            }
        }
    }
    Ok(())
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

    /// The second map's keys own something, and are counted.
    #[test]
    fn entries_come_and_go_beside_a_cursor(
        keys in prop::collection::btree_set(0u64..300, 0..200), start in (0u64..310, prop::bool::ANY),
        steps in prop::collection::vec((0..8u8, 0u64..300), 0..400),
    ) {
        #[derive(Clone, Copy, Persistent)]
        #[repr(C)]
        struct Maps { plain: PBTreeMap<u64, u64>, counted: PBTreeMap<Ranked<PString>, u64> }
        let text = |key| format!("{key:03}");
        let pool = pool();
        let maps = pool.tx(|tx| tx.root_or_zeroed::<Maps>()).unwrap();
        let empty = used(&pool);
        let full: Vec<(u64, u64)> = keys.iter().map(|&key| (key, key + 1)).collect();
        let (mut plain, mut counted) = (full.clone(), full);
        pool.tx(|tx| {
            keys.iter().try_for_each(|key| {
                maps.plain().insert(tx, key, key + 1)?;
                maps.counted().insert(tx, &text(*key), key + 1).map(drop)
            })?;
            walk_and_change(tx, maps.plain(), |key| key, &mut plain, start, &steps)?;
            walk_and_change(tx, maps.counted(), text, &mut counted, start, &steps)
        }).unwrap();
        prop_assert_eq!(&plain, &counted);
        pool.read(|from| {
            let entries = maps.plain().iter(from)?.collect::<Result<Vec<_>, _>>()?;
            assert_eq!(entries, plain);
            for (place, &(key, value)) in counted.iter().enumerate() {
                assert_eq!(maps.counted().rank(from, &text(key))?, (place as u64, true));
                assert_eq!(maps.counted().entry_at(from, place as u64)?, Some((text(key), value)));
            }
            assert_eq!(maps.counted().len(from)?, counted.len() as u64);
            Ok(())
        }).unwrap();
        pool.tx(|tx| maps.plain().clear(tx).and_then(|()| maps.counted().clear(tx))).unwrap();
        prop_assert_eq!(used(&pool), empty);
    }

    /// A cursor walks as one in a sorted row does.
    #[test]
    fn a_cursor_goes_both_ways(
        keys in prop::collection::btree_set(0u64..300, 0..200), start in 0u64..310, kind in 0..6u8,
        steps in prop::collection::vec(prop::bool::ANY, 0..300),
    ) {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        #[derive(Clone, Copy, Persistent)]
        #[repr(C)]
        struct Map { map: PBTreeMap<u64, u64> }
        let pool = pool();
        let map = pool.tx(|tx| tx.root_or_zeroed::<Map>()).unwrap().map();
        pool.tx(|tx| keys.iter().try_for_each(|key| map.insert(tx, key, key + 1).map(drop))).unwrap();
        let row: Vec<u64> = keys.into_iter().collect();
        let below = row.iter().filter(|&&key| key < start).count();
        let found = usize::from(row.contains(&start));
        pool.read(|from| {
            let (mut cursor, mut at) = match kind {
                0 => (map.lower_bound(from, Included(&start))?, below),
                1 => (map.lower_bound(from, Excluded(&start))?, below + found),
                2 => (map.lower_bound(from, Unbounded)?, 0),
                3 => (map.upper_bound(from, Included(&start))?, below + found),
                4 => (map.upper_bound(from, Excluded(&start))?, below),
                _ => (map.upper_bound(from, Unbounded)?, row.len()),
            };
            let entry = |at: Option<usize>| at.and_then(|at| row.get(at)).map(|&key| (key, key + 1));
            for forwards in steps {
                assert_eq!(cursor.peek_next()?, entry(Some(at)));
                assert_eq!(cursor.peek_prev()?, entry(at.checked_sub(1)));
                if forwards {
                    assert_eq!(cursor.next()?, entry(Some(at)));
                    at = (at + 1).min(row.len());
                } else {
                    assert_eq!(cursor.prev()?, entry(at.checked_sub(1)));
                    at = at.saturating_sub(1);
                }
            }
            Ok::<_, Error>(())
        }).unwrap();
    }
}
