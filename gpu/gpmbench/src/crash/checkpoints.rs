//! Checkpoints: device memory that changes, and is restored.

use anyhow::{Result, ensure};
use nearpm_gpm::{Checkpoint, Element};
use nearpm_gpu::{Buffer, Launch, PmRegion};

use super::Scenario;
use crate::kernels::micro;
use crate::pattern::pattern;

/// Two elements, checkpointed twice before, and twice in the work.
pub struct Checkpoints {
    /// Bytes of the first element; the second has some more, to no whole unit.
    pub bytes: u64,
}

struct Open {
    checkpoint: Checkpoint,
    memory: [Buffer; 2],
}

impl Checkpoints {
    fn open(&self, region: &PmRegion) -> Result<Open> {
        let device = region.device();
        let memory = [Buffer::zeroed(device, self.bytes)?, Buffer::zeroed(device, self.bytes + 21)?];
        let checkpoint = Checkpoint::open(region, "checkpoint")?;
        for (memory, name) in memory.iter().zip(["weights", "biases"]) {
            checkpoint
                .register(0, Element { name: name.to_owned(), address: memory.address(), bytes: memory.bytes() })?;
        }
        Ok(Open { checkpoint, memory })
    }

    fn take(&self, open: &Open, region: &PmRegion, seed: u32) -> Result<()> {
        for memory in &open.memory {
            // Whole units of 16 bytes; the rest stays zero.
            let arguments = [memory.address().into(), memory.bytes().into(), seed.into()];
            region.device().launch(micro().kernel("stream_persist"), &Launch::new(1, 32, arguments))?;
        }
        let taken = open.checkpoint.checkpoint(0)?;
        ensure!(taken.sequence == u64::from(seed), "checkpoint {} is number {}", seed, taken.sequence);
        Ok(())
    }
}

impl Scenario for Checkpoints {
    fn region_bytes(&self) -> u64 {
        (8 * self.bytes + (128 << 10)).next_multiple_of(4096)
    }

    fn prepare(&self, region: &PmRegion) -> Result<()> {
        Checkpoint::create(region, "checkpoint", 2 * self.bytes + 256, 2, 1)?;
        let open = self.open(region)?;
        (1..=2).try_for_each(|seed| self.take(&open, region, seed))
    }

    fn work(&self, region: &PmRegion) -> Result<()> {
        let open = self.open(region)?;
        (3..=4).try_for_each(|seed| self.take(&open, region, seed))
    }

    fn recover(&self, region: &PmRegion) -> Result<()> {
        let restored = self.open(region)?.checkpoint.restore(0)?;
        ensure!(restored.is_some(), "no checkpoint is there");
        Ok(())
    }

    fn check(&self, region: &PmRegion, finished: bool) -> Result<()> {
        let open = self.open(region)?;
        let restored = open.checkpoint.restore(0)?;
        let sequence = restored.map_or(0, |taken| taken.sequence);
        ensure!((2..=4).contains(&sequence) && (sequence == 4 || !finished), "checkpoint {sequence} is there");
        for memory in &open.memory {
            let bytes = memory.download()?;
            let whole = bytes.len() / 16 * 16;
            let expected = (0..whole as u32 / 4).flat_map(|place| pattern(place, sequence as u32).to_le_bytes());
            ensure!(bytes[..whole].iter().copied().eq(expected), "memory is not that of checkpoint {sequence}");
            ensure!(bytes[whole..].iter().all(|&byte| byte == 0), "bytes behind the last unit changed");
        }
        Ok(())
    }
}
