//! gpDB: a table of rows in PM, with transactions that insert rows or update those that a condition
//! selects.

mod model;

use anyhow::{Result, ensure};
use nearpm_gpm::{Batch, Form, Log, Order, Outcome, Shape};
use nearpm_gpu::{Argument, Buffer, Error, Launch, Module, Object, ObjectKind, PmRegion};

pub use model::{Model, updated, value_of};

/// Words of 4 bytes of a row.
pub const WORDS: u32 = 16;
/// Bytes of a row.
pub const ROW: u64 = 4 * WORDS as u64;
/// Bytes of a log entry of an update: as in `db.cu`.
const ENTRY: u64 = 12;
const THREADS: u32 = 256;
/// Blocks of kernels that go through all rows: enough for the link.
const BLOCKS: u32 = 1056;

/// Sizes of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Rows that it has room for.
    pub rows: u64,
    /// Rows that one update changes at most.
    pub updated: u32,
    /// Groups that rows are in; an update is of one.
    pub groups: u32,
    /// Partitions of the log of updates where it is a conventional one; 0 for a hierarchical one.
    pub partitions: u32,
}

impl Sizes {
    /// Bytes of a region for it.
    pub fn region_bytes(&self) -> u64 {
        let updated = u64::from(self.updated.next_multiple_of(THREADS));
        // Partitions get unequal shares.
        let log = 2 * (ENTRY + 4) * updated + 512 * u64::from(self.partitions);
        (ROW * self.rows + log + (1 << 20)).next_multiple_of(4096)
    }
}

/// The table, open.
pub struct Table {
    region: PmRegion,
    sizes: Sizes,
    module: Module,
    batch: Batch,
    /// Of updates, and of the number of rows.
    log: Log,
    count_log: Log,
    rows: Object,
    count: Object,
    /// Columns that are looked at, in the device's memory.
    groups: Buffer,
    balances: Buffer,
    found: Buffer,
    matches: Buffer,
}

impl Table {
    /// Creates an empty table.
    ///
    /// # Errors
    /// Sizes that no table has; no room.
    pub fn create(region: &PmRegion, sizes: Sizes, module: &Module) -> Result<Table> {
        ensure!(
            sizes.groups > 0 && sizes.updated > 0 && (1..=1 << 32).contains(&sizes.rows),
            "a table has 1 to 2^32 rows, in at least 1 group, and updates of at least 1 row, not {sizes:?}"
        );
        let shape = Shape { blocks: sizes.updated.div_ceil(THREADS), threads: THREADS };
        match sizes.partitions {
            0 => Log::create_hcl(region, "db.log", shape, ENTRY, 1, Form::Sealed)?,
            partitions => {
                let entries = u64::from(sizes.updated.div_ceil(partitions)) * u64::from(partitions);
                Log::create_conventional(region, "db.log", partitions, ENTRY * entries)?
            }
        };
        Log::create_conventional(region, "db.count-log", 1, 64)?;
        Batch::create(region, "db.batch")?;
        region.add("db.rows", ObjectKind::Data, ROW * sizes.rows, |_| Ok(()))?;
        region.add("db.count", ObjectKind::Data, 8, |_| Ok(()))?;
        Ok(Table::open(region, sizes, module)?.0)
    }

    /// Opens a table: undoes what a crash left of a transaction.
    ///
    /// # Errors
    /// The region has none of these sizes, or it is damaged.
    pub fn open(region: &PmRegion, sizes: Sizes, module: &Module) -> Result<(Table, Outcome)> {
        let rows = region.find("db.rows", ObjectKind::Data)?;
        let count = region.find("db.count", ObjectKind::Data)?;
        ensure!(rows.bytes == ROW * sizes.rows, "the table has {} rows, not {}", rows.bytes / ROW, sizes.rows);
        let device = region.device();
        let buffer = |bytes: u64| Buffer::new(device, bytes);
        let table = Table {
            region: region.clone(),
            sizes,
            module: module.clone(),
            batch: Batch::open(region, "db.batch")?,
            log: Log::open(region, "db.log")?,
            count_log: Log::open(region, "db.count-log")?,
            rows,
            count,
            groups: buffer(4 * sizes.rows)?,
            balances: buffer(8 * sizes.rows)?,
            found: buffer(4 * u64::from(sizes.updated))?,
            matches: Buffer::zeroed(device, 4)?,
        };
        let outcome = table.recover()?;
        table.load()?;
        Ok((table, outcome))
    }

    /// Undoes the transaction that was active, if any: the part of opening that a crash makes
    /// necessary.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn recover(&self) -> Result<Outcome> {
        // A transaction inserts, and has logged how many rows there were before it stored any, or
        // it updates.
        let undo = || match self.count_log.entries(Order::Oldest)?.is_empty() {
            true => Ok(self.undo_update()?),
            false => Ok(self.undo_insertion()?),
        };
        Ok(self.batch.recover(&self.logs(), undo)?)
    }

    fn logs(&self) -> [&Log; 2] {
        [&self.log, &self.count_log]
    }

    fn undo_update(&self) -> Result<(), Error> {
        let (log, table) = (self.log.address().into(), self.region.address(self.rows.offset).into());
        match self.sizes.partitions {
            0 => self.run("db_undo", self.sizes.updated.into(), &[log, self.sizes.updated.into(), table]),
            partitions => self.run("db_undo_conv", partitions.into(), &[log, table]),
        }
    }

    fn undo_insertion(&self) -> Result<(), Error> {
        self.run("db_undo_count", 1, &[self.count_log.address().into(), self.count_address()])
    }

    fn load(&self) -> Result<()> {
        let rows = self.len()?;
        let arguments = [
            self.region.address(self.rows.offset).into(),
            rows.into(),
            self.groups.address().into(),
            self.balances.address().into(),
        ];
        Ok(self.through("db_load", rows, &arguments)?)
    }

    fn count_address(&self) -> Argument {
        self.region.address(self.count.offset).into()
    }

    /// A kernel with a thread an item.
    fn run(&self, kernel: &'static str, items: u64, arguments: &[Argument]) -> Result<(), Error> {
        let launch = Launch { arguments: arguments.to_vec(), ..Launch::over(items, THREADS, []) };
        self.region.device().launch(self.module.kernel(kernel), &launch)
    }

    /// A kernel whose threads go through all items.
    fn through(&self, kernel: &'static str, items: u64, arguments: &[Argument]) -> Result<(), Error> {
        self.run(kernel, items.clamp(1, u64::from(BLOCKS * THREADS)), arguments)
    }

    /// Rows of the table.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn len(&self) -> Result<u64> {
        let bytes = self.region.read_vec(self.count.offset, 8)?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("a number has 8 bytes")))
    }

    /// Whether it has no rows.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// `n` rows as they come from elsewhere, in the device's memory: those that follow the table's.
    ///
    /// # Errors
    /// No memory.
    pub fn incoming(&self, n: u64) -> Result<Buffer> {
        let rows = Buffer::new(self.region.device(), ROW * n)?;
        let arguments = [rows.address().into(), self.len()?.into(), n.into(), self.sizes.groups.into()];
        self.through("db_rows", n * u64::from(WORDS), &arguments)?;
        Ok(rows)
    }

    /// Inserts rows, all or none; they are durable when this returns.
    ///
    /// # Errors
    /// More rows than there is room for; what the device refuses: the table is to be opened again
    /// then.
    pub fn insert(&self, rows: &Buffer) -> Result<()> {
        let (first, n) = self.place_of(rows)?;
        let logs = self.logs();
        let active = self.batch.begin(&logs)?;
        self.store_insertion(rows, first, n)?;
        active.commit()?;
        Ok(())
    }

    /// The same, but that the transaction is left active, as a crash behind its last store leaves
    /// it. The table is to be recovered.
    ///
    /// # Errors
    /// As for [`Table::insert`].
    pub fn insert_without_commit(&self, rows: &Buffer) -> Result<()> {
        let (first, n) = self.place_of(rows)?;
        let logs = self.logs();
        let _left_active = self.batch.begin(&logs)?;
        Ok(self.store_insertion(rows, first, n)?)
    }

    fn store_insertion(&self, rows: &Buffer, first: u64, n: u64) -> Result<(), Error> {
        self.run("db_log_count", 1, &[self.count_log.address().into(), self.count_address()])?;
        self.store_rows(self.region.address(self.rows.offset), rows, first, n)?;
        self.run("db_set_count", 1, &[self.count_address(), (first + n).into()])
    }

    /// Behind which row some come, and how many they are.
    fn place_of(&self, rows: &Buffer) -> Result<(u64, u64)> {
        let (first, n) = (self.len()?, rows.bytes() / ROW);
        ensure!(
            first + n <= self.sizes.rows,
            "{n} rows do not fit behind {first}: the table has room for {}",
            self.sizes.rows
        );
        Ok((first, n))
    }

    fn store_rows(&self, table: u64, rows: &Buffer, first: u64, n: u64) -> Result<(), Error> {
        let arguments = [
            table.into(),
            rows.address().into(),
            first.into(),
            n.into(),
            self.groups.address().into(),
            self.balances.address().into(),
        ];
        self.through("db_insert", n * u64::from(WORDS / 4), &arguments)
    }

    /// Rows of a group, left in `found`: SELECT.
    fn select(&self, group: u32) -> Result<u32> {
        self.matches.fill(0)?;
        let rows = self.len()?;
        let arguments = [
            self.groups.address().into(),
            rows.into(),
            group.into(),
            self.found.address().into(),
            self.sizes.updated.into(),
            self.matches.address().into(),
        ];
        self.run("db_select", rows, &arguments)?;
        let found = self.matches.download_words()?[0];
        ensure!(
            found <= self.sizes.updated,
            "{found} rows are in group {group}; an update changes {} at most",
            self.sizes.updated
        );
        Ok(found)
    }

    /// Updates the balances of a group's rows, all or none, durably. Gives how many there are.
    ///
    /// # Errors
    /// More rows than an update may change; what the device refuses: the table is to be opened
    /// again then.
    pub fn update(&self, group: u32, by: u32) -> Result<u32> {
        let found = self.select(group)?;
        let logs = self.logs();
        let active = self.batch.begin(&logs)?;
        self.store_balances(found, by)?;
        active.commit()?;
        self.mirror(found, by)?;
        Ok(found)
    }

    /// The same, but that the transaction is left active, as a crash behind its last store leaves
    /// it. The table is to be opened again.
    ///
    /// # Errors
    /// As for [`Table::update`].
    pub fn update_without_commit(&self, group: u32, by: u32) -> Result<u32> {
        let found = self.select(group)?;
        let logs = self.logs();
        let _left_active = self.batch.begin(&logs)?;
        self.store_balances(found, by)?;
        Ok(found)
    }

    fn store_balances(&self, found: u32, by: u32) -> Result<(), Error> {
        let kernel = if self.sizes.partitions == 0 { "db_update" } else { "db_update_conv" };
        let arguments = [
            self.log.address().into(),
            self.found.address().into(),
            found.into(),
            by.into(),
            self.region.address(self.rows.offset).into(),
            self.balances.address().into(),
        ];
        self.run(kernel, found.into(), &arguments)
    }

    fn mirror(&self, found: u32, by: u32) -> Result<(), Error> {
        let arguments = [self.found.address().into(), found.into(), by.into(), self.balances.address().into()];
        self.run("db_mirror", found.into(), &arguments)
    }

    /// Where the rows are in the region: offset and bytes of all that there is room for.
    pub fn place(&self) -> (u64, u64) {
        (self.rows.offset, self.rows.bytes)
    }
}
