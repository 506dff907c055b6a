//! A small key-value store over transactions, and the oracle that it is compared with.

use std::collections::BTreeMap;

use nearpm::{Error, OffsetTx, Pool};

/// Buckets of the store.
const BUCKETS: u64 = 16;

/// What the store must hold.
pub type Model = BTreeMap<u64, Vec<u8>>;

/// A change of the store.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Inserts or overwrites, with a value of so many bytes.
    Put { key: u64, bytes: usize, fill: u8 },
    /// Removes, if it is there.
    Remove { key: u64 },
    /// Changes and then gives up.
    Abort { key: u64, fill: u8 },
}

impl Operation {
    /// What it makes of a model.
    pub fn done_to(&self, model: &mut Model) {
        match *self {
            Operation::Put { key, bytes, fill } => drop(model.insert(key, vec![fill; bytes])),
            Operation::Remove { key } => drop(model.remove(&key)),
            Operation::Abort { .. } => {}
        }
    }
}

/// Random operations, the same for the same seed.
pub fn operations(seed: u64, number: usize, largest: usize) -> Vec<Operation> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = move |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    (0..number)
        .map(|i| {
            let key = next(24);
            match next(10) {
                0..6 => Operation::Put { key, bytes: 1 + next(largest as u64) as usize, fill: i as u8 },
                6..9 => Operation::Remove { key },
                _ => Operation::Abort { key, fill: i as u8 },
            }
        })
        .collect()
}

/// Makes an empty store.
pub fn create(pool: &Pool) -> Result<(), Error> {
    pool.tx(|tx| {
        let table = tx.alloc_zeroed(BUCKETS * 8)?;
        tx.set_root(table)
    })
}

/// Node: next, key, value length, value.
const HEAD: u64 = 24;

fn find(tx: &mut OffsetTx<'_>, key: u64) -> Result<(u64, u64), Error> {
    let mut link = tx.root()? + key % BUCKETS * 8;
    loop {
        let node = tx.read_u64(link)?;
        if node == 0 || tx.read_u64(node + 8)? == key {
            return Ok((link, node));
        }
        link = node;
    }
}

pub fn put(tx: &mut OffsetTx<'_>, key: u64, value: &[u8]) -> Result<(), Error> {
    let (link, old) = find(tx, key)?;
    if old != 0 && tx.read_u64(old + 16)? == value.len() as u64 {
        return tx.write(old + HEAD, value);
    }
    let node = tx.alloc(HEAD + value.len() as u64)?;
    let next = if old == 0 { 0 } else { tx.read_u64(old)? };
    tx.write_u64(node, next)?;
    tx.write_u64(node + 8, key)?;
    tx.write_u64(node + 16, value.len() as u64)?;
    tx.write(node + HEAD, value)?;
    tx.write_u64(link, node)?;
    if old != 0 { tx.free(old) } else { Ok(()) }
}

pub fn remove(tx: &mut OffsetTx<'_>, key: u64) -> Result<(), Error> {
    let (link, node) = find(tx, key)?;
    if node != 0 {
        let next = tx.read_u64(node)?;
        tx.write_u64(link, next)?;
        tx.free(node)?;
    }
    Ok(())
}

/// Does one operation on store and model.
pub fn apply(pool: &Pool, model: &mut Model, operation: &Operation) -> Result<(), Error> {
    match *operation {
        Operation::Put { key, bytes, fill } => pool.tx(|tx| put(tx, key, &vec![fill; bytes]))?,
        Operation::Remove { key } => pool.tx(|tx| remove(tx, key))?,
        Operation::Abort { key, fill } => {
            let given_up: Result<(), Error> = pool.tx(|tx| {
                remove(tx, key)?;
                put(tx, key + 1, &[fill; 100])?;
                put(tx, key, &[fill; 10])?;
                Err(Error::abort("given up"))
            });
            match given_up {
                Err(Error::Aborted(_)) => {}
                other => return other,
            }
        }
    }
    operation.done_to(model);
    Ok(())
}

/// Everything in the store.
pub fn contents(pool: &Pool) -> Result<Model, Error> {
    pool.tx(|tx| {
        let mut model = Model::new();
        let table = tx.root()?;
        if table == 0 {
            return Ok(model);
        }
        for bucket in 0..BUCKETS {
            let mut node = tx.read_u64(table + bucket * 8)?;
            while node != 0 {
                let bytes = tx.read_u64(node + 16)? as usize;
                let value = tx.read_vec(node + HEAD, bytes)?;
                assert!(model.insert(tx.read_u64(node + 8)?, value).is_none(), "a key is there twice");
                node = tx.read_u64(node)?;
            }
        }
        Ok(model)
    })
}

/// Checks that nothing leaked: every object is reachable.
pub fn check_leaks(pool: &Pool, model: &Model) -> Result<(), Error> {
    pool.check()?;
    let objects = pool.objects()?.len();
    let expected = model.len() + usize::from(pool.root()? != 0);
    assert_eq!(objects, expected, "objects that nothing refers to");
    Ok(())
}
