//! Commits that log what has changed: how much that is, and that cuts find nothing missing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proptest::test_runner::{RngAlgorithm, TestRng};
use rand::RngExt;

use super::store::options;
use super::{Mode, POOL_BYTES, thorough};
use crate::direct::DirectPool;
use crate::memory::{Event, Image, TestMemory};
use crate::planted::{Fault, plant};
use crate::prelude::*;
use crate::{Durability, Statistics};

type Value = [u8; 72];

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Root {
    map: PBTreeMap<u64, Value>,
    objects: PBTreeMap<u64, u64>,
    /// An object of bytes, and how many of them count.
    object: u64,
    bytes: u64,
}

/// What a pool holds.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    map: BTreeMap<u64, Value>,
    object: Vec<u8>,
}

/// A pool as on a file.
fn pool(bytes: usize, durability: Durability) -> (TestMemory, DirectPool) {
    let memory = TestMemory::from_image(vec![0xa5; bytes]).one_domain();
    // As long as outside of tests, so that the figures are those of programs.
    let options = options(Mode::WorkingCopy).durability(durability).write_once_from(Some(2048));
    let pool = DirectPool::create_in(Box::new(memory.clone()), &options).unwrap();
    pool.tx(|tx| tx.root_or_zeroed::<Root>()).unwrap();
    pool.wait_durable().unwrap();
    (memory, pool)
}

fn root(from: &impl Load) -> Result<Ptr<Root>, Error> {
    Ok(from.root::<Root>()?.expect("it was made"))
}

fn read(pool: &DirectPool) -> Result<Model, Error> {
    pool.read(|from| {
        let root = root(from)?;
        let map = root.map().iter(from)?.collect::<Result<_, Error>>()?;
        let mut object = vec![0; from.get(root.bytes())? as usize];
        from.read(from.get(root.object())?, &mut object)?;
        Ok(Model { map, object })
    })
}

fn verify(image: Image, allowed: &[Model]) -> Result<(), String> {
    let memory = TestMemory::from_image(image);
    let pool = DirectPool::open_in(Box::new(memory), &options(Mode::WorkingCopy)).map_err(|e| e.to_string())?;
    let found = read(&pool).map_err(|e| e.to_string())?;
    if allowed.contains(&found) { Ok(()) } else { Err(format!("none of {} states", allowed.len())) }
}

/// What a transaction counts.
fn counted(pool: &DirectPool, body: impl FnOnce(&mut crate::direct::Tx<'_>) -> Result<(), Error>) -> Statistics {
    let before = pool.statistics();
    pool.tx(body).unwrap();
    pool.statistics().since(&before)
}

/// Bytes that a transaction logs which puts objects of 72 bytes into the tree of objects.
fn insert_all(pool: &DirectPool, keys: impl Iterator<Item = u64>) -> u64 {
    let counts = counted(pool, |tx| {
        let root = root(tx)?;
        for key in keys {
            let object = tx.alloc_bytes(72)?;
            tx.write(object, &[key as u8 | 1; 72])?;
            root.objects().insert(tx, &key, object)?;
        }
        Ok(())
    });
    counts.bytes_logged
}

/// Nodes of the tree have 264 bytes: 14 keys, and 14 values or 15 children. An object takes 80.
#[test]
fn what_is_as_it_was_is_not_logged() {
    let (_, pool) = pool(16 << 20, Durability::Durable);
    let rising = insert_all(&pool, 0..100);
    let one = insert_all(&pool, 100..101);
    let scattered = insert_all(&pool, (0..100).map(|number| 1000 + number * 7919 % 1009));
    let again = counted(&pool, |tx| {
        let root = root(tx)?;
        (0..101).try_for_each(|key| {
            let object = root.objects().get(tx, &key)?.expect("it was inserted");
            tx.write(object, &[key as u8 | 1; 72])?;
            root.objects().insert(tx, &key, object).map(drop)
        })
    });
    println!("bytes that are logged: 100 rising keys {rising}, one more {one}, 100 scattered {scattered}");
    assert_eq!((again.bytes_logged, again.log_entries, again.fences), (0, 0, 0), "nothing has changed");
    assert!(rising <= 8_000 + 100 * 33, "objects, and nodes that are full: {rising} bytes");
    assert!(one <= 256, "an object, a key and its value, numbers of entries, two words of tables: {one} bytes");
    assert!(scattered <= 8_000 + 100 * 50, "objects, and nodes of which a third is free: {scattered} bytes");
}

#[test]
fn objects_side_by_side_change_the_tables_together() {
    let (_, pool) = pool(16 << 20, Durability::Durable);
    let counts = counted(&pool, |tx| (0..100).try_for_each(|_| tx.alloc_bytes(80).map(drop)));
    // They are 8 000 bytes in one piece. What is left is heads, a word of a chunk, and two of its
    // bitmap.
    assert!((8_000..8_200).contains(&counts.bytes_logged), "{} bytes", counts.bytes_logged);
}

struct Operations<'p> {
    pool: &'p DirectPool,
    random: TestRng,
}

impl Operations<'_> {
    /// A few changes; the model after them.
    fn transaction(&mut self, tx: &mut crate::direct::Tx<'_>, before: &Model) -> Result<Model, Error> {
        let (root, mut model) = (root(tx)?, before.clone());
        for _ in 0..self.random.random_range(1..5) {
            let key = self.random.random_range(0..40u64);
            match self.random.random_range(0..6) {
                0..3 => {
                    let value = [self.random.random_range(0..4); 72];
                    root.map().insert(tx, &key, value)?;
                    model.map.insert(key, value);
                }
                3 => {
                    root.map().remove(tx, &key)?;
                    model.map.remove(&key);
                }
                4 => self.replace(tx, root, &mut model)?,
                _ => self.extend(tx, root, &mut model)?,
            }
        }
        Ok(model)
    }

    /// Another object of bytes.
    fn replace(&mut self, tx: &mut crate::direct::Tx<'_>, root: Ptr<Root>, model: &mut Model) -> Result<(), Error> {
        let old = tx.get(root.object())?;
        if old != 0 {
            tx.free_object(old)?;
        }
        let longest = [33, 100, 700, 3000][self.random.random_range(0..4)];
        model.object = vec![self.random.random_range(0..4); self.random.random_range(1..longest)];
        let object = tx.alloc_bytes(model.object.len() as u64)?;
        tx.write(object, &model.object)?;
        tx.set(root.object(), object)?;
        tx.set(root.bytes(), model.object.len() as u64)
    }

    /// The object of bytes gets all of its place.
    fn extend(&mut self, tx: &mut crate::direct::Tx<'_>, root: Ptr<Root>, model: &mut Model) -> Result<(), Error> {
        let object = tx.get(root.object())?;
        if object == 0 {
            return Ok(());
        }
        let place = self.pool.usable_bytes(object)?;
        let behind = vec![self.random.random_range(0..4); place as usize - model.object.len()];
        tx.write(object + model.object.len() as u64, &behind)?;
        model.object.extend(behind);
        tx.set(root.bytes(), place)
    }
}

/// Random transactions, with cuts at fences and at some other events.
fn run(durability: Durability, seed: u64) -> Result<u64, String> {
    let (memory, pool) = pool(POOL_BYTES, durability);
    let states = Arc::new(Mutex::new(vec![Model::default()]));
    let verdict: Arc<Mutex<(u64, Option<String>)>> = Arc::default();
    let (allowed, told) = (states.clone(), verdict.clone());
    memory.probe(move |number, event, survive| {
        let mut verdict = told.lock().unwrap();
        if verdict.1.is_none() && (event == Event::Fence || number % 5 == 0) {
            verdict.0 += 1;
            verdict.1 = verify(survive(number), &allowed.lock().unwrap()).err();
        }
    });
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut operations = Operations { pool: &pool, random: TestRng::from_seed(RngAlgorithm::ChaCha, &bytes) };
    for _ in 0..60 {
        let before = states.lock().unwrap().last().expect("there is always a state").clone();
        let fails = operations.random.random_range(0..4) == 0;
        let done = pool.tx(|tx| {
            let after = operations.transaction(tx, &before)?;
            if fails {
                return Err(Error::abort("as it was planned"));
            }
            states.lock().unwrap().push(after.clone());
            Ok(after)
        });
        match (done, durability) {
            (Ok(after), Durability::Durable) => *states.lock().unwrap() = vec![after],
            (Err(error), _) if !fails => return Err(error.to_string()),
            _ => {}
        }
    }
    memory.stop_probe();
    let (cuts, failure) = std::mem::take(&mut *verdict.lock().unwrap());
    failure.map_or(Ok(cuts), |why| Err(format!("seed {seed}: {why}")))
}

#[test]
fn cuts_find_nothing_missing() {
    let seeds = if thorough() { 300 } else { 8 };
    for durability in [Durability::Durable, Durability::Asynchronous] {
        let cuts: u64 = (0..seeds).map(|seed| run(durability, seed).unwrap()).sum();
        assert!(cuts > 100, "{durability:?}: {cuts} cuts");
    }
}

#[test]
fn cuts_find_that_what_lies_behind_an_object_is_forgotten() {
    plant(Some(Fault::ForgetsWhatIsBehind));
    let found = (0..40).find_map(|seed| run(Durability::Durable, seed).err());
    plant(None);
    println!("{}", found.expect("it is found"));
}
