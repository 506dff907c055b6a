//! Pools that somebody damaged on purpose: no endless loop, no panic, no nonsense.

use nearpm::check::{self, Image};
use nearpm::direct::Mode;
use nearpm::memory::{TestMemory, VolatileMemory};
use nearpm::prelude::*;
use nearpm_interface::media::{ChunkWord, SEALED_BITMAP_BYTES, SEALED_BITS};
use nearpm_interface::record::{RecordHead, SEGMENT_MAGIC};
use nearpm_interface::seal;

const BYTES: usize = 1 << 20;

fn options(mode: Mode) -> Options {
    Options::new().mode(mode).id(5)
}

fn pool(mode: Mode) -> (TestMemory, DirectPool) {
    let memory = TestMemory::new(BYTES);
    let pool = DirectPool::create_in(Box::new(memory.clone()), &options(mode)).unwrap();
    (memory, pool)
}

fn image(bytes: &[u8]) -> Image {
    Image::open_in(&VolatileMemory::from_bytes(bytes.to_vec()))
}

/// Offset of a part of a pool.
fn part(bytes: &[u8], name: &str) -> usize {
    image(bytes).info().unwrap().regions.iter().find(|r| r.name == name).unwrap().offset as usize
}

#[test]
fn a_repair_is_seen_through_links() {
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    let options = options(Mode::WorkingCopy).survives(Survives::ProcessCrash);
    DirectPool::create(real.to_str().unwrap(), BYTES as u64, &options).unwrap().close().unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    // The backup of a repair that was begun by either name.
    std::fs::write(folder.path().join("real.repair"), b"...").unwrap();
    for name in [&real, &link] {
        let name = name.to_str().unwrap();
        assert_eq!(check::check(name).unwrap().findings.len(), 1);
        let refused = DirectPool::open(name, &options).unwrap_err();
        assert!(refused.to_string().contains("repair"), "{refused}");
    }
}

#[test]
fn a_chunk_word_that_wraps_is_refused() {
    let (memory, pool) = pool(Mode::WorkingCopy);
    pool.tx(|tx| tx.root_or_zeroed::<[u64; 64]>().map(drop)).unwrap();
    let mut bytes = memory.durable();
    std::mem::forget(pool);
    let words = part(&bytes, "chunk words") + 64;
    let word = ChunkWord::Large { chunks: u32::MAX - 19 }.seal();
    bytes[words + 8 * 20..][..8].copy_from_slice(&word.to_le_bytes());
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(image(&bytes).check().findings.len()));
    assert_eq!(receive.recv_timeout(std::time::Duration::from_secs(5)), Ok(1), "it goes round for ever");
}

#[test]
fn a_record_with_a_number_of_more_than_48_bits_does_not_panic() {
    let (memory, pool) = pool(Mode::WorkingCopy);
    pool.tx(|tx| tx.root_or_zeroed::<[u64; 64]>().map(drop)).unwrap();
    let mut bytes = memory.durable();
    std::mem::forget(pool);
    let magic = SEGMENT_MAGIC.to_le_bytes();
    let at = (0..bytes.len()).step_by(64).find(|&at| bytes[at..].starts_with(&magic)).unwrap() + 64;
    let mut head = RecordHead::from_bytes(bytes[at..].first_chunk().unwrap());
    (head.sequence, head.first) = (1 << 50, 1 << 50);
    head.seal(&mut bytes[at..at + head.bytes as usize]);
    image(&bytes).check();
}

#[test]
fn the_state_of_a_damaged_heap_makes_sense() {
    let (memory, pool) = pool(Mode::WorkingCopy);
    pool.tx(|tx| tx.root_or_zeroed::<[u64; 64]>().map(drop)).unwrap();
    pool.close().unwrap();
    let mut bytes = memory.durable();
    let (words, bitmaps) = (part(&bytes, "chunk words") + 64, part(&bytes, "bitmaps"));
    let word = |chunk: usize| u64::from_le_bytes(bytes[words + 8 * chunk..][..8].try_into().unwrap());
    let run = (0..30).find(|&chunk| matches!(ChunkWord::open(word(chunk)), Some(ChunkWord::Run { .. }))).unwrap();
    let full = seal::seal_bits((1 << SEALED_BITS) - 1).to_le_bytes();
    let bitmap = &mut bytes[bitmaps + SEALED_BITMAP_BYTES as usize * run..][..SEALED_BITMAP_BYTES as usize];
    bitmap.chunks_mut(8).for_each(|word| word.copy_from_slice(&full));
    if let Ok(state) = image(&bytes).heap_state() {
        assert!(state.classes.iter().all(|class| class.free < 1024), "{state:?}");
    }
}
