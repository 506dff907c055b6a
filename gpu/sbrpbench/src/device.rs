//! What a program runs on: the simulator, or the interpreter.

use std::sync::Arc;

use anyhow::{Result, bail};
use nearpm_gpusim::{Config, Simulator, Statistics};
use nearpm_ptx::{Arguments, Choice, Ended, Gpu, Launch, Module, Persistence, PmRange, Run, Stop};

use crate::kernels::{Lowering, kernel};

/// A kernel's launch: its name, blocks, threads of a block.
pub struct Shape<'n> {
    /// Of the kernel.
    pub kernel: &'n str,
    /// Blocks.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
}

/// What a program runs on.
pub trait Device {
    /// First address of persistent memory.
    fn pm(&self) -> u64;
    /// Volatile memory that holds these words.
    ///
    /// # Errors
    /// There is no more.
    fn words(&mut self, words: &[u32]) -> Result<u64>;
    /// Reads words of volatile memory.
    ///
    /// # Errors
    /// The address is none.
    fn read(&mut self, address: u64, count: usize) -> Result<Vec<u32>>;
    /// Runs a kernel to its end.
    ///
    /// # Errors
    /// It did not come to its end.
    fn launch(&mut self, shape: Shape<'_>, arguments: Arguments) -> Result<()>;
}

/// Little-endian.
pub(crate) fn as_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn as_words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()
}

fn allocate(gpu: &mut Gpu, words: &[u32]) -> Result<u64> {
    let address = gpu.allocate(words.len() as u64 * 4)?;
    gpu.write(address, &as_bytes(words))?;
    Ok(address)
}

fn read(gpu: &Gpu, address: u64, count: usize) -> Result<Vec<u32>> {
    let mut bytes = vec![0; count * 4];
    gpu.read(address, &mut bytes)?;
    Ok(as_words(&bytes))
}

/// The simulator with one range of persistent memory.
pub struct Simulated {
    simulator: Simulator,
    lowering: Lowering,
    /// Kernels in place of the lowering's.
    changed: Option<Arc<Module>>,
    pm: PmRange,
    /// Of all launches.
    pub statistics: Statistics,
    /// How many there were.
    pub launches: u64,
}

impl Simulated {
    /// A GPU whose persistent memory holds `image`.
    ///
    /// # Errors
    /// A configuration that cannot be simulated.
    pub fn new(config: &Config, lowering: Lowering, image: Vec<u32>) -> Result<Self> {
        let mut simulator = Simulator::new(config.clone())?;
        let pm = simulator.map_persistent(as_bytes(&image));
        Ok(Self { simulator, lowering, changed: None, pm, statistics: Statistics::default(), launches: 0 })
    }

    /// The same GPU, with other kernels.
    pub fn with_kernels(self, kernels: Arc<Module>) -> Self {
        Self { changed: Some(kernels), ..self }
    }

    /// The simulator itself.
    pub fn simulator(&mut self) -> &mut Simulator {
        &mut self.simulator
    }

    /// What persistent memory holds.
    pub fn image(&self) -> Vec<u32> {
        as_words(self.simulator.persistent(&self.pm))
    }
}

impl Device for Simulated {
    fn pm(&self) -> u64 {
        self.pm.address
    }

    fn words(&mut self, words: &[u32]) -> Result<u64> {
        allocate(self.simulator.gpu_mut(), words)
    }

    fn read(&mut self, address: u64, count: usize) -> Result<Vec<u32>> {
        read(self.simulator.gpu_mut(), address, count)
    }

    fn launch(&mut self, shape: Shape<'_>, arguments: Arguments) -> Result<()> {
        let entry = match &self.changed {
            Some(kernels) => kernels.entry(shape.kernel)?,
            None => kernel(self.lowering, shape.kernel)?,
        };
        let launch = Launch::linear(shape.blocks, shape.threads, arguments);
        self.launches += 1;
        self.statistics += self.simulator.launch(entry, &launch)?;
        Ok(())
    }
}

/// The interpreter with one range of persistent memory. What is stored there is durable when a
/// kernel has ended.
pub struct Interpreted {
    gpu: Gpu,
    lowering: Lowering,
    pm: PmRange,
    /// Warp instructions so far.
    steps: u64,
    /// At which of them the power fails, and the seed of what survives.
    crash: Option<(u64, u64)>,
}

impl Interpreted {
    /// A GPU whose persistent memory holds `image`.
    pub fn new(lowering: Lowering, image: &[u32]) -> Self {
        let mut gpu = Gpu::new(nearpm_ptx::Config::default());
        let mut bytes = as_bytes(image);
        bytes.resize(bytes.len().next_multiple_of(nearpm_gpusim::LINE as usize), 0);
        let pm = gpu.map_persistent(bytes);
        Self { gpu, lowering, pm, steps: 0, crash: None }
    }

    /// Warp instructions executed so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The power is to fail after so many warp instructions; the launch is an error then. Of what
    /// had not persisted a random part survives.
    pub fn crash_at(&mut self, step: u64, seed: u64) {
        self.crash = Some((step, seed));
    }

    /// What persistent memory holds.
    pub fn image(&self) -> Vec<u32> {
        as_words(self.gpu.persistent(&self.pm))
    }
}

impl Device for Interpreted {
    fn pm(&self) -> u64 {
        self.pm.address
    }

    fn words(&mut self, words: &[u32]) -> Result<u64> {
        allocate(&mut self.gpu, words)
    }

    fn read(&mut self, address: u64, count: usize) -> Result<Vec<u32>> {
        read(&self.gpu, address, count)
    }

    fn launch(&mut self, shape: Shape<'_>, arguments: Arguments) -> Result<()> {
        let entry = kernel(self.lowering, shape.kernel)?;
        let mut run = Run::default();
        if let Some((step, _)) = self.crash {
            run.persistence = Persistence::Tracked;
            run.stop_at = Stop::Step(step.saturating_sub(self.steps));
        }
        let outcome = self.gpu.launch(entry, &Launch::linear(shape.blocks, shape.threads, arguments), &mut run)?;
        self.steps += outcome.counts.warp_instructions;
        if let (Ended::Stopped, Some((_, seed))) = (outcome.ended, self.crash) {
            self.gpu.crash(Choice::Seeded(seed))?;
            bail!("the power failed in {}", shape.kernel);
        }
        Ok(())
    }
}
