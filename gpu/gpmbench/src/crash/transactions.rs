//! Batches over cells, in each form of log.

use anyhow::{Result, ensure};
use nearpm_gpm::{Batch, Form, Log, Order, Shape};
use nearpm_gpu::{Buffer, Launch, Module, ObjectKind, PmRegion};
use nearpm_interface::region::BatchState;

use super::Scenario;

/// Which log undoes the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogForm {
    /// Hierarchical, one fence.
    Sealed,
    /// Hierarchical, two fences.
    Tail,
    /// Partitions with locks.
    Conventional,
}

/// A batch that gives each cell a new value, behind one that was committed.
pub struct Transactions {
    /// Its log.
    pub form: LogForm,
    /// Blocks of its launches.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Cells a thread.
    pub rounds: u32,
    /// Whether the processor undoes, not a kernel.
    pub by_processor: bool,
    /// `txn.cu`, or what was made of it.
    pub module: Module,
}

/// Bytes of an entry: cell, old value.
const ENTRY: u64 = 12;
/// Partitions of the conventional log.
const PARTITIONS: u32 = 3;

pub(super) fn value_of(cell: u32, seed: u32) -> u64 {
    let h = (cell ^ seed).wrapping_mul(0x85eb_ca6b);
    u64::from(h ^ h >> 13) << 32 | u64::from(cell.wrapping_add(seed))
}

fn cells_of(region: &PmRegion) -> Result<(u64, Vec<u64>)> {
    let cells = region.find("cells", ObjectKind::Data)?;
    let bytes = region.read_vec(cells.offset, cells.bytes as usize)?;
    Ok((cells.offset, bytes.as_chunks::<8>().0.iter().map(|&cell| u64::from_le_bytes(cell)).collect()))
}

impl Transactions {
    fn names(&self) -> (&'static str, &'static str) {
        match self.form {
            LogForm::Sealed => ("update_sealed", "undo_sealed"),
            LogForm::Tail => ("update_tail", "undo_tail"),
            LogForm::Conventional => ("update_conv", "undo_conv"),
        }
    }

    fn count(&self) -> u32 {
        self.blocks * self.threads * self.rounds
    }

    fn update(&self, region: &PmRegion, seed: u32) -> Result<()> {
        let (log, batch) = (Log::open(region, "log")?, Batch::open(region, "batch")?);
        let (cells, _) = cells_of(region)?;
        let logs = [&log];
        let active = batch.begin(&logs)?;
        let arguments = [log.address().into(), region.address(cells).into(), self.rounds.into(), seed.into()];
        let launch = Launch::new(self.blocks, self.threads, arguments);
        region.device().launch(self.module.kernel(self.names().0), &launch)?;
        active.commit()?;
        Ok(())
    }
}

impl Scenario for Transactions {
    fn region_bytes(&self) -> u64 {
        256 << 10
    }

    fn prepare(&self, region: &PmRegion) -> Result<()> {
        let shape = Shape { blocks: self.blocks, threads: self.threads };
        match self.form {
            LogForm::Sealed => Log::create_hcl(region, "log", shape, ENTRY, self.rounds, Form::Sealed)?,
            LogForm::Tail => Log::create_hcl(region, "log", shape, ENTRY, self.rounds, Form::Tail)?,
            LogForm::Conventional => {
                Log::create_conventional(region, "log", PARTITIONS, (u64::from(self.count()) + 64) * ENTRY)?
            }
        };
        Batch::create(region, "batch")?;
        region.add("cells", ObjectKind::Data, 8 * u64::from(self.count()), |_| Ok(()))?;
        self.update(region, 1)
    }

    fn work(&self, region: &PmRegion) -> Result<()> {
        self.update(region, 2)
    }

    fn recover(&self, region: &PmRegion) -> Result<()> {
        let (log, batch) = (Log::open(region, "log")?, Batch::open(region, "batch")?);
        let (cells, _) = cells_of(region)?;
        batch.recover(&[&log], || {
            if self.by_processor {
                let mut undo = |entry: &[u32]| {
                    let old = u64::from(entry[2]) << 32 | u64::from(entry[1]);
                    region.write(cells + 8 * u64::from(entry[0]), &old.to_le_bytes())
                };
                for entry in log.entries(Order::Newest)? {
                    entry.words.chunks(3).rev().try_for_each(&mut undo)?;
                }
                return Ok(());
            }
            let arguments = [log.address().into(), region.address(cells).into()];
            Ok(region
                .device()
                .launch(self.module.kernel(self.names().1), &Launch::new(self.blocks, self.threads, arguments))?)
        })?;
        Ok(())
    }

    fn check(&self, region: &PmRegion, finished: bool) -> Result<()> {
        let batch = Batch::open(region, "batch")?;
        ensure!(batch.state() == BatchState::Idle, "the batch is active after its recovery");
        let (_, cells) = cells_of(region)?;
        let all = |seed: u32| cells.iter().zip(0..).all(|(&cell, number)| cell == value_of(number, seed));
        let (old, new) = (all(1), all(2));
        ensure!(old || new, "neither all old nor all new: {cells:x?}");
        ensure!(new || !finished, "a batch that was committed is gone");
        // A batch that was undone has had its number.
        ensure!(batch.generation() == 2 || old && batch.generation() == 1, "generation {}", batch.generation());
        Ok(())
    }
}

/// A batch whose threads change the same cells, undone by stamps.
pub struct Shared {
    /// Threads of its one block.
    pub threads: u32,
    /// Threads a cell.
    pub sharing: u32,
    /// Whether undo goes by stamps; by thread alone it is wrong.
    pub by_stamp: bool,
    /// `txn.cu`, or what was made of it.
    pub module: Module,
}

impl Scenario for Shared {
    fn region_bytes(&self) -> u64 {
        256 << 10
    }

    fn prepare(&self, region: &PmRegion) -> Result<()> {
        Log::create_hcl(region, "log", Shape { blocks: 1, threads: self.threads }, 16, 1, Form::Sealed)?;
        Batch::create(region, "batch")?;
        let bytes = 8 * u64::from(self.threads / self.sharing);
        let old: Vec<u8> = (0..self.threads / self.sharing).flat_map(|cell| value_of(cell, 1).to_le_bytes()).collect();
        region.add("cells", ObjectKind::Data, bytes, |object| region.write(object.offset, &old))?;
        Ok(())
    }

    fn work(&self, region: &PmRegion) -> Result<()> {
        let (log, batch) = (Log::open(region, "log")?, Batch::open(region, "batch")?);
        let (cells, all) = cells_of(region)?;
        let device = region.device();
        let (locks, stamps) =
            (Buffer::zeroed(device, 4 * all.len() as u64)?, Buffer::zeroed(device, 4 * all.len() as u64)?);
        let logs = [&log];
        let active = batch.begin(&logs)?;
        let arguments = [
            log.address().into(),
            region.address(cells).into(),
            self.sharing.into(),
            2u32.into(),
            locks.address().into(),
            stamps.address().into(),
        ];
        device.launch(self.module.kernel("update_shared"), &Launch::new(1, self.threads, arguments))?;
        active.commit()?;
        Ok(())
    }

    fn recover(&self, region: &PmRegion) -> Result<()> {
        let (log, batch) = (Log::open(region, "log")?, Batch::open(region, "batch")?);
        let (cells, _) = cells_of(region)?;
        let order = if self.by_stamp { Order::NewestStamp { word: 3 } } else { Order::Newest };
        batch.recover(&[&log], || {
            for entry in log.entries(order)? {
                let old = u64::from(entry.words[2]) << 32 | u64::from(entry.words[1]);
                region.write(cells + 8 * u64::from(entry.words[0]), &old.to_le_bytes())?;
            }
            Ok(())
        })?;
        Ok(())
    }

    fn check(&self, region: &PmRegion, finished: bool) -> Result<()> {
        let (_, cells) = cells_of(region)?;
        let old = cells.iter().zip(0..).all(|(&cell, number)| cell == value_of(number, 1));
        let of_group = |cell: u32| (cell * self.sharing..(cell + 1) * self.sharing).map(|thread| value_of(thread, 2));
        let new = cells.iter().zip(0..).all(|(&cell, number)| of_group(number).any(|value| value == cell));
        ensure!(old || new, "neither all old nor all new: {cells:x?}");
        ensure!(new || !finished, "a batch that was committed is gone");
        Ok(())
    }
}
