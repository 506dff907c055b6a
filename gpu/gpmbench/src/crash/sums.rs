//! PS: prefix sums that go on where a crash ended them.

use anyhow::{Result, ensure};
use nearpm_gpu::{Module, PmRegion};

use super::Scenario;
use crate::prefix::{Sizes, Sums as Program, input_of, sums_of};

/// A run behind another one, whose results lie there.
pub struct Sums {
    /// Its sizes.
    pub sizes: Sizes,
    /// `prefix.cu`, or what was made of it.
    pub module: Module,
}

impl Sums {
    fn input(&self, seed: u32) -> Vec<u32> {
        input_of(seed, self.sizes.count())
    }
}

impl Scenario for Sums {
    fn region_bytes(&self) -> u64 {
        self.sizes.region_bytes()
    }

    fn prepare(&self, region: &PmRegion) -> Result<()> {
        let program = Program::create(region, self.sizes, &self.module)?;
        program.begin(&self.input(1))?;
        program.run()?;
        program.begin(&self.input(2))
    }

    fn work(&self, region: &PmRegion) -> Result<()> {
        Program::open(region, self.sizes, &self.module)?.run()
    }

    /// There is none but going on.
    fn recover(&self, region: &PmRegion) -> Result<()> {
        self.work(region)
    }

    fn check(&self, region: &PmRegion, _: bool) -> Result<()> {
        let program = Program::open(region, self.sizes, &self.module)?;
        ensure!(program.sums()? == sums_of(&self.input(2), self.sizes), "the sums are wrong");
        Ok(())
    }
}
