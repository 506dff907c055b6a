//! What the store is compared with: batches that the processor makes durable.

use anyhow::Result;
use nearpm_gpu::{Buffer, Launch};

use super::{Kvs, Sets, THREADS};

impl Kvs {
    /// Changes the table in the device's memory alone.
    fn store_volatile(&self, sets: &Sets) -> Result<(), nearpm_gpu::Error> {
        let input = self.sorted(sets)?;
        let changed = [self.mirror.address().into(), self.places.address().into(), self.pairs.address().into()];
        self.run("kvs_set_volatile", sets.count, &[&input[..], &changed])?;
        self.update_mirror(sets.count)
    }

    /// GPM-NDP: kernels store to PM as for [`Kvs::set`], and `write_back` of the caller brings the
    /// caches' lines of the pairs with these numbers, and of the log, to PM before the batch is
    /// committed.
    ///
    /// # Errors
    /// As for [`Kvs::set`].
    pub fn set_near(&self, sets: &Sets, write_back: &mut dyn FnMut(&[u32])) -> Result<u32> {
        let logs = [&self.log];
        let active = self.batch.begin(&logs)?;
        self.store(sets)?;
        let mut places = self.places.download_words()?;
        places.truncate(sets.count as usize);
        write_back(&places);
        Ok(active.commit()?)
    }

    /// The table in the device's memory.
    pub fn mirror(&self) -> &Buffer {
        &self.mirror
    }

    /// CPU-assisted persistence: the batch changes the table in the device's memory alone; the
    /// whole of it is then copied to PM by the copy engine. The caller makes it durable. Nothing is
    /// logged, so that a crash meanwhile is not recovered.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn set_assisted(&self, sets: &Sets) -> Result<(), nearpm_gpu::Error> {
        self.store_volatile(sets)?;
        self.region.device().copy(self.table_address(), self.mirror.address(), self.table.bytes)
    }

    /// The same of what changed, in pieces of `bytes` bytes: they are brought together in
    /// `staging`, which has room for one a SET. Gives their numbers, in the order in which they lie
    /// there.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn set_gathered(&self, sets: &Sets, bytes: u32, staging: &Buffer) -> Result<Vec<u32>, nearpm_gpu::Error> {
        self.store_volatile(sets)?;
        let device = self.region.device();
        let (pieces, count) = (Buffer::new(device, 4 * u64::from(sets.count))?, Buffer::zeroed(device, 4)?);
        let arguments = [
            self.places.address().into(),
            sets.count.into(),
            bytes.into(),
            self.mirror.address().into(),
            staging.address().into(),
            pieces.address().into(),
            count.address().into(),
        ];
        let launch = Launch::over(32 * u64::from(sets.count), THREADS, arguments);
        device.launch(self.module.kernel("kvs_gather"), &launch)?;
        let mut numbers = pieces.download_words()?;
        numbers.truncate(count.download_words()?[0] as usize);
        Ok(numbers)
    }
}
