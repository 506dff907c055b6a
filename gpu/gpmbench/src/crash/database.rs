//! gpDB: an insertion and an update behind others.

use anyhow::{Result, ensure};
use nearpm_gpu::{Module, PmRegion};

use super::Scenario;
use crate::db::{Model, Sizes, Table};

/// Transactions that are crashed: an update, then an insertion.
pub struct Database {
    /// Sizes of the table.
    pub sizes: Sizes,
    /// Rows of each insertion.
    pub rows: u64,
    /// `db.cu`, or what was made of it.
    pub module: Module,
}

/// Group and change of the update before, and of the one that is crashed: of the same rows.
const BEFORE: (u32, u32) = (1, 5);
const CRASHED: (u32, u32) = (1, 9);

impl Database {
    fn insert(&self, table: &Table) -> Result<()> {
        table.insert(&table.incoming(self.rows)?)
    }

    /// What may be there: before the work, behind its first transaction, behind both.
    fn models(&self) -> [Model; 3] {
        let mut before = Model::new(self.sizes.groups);
        before.insert(self.rows);
        before.update(BEFORE.0, BEFORE.1);
        let mut between = before.clone();
        between.update(CRASHED.0, CRASHED.1);
        let mut after = between.clone();
        after.insert(self.rows);
        [before, between, after]
    }
}

impl Scenario for Database {
    fn region_bytes(&self) -> u64 {
        self.sizes.region_bytes()
    }

    fn prepare(&self, region: &PmRegion) -> Result<()> {
        let table = Table::create(region, self.sizes, &self.module)?;
        self.insert(&table)?;
        ensure!(table.update(BEFORE.0, BEFORE.1)? > 0, "no row is in group {}", BEFORE.0);
        Ok(())
    }

    fn work(&self, region: &PmRegion) -> Result<()> {
        let (table, _) = Table::open(region, self.sizes, &self.module)?;
        table.update(CRASHED.0, CRASHED.1)?;
        self.insert(&table)
    }

    fn recover(&self, region: &PmRegion) -> Result<()> {
        Table::open(region, self.sizes, &self.module).map(drop)
    }

    fn check(&self, region: &PmRegion, finished: bool) -> Result<()> {
        let (table, _) = Table::open(region, self.sizes, &self.module)?;
        let (offset, bytes) = table.place();
        let (count, bytes) = (table.len()?, region.read_vec(offset, bytes as usize)?);
        let [before, between, after] = self.models().map(|model| model.equals(count, &bytes));
        ensure!(before || between || after, "the table of {count} rows is that of no transaction");
        ensure!(after || !finished, "a transaction that was committed is gone");
        Ok(())
    }
}
