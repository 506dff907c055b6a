//! Batches: transactions over all threads of kernels, undone from logs.
//!
//! A batch is one sealed word in PM: generation, and whether it is active. The order is what makes it recoverable: logs are empty, the word
//! says active, kernels log and store and persist, the word says idle, logs are cleared. A crash finds either an active batch, all of whose
//! logs are there, or an idle one, whose logs do not count.

use std::cell::Cell;

use nearpm_gpu::{Object, ObjectKind, PmRegion};
use nearpm_interface::region::{BatchState, OBJECT_ALIGNMENT, OBJECT_WORD, ObjectHead, batch_word, open_batch_word};

use crate::error::{Error, Result};
use crate::log::{Log, read_head, write_head};

/// The state of transactions of kernels.
pub struct Batch {
    region: PmRegion,
    object: Object,
    generation: Cell<u32>,
    state: Cell<BatchState>,
    /// Logs may hold entries of a batch that was committed before a crash.
    unclear: Cell<bool>,
}

/// What a recovery found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The last batch was committed, or there was none: everything was kept.
    Kept {
        /// Its generation.
        generation: u32,
    },
    /// The last batch was active: it was undone.
    Undone {
        /// Its generation.
        generation: u32,
    },
}

impl Batch {
    /// Creates a batch that is idle.
    ///
    /// # Errors
    /// A name that is taken; no room.
    pub fn create(region: &PmRegion, name: &str) -> Result<Batch> {
        let head = ObjectHead { kind: ObjectKind::Batch as u16, ..ObjectHead::default() };
        region.add(name, ObjectKind::Batch, OBJECT_ALIGNMENT, |object| {
            write_head(region, object, &head)?;
            region.write_sealed_word(object.offset + OBJECT_WORD, batch_word(0, BatchState::Idle))
        })?;
        Batch::open(region, name)
    }

    /// Opens a batch. [`Batch::recover`] comes next.
    ///
    /// # Errors
    /// There is none of that name; its word is damaged.
    pub fn open(region: &PmRegion, name: &str) -> Result<Batch> {
        let object = region.find(name, ObjectKind::Batch)?;
        read_head(region, &object)?;
        let place = object.offset + OBJECT_WORD;
        let word = region.read_sealed_word(place)?;
        let (generation, state) = open_batch_word(word)
            .ok_or_else(|| region.corrupt(format!("the word of the batch {name:?} is none of a batch"), place))?;
        let (generation, state, unclear) = (Cell::new(generation), Cell::new(state), Cell::new(true));
        Ok(Batch { region: region.clone(), object, generation, state, unclear })
    }

    /// The generation of the last batch that began, 0 for none.
    pub fn generation(&self) -> u32 {
        self.generation.get()
    }

    /// What it is doing.
    pub fn state(&self) -> BatchState {
        self.state.get()
    }

    fn store(&self, generation: u32, state: BatchState) -> Result<()> {
        self.region.write_sealed_word(self.object.offset + OBJECT_WORD, batch_word(generation, state))?;
        self.generation.set(generation);
        self.state.set(state);
        Ok(())
    }

    /// Begins a batch whose kernels log to `logs`.
    ///
    /// # Errors
    /// [`Error::NotRecovered`] while one is active.
    pub fn begin<'b>(&'b self, logs: &'b [&'b Log]) -> Result<Active<'b>> {
        if self.state.get() == BatchState::Active {
            return Err(Error::NotRecovered { batch: self.object.name.clone() });
        }
        if self.unclear.replace(false) {
            logs.iter().try_for_each(|log| log.clear())?;
        }
        self.store(self.generation.get().wrapping_add(1), BatchState::Active)?;
        Ok(Active { batch: self, logs })
    }

    /// Puts PM right after a crash: if a batch was active, `undo` gives back what it changed, from its logs. It may crash and be called
    /// again: it restores, persists, and removes nothing before.
    ///
    /// # Errors
    /// Those of `undo`; the batch is active still.
    pub fn recover(&self, logs: &[&Log], undo: impl FnOnce() -> Result<()>) -> Result<Outcome> {
        let generation = self.generation.get();
        let was_active = self.state.get() == BatchState::Active;
        if was_active {
            undo()?;
            self.finish(logs)?;
            return Ok(Outcome::Undone { generation });
        }
        logs.iter().try_for_each(|log| log.clear())?;
        self.unclear.set(false);
        Ok(Outcome::Kept { generation })
    }

    /// What kernels stored is durable: the batch is idle, then its logs go.
    fn finish(&self, logs: &[&Log]) -> Result<()> {
        self.region.device().synchronize()?;
        logs.iter().try_for_each(|log| log.check())?;
        self.store(self.generation.get(), BatchState::Idle)?;
        self.unclear.set(true);
        logs.iter().try_for_each(|log| log.clear())?;
        self.unclear.set(false);
        Ok(())
    }
}

/// A batch that is active. Dropping it leaves it so: it must be recovered then.
pub struct Active<'b> {
    batch: &'b Batch,
    logs: &'b [&'b Log],
}

impl Active<'_> {
    /// Commits: what kernels stored and persisted stays. Gives the generation.
    ///
    /// # Errors
    /// What kernels did wrong, or logs had to complain about (a log that was full): the batch is active still, to be recovered.
    pub fn commit(self) -> Result<u32> {
        self.batch.finish(self.logs)?;
        Ok(self.batch.generation())
    }
}
