//! Batches: transactions over all threads of kernels, undone from logs.
//!
//! A batch is one sealed word in PM: generation, and whether it is active. The order is what makes
//! it recoverable: logs are empty, the word says active, kernels log and store and persist, the
//! word says idle, logs are cleared. A crash finds either an active batch, all of whose logs are
//! there, or an idle one, whose logs do not count.
//!
//! A batch may span several GPUs: each has a region with its logs and what it stores, and one of
//! the regions has the word, which commits all of it. The identifiers of the regions are kept
//! beside it, so that a batch is not recovered without one of them, or with another.

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
    /// Identifiers of the regions that it spans; empty where it does not say.
    members: Vec<u32>,
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

    /// Creates a batch that is idle, in the first of several regions, which may be those of several
    /// devices: each has at least one of its logs.
    ///
    /// # Errors
    /// No region, or one that is there twice; a name that is taken, or too long; no room.
    pub fn create_over(regions: &[&PmRegion], name: &str) -> Result<Batch> {
        let mut members: Vec<u32> = regions.iter().map(|region| region.id()).collect();
        members.sort_unstable();
        let count = members.len();
        members.dedup();
        let (Some(first), true) = (regions.first(), members.len() == count) else {
            return Err(Error::Invalid(format!("a batch spans regions that differ, not {members:?}")));
        };
        // The batch comes last: without it there is none yet, and what an earlier attempt left is
        // used.
        let list = members_of(name);
        if first.objects().iter().all(|object| object.name != list) {
            first.add(&list, ObjectKind::Data, 8 * members.len() as u64, |object| {
                let places = (object.offset..).step_by(8);
                places.zip(&members).try_for_each(|(place, &id)| first.write_sealed_word(place, id.into()))
            })?;
        }
        let batch = Batch::create(first, name)?;
        match batch.members == members {
            true => Ok(batch),
            false => Err(Error::Invalid(format!("{list:?} lists other regions already: choose another name"))),
        }
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
        let members = read_members(region, name)?;
        Ok(Batch { region: region.clone(), object, generation, state, unclear, members })
    }

    /// Refuses logs that are not those of the regions that the batch spans.
    fn check_members(&self, logs: &[&Log]) -> Result<()> {
        let there: Vec<u32> = logs.iter().map(|log| log.region().id()).collect();
        let strange = there.iter().find(|id| !self.members.contains(id));
        let missing = self.members.iter().find(|id| !there.contains(id));
        if self.members.is_empty() || strange.is_none() && missing.is_none() {
            return Ok(());
        }
        let (batch, members) = (self.object.name.clone(), self.members.clone());
        Err(Error::OtherRegions { batch, members, there })
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
        self.check_members(logs)?;
        if self.unclear.replace(false) {
            logs.iter().try_for_each(|log| log.clear())?;
        }
        self.store(self.generation.get().wrapping_add(1), BatchState::Active)?;
        Ok(Active { batch: self, logs })
    }

    /// Puts PM right after a crash: if a batch was active, `undo` gives back what it changed, from
    /// its logs. It may crash and be called again: it restores, persists, and removes nothing
    /// before.
    ///
    /// # Errors
    /// Those of `undo`; the batch is active still. [`Error::OtherRegions`].
    pub fn recover(&self, logs: &[&Log], undo: impl FnOnce() -> Result<()>) -> Result<Outcome> {
        self.check_members(logs)?;
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
        logs.iter().try_for_each(|log| log.region().device().synchronize())?;
        logs.iter().try_for_each(|log| log.check())?;
        self.store(self.generation.get(), BatchState::Idle)?;
        self.unclear.set(true);
        logs.iter().try_for_each(|log| log.clear())?;
        self.unclear.set(false);
        Ok(())
    }
}

/// Name of the object that lists the regions of a batch.
fn members_of(name: &str) -> String {
    format!("{name}.regions")
}

/// The regions that a batch spans.
fn read_members(region: &PmRegion, name: &str) -> Result<Vec<u32>> {
    let list = members_of(name);
    let Some(object) = region.objects().into_iter().find(|object| object.name == list) else { return Ok(Vec::new()) };
    let places = (object.offset..object.offset + object.bytes).step_by(8);
    places.map(|place| Ok(region.read_sealed_word(place)? as u32)).collect()
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
    /// What kernels did wrong, or logs had to complain about (a log that was full): the batch is
    /// active still, to be recovered.
    pub fn commit(self) -> Result<u32> {
        self.batch.finish(self.logs)?;
        Ok(self.batch.generation())
    }
}
