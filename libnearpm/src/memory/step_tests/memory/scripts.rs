//! Short scripts on an object all bytes of which have one value, cut at nearly each event.

use nearpm_interface::media::MIN_RING_BYTES;

use super::super::super::{Image, TestMemory, run_on_processor};
use super::super::object::Object;
use super::{POOL_BYTES, Survivors, memory, open, options, say, with_cuts};
use crate::{Durability, Error, Mechanism, Options, Pool};

/// An object in a pool, and the values that may survive a cut.
#[derive(Clone)]
struct Subject {
    options: Options,
    object: Object,
    survivors: Survivors<u8>,
}

impl Subject {
    /// A pool with an object of zeros.
    fn new(options: Options, seed: u64, bytes: usize) -> Result<(Subject, TestMemory), String> {
        let memory = memory(vec![0; POOL_BYTES], seed);
        let pool = options.create_in(Box::new(memory.clone())).map_err(say)?;
        let object = Object::new(&pool, bytes, 0)?;
        pool.close().map_err(say)?;
        Ok((Subject { options, object, survivors: Survivors::new(0) }, memory))
    }

    fn recovers(&self, image: Image) -> Result<(), String> {
        let pool = open(&self.options, &TestMemory::from_image(image))?;
        self.survivors.check(&self.object.value(&pool)?)
    }

    /// Begins the next value, which nobody waits for.
    fn begun(&self) -> u8 {
        let value = self.survivors.last() + 1;
        self.survivors.begin(value);
        value
    }

    /// Begins the next value, which is durable when `does` has succeeded.
    fn acknowledged(&self, does: impl FnOnce(u8) -> Result<(), Error>) -> Result<(), Error> {
        does(self.begun())?;
        self.survivors.acknowledge();
        Ok(())
    }

    /// Opens the pool, does this, and cuts the power at one event in so many.
    fn cuts(
        &self,
        memory: &TestMemory,
        one_in: u64,
        script: impl FnOnce(Pool) -> Result<(), Error>,
    ) -> Result<(), String> {
        let subject = self.clone();
        with_cuts(memory, one_in, Box::new(move |image| subject.recovers(image)), || {
            script(open(&self.options, memory)?).map_err(say)
        })?;
        (0..4).try_for_each(|cut| self.recovers(memory.surviving(cut)))
    }
}

/// Large transactions, each of which takes the slots of the one before it, and the end of the pool.
pub fn slots_used_again(seed: u64) -> Result<(), String> {
    // The ring has no room for two.
    let (subject, memory) = Subject::new(options(Mechanism::Redo, seed), seed, MIN_RING_BYTES as usize * 5 / 9)?;
    subject.cuts(&memory, 9, |pool| {
        for _ in 0..2 {
            match seed % 2 {
                0 => subject.acknowledged(|value| subject.object.set(&pool, value))?,
                _ => subject.object.set(&pool, subject.begun())?,
            }
        }
        subject.acknowledged(|value| subject.object.set(&pool, value).and_then(|()| pool.close()))
    })
}

/// Commits that nobody waits for, and calls that make them durable.
pub fn persisted(mechanism: Mechanism, seed: u64) -> Result<(), String> {
    let options = options(mechanism, seed).durability(Durability::Asynchronous);
    let (subject, memory) = Subject::new(options, seed, 300)?;
    subject.cuts(&memory, 1, |pool| {
        for _ in 0..3 {
            subject.object.set(&pool, subject.begun())?;
            subject.acknowledged(|value| subject.object.set(&pool, value).and_then(|()| pool.persist()))?;
        }
        Ok(())
    })
}

/// The recovery of a redo log that is longer than the part of the ring that every recovery reads,
/// and of which nothing is applied.
pub fn long_log(seed: u64) -> Result<(), String> {
    let options = options(Mechanism::Redo, seed).durability(Durability::Durable).ring_bytes(64 * 1024);
    let (subject, memory) = Subject::new(options, seed, MIN_RING_BYTES as usize * 5 / 4)?;
    let pool = open(&subject.options, &memory)?;
    subject.acknowledged(|value| subject.object.set(&pool, value)).map_err(say)?;
    let logged = super::memory(memory.durable(), seed);
    subject.cuts(&logged, 9, |pool| {
        drop(pool);
        Ok(())
    })
}

/// Room in the log that one processor reserves and another one uses: its fences cover no word of
/// the first one's.
pub fn reserved(mechanism: Mechanism, seed: u64) -> Result<(), String> {
    let options = options(mechanism, seed).durability(Durability::Durable).ring_bytes(64 * 1024);
    let (subject, memory) = Subject::new(options, seed, MIN_RING_BYTES as usize * 5 / 4)?;
    subject.cuts(&memory, 9, |pool| {
        run_on_processor(1);
        pool.reserve_log(2 * u64::from(MIN_RING_BYTES))?;
        run_on_processor(2);
        subject.acknowledged(|value| subject.object.set(&pool, value))
    })
}

/// Primitives: old values that are logged, new ones, and what is rolled back.
pub fn primitives(seed: u64) -> Result<(), String> {
    let (subject, memory) = Subject::new(options(Mechanism::Undo, seed), seed, 300)?;
    subject.cuts(&memory, 1, |pool| {
        for _ in 0..2 {
            subject.acknowledged(|value| subject.object.store(&pool, value))?;
        }
        subject.acknowledged(|value| subject.object.apply(&pool, value))?;
        subject.object.log_and_store(&pool, 0xee)?;
        pool.abort_log(0)
    })
}
