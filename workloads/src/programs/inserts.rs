//! A random key and its value into a map, one a transaction (PMDK's examples).

use std::marker::PhantomData;

use nearpm::Error;

use super::{Rows, Setup, Workload};
use crate::map::{Fault, Map};
use crate::ops::{self, Mix, Op};
use crate::store::{Store, Transaction};

/// Insertions into a map of the kind `M`.
pub struct Inserts<M> {
    ops: Vec<Op>,
    value_bytes: usize,
    map: PhantomData<fn() -> M>,
}

impl<M: Map> Inserts<M> {
    /// Of a map that keeps so many bytes of each value.
    pub fn new(setup: Setup, value_bytes: usize) -> Self {
        Inserts { ops: ops::generate(Mix::Inserts, setup.seed, setup.count), value_bytes, map: PhantomData }
    }
}

impl<M: Map> Workload for Inserts<M> {
    fn count(&self) -> usize {
        self.ops.len()
    }

    fn bytes(&self) -> u64 {
        (64 << 10) + 256 * self.ops.len() as u64
    }

    fn create(&self, store: &dyn Store) -> Result<(), Error> {
        store.transaction(&mut |tx| {
            let map = M::create(tx)?;
            tx.set_root(map.offset())
        })
    }

    fn initial(&self) -> Rows {
        Rows::new()
    }

    fn apply(&self, tx: &mut dyn Transaction, root: u64, number: usize) -> Result<(), Error> {
        let Op::Insert(key, value) = &self.ops[number] else { unreachable!("there are insertions only") };
        M::at(root).insert(tx, *key, value).map(drop)
    }

    fn model(&self, rows: &mut Rows, number: usize) {
        let Op::Insert(key, value) = &self.ops[number] else { unreachable!("there are insertions only") };
        rows.insert(*key, value[..self.value_bytes].to_vec());
    }

    fn contents(&self, tx: &mut dyn Transaction, root: u64) -> Result<Rows, Fault> {
        let contents = M::at(root).contents(tx)?;
        Ok(contents.into_iter().map(|(key, value)| (key, value[..self.value_bytes].to_vec())).collect())
    }
}
