//! Pools to damage, and where their parts are.

use nearpm::check::{Class, Image, Report};
use nearpm::direct::DirectPool;
use nearpm::memory::{TestMemory, VolatileMemory};
use nearpm::{Options, Survives};

pub const BYTES: usize = 1 << 20;

pub fn direct_options() -> Options {
    Options::new().survives(Survives::ProcessCrash).id(3)
}

/// Objects of several sizes, three commits; gives their offsets.
fn fill(pool: &DirectPool) -> Vec<u64> {
    let mut objects = Vec::new();
    for (fill, sizes) in [(1u8, &[100u64, 700][..]), (2, &[40, 48_000, 16]), (3, &[100])] {
        let mut tx = pool.begin().unwrap();
        for &bytes in sizes {
            let object = tx.alloc(pool, bytes).unwrap().offset;
            // SAFETY: the object is this transaction's own.
            unsafe { pool.base().add(object as usize).write_bytes(fill, bytes as usize) };
            objects.push(object);
        }
        tx.set_root(objects[0]);
        tx.commit(pool).unwrap();
    }
    objects
}

/// A direct pool as a process leaves it that is killed: three commits wait in its log.
pub fn killed() -> Vec<u8> {
    let memory = TestMemory::new(BYTES);
    let pool = DirectPool::create_in(Box::new(memory.clone()), &direct_options()).unwrap();
    fill(&pool);
    memory.durable()
}

/// The same of a pool as on a file, where long objects lie at home already.
pub fn killed_on_file() -> Vec<u8> {
    let memory = TestMemory::new(BYTES).one_domain();
    let pool = DirectPool::create_in(Box::new(memory.clone()), &direct_options()).unwrap();
    fill(&pool);
    memory.durable()
}

/// A direct pool that was closed.
pub fn closed() -> Vec<u8> {
    let memory = TestMemory::new(BYTES);
    let pool = DirectPool::create_in(Box::new(memory.clone()), &direct_options()).unwrap();
    fill(&pool);
    pool.close().unwrap();
    memory.durable()
}

/// A pool of the mechanisms with a ring that was used and spare pages.
pub fn undo() -> Vec<u8> {
    let memory = TestMemory::new(BYTES);
    let options = Options::new().lanes(1).ring_bytes(16384).id(3);
    let pool = options.create_in(Box::new(memory.clone())).unwrap();
    for bytes in [100, 700, 48_000] {
        pool.tx(|tx| tx.alloc_zeroed(bytes).and_then(|object| tx.set_root(object))).unwrap();
    }
    pool.close().unwrap();
    memory.durable()
}

pub fn image(bytes: &[u8]) -> Image {
    Image::open_in(&VolatileMemory::from_bytes(bytes.to_vec()))
}

pub fn check(bytes: &[u8]) -> Report {
    image(bytes).check()
}

pub fn classes(report: &Report) -> Vec<Class> {
    report.findings.iter().map(|finding| finding.class).collect()
}

/// Offset of a part of a pool.
pub fn part(name: &str, of: &[u8]) -> usize {
    let info = image(of).info().unwrap();
    let region = info.regions.iter().find(|region| region.name == name);
    region.unwrap_or_else(|| panic!("{name} in {:?}", info.regions)).offset as usize
}

pub fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

pub fn put(bytes: &mut [u8], at: usize, word: u64) {
    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
}
