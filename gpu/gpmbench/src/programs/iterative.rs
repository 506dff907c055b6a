//! Iterative programs, checkpointed every so many iterations: a crash loses those since the last checkpoint.

use anyhow::{Result, ensure};
use nearpm_gpm::{Checkpoint, Element};
use nearpm_gpu::{Buffer, PmRegion};

/// A program in the device's memory.
pub trait Stepper {
    /// Does iteration `number`, from 0, of which it depends on nothing but its memory and the number.
    ///
    /// # Errors
    /// What the device refuses.
    fn step(&mut self, number: u32) -> Result<()>;

    /// What is checkpointed, by name; where it is may change with every step, its names and sizes do not.
    fn state(&self) -> Vec<(&'static str, &Buffer)>;
}

/// A program with its checkpoints.
pub struct Iterative<'r, S> {
    region: &'r PmRegion,
    /// The program.
    pub program: S,
    /// Iterations done: is checkpointed, too.
    number: Buffer,
    done: u32,
    every: u32,
}

const NAME: &str = "checkpoint";

/// Bytes of a region for checkpoints of a program.
pub fn region_bytes(program: &impl Stepper) -> u64 {
    let state: u64 = program.state().iter().map(|(_, buffer)| buffer.bytes()).sum();
    (2 * state + (128 << 10)).next_multiple_of(4096)
}

impl<'r, S: Stepper> Iterative<'r, S> {
    /// Begins in a fresh region, or goes on from the newest checkpoint of one that has any. A checkpoint is taken every `every` iterations.
    ///
    /// # Errors
    /// A checkpoint of another program or size; no room.
    pub fn open(region: &'r PmRegion, program: S, every: u32) -> Result<Iterative<'r, S>> {
        ensure!(every > 0, "a checkpoint is taken every 1 iterations or more");
        let number = Buffer::zeroed(region.device(), 16)?;
        let mut iterative = Iterative { region, program, number, done: 0, every };
        if region.objects().iter().all(|object| object.name != NAME) {
            let state = iterative.program.state();
            let bytes = state.iter().map(|(_, buffer)| buffer.bytes().next_multiple_of(128)).sum::<u64>() + 128;
            Checkpoint::create(region, NAME, bytes, state.len() as u32 + 1, 1)?;
        }
        if iterative.checkpoint()?.restore(0)?.is_some() {
            iterative.done = iterative.number.download_words()?[0];
        }
        Ok(iterative)
    }

    /// The checkpoint with everything registered where it is now.
    fn checkpoint(&self) -> Result<Checkpoint> {
        let checkpoint = Checkpoint::open(self.region, NAME)?;
        for (name, buffer) in self.program.state().into_iter().chain([("number", &self.number)]) {
            checkpoint
                .register(0, Element { name: name.to_owned(), address: buffer.address(), bytes: buffer.bytes() })?;
        }
        Ok(checkpoint)
    }

    /// Iterations done.
    pub fn done(&self) -> u32 {
        self.done
    }

    /// Goes on until so many iterations are done.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn run_until(&mut self, iterations: u32) -> Result<()> {
        while self.done < iterations {
            self.program.step(self.done)?;
            self.done += 1;
            if self.done.is_multiple_of(self.every) {
                self.take()?;
            }
        }
        Ok(self.region.device().synchronize()?)
    }

    /// Takes a checkpoint.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn take(&self) -> Result<()> {
        self.number.upload(&self.done.to_le_bytes())?;
        self.checkpoint()?.checkpoint(0)?;
        Ok(())
    }
}
