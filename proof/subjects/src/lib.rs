//! The collections, each with its model from the standard library.

pub mod pmdk_file;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Debug;

use nearpm::collections::{Key, Ranked};
use nearpm::prelude::*;

/// An operation: each subject reads these numbers as it likes.
#[derive(Clone, Debug)]
pub struct Op {
    pub kind: u8,
    pub key: u8,
    pub value: u32,
}

/// A collection under test.
pub trait Subject {
    type Stored: Persistent;
    type Model: Clone + Debug + Default + PartialEq;
    /// Does an operation on both, and compares what they give.
    fn apply<S: Store>(tx: &mut S, at: Ptr<Self::Stored>, model: &mut Self::Model, op: &Op) -> Result<(), Error>;
    /// Everything in it, read in more than one way.
    fn contents(from: &impl Load, at: Ptr<Self::Stored>) -> Result<Self::Model, Error>;
    fn clear(tx: &mut impl Store, at: Ptr<Self::Stored>) -> Result<(), Error>;
}

fn text(number: u8) -> String {
    // Of many lengths, and not all ASCII.
    "äb".repeat(usize::from(number % 9)) + &number.to_string()
}

pub struct Numbers;

impl Subject for Numbers {
    type Stored = PVec<u32>;
    type Model = Vec<u32>;

    fn apply<S: Store>(tx: &mut S, at: Ptr<PVec<u32>>, model: &mut Vec<u32>, op: &Op) -> Result<(), Error> {
        let (index, length) = (usize::from(op.key) % (model.len() + 1), model.len());
        match op.kind % 12 {
            0..3 => {
                at.push(tx, op.value)?;
                model.push(op.value);
            }
            3 => assert_eq!(at.pop(tx)?, model.pop()),
            4 => {
                at.insert(tx, index as u64, op.value)?;
                model.insert(index, op.value);
            }
            5 => assert_eq!(at.remove(tx, index as u64)?, (index < length).then(|| model.remove(index))),
            6 => assert_eq!(at.swap_remove(tx, index as u64)?, (index < length).then(|| model.swap_remove(index))),
            7 => {
                let old = model.get_mut(index).map(|value| std::mem::replace(value, op.value));
                assert_eq!(at.set(tx, index as u64, op.value)?, old);
            }
            8 => {
                let more = vec![op.value; usize::from(op.key % 40)];
                at.extend(tx, &more)?;
                model.extend(more);
            }
            9 => {
                at.truncate(tx, index as u64)?;
                model.truncate(index);
            }
            10 => assert_eq!(at.get(tx, index as u64)?, model.get(index).copied()),
            _ if op.key < 20 => {
                at.clear(tx)?;
                model.clear();
            }
            _ => assert_eq!(at.is_empty(tx)?, model.is_empty()),
        }
        Ok(())
    }

    fn contents(from: &impl Load, at: Ptr<PVec<u32>>) -> Result<Vec<u32>, Error> {
        let values: Vec<u32> = at.iter(from)?.collect::<Result<_, _>>()?;
        assert_eq!(at.to_vec(from)?, values);
        assert_eq!(at.len(from)?, values.len() as u64);
        Ok(values)
    }

    fn clear(tx: &mut impl Store, at: Ptr<PVec<u32>>) -> Result<(), Error> {
        at.clear(tx)
    }
}

pub struct Texts;

impl Subject for Texts {
    type Stored = PVec<PString>;
    type Model = Vec<String>;

    fn apply<S: Store>(tx: &mut S, at: Ptr<PVec<PString>>, model: &mut Vec<String>, op: &Op) -> Result<(), Error> {
        let index = usize::from(op.key) % (model.len() + 1);
        match op.kind % 5 {
            0 => {
                let new = PString::with(tx, &text(op.key))?;
                at.push(tx, new)?;
                model.push(text(op.key));
            }
            1 => {
                let removed = at.remove(tx, index as u64)?;
                let known = (index < model.len()).then(|| model.remove(index));
                assert_eq!(removed.map(|text| text.read(tx)).transpose()?, known);
                removed.map_or(Ok(()), |text| text.release(tx))?;
            }
            2 => {
                if let Some(slot) = at.slot(tx, index as u64)? {
                    slot.push_str(tx, &text(op.key))?;
                    model[index].push_str(&text(op.key));
                    assert!(slot.is(tx, &model[index])?);
                }
            }
            3 => {
                at.truncate(tx, index as u64)?;
                model.truncate(index);
            }
            _ => {
                if let Some(slot) = at.slot(tx, index as u64)? {
                    slot.set(tx, &text(op.key))?;
                    model[index] = text(op.key);
                }
            }
        }
        Ok(())
    }

    fn contents(from: &impl Load, at: Ptr<PVec<PString>>) -> Result<Vec<String>, Error> {
        at.iter(from)?.map(|text| text?.read(from)).collect()
    }

    fn clear(tx: &mut impl Store, at: Ptr<PVec<PString>>) -> Result<(), Error> {
        at.clear(tx)
    }
}

pub struct Text;

impl Subject for Text {
    type Stored = PString;
    type Model = String;

    fn apply<S: Store>(tx: &mut S, at: Ptr<PString>, model: &mut String, op: &Op) -> Result<(), Error> {
        match op.kind % 4 {
            0 | 1 => {
                at.push_str(tx, &text(op.key))?;
                model.push_str(&text(op.key));
            }
            2 => {
                at.set(tx, &text(op.key))?;
                *model = text(op.key);
            }
            _ => {
                assert!(at.is(tx, model)? && !at.is(tx, "another")?);
                if op.key < 40 {
                    at.clear(tx)?;
                    model.clear();
                }
            }
        }
        Ok(())
    }

    fn contents(from: &impl Load, at: Ptr<PString>) -> Result<String, Error> {
        let read = at.read(from)?;
        assert_eq!((at.len(from)?, at.is_empty(from)?), (read.len() as u64, read.is_empty()));
        Ok(read)
    }

    fn clear(tx: &mut impl Store, at: Ptr<PString>) -> Result<(), Error> {
        at.clear(tx)
    }
}

/// A key of few bytes and a value that leaves a gap in front of it.
pub struct Table;

impl Subject for Table {
    type Stored = PHashMap<u8, u64>;
    type Model = HashMap<u8, u64>;

    fn apply<S: Store>(tx: &mut S, at: Ptr<Self::Stored>, model: &mut Self::Model, op: &Op) -> Result<(), Error> {
        let value = u64::from(op.value) << 20;
        match op.kind % 8 {
            0..4 => assert_eq!(at.insert(tx, &op.key, value)?, model.insert(op.key, value)),
            4 | 5 => assert_eq!(at.remove(tx, &op.key)?, model.remove(&op.key)),
            6 => assert_eq!(at.get(tx, &op.key)?, model.get(&op.key).copied()),
            _ => {
                if let Some(slot) = at.slot(tx, &op.key)? {
                    tx.update(slot, |value| value + 1)?;
                    *model.get_mut(&op.key).expect("the key is there") += 1;
                }
            }
        }
        Ok(())
    }

    fn contents(from: &impl Load, at: Ptr<Self::Stored>) -> Result<Self::Model, Error> {
        let all: HashMap<u8, u64> = at.iter(from)?.collect::<Result<_, _>>()?;
        assert_eq!(at.len(from)?, all.len() as u64);
        for key in 0..=u8::MAX {
            assert_eq!(at.get(from, &key)?, all.get(&key).copied());
        }
        Ok(all)
    }

    fn clear(tx: &mut impl Store, at: Ptr<Self::Stored>) -> Result<(), Error> {
        at.clear(tx)
    }
}

/// Keys and values that own memory.
pub struct TextTable;

impl Subject for TextTable {
    type Stored = PHashMap<PString, PVec<u8>>;
    type Model = HashMap<String, Vec<u8>>;

    fn apply<S: Store>(tx: &mut S, at: Ptr<Self::Stored>, model: &mut Self::Model, op: &Op) -> Result<(), Error> {
        let key = text(op.key);
        match op.kind % 4 {
            0 | 1 => {
                let value = PVec::with(tx, &op.value.to_le_bytes())?;
                if let Some(old) = at.insert(tx, &key, value)? {
                    old.release(tx)?;
                }
                model.insert(key, op.value.to_le_bytes().to_vec());
            }
            2 => {
                let removed = at.remove(tx, &key)?;
                assert_eq!(removed.map(|value| value.read(tx)).transpose()?, model.remove(&key));
                removed.map_or(Ok(()), |value| value.release(tx))?;
            }
            _ => {
                if let Some(slot) = at.slot(tx, &key)? {
                    slot.push(tx, op.key)?;
                    model.get_mut(&key).expect("the key is there").push(op.key);
                }
            }
        }
        Ok(())
    }

    fn contents(from: &impl Load, at: Ptr<Self::Stored>) -> Result<Self::Model, Error> {
        at.iter(from)?.map(|entry| entry.and_then(|(key, value)| Ok((key, value.read(from)?)))).collect()
    }

    fn clear(tx: &mut impl Store, at: Ptr<Self::Stored>) -> Result<(), Error> {
        at.clear(tx)
    }
}

pub struct Ordered<K = i16>(std::marker::PhantomData<K>);

impl<K: Key<Query = i16, Owned = i16>> Subject for Ordered<K> {
    type Stored = PBTreeMap<K, u32>;
    type Model = BTreeMap<i16, u32>;

    fn apply<S: Store>(tx: &mut S, at: Ptr<Self::Stored>, model: &mut Self::Model, op: &Op) -> Result<(), Error> {
        let key = i16::from(op.key) - 100;
        match op.kind % 10 {
            0..3 => assert_eq!(at.insert(tx, &key, op.value)?, model.insert(key, op.value)),
            // Runs of keys, so that leaves split and empty.
            3 => {
                for key in key..key + 30 {
                    assert_eq!(at.insert(tx, &key, op.value)?, model.insert(key, op.value));
                }
            }
            4 => {
                for key in key..key + 40 {
                    assert_eq!(at.remove(tx, &key)?, model.remove(&key));
                }
            }
            5 | 6 => assert_eq!(at.remove(tx, &key)?, model.remove(&key)),
            7 => assert_eq!(at.get(tx, &key)?, model.get(&key).copied()),
            _ => {
                let to = key + (op.value % 60) as i16;
                let found: Vec<_> = at.range(tx, key..to)?.collect::<Result<_, _>>()?;
                assert_eq!(found, model.range(key..to).map(|(&k, &v)| (k, v)).collect::<Vec<_>>());
                let found: Vec<_> = at.range(tx, ..=to)?.collect::<Result<_, _>>()?;
                assert_eq!(found, model.range(..=to).map(|(&k, &v)| (k, v)).collect::<Vec<_>>());
            }
        }
        Ok(())
    }

    fn contents(from: &impl Load, at: Ptr<Self::Stored>) -> Result<Self::Model, Error> {
        let rows: Vec<(i16, u32)> = at.iter(from)?.collect::<Result<_, _>>()?;
        assert!(rows.is_sorted(), "{rows:?}");
        assert_eq!(at.len(from)?, rows.len() as u64);
        assert_eq!((at.first(from)?, at.last(from)?), (rows.first().copied(), rows.last().copied()));
        Ok(rows.into_iter().collect())
    }

    fn clear(tx: &mut impl Store, at: Ptr<Self::Stored>) -> Result<(), Error> {
        at.clear(tx)
    }
}

/// An ordered map that knows the places of its entries.
pub struct Counted;

impl Subject for Counted {
    type Stored = PBTreeMap<Ranked<i16>, u32>;
    type Model = BTreeMap<i16, u32>;

    fn apply<S: Store>(tx: &mut S, at: Ptr<Self::Stored>, model: &mut Self::Model, op: &Op) -> Result<(), Error> {
        Ordered::<Ranked<i16>>::apply(tx, at, model, op)
    }

    fn contents(from: &impl Load, at: Ptr<Self::Stored>) -> Result<Self::Model, Error> {
        let model = Ordered::<Ranked<i16>>::contents(from, at)?;
        for (place, (&key, &value)) in model.iter().enumerate() {
            assert_eq!(at.rank(from, &key)?, (place as u64, true));
            assert_eq!(at.entry_at(from, place as u64)?, Some((key, value)));
        }
        assert_eq!(at.entry_at(from, model.len() as u64)?, None);
        for key in -110..200 {
            let before = model.range(..key).count() as u64;
            assert_eq!(at.rank(from, &key)?, (before, model.contains_key(&key)));
        }
        let middle = model.len() / 2;
        let behind: Vec<_> = at.iter_from(from, middle as u64)?.collect::<Result<_, _>>()?;
        assert_eq!(behind, model.iter().skip(middle).map(|(&k, &v)| (k, v)).collect::<Vec<_>>());
        Ok(model)
    }

    fn clear(tx: &mut impl Store, at: Ptr<Self::Stored>) -> Result<(), Error> {
        at.clear(tx)
    }
}

/// Separators of inner nodes are texts of their own.
pub struct OrderedTexts;

impl Subject for OrderedTexts {
    type Stored = PBTreeMap<PString, PString>;
    type Model = BTreeMap<String, String>;

    fn apply<S: Store>(tx: &mut S, at: Ptr<Self::Stored>, model: &mut Self::Model, op: &Op) -> Result<(), Error> {
        let key = text(op.key);
        match op.kind % 5 {
            0..3 => {
                let value = PString::with(tx, &op.value.to_string())?;
                if let Some(old) = at.insert(tx, &key, value)? {
                    old.release(tx)?;
                }
                model.insert(key, op.value.to_string());
            }
            3 => {
                for key in (0..5).map(|more| text(op.key.wrapping_add(more))) {
                    let removed = at.remove(tx, &key)?;
                    assert_eq!(removed.map(|value| value.read(tx)).transpose()?, model.remove(&key));
                    removed.map_or(Ok(()), |value| value.release(tx))?;
                }
            }
            _ => {
                use std::ops::Bound::{Excluded, Unbounded};
                let bounds = (Excluded(key.as_str()), Unbounded);
                let found: Vec<String> =
                    at.range(tx, bounds)?.map(|entry| Ok(entry?.0)).collect::<Result<_, Error>>()?;
                assert_eq!(found, model.range::<str, _>(bounds).map(|(key, _)| key.clone()).collect::<Vec<_>>());
            }
        }
        Ok(())
    }

    fn contents(from: &impl Load, at: Ptr<Self::Stored>) -> Result<Self::Model, Error> {
        at.iter(from)?.map(|entry| entry.and_then(|(key, value)| Ok((key, value.read(from)?)))).collect()
    }

    fn clear(tx: &mut impl Store, at: Ptr<Self::Stored>) -> Result<(), Error> {
        at.clear(tx)
    }
}

/// Values so long that few are in a block.
pub struct Queue;

type Parcel = [u64; 30];

impl Subject for Queue {
    type Stored = PQueue<Parcel>;
    type Model = VecDeque<Parcel>;

    fn apply<S: Store>(tx: &mut S, at: Ptr<Self::Stored>, model: &mut Self::Model, op: &Op) -> Result<(), Error> {
        match op.kind % 5 {
            0..2 => {
                at.push(tx, [op.value.into(); 30])?;
                model.push_back([op.value.into(); 30]);
            }
            2 | 3 => assert_eq!(at.pop(tx)?, model.pop_front()),
            _ => assert_eq!(at.front_value(tx)?, model.front().copied()),
        }
        Ok(())
    }

    fn contents(from: &impl Load, at: Ptr<Self::Stored>) -> Result<Self::Model, Error> {
        let values: VecDeque<_> = at.iter(from)?.collect::<Result<_, _>>()?;
        assert_eq!((at.len(from)?, at.is_empty(from)?), (values.len() as u64, values.is_empty()));
        Ok(values)
    }

    fn clear(tx: &mut impl Store, at: Ptr<Self::Stored>) -> Result<(), Error> {
        at.clear(tx)
    }
}
