//! Pools that are made where another one was, and the rings of a new pool.

use super::super::super::{Image, TestMemory};
use super::super::common::{Model, create, operations};
use super::super::object::Object;
use super::transactions::{found, recovering, work};
use super::{POOL_BYTES, Survivors, memory, open, options, same, say, with_cuts};
use crate::{Error, Mechanism, Options, Problem};

/// What a cut creation may leave in the place of a pool: that one, a new one, or none that would be
/// opened.
fn old_or_new_or_none(options: &Options, old: &Model, image: Image) -> Result<(), String> {
    match options.open_in(Box::new(TestMemory::from_image(image))) {
        Ok(pool) => {
            let now = found(&pool)?;
            if now.is_empty() || now == *old { Ok(()) } else { Err("neither of the pools".to_owned()) }
        }
        Err(Error::Pool {
            problem:
                Problem::Foreign { .. }
                | Problem::Unfinished
                | Problem::Corrupt { what: "the checksum of the head does not hold", .. },
            ..
        }) => Ok(()),
        Err(other) => Err(say(other)),
    }
}

/// A memory with a pool that a process has left in the middle of its work, and what that held.
fn former(options: &Options, seed: u64) -> Result<(Image, Model), String> {
    let memory = memory(vec![0xa5; POOL_BYTES], seed);
    let pool = options.create_in(Box::new(memory.clone())).map_err(say)?;
    create(&pool).map_err(say)?;
    let survivors = Survivors::new(Model::new());
    work(&pool, &operations(seed + 5000, 40, 300), &survivors)?;
    pool.persist().map_err(say)?;
    Ok((memory.durable(), survivors.last()))
}

pub fn creation(mechanism: Mechanism, seed: u64) -> Result<(), String> {
    let options = options(mechanism, seed);
    let (image, old) = former(&options, seed)?;
    let memory = memory(image, seed);
    let of = options.clone();
    let pool = with_cuts(&memory, 1, Box::new(move |image| old_or_new_or_none(&of, &old, image)), || {
        options.create_in(Box::new(memory.clone())).map_err(say)
    })?;
    let survivors = Survivors::new(Model::new());
    let mut made = recovering(&options, &survivors);
    (0..8).try_for_each(|cut| made(memory.surviving(cut)))?;
    with_cuts(&memory, 7, recovering(&options, &survivors), || {
        create(&pool).map_err(say)?;
        work(&pool, &operations(seed, 8, 300), &survivors)
    })
}

/// The ring of a thread is made and that of transactions grows, where another pool of the same
/// identifier has left whole entries, which would put old bytes back.
pub fn rings(seed: u64) -> Result<(), String> {
    const OBJECT_BYTES: usize = 24 * 1024;
    let options = options(Mechanism::Undo, seed).ring_bytes(64 * 1024);
    let memory = memory(vec![0; POOL_BYTES], seed);
    let pool = options.create_in(Box::new(memory.clone())).map_err(say)?;
    let object = Object::new(&pool, OBJECT_BYTES, 0xee)?;
    object.leave_entries(&pool)?;
    pool.close().map_err(say)?;
    let pool = options.create_in(Box::new(memory.clone())).map_err(say)?;
    same(Object::new(&pool, OBJECT_BYTES, 0x11)?.offset, object.offset, "the place of the object")?;
    pool.close().map_err(say)?;
    let of = options.clone();
    let unchanged = move |image| {
        let pool = open(&of, &TestMemory::from_image(image))?;
        same(object.value(&pool)?, 0x11, "what nobody has changed")
    };
    with_cuts(&memory, 5, Box::new(unchanged), || {
        let pool = open(&options, &memory)?;
        pool.undolog_create(0, object.offset, 64).map_err(say)?;
        pool.reserve_log(POOL_BYTES as u64 / 5).map_err(say)
    })
}
