//! What a recovery takes for a log entry, and in which order it makes things durable.

use std::sync::{Arc, Mutex};

use nearpm::memory::{Image, TestMemory};
use nearpm::{Mechanism, Options, Pool};
use nearpm_interface::geometry::LINE;
use nearpm_interface::media::{EntryHead, entry_sequence, sequence_parts};

const POOL_BYTES: usize = 512 * 1024;

fn options(mechanism: Mechanism) -> Options {
    Options::new().mechanism(mechanism).lanes(2).ring_bytes(16 * 1024).id(7)
}

fn read(pool: &Pool, offset: u64, bytes: usize) -> Vec<u8> {
    pool.tx(|tx| tx.read_vec(offset, bytes)).unwrap()
}

/// Opens a pool whose ring holds, behind an entry that has lost its head, an entry as the data of
/// that one. `forge` makes it of one with everything right, and says where it lies in the ring.
/// Gives what is found of 64 ones that it would overwrite.
fn with_forged_entry(forge: impl Fn(EntryHead, u64) -> EntryHead) -> Vec<u8> {
    let memory = TestMemory::new(POOL_BYTES);
    let pool = options(Mechanism::Undo).create_in(Box::new(memory.clone())).unwrap();
    let (victim, decoy) = pool.tx(|tx| Ok((tx.alloc_zeroed(64)?, tx.alloc_zeroed(4096)?))).unwrap();
    pool.tx(|tx| tx.write(victim, &[1; 64])).unwrap();
    // Data keeps its place in the line, and a scan goes line by line.
    let decoy = decoy.next_multiple_of(LINE as u64);
    pool.undolog_create(0, decoy, 192).unwrap();
    let mut image = memory.durable();
    let is_entry = |at: &usize| EntryHead::decode(&image[*at..]).is_some_and(|entry| entry.offset == decoy);
    let slot = (0..image.len()).step_by(LINE).find(is_entry).expect("the entry is durable");
    let entry = EntryHead::decode(&image[slot..]).unwrap();
    let place = sequence_parts(entry.sequence).1 + LINE as u64;
    let sequence = entry_sequence(1 << 20, place);
    let forged = forge(EntryHead { txid: 1 << 40, offset: victim, length: 64, sequence, ..entry }, place);
    let forged = forged.encode(&[9; 64]);
    image[slot..slot + LINE].fill(0);
    image[slot + LINE..][..forged.len()].copy_from_slice(&forged);
    let pool = options(Mechanism::Undo).open_in(Box::new(TestMemory::from_image(image))).unwrap();
    read(&pool, victim, 64)
}

/// Logged data may look like a log entry. When its own entry is torn, the scan meets it as if it
/// were one: it counts only where pool, thread and place are right.
#[test]
fn data_that_looks_like_an_entry_is_not_taken_for_one() {
    assert_eq!(with_forged_entry(|entry, _| entry), [9; 64], "an entry with everything right counts");
    let elsewhere = |place| entry_sequence(1 << 20, place + 4096);
    let forged = with_forged_entry(|entry, place| EntryHead { sequence: elsewhere(place), ..entry });
    assert_eq!(forged, [1; 64], "it names another place");
    let forged = with_forged_entry(|entry, _| EntryHead { thread: entry.thread + 1, ..entry });
    assert_eq!(forged, [1; 64], "it is another thread's");
    let forged = with_forged_entry(|entry, _| EntryHead { pool: entry.pool + 1, ..entry });
    assert_eq!(forged, [1; 64], "it is another pool's");
}

/// Cuts a recovery at every event, each with many ways in which the caches may have it, and
/// recovers what that leaves: always the same.
fn recovers_however_it_is_cut(mechanism: Mechanism, image: Image, object: u64, expected: &[u8]) {
    let memory = TestMemory::from_image(image);
    let images: Arc<Mutex<Vec<Image>>> = Arc::default();
    let sink = images.clone();
    memory.probe(move |number, _, survive| sink.lock().unwrap().extend((0..24).map(|n| survive(number << 8 | n))));
    let pool = options(mechanism).open_in(Box::new(memory.clone())).unwrap();
    memory.stop_probe();
    assert!(pool.recovery().undone + pool.recovery().redone > 0, "{mechanism:?}: there was something to recover");
    assert_eq!(read(&pool, object, expected.len()), expected);
    let images = std::mem::take(&mut *images.lock().unwrap());
    assert!(images.len() > 200, "{} cuts", images.len());
    for image in images {
        let pool = options(mechanism).open_in(Box::new(TestMemory::from_image(image))).unwrap();
        assert_eq!(read(&pool, object, expected.len()), expected, "{mechanism:?}, after {:?}", pool.recovery());
    }
}

/// The word that makes a log worthless comes behind what the recovery did with the log: an undo
/// log.
#[test]
fn an_undo_log_is_deleted_behind_what_it_restores() {
    let memory = TestMemory::new(POOL_BYTES);
    let pool = options(Mechanism::Undo).create_in(Box::new(memory.clone())).unwrap();
    let object = pool.tx(|tx| tx.alloc_zeroed(512)).unwrap();
    pool.undolog_create(0, object, 512).unwrap();
    pool.store(object, &[1; 512]).unwrap();
    pool.flush(object, 512).unwrap();
    recovers_however_it_is_cut(Mechanism::Undo, memory.durable(), object, &[0; 512]);
}

/// The same for a redo log.
#[test]
fn a_redo_log_counts_as_applied_behind_what_it_stores() {
    let memory = TestMemory::new(POOL_BYTES);
    let pool = options(Mechanism::Redo).create_in(Box::new(memory.clone())).unwrap();
    let object = pool.tx(|tx| tx.alloc_zeroed(512)).unwrap();
    pool.tx(|tx| tx.write(object, &[1; 512])).unwrap();
    // The stores that apply the log are not fenced.
    recovers_however_it_is_cut(Mechanism::Redo, memory.durable(), object, &[1; 512]);
}
