//! What one process posts, stores to registers and is answered with reaches nothing of another one's. The card is the hostile one of the driver's tests.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nearpm_broker::Share;
use nearpm_driver::card::PoolMapping;
use nearpm_driver::mock::{MockCard, MockOptions};
use nearpm_driver::pci::{Caching, PciFunction};
use nearpm_driver::{Card, CardError, CardOptions, CommandError, Latched, vfio_user};
use nearpm_interface::command::{Command, Opcode, slot_offset};
use nearpm_interface::geometry::{
    COMMAND_BAR, COMMAND_PAGE_BYTES, COMMAND_PAGES, FIRMWARE_BASE, PM_BAR, POOLS_BASE, REGISTER_BAR_BYTES, SAVE_BASE,
};
use nearpm_interface::registers as reg;
use proptest::prelude::*;

const TIMEOUT: Duration = Duration::from_secs(20);
const POOL_BYTES: u64 = 256 << 10;
const RING: u64 = 128 << 10;
const MEMORY: usize = 4 << 20;

/// A card and its broker, for as long as the process lives.
struct Shared {
    mock: MockCard,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

fn shared(options: MockOptions) -> Shared {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let mock = MockCard::new(MockOptions { pm_bytes: MEMORY, ..options });
    let card = Arc::new(Card::open(Arc::new(mock.clone()), CardOptions::default()).unwrap());
    let share = Share::new(card).unwrap();
    let path = socket.clone();
    std::thread::spawn(move || share.serve(&path));
    let start = Instant::now();
    while !socket.exists() {
        assert!(start.elapsed() < TIMEOUT);
        std::thread::yield_now();
    }
    Shared { mock, socket, _folder: folder }
}

impl Shared {
    fn connect(&self) -> Card {
        let function = vfio_user::open(&self.socket, TIMEOUT).unwrap();
        let options = CardOptions { timeout_ns: TIMEOUT.as_nanos() as u64, ..CardOptions::default() };
        Card::open(Arc::new(function), options).unwrap()
    }

    /// What the card's memory holds, past the broker.
    fn memory(&self) -> Vec<u8> {
        let mut bytes = vec![0; MEMORY];
        self.mock.finish_commands();
        self.mock.map(PM_BAR, 0..MEMORY as u64, Caching::Uncached).unwrap().load(0, &mut bytes);
        bytes
    }
}

fn mapping(pool: u32, place: u64) -> PoolMapping {
    PoolMapping {
        pool,
        thread: 0,
        base: POOLS_BASE + place * POOL_BYTES,
        bytes: POOL_BYTES,
        ring: RING,
        ring_bytes: 64 << 10,
        committed: 0,
    }
}

fn range(mapping: &PoolMapping) -> Range<u64> {
    mapping.base..mapping.base + mapping.bytes
}

/// Copies a page in the pool of a process, and looks whether it is there.
fn works(card: &Card, mapping: &PoolMapping, byte: u8) {
    let window = card.window(range(mapping), Caching::Uncached).unwrap();
    window.store(0, &[byte; 4096]);
    let command = Command {
        opcode: Opcode::ShadowCopy as u8,
        pool: mapping.pool,
        thread: mapping.thread,
        destination: 8192,
        length: 4096,
        ..Command::default()
    };
    for page in 0..COMMAND_PAGES {
        let ticket = card.post(page, command, true).unwrap();
        card.read_back(ticket).unwrap();
        card.wait(ticket).unwrap();
    }
    let mut found = [0; 4096];
    window.load(8192, &mut found);
    assert_eq!(found, [byte; 4096]);
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
        let before = shared.memory();
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
        let after = shared.memory();
        for (at, (old, new)) in (0..).step_by(64).zip(before.chunks(64).zip(after.chunks(64))) {
            prop_assert!(old == new || own.iter().any(|own| own.contains(&at)), "line {at:#x} has changed");
        }
        works(&them, &theirs, 9);
        // It is told of nothing that the other has done.
        prop_assert_eq!(them.push(0).unwrap(), Latched::default());
        drop(me);
        works(&them, &theirs, 11);
        works(&{ let me = shared.connect(); me.map_pool(mine).unwrap(); me }, &mine, 13);
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
    let before = shared.memory();
    for at in [SAVE_BASE, SAVE_BASE - 8, FIRMWARE_BASE, FIRMWARE_BASE + 4096 - 8] {
        me.window(at..at + 64, Caching::Uncached).unwrap().store(0, &[0xa5; 64]);
    }
    assert!(shared.memory() == before);
    let one = me.window(0..64, Caching::Uncached).unwrap();
    one.store(0, &[0xa5; 64]);
    assert_eq!(shared.memory()[..64], [0xa5; 64]);
}
