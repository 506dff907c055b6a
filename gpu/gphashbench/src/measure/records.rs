//! Records: keys and values that the device makes, and looks at.

use std::rc::Rc;

use anyhow::Result;
use nearpm_gphash::{Op, Operations, Outcome};
use nearpm_gpu::{Argument, Buffer, Device, Launch};

use crate::kernels::bench;

const THREADS: u32 = 256;
/// Blocks that fill memory: enough for the GPU's.
const FILLING: u32 = 4096;

/// Records with values of one size.
#[derive(Clone)]
pub struct Records {
    device: Rc<dyn Device>,
    value_bytes: u32,
}

impl Records {
    /// Records with values of so many bytes.
    pub fn new(device: &Rc<dyn Device>, value_bytes: u32) -> Records {
        Records { device: device.clone(), value_bytes }
    }

    fn launch(&self, entry: &'static str, items: u64, arguments: &[Argument]) -> Result<()> {
        let launch = Launch { arguments: arguments.to_vec(), ..Launch::over(items, THREADS, []) };
        Ok(self.device.launch(bench().kernel(entry), &launch)?)
    }

    fn batch(&self, op: Op, count: u32) -> Result<Operations> {
        Ok(Operations::new(&self.device, op, &vec![0; count as usize])?)
    }

    /// An operation on `count` records from `first` on; with `bits` they are all of 2^bits records,
    /// shuffled.
    ///
    /// # Errors
    /// No memory.
    pub fn sequence(&self, op: Op, first: u64, count: u32, bits: u32) -> Result<Operations> {
        let batch = self.batch(op, count)?;
        self.launch(
            "bench_keys",
            count.into(),
            &[first.into(), count.into(), bits.into(), batch.keys.address().into()],
        )?;
        Ok(batch)
    }

    /// An operation on records by number.
    ///
    /// # Errors
    /// No memory.
    pub fn chosen(&self, op: Op, records: &[u32]) -> Result<Operations> {
        let batch = self.batch(op, records.len() as u32)?;
        let numbers = Buffer::of_words(&self.device, records)?;
        let arguments = [numbers.address().into(), batch.count().into(), batch.keys.address().into()];
        self.launch("bench_keys_of", records.len() as u64, &arguments)?;
        self.device.synchronize()?;
        Ok(batch)
    }

    /// Room for the values of a batch.
    ///
    /// # Errors
    /// No memory.
    pub fn room(&self, batch: &Operations) -> Result<Buffer> {
        Ok(Buffer::new(&self.device, u64::from(batch.count()) * u64::from(self.value_bytes))?)
    }

    /// Gives a batch the values of `seed`, from 1 on.
    ///
    /// # Errors
    /// No memory.
    pub fn fill(&self, batch: Operations, seed: u32) -> Result<Operations> {
        let values = self.room(&batch)?;
        let units = self.value_bytes / 16;
        let all = u64::from(batch.count()) * u64::from(units);
        let arguments = [batch.keys.address().into(), all.into(), units.into(), seed.into(), values.address().into()];
        self.device.launch(bench().kernel("bench_values"), &Launch::new(FILLING, THREADS, arguments))?;
        Ok(batch.with_values(values))
    }

    /// Operations of a batch that did not end as `expected`, or read another value than that of
    /// `seed` (with `any`, than of a seed up to it).
    ///
    /// # Errors
    /// What the device refuses.
    pub fn wrong(
        &self,
        batch: &Operations,
        ops: Option<&Buffer>,
        expected: Outcome,
        seed: u32,
        any: bool,
    ) -> Result<u32> {
        let wrong = Buffer::zeroed(&self.device, 4)?;
        let found = batch.found.as_ref().map_or(0, Buffer::address);
        let how = [
            batch.keys.address().into(),
            batch.count().into(),
            (self.value_bytes / 16).into(),
            seed.into(),
            u32::from(any).into(),
        ];
        let what = [ops.map_or(0, Buffer::address).into(), found.into(), batch.outcomes.address().into()];
        let last = [(expected as u32).into(), wrong.address().into()];
        self.launch("bench_look", batch.count().into(), &[&how[..], &what, &last].concat())?;
        let wrong = wrong.download_words()?[0];
        if wrong > 0 {
            let outcomes = batch.outcomes.download_words()?;
            let counted: Vec<usize> =
                (0..7).map(|code| outcomes.iter().filter(|&&outcome| outcome == code).count()).collect();
            let first: Vec<usize> = (0..outcomes.len()).filter(|&at| outcomes[at] != expected as u32).take(8).collect();
            eprintln!("outcomes 0 to 6: {counted:?}; the first that are not {expected:?}: {first:?}");
        }
        Ok(wrong)
    }
}
