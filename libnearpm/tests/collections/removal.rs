//! Removals from ordered maps: nodes stay filled, and what is left is what a map of the standard
//! library has left.

use std::collections::BTreeMap;

use nearpm::collections::{Key, Ranked};
use nearpm::direct::Mode;
use nearpm::memory::VolatileMemory;
use nearpm::prelude::*;

use crate::{Root, cuts, objects, options};
use nearpm_subjects::{Counted, Op, Ordered, OrderedTexts, Subject};

/// Keys that a node has room for.
const ROOM: f64 = 14.0;

fn mixed(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 24
}

/// A pool with a map of numbers, and what must be in it.
struct Numbers<K: Key> {
    pool: DirectPool,
    map: Ptr<PBTreeMap<K, u64>>,
    model: BTreeMap<u64, u64>,
}

impl<K: Key<Query = u64, Owned = u64>> Numbers<K> {
    fn new() -> Numbers<K> {
        let pool = DirectPool::create_in(Box::new(VolatileMemory::new(16 << 20)), &options(Mode::WorkingCopy)).unwrap();
        let root = pool.tx(|tx| tx.root_or_zeroed::<Root<PBTreeMap<K, u64>>>()).unwrap();
        Numbers { pool, map: root.subject(), model: BTreeMap::new() }
    }

    fn insert(&mut self, keys: impl IntoIterator<Item = u64>) {
        let Numbers { pool, map, model } = self;
        pool.tx(|tx| {
            for key in keys {
                assert_eq!(map.insert(tx, &key, !key)?, model.insert(key, !key));
            }
            Ok(())
        })
        .unwrap();
    }

    fn remove(&mut self, keys: impl IntoIterator<Item = u64>) {
        let Numbers { pool, map, model } = self;
        pool.tx(|tx| {
            for key in keys {
                assert_eq!(map.remove(tx, &key)?, model.remove(&key));
            }
            Ok(())
        })
        .unwrap();
    }

    /// Nodes of the tree: every object but the root.
    fn nodes(&self) -> usize {
        objects(&self.pool) - 1
    }

    /// How much of the nodes is used by keys.
    fn used(&self) -> f64 {
        self.model.len() as f64 / (self.nodes() as f64 * ROOM)
    }

    fn check(&self) {
        let found: BTreeMap<u64, u64> = self.pool.read(|from| self.map.iter(from)?.collect()).unwrap();
        assert!(found == self.model, "{} in place of {}", found.len(), self.model.len());
    }
}

/// How many keys the tests have.
const KEYS: u64 = if cfg!(miri) { 300 } else { 12_000 };

/// Removes keys in an order until a twentieth is left, and looks at what nodes are used on the way.
fn thinned(order: &str, keys: &[u64]) {
    let mut numbers = Numbers::<u64>::new();
    numbers.insert((0..KEYS).map(mixed));
    let full = numbers.used();
    let mut least = full;
    for some in keys.chunks(keys.len() / 20) {
        numbers.remove(some.iter().copied());
        if numbers.model.len() as u64 >= KEYS / 20 {
            least = least.min(numbers.used());
        }
    }
    numbers.check();
    eprintln!("{order}: of nodes are used {full:.2} when all keys are there, and at least {least:.2} later");
    assert!(least > 0.4, "{order}: {least}");
    numbers.remove((0..KEYS).map(mixed));
    assert_eq!(numbers.nodes(), 0, "{order}: an empty tree has no nodes");
}

#[test]
fn nodes_stay_filled_while_keys_go() {
    let keys: Vec<u64> = (0..KEYS).map(mixed).collect();
    let sorted: Vec<u64> = keys.iter().copied().collect::<std::collections::BTreeSet<_>>().into_iter().collect();
    let part = |of: &[u64]| of[..of.len() * 19 / 20].to_vec();
    thinned("in no order", &part(&keys));
    thinned("in order", &part(&sorted));
    thinned("from the end", &part(&sorted.iter().rev().copied().collect::<Vec<_>>()));
    // Every other key, and so on: from all places alike.
    let strided: Vec<u64> = (0..7).flat_map(|first| sorted.iter().copied().skip(first).step_by(7)).collect();
    thinned("by strides", &part(&strided));
}

/// Keys that come in the order of a function, and go in other orders.
fn filled_in_order<K: Key<Query = u64, Owned = u64>>(order: &str, look: impl Fn(&Numbers<K>)) {
    let keys: Vec<u64> = (0..KEYS).map(|number| if order == "falling" { KEYS - number } else { number }).collect();
    type Order = fn(&u64) -> u64;
    let goings: [(&str, Order); 3] = [("rising", |&key| key), ("falling", |&key| !key), ("mixed", |&key| mixed(key))];
    for (going, by) in goings {
        let mut numbers = Numbers::<K>::new();
        for some in keys.chunks(500) {
            numbers.insert(some.iter().copied());
        }
        let used = numbers.used();
        assert!(used > 0.8, "{order}: {used}");
        numbers.check();
        look(&numbers);
        let mut goes = keys.clone();
        goes.sort_by_key(by);
        for some in goes.chunks(keys.len() / 5) {
            numbers.remove(some.iter().copied());
            numbers.check();
            look(&numbers);
        }
        assert_eq!(numbers.nodes(), 0, "{order}, {going}: an empty tree has no nodes");
    }
}

#[test]
fn keys_that_rise_or_fall_fill_nodes_and_go_again() {
    for order in ["rising", "falling"] {
        filled_in_order::<u64>(order, |_| ());
        filled_in_order::<Ranked<u64>>(order, places_are_right);
    }
}

/// Falling keys of each of several groups, which come in turn: nodes split at every index.
#[test]
fn keys_that_fall_in_groups_are_found_by_their_places() {
    let mut numbers = Numbers::<Ranked<u64>>::new();
    for number in (0..KEYS / 20).rev() {
        numbers.insert((0..20).map(|group| group << 32 | number));
    }
    numbers.check();
    places_are_right(&numbers);
}

#[test]
fn nodes_stay_filled_while_keys_come_and_go() {
    let mut numbers = Numbers::<u64>::new();
    numbers.insert((0..KEYS).map(mixed));
    let mut least = numbers.used();
    for round in 0..20 {
        let first = KEYS + round * (KEYS / 4);
        // As many go as come: the oldest, so that all have gone by the end more than once.
        numbers.remove((first - KEYS..first - KEYS + KEYS / 4).map(mixed));
        numbers.insert((first..first + KEYS / 4).map(mixed));
        least = least.min(numbers.used());
    }
    numbers.check();
    eprintln!("of nodes is used at least {least:.2}");
    assert!(least > 0.5, "{least}");
}

/// A key at the border between one node and two, or between two heights.
#[test]
fn a_key_that_comes_and_goes_moves_no_nodes() {
    for keys in (1..if cfg!(miri) { 30 } else { 260 }).chain([1000, 3000]) {
        let mut numbers = Numbers::<u64>::new();
        numbers.insert((0..keys).map(|key| 2 * mixed(key)));
        numbers.remove((0..keys / 3).map(|key| 2 * mixed(key)));
        for border in [0, keys / 2, keys - 1].map(|key| 2 * mixed(key) + 1) {
            let nodes = |numbers: &mut Numbers<u64>| {
                numbers.insert([border]);
                let with = numbers.nodes();
                numbers.remove([border]);
                (with, numbers.nodes())
            };
            // It may split or join once.
            nodes(&mut numbers);
            let (with, without) = nodes(&mut numbers);
            assert_eq!(with, without, "{keys} keys");
        }
    }
}

/// Inserts and removes until everything has gone several times; the tree grows to three levels in
/// between.
fn grows_and_shrinks<K: Key<Query = u64, Owned = u64>>(look: impl Fn(&Numbers<K>)) {
    let mut numbers = Numbers::<K>::new();
    let (mut number, mut next) = (0, 0);
    let most = KEYS / 6;
    for round in 0..8 {
        let target = if round % 2 == 0 { most } else { most / 40 * (round % 3) };
        while numbers.model.len() as u64 != target {
            number += 1;
            let grows = (numbers.model.len() as u64) < target;
            if grows != mixed(number).is_multiple_of(4) || numbers.model.is_empty() {
                numbers.insert([mixed(next) % (4 * most)]);
                next += 1;
            } else {
                let start = mixed(number) % (4 * most);
                let key = numbers.model.range(start..).chain(numbers.model.iter()).next().map(|(&key, _)| key);
                numbers.remove(key);
            }
            if number % 500 == 0 {
                numbers.check();
                look(&numbers);
            }
        }
    }
    numbers.check();
    look(&numbers);
    numbers.pool.tx(|tx| numbers.map.clear(tx)).unwrap();
    assert_eq!(numbers.nodes(), 0);
}

#[test]
fn a_map_that_grows_and_shrinks_has_what_one_of_the_standard_library_has() {
    grows_and_shrinks::<u64>(|_| ());
}

/// Keys are found by their places, and places by their keys.
fn places_are_right(numbers: &Numbers<Ranked<u64>>) {
    let all: Vec<(u64, u64)> = numbers.model.iter().map(|(&key, &value)| (key, value)).collect();
    numbers
        .pool
        .read(|from| {
            for (place, &(key, value)) in all.iter().enumerate().step_by(7) {
                assert_eq!(numbers.map.rank(from, &key)?, (place as u64, true));
                assert_eq!(numbers.map.entry_at(from, place as u64)?, Some((key, value)));
            }
            assert_eq!(numbers.map.entry_at(from, all.len() as u64)?, None);
            Ok(())
        })
        .unwrap();
}

#[test]
fn nodes_that_are_joined_are_counted() {
    grows_and_shrinks::<Ranked<u64>>(places_are_right);
}

/// Keys that own memory: separators are copies of them, and each is freed once.
#[test]
fn separators_of_nodes_that_are_joined_are_freed_once() {
    let pool = DirectPool::create_in(Box::new(VolatileMemory::new(16 << 20)), &options(Mode::WorkingCopy)).unwrap();
    let root = pool.tx(|tx| tx.root_or_zeroed::<Root<PBTreeMap<PString, u64>>>()).unwrap();
    let map = root.subject();
    let keys: Vec<String> = (0..KEYS / 4).map(|number| format!("{:012}", mixed(number))).collect();
    for round in 0..3 {
        pool.tx(|tx| keys.iter().zip(0..).try_for_each(|(key, value)| map.insert(tx, key, value).map(drop))).unwrap();
        let mut left: BTreeMap<&str, u64> = keys.iter().map(String::as_str).zip(0..).collect();
        for some in keys.chunks(keys.len() / 10) {
            pool.tx(|tx| {
                for key in some {
                    assert_eq!(map.remove(tx, key)?, left.remove(key.as_str()));
                }
                Ok(())
            })
            .unwrap();
            let found: Vec<(String, u64)> = pool.read(|from| map.iter(from)?.collect()).unwrap();
            assert!(found.iter().map(|(key, value)| (key.as_str(), *value)).eq(left.clone()), "round {round}");
            // A key is one object, and so is a separator, of which there is one less than of
            // children.
            assert!(
                left.is_empty() || objects(&pool) < 1 + left.len() * 14 / 10,
                "{} of {}",
                objects(&pool),
                left.len()
            );
        }
        assert_eq!(objects(&pool), 1, "only the root is left, round {round}");
    }
}

/// Removals that join leaves and inner nodes, under power cuts.
fn survive<S: Subject>(fills: u8, removes: u8) {
    for mode in [Mode::WorkingCopy, Mode::InPlace] {
        let fill = |number: u8| Op { kind: fills, key: number.wrapping_mul(101), value: u32::from(number) };
        let remove = |number: u8| Op { kind: removes, key: number.wrapping_mul(37), value: 0 };
        let filled = (0..=u8::MAX).map(fill).collect();
        let removed = (0..=u8::MAX).map(remove).collect::<Vec<_>>();
        cuts::of_transactions::<S>(mode, std::iter::once(filled).chain(removed.chunks(7).map(<[Op]>::to_vec)));
    }
}

#[test]
fn power_cuts_leave_nodes_joined_or_not() {
    survive::<Ordered>(0, 5);
    survive::<Counted>(0, 5);
    survive::<OrderedTexts>(0, 3);
}

/// A root whose map was changed within a transaction that gives up is as it was.
#[test]
fn joined_nodes_come_back_when_a_transaction_gives_up() {
    let mut numbers = Numbers::<u64>::new();
    numbers.insert((0..KEYS / 4).map(mixed));
    let nodes = numbers.nodes();
    for many in [5, 50, KEYS / 5] {
        let done = numbers.pool.tx(|tx| {
            for key in (0..many).map(mixed) {
                assert_eq!(numbers.map.remove(tx, &key)?, Some(!key));
            }
            Err::<(), _>(Error::abort("given up"))
        });
        assert!(matches!(done, Err(Error::Aborted(_))), "{done:?}");
        numbers.check();
        assert_eq!(numbers.nodes(), nodes);
    }
}
