//! Programs that go on where a crash ended them: their result is that of a run without a crash.

use anyhow::{Result, ensure};
use nearpm_gpu::PmRegion;

use super::Scenario;

/// A run of a program: opens what is in the region, or begins, and goes on to the end. Gives the
/// result.
pub type Run<'p> = Box<dyn Fn(&PmRegion) -> Result<Vec<u8>> + 'p>;

/// A program that is crashed.
pub struct Resumed<'p> {
    /// Bytes of its region.
    pub bytes: u64,
    /// A run.
    pub run: Run<'p>,
    /// The result without a crash, of the oracle or of a run of its own.
    pub expected: Vec<u8>,
}

impl Scenario for Resumed<'_> {
    fn region_bytes(&self) -> u64 {
        self.bytes
    }

    fn prepare(&self, _: &PmRegion) -> Result<()> {
        Ok(())
    }

    fn work(&self, region: &PmRegion) -> Result<()> {
        (self.run)(region).map(drop)
    }

    /// There is none but going on.
    fn recover(&self, region: &PmRegion) -> Result<()> {
        self.work(region)
    }

    fn check(&self, region: &PmRegion, _: bool) -> Result<()> {
        ensure!((self.run)(region)? == self.expected, "the result is not that of a run without a crash");
        Ok(())
    }
}
