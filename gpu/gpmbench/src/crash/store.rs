//! gpKVS: a batch of SETs behind others.

use anyhow::{Result, ensure};
use nearpm_gpu::{Module, PmRegion};

use super::Scenario;
use crate::kvs::{Kvs, Model, Sets, batch_of, region_bytes};

/// A batch that is crashed.
pub struct Store {
    /// Sets of the table, as a power of two.
    pub set_bits: u32,
    /// SETs of a batch.
    pub batch: usize,
    /// Keys are below it: few give duplicates, and sets that overflow.
    pub keys: u64,
    /// `kvs.cu`, or what was made of it.
    pub module: Module,
}

impl Store {
    fn pairs(&self, number: u64) -> Vec<(u64, u64)> {
        batch_of(number, self.batch, self.keys)
    }
}

impl Scenario for Store {
    fn region_bytes(&self) -> u64 {
        region_bytes(self.set_bits, self.batch as u32).next_multiple_of(4096)
    }

    fn prepare(&self, region: &PmRegion) -> Result<()> {
        let kvs = Kvs::create(region, self.set_bits, self.batch as u32, &self.module)?;
        kvs.set(&Sets::new(region.device(), &self.pairs(1))?)?;
        Ok(())
    }

    fn work(&self, region: &PmRegion) -> Result<()> {
        let (kvs, _) = Kvs::open(region, &self.module)?;
        kvs.set(&Sets::new(region.device(), &self.pairs(2))?)?;
        Ok(())
    }

    fn recover(&self, region: &PmRegion) -> Result<()> {
        Kvs::open(region, &self.module).map(drop)
    }

    fn check(&self, region: &PmRegion, finished: bool) -> Result<()> {
        let (kvs, _) = Kvs::open(region, &self.module)?;
        let (offset, bytes) = kvs.table();
        let table = region.read_vec(offset, bytes as usize)?;
        let mut model = Model::new(self.set_bits);
        model.apply(&self.pairs(1));
        let old = model.equals(&table);
        model.apply(&self.pairs(2));
        let new = model.equals(&table);
        ensure!(old || new, "the table is neither that before the batch nor that after it");
        ensure!(new || !finished, "a batch that was committed is gone");
        // What is read is what is there.
        let keys: Vec<u64> = self.pairs(2).iter().map(|pair| pair.0).collect();
        let mut there = Model::new(self.set_bits);
        (1..=if new { 2 } else { 1 }).for_each(|batch| there.apply(&self.pairs(batch)));
        let expected: Vec<u64> = keys.iter().map(|&key| there.get(key).unwrap_or(0)).collect();
        ensure!(kvs.get(&keys)? == expected, "a GET does not give what is there");
        Ok(())
    }
}
