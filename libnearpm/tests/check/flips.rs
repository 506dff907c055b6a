//! One flipped bit, of all that the library keeps for itself in a direct pool: the check finds it,
//! or nothing depends on it.

use std::ops::Range;

use nearpm::check::{Class, repair};
use nearpm::direct::DirectPool;
use nearpm::memory::TestMemory;
use nearpm::{Mechanism, Options};
use nearpm_interface::geometry::LINE;
use nearpm_interface::media::{CHUNK_BYTES, SEALED_BITMAP_BYTES};
use nearpm_interface::record::{RecordHead, SEGMENT_MAGIC, SegmentHead};

use crate::pools::{check, closed, direct_options, image, killed, part};

/// Every bit in the thorough tier, else one of so many.
fn step(fast: usize) -> usize {
    if nearpm_tier::thorough() { 1 } else { fast }
}

fn open(bytes: &[u8]) -> Result<DirectPool, nearpm::Error> {
    DirectPool::open_in(Box::new(TestMemory::from_image(bytes.to_vec())), &direct_options())
}

/// What programs see: root, and the objects with their contents.
fn contents(pool: &DirectPool) -> (u64, Vec<(u64, Vec<u8>)>) {
    let objects = std::iter::successors(pool.next_object(0), |&object| pool.next_object(object));
    let bytes = |object: u64| {
        let length = pool.usable_bytes(object).unwrap() as usize;
        // SAFETY: the object lies in the pool, and nobody stores to it.
        unsafe { std::slice::from_raw_parts(pool.base().add(object as usize), length) }.to_vec()
    };
    (pool.root(), objects.map(|object| (object, bytes(object))).collect())
}

/// Takes all space, in objects of several sizes, and writes over it.
fn work(pool: &DirectPool) {
    for bytes in [100, 700, 40, 16, 40_000, 16_000, 1000] {
        let mut tx = pool.begin().unwrap();
        while let Ok(taken) = tx.alloc(pool, bytes) {
            // SAFETY: the object is this transaction's own.
            unsafe { pool.base().add(taken.offset as usize).write_bytes(0xee, taken.bytes as usize) };
        }
        tx.abort(pool).unwrap();
    }
}

/// Where log segments begin.
fn segments(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let magic = SEGMENT_MAGIC.to_le_bytes();
    (part("chunks", bytes)..bytes.len()).step_by(4096).filter(move |&at| bytes[at..].starts_with(&magic))
}

/// The parts of a pool that are the library's: all in front of the chunks, and the used lines of
/// log segments.
fn own_parts(bytes: &[u8]) -> Vec<Range<usize>> {
    let used = |at: usize| at..at + 40 * LINE;
    std::iter::once(0..part("chunks", bytes)).chain(segments(bytes).map(used)).collect()
}

/// The newest record of the first segment. A damaged one looks like one that was torn by a power
/// cut, as nothing follows it.
fn newest_record(bytes: &[u8]) -> Range<usize> {
    let Some(segment) = segments(bytes).next() else { return 0..0 };
    let nonce = SegmentHead::from_bytes(bytes[segment..].first_chunk().unwrap()).nonce;
    let (mut at, mut newest) = (segment + LINE, 0..0);
    while let Some((head, _)) = RecordHead::decode(&bytes[at..], nonce) {
        newest = at..at + RecordHead::stride(head.bytes.into()) as usize;
        at = newest.end;
    }
    newest
}

fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    damaged[bit / 8] ^= 1 << (bit % 8);
    damaged
}

fn each_flip(bytes: &[u8], mut judge: impl FnMut(usize, Vec<u8>)) {
    for range in own_parts(bytes) {
        (range.start * 8..range.end * 8).step_by(step(509)).for_each(|bit| judge(bit, flipped(bytes, bit)));
    }
}

/// Flips that a check finds are refused or change nothing; those that it does not find change
/// nothing.
#[test]
fn no_flip_harms_what_programs_have_stored() {
    for bytes in [closed(), killed()] {
        let sound = contents(&open(&bytes).unwrap());
        let newest = newest_record(&bytes);
        let without_newest =
            contents(&open(&flipped(&bytes, newest.start * 8)).unwrap_or_else(|_| open(&bytes).unwrap()));
        let (mut found, mut harmless) = (0, 0);
        each_flip(&bytes, |bit, damaged| {
            let place = format!("bit {} of byte {:#x}", bit % 8, bit / 8);
            let is_sound = check(&damaged).is_sound();
            match open(&damaged) {
                Ok(pool) => {
                    let before = contents(&pool);
                    let may_be_torn = newest.contains(&(bit / 8)) && before == without_newest;
                    assert!(before == sound || may_be_torn, "{place} changes what is there, sound: {is_sound}");
                    work(&pool);
                    assert!(contents(&pool) == before, "{place} harmed what was there, sound: {is_sound}");
                    harmless += 1;
                }
                Err(refused) => {
                    assert!(!is_sound, "{place} is refused and not found: {refused}");
                    found += 1;
                }
            }
        });
        println!("{found} flips found and refused, {harmless} without effect");
        assert!(found > 20);
    }
}

/// In the tables every flip is found, by its class, and put right.
#[test]
fn every_flip_in_the_tables_is_found_and_put_right() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    for bytes in [closed(), killed()] {
        let info = image(&bytes).info().unwrap();
        let region = |name| info.regions.iter().find(|region| region.name == name).unwrap();
        let (start, bitmaps) = (region("chunk words").offset as usize, region("bitmaps").offset as usize);
        let chunks = (region("chunks").bytes / CHUNK_BYTES) as usize;
        let end = bitmaps + chunks * SEALED_BITMAP_BYTES as usize;
        // The log has the root's word anew.
        let root = if info.log.records > 0 { 0 } else { 8 };
        let padding = [start + root..start + LINE, start + LINE + 8 * chunks..bitmaps];
        let mut repaired = 0;
        for bit in (start * 8..end * 8).step_by(step(61)) {
            let damaged = flipped(&bytes, bit);
            let report = check(&damaged);
            let Some(finding) = report.findings.first() else {
                assert!(padding.iter().any(|part| part.contains(&(bit / 8))), "byte {:#x} was not seen", bit / 8);
                continue;
            };
            assert!(matches!(finding.class, Class::ChunkWord | Class::BitmapWord | Class::RootWord), "{finding}");
            assert!(report.findings.len() == 1 && finding.repairable, "{report:?}");
            if bit % (5 * step(61)) < step(61) {
                std::fs::write(&path, &damaged).unwrap();
                let done = repair(path.to_str().unwrap()).unwrap();
                assert!(done.after.is_sound(), "{done:?}");
                let now = std::fs::read(&path).unwrap();
                assert_eq!(contents(&open(&now).unwrap()), contents(&open(&bytes).unwrap()));
                repaired += 1;
            }
        }
        assert!(repaired > 10);
    }
}

/// A pool of direct programs is one for transactions with a mechanism as well, and the other way
/// round, in the form that it has.
#[test]
fn both_kinds_of_pools_work_in_both_forms() {
    let plain = Options::new().lanes(1).ring_bytes(16384).id(3).spare_pages(0);
    let memory = TestMemory::new(crate::pools::BYTES);
    plain.create_in(Box::new(memory.clone())).unwrap().close().unwrap();
    for (version, mut bytes) in [(1, memory.durable()), (4, closed())] {
        for round in 0..4u64 {
            let memory = TestMemory::from_image(bytes);
            if round % 2 == 0 {
                let options = Options::new().mechanism(Mechanism::ALL[round as usize / 2]);
                let pool = options.open_in(Box::new(memory.clone())).unwrap();
                let object = pool.tx(|tx| tx.alloc(40 + 100 * round).inspect(|&object| tx.set_root(object).unwrap()));
                assert_eq!(pool.root().unwrap(), object.unwrap());
                pool.close().unwrap();
            } else {
                let pool = DirectPool::open_in(Box::new(memory.clone()), &direct_options()).unwrap();
                let (last, mut tx) = (pool.root(), pool.begin().unwrap());
                let object = tx.alloc(&pool, 40 + 100 * round).unwrap().offset;
                tx.set_root(object);
                tx.free(&pool, last).unwrap();
                tx.commit(&pool).unwrap();
                pool.close().unwrap();
            }
            bytes = memory.durable();
            assert!(check(&bytes).is_sound(), "{:?}", check(&bytes));
            assert_eq!(image(&bytes).info().unwrap().version, version);
        }
    }
}
