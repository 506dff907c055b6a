//! Each class of damage, made and found.

use std::collections::BTreeSet;

use nearpm::check::Class;
use nearpm_interface::geometry::LINE;
use nearpm_interface::media::{
    BITMAP_BYTES, CHUNK_BYTES, ChunkWord, ENTRY_MAGIC, ENTRY_VERSION, EntryHead, EntryKind, POOL_GROWN, PoolHead,
    RING_EPOCH, RING_EXTENT, RING_HEAD_BYTES, RING_REDO_APPLIED, RING_REDO_COMMITTED, SEALED_BITMAP_BYTES,
    SEALED_VERSION, entry_sequence,
};
use nearpm_interface::record::{Operation, POOL_APPLIED, POOL_CONFIRMED, RecordHead, SegmentHead};
use nearpm_interface::seal;

use crate::pools::{check, classes, closed, killed, killed_on_file, part, put, undo, word};

const RING: usize = 4096;

type Damage = fn(&mut Vec<u8>);

/// A pool, what is done to it, and whether a repair can put it right.
type Plant = (Class, fn() -> Vec<u8>, Damage, bool);

const PLANTS: &[Plant] = &[
    (Class::HeadBlank, closed, |b| b[..LINE].fill(0), false),
    (Class::HeadMagic, closed, |b| b[0] ^= 0xff, false),
    (Class::HeadMagic, closed, |b| b[0] ^= 0x10, true),
    (Class::HeadVersion, closed, |b| b[8] ^= 8, true),
    (Class::HeadVersion, closed, |b| change_head(b, |head| head.version = 9), false),
    (Class::HeadSeal, closed, |b| b[12] ^= 0x11, false),
    (Class::HeadSeal, closed, |b| b[12] ^= 0x10, true),
    (Class::HeadSeal, closed, |b| b[63] ^= 0x80, true),
    (Class::HeadShape, closed, |b| change_head(b, |head| head.lanes = 0), false),
    (Class::FileShort, closed, |b| b.truncate(b.len() / 2), false),
    (Class::OpenedWord, closed, |b| b[64] = 7, true),
    (Class::GrownWord, closed, |b| b[POOL_GROWN as usize] = 8, true),
    (Class::GrownWord, closed, |b| put(b, POOL_GROWN as usize, 0x1234_5678), false),
    (Class::GrownWord, closed, |b| put(b, POOL_GROWN as usize, seal::seal_word(3)), false),
    (Class::RingWord, undo, |b| b[RING + RING_EPOCH as usize] ^= 4, true),
    (Class::RingWord, undo, |b| put(b, RING + RING_REDO_APPLIED as usize, 0x1234_5678), false),
    (Class::RingWord, undo, |b| blank_epoch_over_entries(b), false),
    (Class::RingExtent, undo, |b| b[RING + RING_EXTENT as usize + 1] ^= 0xff, true),
    (Class::RingRedo, undo, |b| put(b, RING + RING_REDO_COMMITTED as usize, seal::seal_word(1 << 40)), false),
    (Class::RingEntry, undo, |b| plant_entry(b, 8), false),
    (Class::AppliedWord, killed, |b| b[POOL_APPLIED as usize] ^= 1, true),
    (Class::AppliedWord, killed, |b| put(b, POOL_APPLIED as usize, 0x55aa), false),
    (Class::ConfirmedWord, killed, |b| put(b, POOL_CONFIRMED as usize, 0x55aa), false),
    (Class::ConfirmedWord, killed, |b| put(b, POOL_CONFIRMED as usize, 1 << 40), true),
    (Class::ConfirmedWord, killed_on_file, |b| put(b, POOL_CONFIRMED as usize, seal::seal_word(1) ^ 8), true),
    (Class::SegmentHead, killed, |b| xor(b, segment, 1, 1), true),
    (Class::SegmentHead, killed, |b| fill(b, segment, 16, 0xee), false),
    (Class::SegmentLeft, closed, |b| leave_segment(b, true), true),
    (Class::SegmentLeft, closed, |b| leave_segment(b, false), false),
    (Class::RecordSum, killed, |b| xor(b, segment, LINE + 60, 2), true),
    (Class::RecordSum, killed, |b| xor(b, segment, LINE + 4, 64), true),
    (Class::RecordSum, killed, |b| fill(b, |b| segment(b) + LINE + 56, 4, 0xd5), false),
    (Class::RecordHome, killed_on_file, |b| change_home(b), false),
    (Class::RecordOperation, killed, |b| reseal_record(b, 0xffff), false),
    (Class::RecordRange, killed, |b| reseal_record(b, Operation::Clear(0, 0).word()), false),
    (Class::TableWord, undo, |b| fill(b, table, 1, 4), true),
    (Class::TableWord, closed, |b| put_at(b, |b| table(b) + 8, 0x1234_5678), true),
    (Class::TableWord, undo, |b| put_at(b, table, 0x1234_5678), false),
    (Class::TableTwice, undo, |b| put_at(b, table, seal::seal_word(1)), false),
    (Class::ChunkWord, undo, |b| xor(b, large, 4, 1), true),
    (Class::ChunkWord, undo, |b| fill(b, |b| large(b) + 7, 1, 0x99), false),
    (Class::ChunkWord, closed, |b| xor(b, run, 0, 0x10), true),
    (Class::ChunkWord, closed, |b| xor(b, large, 0, 3), false),
    (Class::ChunkWord, killed, |b| xor(b, log_word, 6, 1), true),
    (Class::ChunkSize, undo, |b| put_at(b, run, ChunkWord::Run { object_bytes: 144, chunks: 1 }.encode()), false),
    (Class::ChunkSize, closed, |b| put_at(b, run, ChunkWord::Run { object_bytes: 336, chunks: 1 }.seal()), false),
    (Class::ChunkSpan, undo, |b| put_at(b, large, ChunkWord::Large { chunks: 0xffff }.encode()), false),
    (Class::ChunkSpan, closed, |b| put_at(b, large, ChunkWord::Large { chunks: 0xffff }.seal()), false),
    (Class::ChunkOverlap, closed, |b| overlap(b), false),
    (Class::BitmapBeyond, undo, |b| bits_beyond(b, 640), true),
    (Class::BitmapBeyond, undo, |b| bits_beyond(b, 192), false),
    (Class::BitmapStray, undo, |b| stray(b, 1), true),
    (Class::BitmapStray, undo, |b| stray(b, 3), false),
    (Class::BitmapStray, closed, |b| stray(b, seal::seal_bits(1)), false),
    (Class::BitmapWord, closed, |b| stray(b, 1), true),
    (Class::BitmapWord, closed, |b| stray(b, 3), false),
    (Class::BitmapWord, killed, |b| stray(b, 1 << 60), true),
    (Class::RootWord, closed, |b| xor(b, root, 1, 4), true),
    (Class::RootWord, closed, |b| xor(b, root, 1, 5), false),
    (Class::Root, undo, |b| put_at(b, root, 8), false),
    (Class::Root, closed, |b| put_at(b, root, seal::seal_bits(8)), false),
    (Class::Root, closed, |b| root_in_free_chunk(b), false),
];

/// Changes the head, and seals it again.
fn change_head(bytes: &mut [u8], change: fn(&mut PoolHead)) {
    let line: &mut [u8; LINE] = bytes.first_chunk_mut().unwrap();
    let mut head = PoolHead::from_bytes(line);
    change(&mut head);
    *line = head.to_bytes();
    seal::seal(&[], line);
}

/// Puts an undo entry of a transaction that did not commit into the ring.
fn plant_entry(bytes: &mut [u8], offset: u64) {
    let at = RING_HEAD_BYTES;
    let head = EntryHead {
        magic: ENTRY_MAGIC,
        kind: EntryKind::Undo as u8,
        version: ENTRY_VERSION,
        sequence: entry_sequence(900, at),
        txid: 1 << 30,
        offset,
        length: 8,
        pool: 3,
        ..EntryHead::default()
    };
    let entry = head.encode(&[1; 8]);
    bytes[RING + at as usize..][..entry.len()].copy_from_slice(&entry);
}

fn blank_epoch_over_entries(bytes: &mut [u8]) {
    let object = part("chunks", bytes) as u64;
    plant_entry(bytes, object);
    put(bytes, RING + RING_EPOCH as usize, 0);
}

/// Whether the tables of a pool are sealed.
fn is_sealed(bytes: &[u8]) -> bool {
    PoolHead::from_bytes(bytes.first_chunk().unwrap()).version >= SEALED_VERSION
}

/// Offset of the first chunk word that `wanted` accepts, with its chunk.
fn find(bytes: &[u8], wanted: fn(ChunkWord) -> bool) -> (usize, usize) {
    let words = part("chunk words", bytes) + LINE;
    let decode = if is_sealed(bytes) { ChunkWord::open } else { ChunkWord::decode };
    let is_wanted = |chunk: &usize| decode(word(bytes, words + 8 * chunk)).is_some_and(wanted);
    let chunk = (0..40).find(is_wanted).expect("there is such a chunk");
    (words + 8 * chunk, chunk)
}

fn large(bytes: &[u8]) -> usize {
    find(bytes, |word| matches!(word, ChunkWord::Large { .. })).0
}

fn run(bytes: &[u8]) -> usize {
    find(bytes, |word| matches!(word, ChunkWord::Run { .. })).0
}

fn log_word(bytes: &[u8]) -> usize {
    find(bytes, |word| matches!(word, ChunkWord::Log { .. })).0
}

/// Offset of the log segment.
fn segment(bytes: &[u8]) -> usize {
    let (_, chunk) = find(bytes, |word| matches!(word, ChunkWord::Log { .. }));
    part("chunks", bytes) + chunk * CHUNK_BYTES as usize
}

/// A segment in a pool that has no log, with a head or without.
fn leave_segment(bytes: &mut [u8], with_head: bool) {
    let chunk = 20;
    let at = part("chunk words", bytes) + LINE + 8 * chunk;
    put(bytes, at, ChunkWord::Log { chunks: 1 }.seal());
    if with_head {
        let mut head = SegmentHead {
            magic: nearpm_interface::record::SEGMENT_MAGIC,
            version: nearpm_interface::record::RECORD_VERSION,
            pool: 3,
            nonce: 9,
            bytes: CHUNK_BYTES,
            ..SegmentHead::default()
        }
        .to_bytes();
        seal::seal(&[], &mut head);
        let at = part("chunks", bytes) + chunk * CHUNK_BYTES as usize;
        bytes[at..at + LINE].copy_from_slice(&head);
    }
}

/// Changes the first operation of the first record, and seals the record again.
fn reseal_record(bytes: &mut [u8], operation: u64) {
    let at = segment(bytes) + LINE;
    put(bytes, at + RecordHead::SIZE, operation);
    let head = RecordHead::from_bytes(bytes[at..].first_chunk().unwrap());
    head.seal(&mut bytes[at..at + head.bytes as usize]);
}

/// Changes the first object that lies at home by what a record says, and what records say of others
/// being durable.
fn change_home(bytes: &mut [u8]) {
    let (mut at, mut object) = (segment(bytes) + LINE, None);
    loop {
        let head = RecordHead::from_bytes(bytes[at..].first_chunk().unwrap());
        if RecordHead::decode(&bytes[at..], head.nonce).is_none() {
            break;
        }
        let end = at + head.bytes as usize;
        let mut operation = at + RecordHead::SIZE;
        while let Some((found, rest)) = Operation::decode(&bytes[operation..end]) {
            let next = end - rest.len();
            match found {
                Operation::Home(offset, ..) => drop(object.get_or_insert(offset)),
                Operation::Through(_) => put(bytes, operation + 8, 0),
                _ => {}
            }
            operation = next;
        }
        head.seal(&mut bytes[at..end]);
        at += RecordHead::stride(head.bytes.into()) as usize;
    }
    bytes[object.expect("an object lies at home") as usize] ^= 1;
}

/// An object over whole chunks grows over its neighbours.
fn overlap(bytes: &mut [u8]) {
    let words = part("chunk words", bytes) + LINE;
    let (at, chunk) = find(bytes, |word| matches!(word, ChunkWord::Large { .. }));
    let next = words + 8 * (chunk + 4);
    put(bytes, next, ChunkWord::Large { chunks: 2 }.seal());
    put(bytes, at, ChunkWord::Large { chunks: 5 }.seal());
}

/// A bit behind the last object of a run of such objects. Where one bit of the size makes smaller
/// ones, nobody knows which is wrong.
fn bits_beyond(bytes: &mut [u8], object_bytes: u32) {
    let chunk = 20;
    let words = part("chunk words", bytes) + LINE;
    put(bytes, words + 8 * chunk, ChunkWord::Run { object_bytes, chunks: 1 }.encode());
    let bitmap = part("bitmaps", bytes) + chunk * 128;
    put(bytes, bitmap, 1);
    let beyond = CHUNK_BYTES as usize / object_bytes as usize;
    // Far behind, unless a smaller size is to explain it.
    let bit = if object_bytes == 640 { 1023 } else { beyond };
    bytes[bitmap + bit / 8] |= 1 << (bit % 8);
}

/// Bits of a chunk that is free.
fn stray(bytes: &mut [u8], bits: u64) {
    let at =
        part("bitmaps", bytes) + 20 * if is_sealed(bytes) { SEALED_BITMAP_BYTES } else { BITMAP_BYTES } as usize + 16;
    put(bytes, at, bits);
}

fn root(bytes: &[u8]) -> usize {
    part("chunk words", bytes)
}

fn root_in_free_chunk(bytes: &mut [u8]) {
    let free = part("chunks", bytes) as u64 + 20 * CHUNK_BYTES;
    put_at(bytes, root, seal::seal_bits(free));
}

fn table(bytes: &[u8]) -> usize {
    part("page table", bytes)
}

/// Changes bits of the byte that lies `plus` bytes behind a place.
fn xor(bytes: &mut [u8], place: fn(&[u8]) -> usize, plus: usize, mask: u8) {
    let at = place(bytes) + plus;
    bytes[at] ^= mask;
}

fn fill(bytes: &mut [u8], place: fn(&[u8]) -> usize, length: usize, value: u8) {
    let at = place(bytes);
    bytes[at..at + length].fill(value);
}

fn put_at(bytes: &mut [u8], place: fn(&[u8]) -> usize, word: u64) {
    let at = place(bytes);
    put(bytes, at, word);
}

#[test]
fn each_damage_is_found_and_nothing_else() {
    let mut wrong = Vec::new();
    for (number, (class, pool, damage, repairable)) in PLANTS.iter().enumerate() {
        let mut bytes = pool();
        let before = check(&bytes);
        assert!(before.is_sound() && before.judged_heap, "{class}: {before:?}");
        damage(&mut bytes);
        let report = check(&bytes);
        if classes(&report) != [*class] || report.findings[0].repairable != *repairable {
            wrong.push(format!("plant {number}, {class}: {report:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_class_is_shown() {
    let shown: BTreeSet<Class> = PLANTS.iter().map(|plant| plant.0).collect();
    let missing: Vec<_> = Class::ALL.iter().filter(|class| !shown.contains(class)).collect();
    // The first needs a file beside the pool: `repair.rs`. The others are of regions of GPUs:
    // `gpu/gpm/tests/check.rs`, `gpu/gphash/tests/check.rs`.
    let elsewhere = [
        Class::RepairInterrupted,
        Class::RegionDirectory,
        Class::ObjectHead,
        Class::ObjectWord,
        Class::CheckpointSlot,
        Class::HashPointer,
        Class::HashCell,
        Class::HashKey,
        Class::HashTwice,
        Class::HashUnlike,
    ];
    assert_eq!(missing, elsewhere.iter().collect::<Vec<_>>());
}

/// The page lists each class.
#[test]
fn every_class_is_documented() {
    let page = include_str!("../../../docs/tools.md");
    for class in Class::ALL {
        assert!(page.contains(&format!("| `{class}` |")), "{class} is not in docs/tools.md");
    }
}

/// The library refuses what the check finds, and nothing panics.
#[test]
fn what_is_found_is_refused_or_harmless() {
    for (class, pool, damage, _) in PLANTS {
        let mut bytes = pool();
        damage(&mut bytes);
        let memory = Box::new(nearpm::memory::TestMemory::from_image(bytes));
        let opened = nearpm::direct::DirectPool::open_in(memory, &crate::pools::direct_options());
        // What says nothing of objects.
        let harmless = [Class::OpenedWord, Class::RingWord];
        assert!(opened.is_err() || harmless.contains(class), "{class} was opened");
    }
}
