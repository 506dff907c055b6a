//! Checkpoints: device memory that changes, and is restored.

use anyhow::{Result, ensure};
use nearpm_gpm::{Checkpoint, Concurrent, Element, Taken};
use nearpm_gpu::{Buffer, Launch, PmRegion};

use super::Scenario;
use crate::kernels::micro;
use crate::pattern::pattern;

/// How checkpoints are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Of everything.
    Whole,
    /// Of pages that changed.
    Changed,
    /// Of everything, two at a time while the memory changes.
    Concurrent,
}

/// Two elements, checkpointed twice before, and twice in the work. With each number one part in
/// three of each of them changes.
pub struct Checkpoints {
    /// Bytes of a third of the first element; the second has some more, to no whole unit.
    pub part: u64,
    /// How.
    pub way: Way,
}

/// Parts of an element, of which one changes at a time.
const PARTS: u32 = 3;
const NAMES: [&str; 2] = ["weights", "biases"];

enum Kept {
    Whole(Checkpoint),
    Concurrent(Concurrent),
}

struct Open<'r> {
    region: &'r PmRegion,
    part: u64,
    kept: Kept,
    memory: [Buffer; 2],
}

/// The number with which a part changed last, of those up to `number`; all of it is there with 1.
fn last_change(part: u32, number: u32) -> u32 {
    (2..=number).rev().find(|number| number % PARTS == part).unwrap_or(1)
}

impl Checkpoints {
    fn bytes(&self) -> u64 {
        u64::from(PARTS) * self.part
    }

    fn open<'r>(&self, region: &'r PmRegion) -> Result<Open<'r>> {
        let device = region.device();
        let memory = [Buffer::zeroed(device, self.bytes())?, Buffer::zeroed(device, self.bytes() + 21)?];
        let element = |name: &str, memory: &Buffer| Element {
            name: name.to_owned(),
            address: memory.address(),
            bytes: memory.bytes(),
        };
        let mut elements = NAMES.iter().zip(&memory).map(|(name, memory)| element(name, memory));
        let kept = if self.way == Way::Concurrent {
            let concurrent = Concurrent::open(region, "checkpoint")?;
            elements.try_for_each(|element| concurrent.register(element))?;
            Kept::Concurrent(concurrent)
        } else {
            let checkpoint = Checkpoint::open(region, "checkpoint")?;
            elements.try_for_each(|element| checkpoint.register(0, element))?;
            Kept::Whole(checkpoint)
        };
        Ok(Open { region, part: self.part, kept, memory })
    }

    fn take(&self, open: &Open<'_>, numbers: [u32; 2]) -> Result<()> {
        match &open.kept {
            Kept::Whole(checkpoint) => {
                for number in numbers {
                    open.change(number)?;
                    let taken = match self.way {
                        Way::Changed => checkpoint.checkpoint_changed(0)?,
                        _ => checkpoint.checkpoint(0)?,
                    };
                    ensure!(taken.sequence == u64::from(number), "checkpoint {number} is number {}", taken.sequence);
                }
            }
            Kept::Concurrent(concurrent) => {
                open.change(numbers[0])?;
                let first = concurrent.begin()?;
                // The program goes on: a checkpoint is of what was there when it began.
                open.change(numbers[1])?;
                let second = concurrent.begin()?;
                open.spoil()?;
                ensure!(concurrent.begin().is_err(), "three are in flight");
                ensure!(concurrent.finish(second)?.sequence == u64::from(numbers[1]), "the second has another number");
                ensure!(concurrent.finish(first)?.sequence == u64::from(numbers[0]), "the first has another number");
            }
        }
        Ok(())
    }
}

impl Open<'_> {
    fn fill(&self, part: u32, seed: u32) -> Result<()> {
        for memory in &self.memory {
            let address = memory.address() + u64::from(part) * self.part;
            let arguments = [address.into(), self.part.into(), seed.into()];
            self.region.device().launch(micro().kernel("stream_persist"), &Launch::new(1, 32, arguments))?;
        }
        Ok(())
    }

    /// Brings the memory from the number before to this one.
    fn change(&self, number: u32) -> Result<()> {
        if number > 1 {
            return self.fill(number % PARTS, number);
        }
        (0..PARTS).try_for_each(|part| self.fill(part, 1))
    }

    fn spoil(&self) -> Result<()> {
        (0..PARTS).try_for_each(|part| self.fill(part, 99))
    }

    fn restore(&self) -> Result<Option<Taken>> {
        Ok(match &self.kept {
            Kept::Whole(checkpoint) => checkpoint.restore(0)?,
            Kept::Concurrent(concurrent) => concurrent.restore()?,
        })
    }
}

impl Scenario for Checkpoints {
    fn region_bytes(&self) -> u64 {
        (12 * self.bytes() + (128 << 10)).next_multiple_of(4096)
    }

    fn prepare(&self, region: &PmRegion) -> Result<()> {
        let bytes = 2 * self.bytes() + 256;
        match self.way {
            Way::Concurrent => Concurrent::create(region, "checkpoint", bytes, 2, 2).map(drop)?,
            _ => Checkpoint::create(region, "checkpoint", bytes, 2, 1).map(drop)?,
        }
        self.take(&self.open(region)?, [1, 2])
    }

    fn work(&self, region: &PmRegion) -> Result<()> {
        let open = self.open(region)?;
        open.restore()?;
        self.take(&open, [3, 4])?;
        // Of pages that changed, now that it is known what the slots hold.
        if self.way == Way::Changed { self.take(&open, [5, 6]) } else { Ok(()) }
    }

    fn recover(&self, region: &PmRegion) -> Result<()> {
        ensure!(self.open(region)?.restore()?.is_some(), "no checkpoint is there");
        Ok(())
    }

    fn check(&self, region: &PmRegion, finished: bool) -> Result<()> {
        let open = self.open(region)?;
        let last = if self.way == Way::Changed { 6 } else { 4 };
        let sequence = open.restore()?.map_or(0, |taken| taken.sequence);
        ensure!((2..=last).contains(&sequence) && (sequence == last || !finished), "checkpoint {sequence} is there");
        for memory in &open.memory {
            let bytes = memory.download()?;
            let (whole, rest) = bytes.split_at(self.bytes() as usize);
            for (part, found) in (0..PARTS).zip(whole.chunks(self.part as usize)) {
                let seed = last_change(part, sequence as u32);
                let expected = (0..found.len() as u32 / 4).flat_map(|place| pattern(place, seed).to_le_bytes());
                ensure!(found.iter().copied().eq(expected), "part {part} is not that of checkpoint {sequence}");
            }
            ensure!(rest.iter().all(|&byte| byte == 0), "bytes behind the last unit changed");
        }
        Ok(())
    }
}
