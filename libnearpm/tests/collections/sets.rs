//! Sets against those of the standard library, and vectors of bytes.

use std::collections::BTreeSet;
use std::ops::Bound;

use nearpm::collections::{PBTreeSet, PBytes, PHashSet, Ranked};
use nearpm::direct::Mode;
use nearpm::memory::VolatileMemory;
use nearpm::prelude::*;
use proptest::prelude::*;

use crate::{objects, options};

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Sets {
    plain: PBTreeSet<u16>,
    texts: PBTreeSet<PString>,
    ranked: PBTreeSet<Ranked<u16>>,
    hashed: PHashSet<PString>,
}

fn pool() -> (DirectPool, Ptr<Sets>) {
    let pool = DirectPool::create_in(Box::new(VolatileMemory::new(4 << 20)), &options(Mode::WorkingCopy)).unwrap();
    let sets = pool.tx(|tx| tx.root_or_zeroed()).unwrap();
    (pool, sets)
}

/// A text for a number, in the same order.
fn text(number: u16) -> String {
    format!("{number:05}")
}

fn fill(tx: &mut impl Store, sets: Ptr<Sets>, numbers: &BTreeSet<u16>) -> Result<(), Error> {
    numbers.iter().try_for_each(|&number| {
        assert!(sets.plain().insert(tx, &number)? && !sets.plain().insert(tx, &number)?);
        assert!(sets.texts().insert(tx, &text(number))?);
        assert!(sets.ranked().insert(tx, &number)?);
        assert!(sets.hashed().insert(tx, &text(number))?);
        Ok(())
    })
}

/// What the sets hold, read in every way that there is.
fn check(from: &impl Load, sets: Ptr<Sets>, model: &BTreeSet<u16>) -> Result<(), Error> {
    let (plain, texts, ranked, hashed) = (sets.plain(), sets.texts(), sets.ranked(), sets.hashed());
    let all: Vec<u16> = model.iter().copied().collect();
    let all_texts: Vec<String> = all.iter().copied().map(text).collect();
    let backwards: Vec<u16> = all.iter().rev().copied().collect();
    assert_eq!(plain.len(from)?, all.len() as u64);
    assert_eq!(plain.iter(from)?.collect::<Result<Vec<_>, _>>()?, all);
    assert_eq!(plain.iter_rev(from)?.collect::<Result<Vec<_>, _>>()?, backwards);
    assert_eq!(plain.first(from)?, model.first().copied());
    assert_eq!(plain.last(from)?, model.last().copied());
    assert_eq!(texts.iter(from)?.collect::<Result<Vec<_>, _>>()?, all_texts);
    assert_eq!(texts.first(from)?, all_texts.first().cloned());
    let mut found = hashed.iter(from)?.collect::<Result<Vec<_>, _>>()?;
    found.sort_unstable();
    assert_eq!(found, all_texts);
    let middle = all.get(all.len() / 2).copied().unwrap_or(7);
    assert_eq!(
        plain.range(from, middle..)?.collect::<Result<Vec<_>, _>>()?,
        model.range(middle..).copied().collect::<Vec<_>>()
    );
    let below: Vec<u16> = model.range(..middle).rev().copied().collect();
    assert_eq!(plain.range_rev(from, ..middle)?.collect::<Result<Vec<_>, _>>()?, below);
    for bound in [Bound::Included(&middle), Bound::Excluded(&middle), Bound::Unbounded] {
        let mut cursor = plain.lower_bound(from, bound)?;
        assert_eq!(cursor.next()?.map(|(key, ())| key), model.range((bound, Bound::Unbounded)).next().copied());
        let mut cursor = plain.upper_bound(from, bound)?;
        assert_eq!(cursor.prev()?.map(|(key, ())| key), model.range((Bound::Unbounded, bound)).next_back().copied());
    }
    for (place, key) in all.iter().enumerate() {
        assert_eq!(ranked.rank(from, key)?, (place as u64, true));
        assert_eq!(ranked.key_at(from, place as u64)?, Some(*key));
    }
    assert_eq!(ranked.key_at(from, all.len() as u64)?, None);
    assert_eq!(ranked.iter_from(from, 3)?.collect::<Result<Vec<_>, _>>()?, all.get(3..).unwrap_or_default());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 24 }, ..ProptestConfig::default() })]
    #[test]
    fn sets_give_what_those_of_the_standard_library_give(
        numbers in prop::collection::btree_set(0u16..2000, 0..300),
        modulus in 1u16..5,
        start in 0u16..2000,
    ) {
        let (pool, sets) = pool();
        let mut model = numbers;
        pool.tx(|tx| {
            fill(tx, sets, &model)?;
            check(tx, sets, &model)
        }).unwrap();
        pool.tx(|tx| {
            let keep = |number: u16| number.is_multiple_of(modulus);
            model.retain(|&number| keep(number));
            sets.plain().retain(tx, |from, &key| {
                assert!(sets.plain().contains(from, &key)?, "what is read from has the key");
                Ok(keep(key))
            })?;
            sets.ranked().retain(tx, |_, &key| Ok(keep(key)))?;
            sets.texts().retain(tx, |_, key| Ok(keep(key.parse().unwrap())))?;
            sets.hashed().retain(tx, |_, key| Ok(keep(key.parse().unwrap())))?;
            check(tx, sets, &model)
        }).unwrap();
        // Every other key from a place on goes by a cursor.
        pool.tx(|tx| {
            let mut cursor = sets.plain().lower_bound_mut(tx, Bound::Included(&start))?;
            let mut gone = Vec::new();
            while let Some((key, ())) = cursor.remove_next()? {
                gone.push(key);
                cursor.next()?;
            }
            let expected: Vec<u16> = model.range(start..).copied().step_by(2).collect();
            assert_eq!(gone, expected);
            // They come again at the end of the map, the greatest first.
            for key in gone.iter().rev() {
                let mut cursor = sets.plain().upper_bound_mut(tx, Bound::Excluded(key))?;
                cursor.insert_after(key, ())?;
                assert_eq!(cursor.next()?, Some((*key, ())));
            }
            check(tx, sets, &model)
        }).unwrap();
        pool.tx(|tx| {
            assert_eq!(sets.plain().drain(tx)?, model.iter().copied().collect::<Vec<_>>());
            assert_eq!(sets.ranked().drain(tx)?, model.iter().copied().collect::<Vec<_>>());
            assert_eq!(sets.texts().drain(tx)?, model.iter().copied().map(text).collect::<Vec<_>>());
            assert_eq!(sets.hashed().drain(tx)?.len(), model.len());
            assert!(sets.hashed().is_empty(tx)?);
            check(tx, sets, &BTreeSet::new())
        }).unwrap();
        assert_eq!(objects(&pool), 1, "only the root is left");
    }
}

/// What the function says when it fails comes back, and nothing has changed.
#[test]
fn a_function_that_fails_takes_nothing_out() {
    let (pool, sets) = pool();
    let model: BTreeSet<u16> = (0..100).collect();
    pool.tx(|tx| fill(tx, sets, &model)).unwrap();
    pool.tx(|tx| {
        let mut seen = 0;
        let done = sets.texts().retain(tx, |_, _| {
            seen += 1;
            if seen == 50 { Err(Error::abort("half way")) } else { Ok(false) }
        });
        assert!(matches!(done, Err(Error::Aborted(_))), "{done:?}");
        // The transaction may go on, and commits.
        check(tx, sets, &model)
    })
    .unwrap();
    pool.read(|from| check(from, sets, &model)).unwrap();
}

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Maps {
    ordered: PBTreeMap<u64, PString>,
    hashed: PHashMap<PString, PVec<u64>>,
    bytes: PBytes,
}

/// What values own that are not kept is freed, and what stays is untouched.
#[test]
fn values_that_are_not_kept_are_freed() {
    let pool = DirectPool::create_in(Box::new(VolatileMemory::new(4 << 20)), &options(Mode::WorkingCopy)).unwrap();
    let maps = pool.tx(|tx| tx.root_or_zeroed::<Maps>()).unwrap();
    pool.tx(|tx| {
        for number in 0..200 {
            let value = PString::with(tx, &format!("value {number}"))?;
            maps.ordered().insert(tx, &number, value)?;
            maps.hashed().entry(tx, &number.to_string())?.or_default()?.push(tx, number)?;
        }
        Ok(())
    })
    .unwrap();
    pool.tx(|tx| {
        maps.ordered().retain(tx, |from, &key, value| Ok(key >= 190 && value.read(from)? != "value 199"))?;
        maps.hashed().retain(tx, |from, _, value| Ok(value.read(from)?[0] >= 190))
    })
    .unwrap();
    pool.read(|from| {
        let kept = maps.ordered().iter(from)?.map(|entry| entry?.1.read(from)).collect::<Result<Vec<_>, Error>>()?;
        assert_eq!(kept, (190..199).map(|number| format!("value {number}")).collect::<Vec<_>>());
        assert_eq!(maps.hashed().len(from)?, 10);
        assert_eq!(maps.hashed().get(from, "195")?.unwrap().read(from)?, [195]);
        Ok::<_, Error>(())
    })
    .unwrap();
    pool.tx(|tx| {
        maps.ordered().clear(tx)?;
        maps.hashed().clear(tx)
    })
    .unwrap();
    assert_eq!(objects(&pool), 1, "only the root is left");
}

/// Bytes do all that a vector can, and a new one is empty.
#[test]
fn bytes_are_a_vector() {
    let pool = DirectPool::create_in(Box::new(VolatileMemory::new(1 << 20)), &options(Mode::WorkingCopy)).unwrap();
    let bytes = pool.tx(|tx| Ok(tx.root_or_zeroed::<Maps>()?.bytes())).unwrap();
    pool.tx(|tx| {
        bytes.set(tx, b"abc")?;
        bytes.bytes().push(tx, b'!')?;
        assert_eq!(bytes.bytes().remove(tx, 0)?, Some(b'a'));
        assert_eq!(bytes.read(tx)?, b"bc!");
        assert_eq!(bytes.bytes().len(tx)?, 3);
        bytes.bytes().clear(tx)?;
        tx.set(bytes, PBytes::new())?;
        assert_eq!(bytes.read(tx)?, b"");
        Ok(())
    })
    .unwrap();
    assert_eq!(objects(&pool), 1, "only the root is left");
}
