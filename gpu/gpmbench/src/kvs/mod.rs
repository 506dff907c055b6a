//! gpKVS: a key-value store in PM, with batches of SETs that happen or do not.

mod assisted;
mod model;

use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nearpm_gpm::{Batch, Form, Log, Outcome, Shape, Sorter};
use nearpm_gpu::{Argument, Buffer, Device, Launch, Module, Object, ObjectKind, PmRegion};

pub(crate) use model::mix;
pub use model::{Model, batch_of};

/// Pairs of a set.
pub const WAYS: usize = 8;
/// Bytes of a pair: key and value.
pub const PAIR: u64 = 16;
/// Bytes of a set.
pub const SET: u64 = WAYS as u64 * PAIR;
/// Bytes of a log entry: as in `kvs.cu`.
const ENTRY: u64 = 20;
const THREADS: u32 = 256;

/// The store, open.
pub struct Kvs {
    region: PmRegion,
    batch: Batch,
    log: Log,
    table: Object,
    /// The table in the device's memory, which is read in its place.
    mirror: Buffer,
    /// What a batch changed: numbers of pairs, and pairs.
    places: Buffer,
    pairs: Buffer,
    sorter: Sorter,
    module: Module,
}

/// A batch of SETs in the device's memory.
pub struct Sets {
    keys: Buffer,
    values: Buffer,
    count: u32,
}

impl Sets {
    /// Copies a batch there. Keys are not 0.
    ///
    /// # Errors
    /// A key 0; no memory.
    pub fn new(device: &Rc<dyn Device>, pairs: &[(u64, u64)]) -> Result<Sets> {
        ensure!(pairs.iter().all(|pair| pair.0 != 0), "0 is no key");
        let column = |of: fn(&(u64, u64)) -> u64| -> Result<Buffer> {
            let buffer = Buffer::new(device, 8 * pairs.len() as u64)?;
            buffer.upload(&pairs.iter().flat_map(|pair| of(pair).to_le_bytes()).collect::<Vec<_>>())?;
            Ok(buffer)
        };
        Ok(Sets { keys: column(|pair| pair.0)?, values: column(|pair| pair.1)?, count: pairs.len() as u32 })
    }
}

/// Bytes of a region for a store.
pub fn region_bytes(set_bits: u32, batch: u32) -> u64 {
    (SET << set_bits) + (ENTRY + 4) * u64::from(batch.next_multiple_of(THREADS)) + (1 << 20)
}

impl Kvs {
    /// Creates a store of 2^`set_bits` sets for batches of up to `batch` SETs.
    ///
    /// # Errors
    /// No room in the region or the device.
    pub fn create(region: &PmRegion, set_bits: u32, batch: u32, kernels: &Module) -> Result<Kvs> {
        ensure!(set_bits <= 28, "a store has at most 2^28 sets, not 2^{set_bits}: a pair's number has 32 bits");
        ensure!(batch > 0, "a batch has at least one SET");
        let shape = Shape { blocks: batch.div_ceil(THREADS), threads: THREADS };
        Log::create_hcl(region, "kvs.log", shape, ENTRY, 1, Form::Sealed)?;
        Batch::create(region, "kvs.batch")?;
        // A region's data is zero, and zero is no key.
        region.add("kvs.table", ObjectKind::Data, SET << set_bits, |_| Ok(()))?;
        Ok(Kvs::open(region, kernels)?.0)
    }

    /// Opens a store: undoes what a crash left of a batch.
    ///
    /// # Errors
    /// The region has no store, or it is damaged.
    pub fn open(region: &PmRegion, kernels: &Module) -> Result<(Kvs, Outcome)> {
        Kvs::open_timed(region, kernels).map(|(kvs, outcome, _)| (kvs, outcome))
    }

    /// The same, and the time of the recovery alone: from the log's mount to its being clear.
    ///
    /// # Errors
    /// As for [`Kvs::open`].
    pub fn open_timed(region: &PmRegion, kernels: &Module) -> Result<(Kvs, Outcome, Duration)> {
        let table = region.find("kvs.table", ObjectKind::Data)?;
        let started = Instant::now();
        let (log, batch) = (Log::open(region, "kvs.log")?, Batch::open(region, "kvs.batch")?);
        region.device().synchronize()?;
        let mount = started.elapsed();
        let capacity = log.shape().blocks * THREADS;
        let buffer = |bytes: u64| Buffer::new(region.device(), bytes);
        let (mirror, places) = (buffer(table.bytes)?, buffer(4 * u64::from(capacity))?);
        let pairs = buffer(PAIR * u64::from(capacity))?;
        let sorter = Sorter::new(region.device(), capacity)?;
        let (region, module) = (region.clone(), kernels.clone());
        let kvs = Kvs { region, batch, log, table, mirror, places, pairs, sorter, module };
        let started = Instant::now();
        let outcome = kvs.batch.recover(&[&kvs.log], || Ok(kvs.undo()?))?;
        let undo = started.elapsed();
        kvs.load_mirror()?;
        Ok((kvs, outcome, mount + undo))
    }

    fn undo(&self) -> Result<(), nearpm_gpu::Error> {
        let capacity = self.sorter.capacity();
        let arguments = [self.log.address().into(), capacity.into(), self.table_address().into()];
        self.region.device().launch(self.module.kernel("kvs_undo"), &Launch::over(capacity.into(), THREADS, arguments))
    }

    fn load_mirror(&self) -> Result<()> {
        Ok(self.region.device().copy(self.mirror.address(), self.table_address(), self.table.bytes)?)
    }

    fn table_address(&self) -> u64 {
        self.region.address(self.table.offset)
    }

    /// Sets of the table, as a power of two.
    pub fn set_bits(&self) -> u32 {
        (self.table.bytes / SET).trailing_zeros()
    }

    /// Generation of the last batch.
    pub fn generation(&self) -> u32 {
        self.batch.generation()
    }

    /// Sets a batch's pairs, all or none; they are durable when this returns. Of two with one key
    /// the later counts. A set that is full gives up a pair.
    ///
    /// # Errors
    /// More SETs than a batch has; what the device refuses: the store is to be opened again then.
    pub fn set(&self, sets: &Sets) -> Result<u32> {
        ensure!(
            sets.count <= self.sorter.capacity(),
            "{} SETs are more than a batch of {}",
            sets.count,
            self.sorter.capacity()
        );
        let logs = [&self.log];
        let active = self.batch.begin(&logs)?;
        self.store(sets)?;
        Ok(active.commit()?)
    }

    /// Brings a batch to the sets' order. Gives what a kernel that stores it is told of it: sets,
    /// numbers in the batch, how many, keys and values.
    fn sorted(&self, sets: &Sets) -> Result<[Argument; 5], nearpm_gpu::Error> {
        let (n, bits) = (sets.count, self.set_bits());
        let (keys, numbers) = self.sorter.input();
        let arguments = [sets.keys.address().into(), n.into(), bits.into(), keys.into(), numbers.into()];
        self.region.device().launch(self.module.kernel("kvs_sets"), &Launch::over(n.into(), THREADS, arguments))?;
        let (sorted, order) = self.sorter.sort(n, 0, bits)?;
        Ok([sorted.into(), order.into(), n.into(), sets.keys.address().into(), sets.values.address().into()])
    }

    fn store(&self, sets: &Sets) -> Result<(), nearpm_gpu::Error> {
        let input = self.sorted(sets)?;
        let tables = [self.table_address().into(), self.mirror.address().into()];
        let changed = [self.places.address().into(), self.pairs.address().into()];
        self.run("kvs_set", sets.count, &[&[self.log.address().into()], &input[..], &tables, &changed])?;
        self.update_mirror(sets.count)
    }

    fn update_mirror(&self, n: u32) -> Result<(), nearpm_gpu::Error> {
        let changed =
            [self.places.address().into(), self.pairs.address().into(), n.into(), self.mirror.address().into()];
        self.run("kvs_mirror", n, &[&changed])
    }

    /// Runs a kernel with a thread a SET.
    fn run(&self, kernel: &'static str, n: u32, arguments: &[&[Argument]]) -> Result<(), nearpm_gpu::Error> {
        let launch = Launch { arguments: arguments.concat(), ..Launch::over(n.into(), THREADS, []) };
        self.region.device().launch(self.module.kernel(kernel), &launch)
    }

    /// The values of keys, 0 where there is none.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn get(&self, keys: &[u64]) -> Result<Vec<u64>> {
        let device = self.region.device();
        let (asked, found) = (Buffer::new(device, 8 * keys.len() as u64)?, Buffer::new(device, 8 * keys.len() as u64)?);
        asked.upload(&keys.iter().flat_map(|key| key.to_le_bytes()).collect::<Vec<_>>())?;
        self.look_up(&asked, &found)?;
        Ok(found.download()?.as_chunks::<8>().0.iter().map(|&value| u64::from_le_bytes(value)).collect())
    }

    /// The same for keys in the device's memory, whose values go there, too; does not wait.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn look_up(&self, asked: &Buffer, found: &Buffer) -> Result<(), nearpm_gpu::Error> {
        let n = (asked.bytes() / 8) as u32;
        let table = self.mirror.address();
        let arguments =
            [asked.address().into(), n.into(), self.set_bits().into(), table.into(), found.address().into()];
        self.run("kvs_get", n, &[&arguments])
    }

    /// The same, but that the batch is left active, as a crash behind its last store leaves it. The
    /// store is to be opened again.
    ///
    /// # Errors
    /// As for [`Kvs::set`].
    pub fn set_without_commit(&self, sets: &Sets) -> Result<()> {
        let logs = [&self.log];
        let _left_active = self.batch.begin(&logs)?;
        Ok(self.store(sets)?)
    }

    /// Where the table is in the region: offset and bytes.
    pub fn table(&self) -> (u64, u64) {
        (self.table.offset, self.table.bytes)
    }
}
