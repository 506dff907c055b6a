//! Power cuts at each access of a short script, or at one in a few, for steps without which a cut
//! does harm in a few accesses alone.

use std::ops::RangeInclusive;

use nearpm_driver::mock::{MockCard, MockOptions};
use nearpm_interface::media::MIN_RING_BYTES;

use super::super::object::Object;
use super::{POOL_BYTES, Registered, mock, options, same, say};
use crate::{Durability, Engine, Error, Mechanism, Options, Pool};

/// A card whose pool has one object, all bytes of which have one value.
struct Image {
    medium: Vec<u8>,
    object: Object,
}

impl Image {
    fn new(options: &Options, seed: u64, bytes: usize) -> Result<Image, String> {
        let card = Registered::new(MockCard::new(mock(seed)), seed)?;
        let pool = options.create(&card.pool(), POOL_BYTES).map_err(say)?;
        let object = Object::new(&pool, bytes, 0)?;
        pool.close().map_err(say)?;
        Ok(Image { medium: card.mock.power_cut(), object })
    }

    /// The card powers up with this, and its power fails after so many accesses.
    fn powered(&self, seed: u64, cut_after: Option<u64>) -> Result<Registered, String> {
        let settings = MockOptions { cut_after, ..mock(seed) };
        Registered::new(MockCard::with_medium(settings, self.medium.clone()), seed)
    }

    /// The value that a card recovers which powers up with this memory.
    fn recovered(&self, options: &Options, seed: u64, medium: Vec<u8>) -> Result<u8, String> {
        let card = Image { medium, ..*self }.powered(seed, None)?;
        let pool = options.open(&card.pool()).map_err(say)?;
        self.object.value(&pool)
    }

    /// Cuts a script at one access in `stride`, the others by other seeds. It is told the values
    /// that may survive, from the last one that was acknowledged to the last one that was begun.
    fn cuts(
        &self,
        options: &Options,
        seed: u64,
        stride: u64,
        script: impl Fn(Pool, &mut Values) -> Result<(), Error>,
    ) -> Result<(), String> {
        let dry = self.powered(seed, None)?;
        let pool = options.open(&dry.pool()).map_err(say)?;
        let opened = dry.mock.accesses();
        script(pool, &mut (0..=0)).map_err(say)?;
        for cut_after in (opened + seed % stride..=dry.mock.accesses()).step_by(stride as usize) {
            let card = self.powered(seed, Some(cut_after))?;
            let pool = options.open(&card.pool()).map_err(say)?;
            let mut values = 0..=0;
            // It fails where the card has gone.
            let _ = script(pool, &mut values);
            let found = self.recovered(options, seed, card.mock.power_cut())?;
            same(values.contains(&found), true, &format!("{found} is one of {values:?}"))?;
        }
        Ok(())
    }
}

type Values = RangeInclusive<u8>;

/// What is done to the object: a value is begun, and acknowledged with success.
fn acknowledged(values: &mut Values, does: impl FnOnce(u8) -> Result<(), Error>) -> Result<(), Error> {
    let value = values.end() + 1;
    *values = *values.start()..=value;
    does(value)?;
    *values = value..=value;
    Ok(())
}

/// Large transactions of the processor's, each of which takes the slots of the one before it, and
/// the end of the pool.
pub fn slots_used_again(seed: u64) -> Result<(), String> {
    let durability = [Durability::Durable, Durability::Asynchronous][seed as usize / 4 % 2];
    let options = options(Mechanism::Redo).engine(Engine::Cpu).ring_bytes(MIN_RING_BYTES).durability(durability);
    // The ring has no room for two.
    let image = Image::new(&options, seed, MIN_RING_BYTES as usize * 5 / 9)?;
    image.cuts(&options, seed, 4, |pool, values| {
        for _ in 0..2 {
            let set = |value| image.object.set(&pool, value);
            match durability {
                Durability::Durable => acknowledged(values, set)?,
                Durability::Asynchronous => {
                    *values = *values.start()..=values.end() + 1;
                    set(*values.end())?;
                }
            }
        }
        acknowledged(values, |value| image.object.set(&pool, value).and_then(|()| pool.close()))
    })
}

/// Commits that nobody waits for, and calls that make them durable.
pub fn persisted(mechanism: Mechanism, seed: u64) -> Result<(), String> {
    let engine = [Engine::Cpu, Engine::Card][seed as usize % 2];
    let options = options(mechanism).engine(engine).durability(Durability::Asynchronous);
    let image = Image::new(&options, seed, 300)?;
    image.cuts(&options, seed, 1, |pool, values| {
        for _ in 0..3 {
            *values = *values.start()..=values.end() + 1;
            image.object.set(&pool, *values.end())?;
            acknowledged(values, |value| image.object.set(&pool, value).and_then(|()| pool.persist()))?;
        }
        Ok(())
    })
}

/// The recovery of a redo log that is longer than the part of the ring that every recovery reads,
/// and of which nothing is applied.
pub fn long_log(seed: u64) -> Result<(), String> {
    let engine = [Engine::Cpu, Engine::Card][seed as usize % 2];
    let options = options(Mechanism::Redo).engine(engine);
    let image = Image::new(&options, seed, MIN_RING_BYTES as usize * 5 / 4)?;
    let card = image.powered(seed, None)?;
    let pool = options.open(&card.pool()).map_err(say)?;
    image.object.set(&pool, 1).map_err(say)?;
    let logged = Image { medium: card.mock.power_cut(), ..image };
    drop(pool);

    let dry = logged.powered(seed, None)?;
    let before = dry.mock.accesses();
    drop(options.open(&dry.pool()).map_err(say)?);
    for cut_after in before..dry.mock.accesses() {
        let card = logged.powered(seed, Some(cut_after))?;
        let opened = options.open(&card.pool());
        let medium = card.mock.power_cut();
        drop(opened);
        same(logged.recovered(&options, seed, medium)?, 1, "what was acknowledged")?;
    }
    Ok(())
}

/// Primitives: old values that are logged, and new ones.
pub fn primitives(seed: u64) -> Result<(), String> {
    let engine = [Engine::Card, Engine::Cpu][seed as usize % 2];
    let options = options(Mechanism::Undo).engine(engine);
    let image = Image::new(&options, seed, 300)?;
    image.cuts(&options, seed, 1, |pool, values| {
        for _ in 0..2 {
            acknowledged(values, |value| image.object.store(&pool, value))?;
        }
        acknowledged(values, |value| image.object.apply(&pool, value))
    })
}
