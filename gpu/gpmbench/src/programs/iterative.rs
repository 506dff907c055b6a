//! Iterative programs, checkpointed every so many iterations: a crash loses those since the last
//! checkpoint.

use anyhow::{Result, ensure};
use nearpm_gpm::{Checkpoint, Element, Taken};
use nearpm_gpu::{Buffer, PmRegion};

/// A program in the device's memory.
pub trait Stepper {
    /// Does iteration `number`, from 0, of which it depends on nothing but its memory and the
    /// number.
    ///
    /// # Errors
    /// What the device refuses.
    fn step(&mut self, number: u32) -> Result<()>;

    /// What is checkpointed, by name; where it is may change with every step, its names and sizes
    /// do not.
    fn state(&self) -> Vec<(&'static str, &Buffer)>;
}

/// A program with its checkpoints.
pub struct Iterative<'r, S> {
    region: &'r PmRegion,
    /// The program.
    pub program: S,
    checkpoint: Checkpoint,
    /// Iterations done: is checkpointed, too.
    number: Buffer,
    done: u32,
    every: u32,
    /// Whether only pages that changed are copied.
    changed: bool,
}

const NAME: &str = "checkpoint";
/// The element that is not the program's.
const NUMBER: &str = "number";

/// Bytes of a region for checkpoints of a program.
pub fn region_bytes(program: &impl Stepper) -> u64 {
    let state: u64 = program.state().iter().map(|(_, buffer)| buffer.bytes()).sum();
    (2 * state + (128 << 10)).next_multiple_of(4096)
}

fn element(name: &str, buffer: &Buffer) -> Element {
    Element { name: name.to_owned(), address: buffer.address(), bytes: buffer.bytes() }
}

impl<'r, S: Stepper> Iterative<'r, S> {
    /// Begins in a fresh region, or goes on from the newest checkpoint of one that has any. A
    /// checkpoint is taken every `every` iterations.
    ///
    /// # Errors
    /// A checkpoint of another program or size; no room.
    pub fn open(region: &'r PmRegion, program: S, every: u32) -> Result<Iterative<'r, S>> {
        ensure!(every > 0, "a checkpoint is taken every 1 iterations or more");
        let number = Buffer::zeroed(region.device(), 16)?;
        let state = program.state();
        if region.objects().iter().all(|object| object.name != NAME) {
            let bytes = state.iter().map(|(_, buffer)| buffer.bytes().next_multiple_of(128)).sum::<u64>() + 128;
            Checkpoint::create(region, NAME, bytes, state.len() as u32 + 1, 1)?;
        }
        let checkpoint = Checkpoint::open(region, NAME)?;
        for (name, buffer) in state.into_iter().chain([(NUMBER, &number)]) {
            checkpoint.register(0, element(name, buffer))?;
        }
        let mut iterative = Iterative { region, program, checkpoint, number, done: 0, every, changed: false };
        if iterative.restore()? {
            iterative.done = iterative.number.download_words()?[0];
        }
        Ok(iterative)
    }

    /// Gives the program's memory what the newest checkpoint has, if there is any. Iterations done
    /// since are not undone in the count.
    ///
    /// # Errors
    /// A checkpoint of another program or size.
    pub fn restore(&self) -> Result<bool> {
        Ok(self.checkpoint.restore(0)?.is_some())
    }

    /// The same, but that from now on only pages that changed are copied.
    pub fn of_changes(self) -> Iterative<'r, S> {
        Iterative { changed: true, ..self }
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
    pub fn take(&self) -> Result<Taken> {
        self.number.upload(&self.done.to_le_bytes())?;
        for (name, buffer) in self.program.state() {
            self.checkpoint.relocate(0, name, buffer.address())?;
        }
        Ok(if self.changed { self.checkpoint.checkpoint_changed(0)? } else { self.checkpoint.checkpoint(0)? })
    }
}
