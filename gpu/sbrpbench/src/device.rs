//! What a program runs on: the simulator, or the interpreter.

use anyhow::{Result, ensure};
use nearpm_gpusim::{Config, Simulator, Statistics};
use nearpm_ptx::{Arguments, Gpu, Launch, PmRange, Run};

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

fn as_bytes(words: &[u32]) -> Vec<u8> {
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
    pm: PmRange,
    /// Of all launches.
    pub statistics: Statistics,
}

impl Simulated {
    /// A GPU whose persistent memory holds `image`.
    ///
    /// # Errors
    /// A configuration that cannot be simulated.
    pub fn new(config: &Config, lowering: Lowering, image: Vec<u32>) -> Result<Self> {
        let mut simulator = Simulator::new(config.clone())?;
        let pm = simulator.map_persistent(as_bytes(&image));
        Ok(Self { simulator, lowering, pm, statistics: Statistics::default() })
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
        let entry = kernel(self.lowering, shape.kernel)?;
        let launch = Launch::linear(shape.blocks, shape.threads, arguments);
        self.statistics += self.simulator.launch(entry, &launch)?;
        Ok(())
    }
}

/// The interpreter with one range of persistent memory. What is stored there is durable when a kernel has ended.
pub struct Interpreted {
    gpu: Gpu,
    lowering: Lowering,
    pm: PmRange,
}

impl Interpreted {
    /// A GPU whose persistent memory holds `image`.
    pub fn new(lowering: Lowering, image: &[u32]) -> Self {
        let mut gpu = Gpu::new(nearpm_ptx::Config::default());
        let mut bytes = as_bytes(image);
        bytes.resize(bytes.len().next_multiple_of(nearpm_gpusim::LINE as usize), 0);
        let pm = gpu.map_persistent(bytes);
        Self { gpu, lowering, pm }
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
        let outcome = self.gpu.launch(entry, &Launch::linear(shape.blocks, shape.threads, arguments), &mut Run::default())?;
        ensure!(outcome.ended == nearpm_ptx::Ended::Done, "{} was stopped", shape.kernel);
        Ok(())
    }
}
