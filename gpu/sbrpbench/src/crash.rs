//! Crashes: a run is recorded once, and what was durable at any cycle of it is recovered and looked
//! at.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use nearpm_gpusim::{Allowed, Config, Persisted};
use nearpm_ptx::Module;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::device::{Device, Interpreted, Simulated};
use crate::kernels::Lowering;
use crate::programs::Program;

/// A run, and what became durable when.
pub struct Recorded {
    before: Vec<u32>,
    base: u64,
    events: Vec<Persisted>,
    allowed: Option<Allowed>,
    /// Cycles of the run.
    pub cycles: u64,
}

impl Recorded {
    /// Runs a program; at each of its cycles what is durable is held against the model, and in the
    /// end against what it has stored.
    ///
    /// # Errors
    /// It did not run, or something is durable that the model does not allow.
    pub fn of(config: &Config, program: &dyn Program) -> Result<Self> {
        Self::record(config, None, program.image(), |device| program.run(device))
    }

    /// The same of a recovery from an image.
    ///
    /// # Errors
    /// As [`Recorded::of`].
    pub fn of_recovery(config: &Config, program: &dyn Program, image: Vec<u32>) -> Result<Self> {
        Self::record(config, None, image, |device| program.recover(device))
    }

    /// A run with other kernels.
    ///
    /// # Errors
    /// As [`Recorded::of`].
    pub fn of_changed(config: &Config, program: &dyn Program, kernels: &Arc<Module>) -> Result<Self> {
        Self::record(config, Some(kernels), program.image(), |device| program.run(device))
    }

    /// A recovery from an image with other kernels.
    ///
    /// # Errors
    /// As [`Recorded::of`].
    pub fn of_changed_recovery(
        config: &Config,
        program: &dyn Program,
        kernels: &Arc<Module>,
        image: Vec<u32>,
    ) -> Result<Self> {
        Self::record(config, Some(kernels), image, |device| program.recover(device))
    }

    fn record(
        config: &Config,
        changed: Option<&Arc<Module>>,
        before: Vec<u32>,
        run: impl FnOnce(&mut dyn Device) -> Result<()>,
    ) -> Result<Self> {
        let mut device = Simulated::new(config, Lowering::Hardware, before.clone())?;
        if let Some(kernels) = changed {
            device = device.with_kernels(kernels.clone());
        }
        device.simulator().record();
        run(&mut device)?;
        let cycles = device.simulator().now();
        let events = device.simulator().journal().map(|journal| journal.events().to_vec()).unwrap_or_default();
        device.simulator().check_order().context("against the model")?;
        let allowed = device.simulator().allowed();
        let recorded = Self { before, base: device.pm(), events, allowed, cycles };
        let (durable, stored) = (recorded.image(recorded.events.len()), device.image());
        ensure!(durable[..] == stored[..durable.len()], "not all that was stored is durable in the end");
        Ok(recorded)
    }

    /// How often what is durable changes.
    pub fn events(&self) -> usize {
        self.events.len()
    }

    /// What is durable after so many changes.
    pub fn image(&self, events: usize) -> Vec<u32> {
        self.changed(|bytes| self.events[..events].iter().for_each(|event| event.apply(self.base, bytes)))
    }

    /// Images that the model allows at a crash, of at most so many stores spread over the run: for
    /// each the smallest that has it, and the largest that lacks it. This hardware need not leave
    /// them.
    pub fn allowed_images(&self, stores: usize) -> impl Iterator<Item = (String, Vec<u32>)> {
        let allowed = self.allowed.iter();
        let spread = move |allowed: &Allowed| (0..allowed.stores()).step_by(allowed.stores() / stores + 1);
        allowed.flat_map(move |allowed| spread(allowed).map(move |store| (allowed, store))).flat_map(
            |(allowed, store)| {
                let image = |set: Vec<bool>| self.changed(|bytes| allowed.apply(&set, self.base, bytes));
                [
                    (format!("no more durable than store {store} needs"), image(allowed.least_with(store))),
                    (format!("all durable but store {store} and what follows it"), image(allowed.most_without(store))),
                ]
            },
        )
    }

    fn changed(&self, change: impl FnOnce(&mut [u8])) -> Vec<u32> {
        let mut bytes: Vec<u8> = self.before.iter().flat_map(|word| word.to_le_bytes()).collect();
        let length = bytes.len();
        bytes.resize(length.next_multiple_of(nearpm_gpusim::LINE as usize), 0);
        change(&mut bytes);
        bytes[..length].as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()
    }

    /// What is durable at a cycle.
    pub fn image_at(&self, cycle: u64) -> Vec<u32> {
        self.image(self.events.partition_point(|event| event.at <= cycle))
    }
}

/// Recovers an image, on the interpreter, and looks at what is found.
///
/// # Errors
/// What is wrong.
pub fn recover(program: &dyn Program, image: &[u32]) -> Result<()> {
    let mut device = Interpreted::new(Lowering::Hardware, image);
    program.recover(&mut device)?;
    program.check_recovered(&device.image())
}

/// The same, with a second crash at a random change within the recovery, which is simulated.
///
/// # Errors
/// What is wrong.
pub fn recover_twice(config: &Config, program: &dyn Program, image: Vec<u32>, seed: u64) -> Result<()> {
    let recovery = Recorded::of_recovery(config, program, image)?;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let events = random.random_range(0..=recovery.events());
    recover(program, &recovery.image(events)).with_context(|| format!("second crash after {events} changes"))
}

/// Small hardware, on which small programs fill the buffer and L1.
pub fn narrow(mut config: Config) -> Config {
    (config.sms, config.l1_lines, config.buffer_entries) = (2, 64, 40);
    config.launch_cycles = 100;
    config.budget = 20_000_000;
    config
}
