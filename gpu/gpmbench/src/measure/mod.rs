//! The measurements. Each looks at what was stored before it says how fast.

mod alone;
mod assisted;
mod changed;
mod checkpoint;
mod database;
mod flights;
mod logs;
mod mixed;
mod native;
mod opened;
pub mod peer;
mod programs;
mod random;
mod same;
pub mod several;
mod store;
mod stream;

use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use nearpm_gpu::{Buffer, Device, Error, Measured, Medium, PmRegion};

use crate::report::Report;

/// How large measurements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// For the interpreter: whether it works.
    Small,
    /// For a GPU: the sizes of the paper and of the aims.
    Full,
}

impl Scale {
    fn pick<T>(self, small: T, full: T) -> T {
        match self {
            Scale::Small => small,
            Scale::Full => full,
        }
    }
}

/// What a measurement works on.
pub struct Bench {
    /// The device.
    pub device: Rc<dyn Device>,
    /// Sizes.
    pub scale: Scale,
    /// Repeats of each value.
    pub repeats: usize,
}

/// The names of the measurements, in the order in which they are made.
pub const NAMES: [&str; 13] = [
    "stream",
    "logs",
    "random",
    "kvs",
    "db",
    "checkpoint",
    "flights",
    "programs",
    "ps",
    "srad",
    "bfs",
    "alone",
    "same",
];

/// Makes a measurement by its name; what fails is in the report.
pub fn run(bench: &Bench, name: &str, report: &mut Report) {
    let outcome = match name {
        "stream" => stream::measure(bench, report),
        "logs" => logs::measure(bench, report),
        "random" => random::measure(bench, report),
        "kvs" => store::measure(bench, report),
        "db" => database::measure(bench, report),
        "checkpoint" => checkpoint::measure(bench, report),
        "flights" => flights::measure(bench, report),
        "ps" => native::sums(bench, report),
        "srad" => native::srad(bench, report),
        "bfs" => native::bfs(bench, report),
        "alone" => alone::measure(bench, report),
        "same" => same::measure(bench, report),
        _ => programs::measure(bench, report),
    };
    if let Err(error) = outcome {
        eprintln!("{name}: {error:#}");
        report.failures.push(format!("{name}: {error:#}"));
    }
}

impl Bench {
    /// A region of fresh PM that ends with the process.
    fn region(&self, bytes: u64) -> Result<PmRegion> {
        let medium = Medium::memfd(bytes.next_multiple_of(1 << 21))?;
        Ok(PmRegion::create_in(self.device.clone(), medium)?)
    }

    fn buffer(&self, bytes: u64) -> Result<Buffer> {
        Ok(Buffer::new(&self.device, bytes)?)
    }

    /// Times of `work`, once before that and once each repeat behind `prepare`.
    fn times(
        &self,
        mut prepare: impl FnMut(u32) -> Result<()>,
        mut work: impl FnMut(u32) -> Result<(), Error>,
    ) -> Result<Vec<Duration>> {
        let mut times = Vec::new();
        for repeat in 0..=self.repeats as u32 {
            prepare(repeat)?;
            let elapsed = self.device.time(&mut || work(repeat))?;
            // The first loads the kernel.
            if repeat > 0 {
                times.push(elapsed.time);
            }
        }
        Ok(times)
    }

    /// The time of `work`, which waits for the device: by the wall, on the interpreter as it is
    /// predicted.
    fn wall(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Duration> {
        let mut failed = Ok(());
        let started = Instant::now();
        let predicted = self.device.time(&mut || {
            failed = work();
            Ok(())
        })?;
        failed?;
        Ok(match predicted.source {
            Measured::Predicted => predicted.time.max(Duration::from_nanos(1)),
            Measured::Device => started.elapsed(),
        })
    }

    /// Words of the device's memory.
    fn words_at(&self, address: u64, count: u32) -> Result<Vec<u32>> {
        let mut bytes = vec![0; 4 * count as usize];
        self.device.download(address, &mut bytes)?;
        Ok(words(&bytes).collect())
    }

    /// The seed of the last repeat, whose stores are looked at.
    fn last(&self) -> u32 {
        self.repeats as u32
    }
}

/// Compares words with what they should be.
fn verify(what: &str, stored: impl Iterator<Item = u32>, expected: impl Iterator<Item = u32>) -> Result<()> {
    for (at, (stored, expected)) in stored.zip(expected).enumerate() {
        if stored != expected {
            bail!("{what}: word {at} is {stored:#010x}, {expected:#010x} was stored");
        }
    }
    Ok(())
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word))
}
