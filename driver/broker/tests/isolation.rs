//! What one process posts, stores to registers and is answered with reaches nothing of another
//! one's. The card is the hostile one of the driver's tests.

mod common;

use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;

use common::{MEMORY, POOL_BYTES, RING, Shared, TIMEOUT, claim_after, mapping, range, shared, works};
use nearpm_driver::card::PoolMapping;
use nearpm_driver::mock::MockOptions;
use nearpm_driver::pci::{Caching, PciFunction};
use nearpm_driver::{Card, CardError, CommandError, Latched};
use nearpm_interface::command::{Command, Opcode, slot_offset};
use nearpm_interface::geometry::{
    COMMAND_BAR, COMMAND_PAGE_BYTES, COMMAND_PAGES, FIRMWARE_BASE, PM_BAR, REGISTER_BAR_BYTES, SAVE_BASE,
};
use nearpm_interface::registers as reg;
use proptest::prelude::*;

/// What the card's memory holds, past the broker.
fn memory(shared: &Shared) -> Vec<u8> {
    let mut bytes = vec![0; MEMORY];
    shared.mock.finish_commands();
    shared.mock.map(PM_BAR, 0..MEMORY as u64, Caching::Uncached).unwrap().load(0, &mut bytes);
    bytes
}

/// Something that a process does.
#[derive(Clone, Debug)]
enum Deed {
    Post(usize, Command),
    Half(usize, Vec<u8>),
}

fn command() -> impl Strategy<Value = Command> {
    let offset = prop_oneof![(0..POOL_BYTES / 64).prop_map(|line| line * 64), 0..2 * MEMORY as u64, any::<u64>()];
    let ranges = (offset.clone(), offset.clone(), offset);
    let length = prop_oneof![Just(64u32), Just(4096), 0..300u32 << 10];
    let participants = prop_oneof![4 => Just(0u32), 1 => any::<u32>()];
    (0..32u8, 1..4u32, 0..2u16, ranges, length, 1..200u64, participants).prop_map(
        |(opcode, pool, thread, (source, destination, auxiliary), length, txid, participants)| Command {
            opcode,
            pool,
            thread,
            source,
            destination,
            auxiliary,
            length,
            txid,
            participants,
            sequence: txid,
            ..Command::default()
        },
    )
}

/// Mappings of anything, also of what is another one's.
fn map_command() -> impl Strategy<Value = Command> {
    let base = prop_oneof![(0..MEMORY as u64 / 4096).prop_map(|page| page * 4096), any::<u64>()];
    (1..4u32, 0..3u16, base, 1..64u64).prop_map(|(pool, thread, source, pages)| Command {
        opcode: Opcode::Map as u8,
        pool,
        thread,
        source,
        destination: pages * 4096,
        length: 4096,
        ..Command::default()
    })
}

fn deed() -> impl Strategy<Value = Deed> {
    let page = 0..COMMAND_PAGES;
    prop_oneof![
        6 => (page.clone(), command()).prop_map(|(page, command)| Deed::Post(page, command)),
        2 => map_command().prop_map(|command| Deed::Post(0, command)),
        1 => (page, prop::collection::vec(any::<u8>(), 1..64)).prop_map(|(page, bytes)| Deed::Half(page, bytes)),
    ]
}

/// Posts a command; on success, gives what it may have made the process's own.
fn post(card: &Card, page: usize, command: Command, theirs: &PoolMapping) -> Option<Range<u64>> {
    let ticket = card.post(page, command, true).unwrap();
    let outcome = card.wait(ticket);
    let refused = |outcome: &Result<(), CardError>| match outcome {
        Err(CardError::Command(failure)) => Some(failure.error),
        Err(other) => panic!("{other}"),
        Ok(()) => None,
    };
    if command.pool == theirs.pool {
        let error = refused(&outcome).expect("it names the other one's pool");
        assert!(!error.had_side_effects(), "{error}");
    }
    let mapped = outcome.is_ok() && command.opcode == Opcode::Map as u8;
    mapped.then(|| command.source..command.source + command.destination)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_a_process_does_reaches_what_is_not_its_own(
        seed in 0..1000u64,
        deeds in prop::collection::vec(deed(), 1..60),
        pokes in prop::collection::vec((0..REGISTER_BAR_BYTES as u32 / 4, any::<u32>()), 0..40),
    ) {
        let shared = shared(MockOptions { seed, ..MockOptions::default() });
        let (mine, theirs) = (mapping(1, 0), mapping(2, 5));
        let (me, them) = (shared.connect(), shared.connect());
        them.map_pool(theirs).unwrap();
        works(&them, &theirs, 7);
        me.map_pool(mine).unwrap();
        let before = memory(&shared);
        let mut own = vec![range(&mine)];
        for deed in deeds {
            match deed {
                Deed::Post(page, command) => own.extend(post(&me, page, command, &theirs)),
                Deed::Half(page, bytes) => {
                    let pages = 0..(COMMAND_PAGES * COMMAND_PAGE_BYTES) as u64;
                    let commands = me.function().map(COMMAND_BAR, pages, Caching::Uncached).unwrap();
                    commands.store(slot_offset(page, 3), &bytes);
                }
            }
        }
        prop_assert!(own.iter().all(|own| own.end <= range(&theirs).start || range(&theirs).end <= own.start));
        for (register, value) in pokes {
            me.registers().write(4 * register, value);
        }
        let after = memory(&shared);
        for (at, (old, new)) in (0..).step_by(64).zip(before.chunks(64).zip(after.chunks(64))) {
            prop_assert!(old == new || own.iter().any(|own| own.contains(&at)), "line {at:#x} has changed");
        }
        works(&them, &theirs, 9);
        // It is told of nothing that the other has done.
        prop_assert_eq!(them.push(0).unwrap(), Latched::default());
        drop(me);
        works(&them, &theirs, 11);
        let again = shared.connect();
        claim_after(&again, &mine);
        again.map_pool(mine).unwrap();
        works(&again, &mine, 13);
    }
}

#[test]
fn who_names_what_is_another_ones_is_refused_with_the_contracts_status() {
    let shared = shared(MockOptions::default());
    let (me, them) = (shared.connect(), shared.connect());
    let (mine, theirs) = (mapping(1, 0), mapping(2, 5));
    them.map_pool(theirs).unwrap();
    me.map_pool(mine).unwrap();
    let refused = |page, command| match me.wait(me.post(page, command, true).unwrap()) {
        Err(CardError::Command(failure)) => failure.error,
        other => panic!("{other:?}"),
    };
    let map = |mapping| match me.map_pool(mapping) {
        Err(CardError::Command(failure)) => failure.error,
        other => panic!("{other:?}"),
    };
    let fence = Command { opcode: Opcode::Fence as u8, pool: mine.pool, ..Command::default() };
    assert_eq!(refused(1, Command { pool: theirs.pool, ..fence }), CommandError::Unmapped);
    assert_eq!(refused(1, Command { thread: 1, ..fence }), CommandError::Unmapped);
    assert_eq!(refused(1, Command { participants: 3, ..fence }), CommandError::BadParticipants);
    assert_eq!(refused(1, Command { opcode: Opcode::Unmap as u8, ..fence }), CommandError::NotPrivileged);
    let unmap = Command { opcode: Opcode::Unmap as u8, pool: theirs.pool, ..fence };
    assert_eq!(refused(0, unmap), CommandError::Unmapped);
    assert_eq!(map(theirs), CommandError::MapExists);
    assert_eq!(map(PoolMapping { thread: 1, ..theirs }), CommandError::OutOfRange);
    assert_eq!(map(PoolMapping { pool: 3, ..theirs }), CommandError::OutOfRange);
    assert_eq!(map(PoolMapping { pool: 3, base: 0, ..theirs }), CommandError::OutOfRange);
    for thread in 1..nearpm_broker::claims::ENTRIES as u16 {
        me.map_pool(PoolMapping { thread, ..mine }).unwrap();
    }
    assert_eq!(map(PoolMapping { thread: 99, ..mine }), CommandError::MapFull);
    them.map_pool(PoolMapping { thread: 1, ..theirs }).unwrap();
    works(&me, &mine, 3);
    works(&them, &theirs, 4);
}

#[test]
fn a_failed_log_is_told_to_the_process_whose_it_is_and_to_nobody_else() {
    let shared = shared(MockOptions::default());
    let (me, them) = (shared.connect(), shared.connect());
    let (mine, theirs) = (mapping(1, 0), mapping(2, 5));
    them.map_pool(theirs).unwrap();
    me.map_pool(mine).unwrap();
    shared.mock.break_memory(mine.base + 4096..mine.base + 8192);
    let sequence = nearpm_interface::media::entry_sequence(0, 256);
    let log = Command {
        opcode: Opcode::UndoLog as u8,
        pool: mine.pool,
        txid: 1,
        source: 4096,
        destination: RING + 256,
        sequence,
        length: 64,
        ..Command::default()
    };
    let ticket = me.post(1, log, true).unwrap();
    assert!(me.wait(ticket).is_err());
    let latched = me.push(1).unwrap();
    assert_ne!(latched, Latched::default());
    assert!(matches!(me.verify_logs(mine.pool, latched), Err(CardError::LogFailed { pool: 1, .. })));
    let of_them = them.push(1).unwrap();
    assert_eq!(of_them, Latched::default());
    assert_eq!((them.registers().read(reg::LATCHED), me.registers().read(reg::LATCHED) != 0), (0, true));
    them.verify_logs(theirs.pool, of_them).unwrap();
    works(&them, &theirs, 5);
    // Whoever has it next finds the mapping gone.
    drop(me);
    let me = shared.connect();
    assert_eq!(me.registers().read(reg::LATCHED), 0);
}

#[test]
fn what_belongs_to_the_card_as_a_whole_takes_no_stores() {
    let shared = shared(MockOptions::default());
    let me = shared.connect();
    let before = memory(&shared);
    for at in [SAVE_BASE, SAVE_BASE - 8, FIRMWARE_BASE, FIRMWARE_BASE + 4096 - 8] {
        me.window(at..at + 64, Caching::Uncached).unwrap().store(0, &[0xa5; 64]);
    }
    assert!(memory(&shared) == before);
    let one = me.window(0..64, Caching::Uncached).unwrap();
    one.store(0, &[0xa5; 64]);
    assert_eq!(memory(&shared)[..64], [0xa5; 64]);
}

/// Commands of vfio-user, and the region that is configuration space.
const READ: u16 = 9;
const WRITE: u16 = 10;
const CONFIG: u32 = 7;

/// Reads or writes a region in one message of vfio-user; gives whether the reply tells of an error,
/// and how many bytes follow it.
fn access(stream: &mut UnixStream, command: u16, region: u32, bytes: u32) -> (bool, usize) {
    let data = if command == READ { 0 } else { bytes };
    let mut message = [&1u16.to_ne_bytes()[..], &command.to_ne_bytes()].concat();
    // Size of the message, flags, error; then the offset, in two halves, region and count.
    for word in [32 + data, 0, 0, 0, 0, region, bytes] {
        message.extend(word.to_ne_bytes());
    }
    message.resize(message.len() + data as usize, 0);
    stream.write_all(&message).unwrap();
    let mut header = [0; 16];
    stream.read_exact(&mut header).unwrap();
    let word = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().unwrap());
    let mut rest = vec![0; word(4) as usize - header.len()];
    stream.read_exact(&mut rest).unwrap();
    (word(8) & 1 << 5 != 0, rest.len())
}

#[test]
fn an_access_of_more_than_a_mebibyte_is_refused_and_smaller_ones_go_on() {
    let shared = shared(MockOptions::default());
    let before = memory(&shared);
    let mut raw = UnixStream::connect(&shared.socket).unwrap();
    raw.set_read_timeout(Some(TIMEOUT)).unwrap();
    for region in [PM_BAR as u32, CONFIG] {
        for command in [READ, WRITE] {
            assert_eq!(access(&mut raw, command, region, (1 << 20) + 1), (true, 0));
            assert_eq!(access(&mut raw, READ, region, 4), (false, 16 + 4));
        }
    }
    assert_eq!(access(&mut raw, READ, PM_BAR as u32, 1 << 20), (false, 16 + (1 << 20)));
    assert!(memory(&shared) == before);
    works(
        &{
            let me = shared.connect();
            me.map_pool(mapping(1, 0)).unwrap();
            me
        },
        &mapping(1, 0),
        21,
    );
}
