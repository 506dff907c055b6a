//! Bad input where library, driver and card meet: each a clear error that says what, where and what
//! to do; no panic, and no effect on other data. What one crate refuses by itself is tested there:
//! pool files and options in `libnearpm/tests/refusals.rs`, every malformed command in
//! `sim/tests/model/refusals.rs`, the driver's own limits in `driver/tests/card.rs`.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nearpm::{Engine, Error, Options, Problem, Survives, cards};
use nearpm_driver::card::PoolMapping;
use nearpm_driver::pci::{Caching, Mapping};
use nearpm_driver::{Card, CardError, CardOptions, CommandError, FirmwareError};
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::firmware::IMAGE_BYTES;
use nearpm_interface::geometry::{LINE, POOLS_BASE};
use nearpm_interface::media::{PoolHead, RING_HEAD_BYTES};
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_interface::{registers, seal};
use nearpm_sim::bench::{line_pattern, provisioned};
use nearpm_sim::core::{CardCore, Medium};
use nearpm_sim::host::Parameters;
use nearpm_sim::machine::{Machine, Power};
use nearpm_sim::model::fault::Fault;
use nearpm_sim::model::{Config, ModelCard};
use nearpm_tests::fuzzing;
use nearpm_tests::rig::rtl_cards;

fn power_up(medium: Medium) -> Box<dyn CardCore> {
    Box::new(ModelCard::new(Config::default(), medium))
}

/// Inputs by which a target finds what is planted for it.
const MOST_INPUTS: u64 = 3000;

/// Feeds a fuzz target from seeds, for about the given time; the seed in the message of a failure
/// repeats it.
fn fuzz(name: &str, seconds: u64, longest: usize, target: impl Fn(&[u8])) {
    let seconds = if nearpm_tier::thorough() { 40 * seconds } else { seconds };
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut inputs = 0;
    for seed in (0..).take_while(|_| Instant::now() < end) {
        let data = fuzzing::bytes(seed, longest);
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| target(&data)));
        assert!(run.is_ok(), "{name}: seed {seed}, {} bytes", data.len());
        inputs += 1;
    }
    println!(r#"{{"counts":{{"inputs of the {name}":{inputs},"violations":0}}}}"#);
}

#[test]
fn the_pool_opener_takes_anything() {
    fuzz("pool opener", 3, 600, fuzzing::pool_opener);
}

#[test]
fn the_command_port_takes_anything() {
    fuzz("command port", 3, 6000, |data| fuzzing::command_port(&power_up, data));
}

#[test]
fn a_unit_takes_anything_that_the_checker_takes() {
    fuzz("units", 3, 2000, |data| fuzzing::microprograms(&power_up, data));
}

#[test]
fn a_unit_of_the_rtl_takes_anything_that_the_checker_takes() {
    let cards = rtl_cards(MemoryPorts::One);
    fuzz("RTL's units", 3, 2000, |data| fuzzing::microprograms(&|medium| cards.power_up(medium), data));
}

/// The card's model with a protection that is gone.
fn without(fault: Fault) -> impl Fn(Medium) -> Box<dyn CardCore> {
    move |medium| Box::new(ModelCard::with_fault(Config::default(), medium, fault))
}

/// Each target finds what is planted for it; what is planted in the RTL is in
/// `planted_controls.rs`.
#[test]
fn each_fuzz_target_finds_a_planted_fault() {
    let marks_what_it_opens = |options: &Options, memory: Box<dyn nearpm::memory::Memory>| {
        let last = memory.bytes().saturating_sub(8) / 8 * 8;
        if memory.bytes() > 8 {
            memory.store(last, &[0xff; 8]);
        }
        options.open_in(memory)
    };
    let port = |fault| move |data: &[u8]| fuzzing::command_port(&without(fault), data);
    let units = |fault| move |data: &[u8]| fuzzing::microprograms(&without(fault), data);
    type Target<'a> = Box<dyn Fn(&[u8]) + 'a>;
    let planted: [(&str, usize, Target<'_>); 4] = [
        (
            "an opener that stores before it looks",
            600,
            Box::new(|data| fuzzing::pool_opener_by(&marks_what_it_opens, data)),
        ),
        ("RangesAreNotChecked", 6000, Box::new(port(Fault::RangesAreNotChecked))),
        ("RollbackRoundsToLines", 2000, Box::new(units(Fault::RollbackRoundsToLines))),
        ("CommandPassesHeldStore", 2000, Box::new(units(Fault::CommandPassesHeldStore))),
    ];
    let mut missed = Vec::new();
    for (what, longest, target) in &planted {
        let panics = |seed: &u64| {
            let data = fuzzing::bytes(*seed, *longest);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| target(&data))).is_err()
        };
        match (0..MOST_INPUTS).find(panics) {
            Some(seed) => println!("{what}: found by the seed {seed}"),
            None => missed.push(what),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

/// Two pools side by side on a simulated card, mapped through the driver.
struct TwoPools {
    machine: Machine,
    card: Card,
}

const PM_BYTES: usize = 4 << 20;
const FIRST: PoolMapping = PoolMapping {
    pool: 1,
    thread: 0,
    base: POOLS_BASE,
    bytes: 256 << 10,
    ring: 128 << 10,
    ring_bytes: 128 << 10,
    committed: 4,
};
const SECOND: PoolMapping = PoolMapping { pool: 2, base: FIRST.base + FIRST.bytes, ..FIRST };

/// An undo log of the first line of the first pool.
fn log() -> Command {
    Command {
        opcode: Opcode::UndoLog as u8,
        pool: FIRST.pool,
        txid: 5,
        destination: FIRST.ring + RING_HEAD_BYTES,
        length: 64,
        ..Command::default()
    }
}

fn machine() -> Machine {
    let mut medium = provisioned(PM_BYTES, nearpm_firmware::standard().bytes());
    for address in (POOLS_BASE..SECOND.base + SECOND.bytes).step_by(LINE) {
        medium.write_line(address, &line_pattern(address), u64::MAX);
    }
    Machine::new(Parameters::default(), &power_up, medium)
}

impl TwoPools {
    fn open() -> TwoPools {
        let machine = machine();
        let card = Card::open(Arc::new(machine.function()), CardOptions::default()).unwrap();
        card.map_pool(FIRST).unwrap();
        card.map_pool(SECOND).unwrap();
        TwoPools { machine, card }
    }

    /// The bytes of a pool, as the card holds them.
    fn bytes(&self, pool: PoolMapping) -> Vec<u8> {
        self.machine.settle();
        let window = self.card.window(pool.base..pool.base + pool.bytes, Caching::Uncached).unwrap();
        let mut bytes = vec![0; pool.bytes as usize];
        window.load(0, &mut bytes);
        bytes
    }

    fn run(&self, command: Command) -> Result<(), CardError> {
        let ticket = self.card.post(1, command, true)?;
        self.card.wait(ticket)
    }
}

/// The text of an error must hold each of the parts: what, where, and what was or is to be done.
fn says(error: impl Display, parts: &[&str]) {
    let text = error.to_string();
    assert!(parts.iter().all(|part| text.contains(part)), "{text:?} lacks one of {parts:?}");
}

#[test]
fn a_refused_command_is_named_and_changes_neither_its_pool_nor_the_next() {
    let pools = TwoPools::open();
    let before = (pools.bytes(FIRST), pools.bytes(SECOND));
    let apply = Command { opcode: Opcode::Apply as u8, source: FIRST.ring + RING_HEAD_BYTES, ..log() };
    let cases = [
        (Command { opcode: 0x1f, ..log() }, CommandError::BadOpcode, "command 0x1f"),
        (Command { opcode: 0xee, ..log() }, CommandError::BadOpcode, "command 0xee"),
        (Command { pool: 77, ..log() }, CommandError::Unmapped, "pool 0x4d"),
        (Command { thread: 9, ..log() }, CommandError::Unmapped, "thread 9"),
        (Command { length: 0, ..log() }, CommandError::BadLength, "0 bytes"),
        (Command { length: u32::MAX, ..log() }, CommandError::BadLength, "4294967295 bytes"),
        (Command { destination: log().destination + 1, ..log() }, CommandError::Misaligned, "destination 0x20101"),
        (Command { source: u64::MAX - 62, ..log() }, CommandError::OutOfRange, "source 0xffffffffffffffc1"),
        // What would be the second pool, or begin in the first and end in the second.
        (Command { source: FIRST.bytes, ..log() }, CommandError::OutOfRange, "source 0x40000"),
        (Command { source: FIRST.bytes - 32, ..log() }, CommandError::OutOfRange, "source 0x3ffe0"),
        (Command { destination: FIRST.bytes - 64, ..log() }, CommandError::OutOfRange, "destination 0x3ffc0"),
        (Command { destination: FIRST.bytes + FIRST.ring, ..log() }, CommandError::OutOfRange, "destination 0x60000"),
        (Command { destination: FIRST.bytes, ..apply }, CommandError::OutOfRange, "destination 0x40000"),
        (
            Command { source: apply.source + 32, destination: FIRST.bytes - 32, ..apply },
            CommandError::OutOfRange,
            "destination 0x3ffe0",
        ),
    ];
    for (command, expected, place) in cases {
        match pools.run(command) {
            Err(CardError::Command(failure)) => {
                assert_eq!(failure.error, expected, "{failure}");
                says(failure, &[place, &expected.to_string(), "it had no effect"]);
            }
            other => panic!("{place}: {other:?}"),
        }
    }
    assert!((pools.bytes(FIRST), pools.bytes(SECOND)) == before);
    pools.run(log()).unwrap();
    assert!(pools.bytes(SECOND) == before.1);
}

#[test]
fn the_seventeenth_mapping_is_refused_and_the_sixteen_go_on() {
    let pools = TwoPools::open();
    for thread in 1..15 {
        pools.card.map_pool(PoolMapping { thread, ..SECOND }).unwrap();
    }
    let before = (pools.bytes(FIRST), pools.bytes(SECOND));
    match pools.card.map_pool(PoolMapping { thread: 15, ..SECOND }) {
        Err(CardError::Command(failure)) => {
            assert_eq!(failure.error, CommandError::MapFull);
            says(failure, &["Map", "pool 0x2", "thread 15", "mapping table is full", "it had no effect"]);
        }
        other => panic!("{other:?}"),
    }
    assert!((pools.bytes(FIRST), pools.bytes(SECOND)) == before);
    for (thread, pool) in [(0, FIRST.pool), (0, SECOND.pool), (14, SECOND.pool)] {
        pools.run(Command { pool, thread, ..log() }).unwrap();
    }
}

#[test]
fn a_full_request_fifo_holds_commands_back_and_loses_none() {
    let pools = TwoPools::open();
    let before = pools.bytes(SECOND);
    let posted: Vec<_> = (0..120)
        .map(|n| {
            let slot = FIRST.ring + RING_HEAD_BYTES + n % 4 * 17 * 1024;
            let long = Command { length: 16 * 1024, destination: slot, sequence: n, ..log() };
            pools.card.post(1 + n as usize % 3, long, true).unwrap()
        })
        .collect();
    for ticket in posted {
        pools.card.wait(ticket).unwrap();
    }
    assert!(pools.card.registers().read(registers::STALL_REQUEST_FULL) > 0, "the FIFO was full");
    assert_eq!(pools.card.registers().read(registers::COMMANDS_RETIRED), 122, "with the two mappings");
    assert!(pools.bytes(SECOND) == before);
}

#[test]
fn wrong_firmware_is_refused_and_the_card_works_on_with_the_old_one() {
    let pools = TwoPools::open();
    let before = (pools.bytes(FIRST), pools.bytes(SECOND));
    let in_force = pools.card.registers().read(registers::FIRMWARE_CRC);
    let image = nearpm_firmware::standard().bytes().to_vec();
    // A byte changed, and the checksum made to hold again.
    let resealed = |at: usize| {
        let mut image = image.clone();
        image[at] ^= 1;
        let (head, body) = image.split_at_mut(LINE);
        seal::seal(body, head.try_into().unwrap());
        image
    };
    let mut damaged = image.clone();
    *damaged.last_mut().unwrap() ^= 0x80;
    let size = |found| FirmwareError::BadSize { expected: IMAGE_BYTES, found };
    let cases = [
        (Vec::new(), size(0), "this one has 0"),
        (image[1..].to_vec(), size(IMAGE_BYTES - 1), "this one has"),
        (resealed(0), FirmwareError::BadMagic, "not a firmware image"),
        (resealed(4), FirmwareError::BadVersion, "for another version"),
        (damaged, FirmwareError::BadCrc, "damaged"),
    ];
    for (image, expected, text) in cases {
        match pools.card.load_firmware(&image) {
            Err(error @ CardError::Firmware(found)) => {
                assert_eq!(found, expected);
                says(error, &["firmware was not loaded", text]);
            }
            other => panic!("{expected:?}: {other:?}"),
        }
        assert_eq!(pools.card.registers().read(registers::FIRMWARE_CRC), in_force);
    }
    assert!((pools.bytes(FIRST), pools.bytes(SECOND)) == before);
    pools.run(log()).unwrap();
}

/// Two pools of the library on a simulated card that has a name of its own.
struct NamedCard {
    card: Arc<Card>,
    name: &'static str,
}

impl NamedCard {
    fn open(name: &'static str) -> NamedCard {
        let card = Arc::new(Card::open(Arc::new(machine().function()), CardOptions::default()).unwrap());
        cards::register(name, card.clone());
        for pool in ["first", "second"] {
            let options = Options::new().lanes(1).ring_bytes(64 << 10);
            let pool = options.create(&format!("card:{name}/{pool}"), 1 << 20).unwrap();
            pool.tx(|tx| tx.alloc_zeroed(4096).and_then(|object| tx.set_root(object))).unwrap();
            pool.close().unwrap();
        }
        NamedCard { card, name }
    }

    fn location(&self, pool: &str) -> String {
        format!("card:{}/{pool}", self.name)
    }

    fn window(&self, pool: &str) -> Box<dyn Mapping> {
        let pool = nearpm::list(self.name).unwrap().into_iter().find(|p| p.name == pool).unwrap();
        self.card.window(pool.base..pool.base + pool.bytes, Caching::Uncached).unwrap()
    }

    fn bytes(&self, pool: &str) -> Vec<u8> {
        let mut bytes = vec![0; 1 << 20];
        self.window(pool).load(0, &mut bytes);
        bytes
    }
}

impl Drop for NamedCard {
    fn drop(&mut self) {
        cards::unregister(self.name);
    }
}

#[test]
fn a_damaged_pool_on_a_card_is_refused_and_the_next_one_opens() {
    let card = NamedCard::open("damaged");
    let (first, second) = (card.bytes("first"), card.bytes("second"));
    let head: [u8; LINE] = first[..LINE].try_into().unwrap();
    let changed = |change: &dyn Fn(&mut PoolHead), sealed: bool| {
        let mut parsed = PoolHead::from_bytes(&head);
        change(&mut parsed);
        let mut line = parsed.to_bytes();
        if sealed {
            seal::seal(&[], &mut line);
        }
        line
    };
    let corrupt = |what| Problem::Corrupt { what, offset: 0 };
    let cases = [
        (
            *b"something else entirely, and just as long as the head of a pool.",
            Problem::Foreign { found: u64::from_le_bytes(*b"somethin") },
            "nothing was changed",
        ),
        ([0; LINE], Problem::Unfinished, "remove it and create it again"),
        (
            changed(&|h| h.version = 5, false),
            Problem::Newer { found: 5, supported: 4 },
            "use the library that created it",
        ),
        (changed(&|h| h.bytes ^= 1 << 40, false), corrupt("the checksum of the head does not hold"), "restore it"),
        (changed(&|h| h.bytes = 1 << 21, true), Problem::Truncated { header: 1 << 21, found: 1 << 20 }, "restore it"),
        (changed(&|h| h.pages = 1 << 39, true), corrupt("the head describes an impossible pool"), "restore it"),
    ];
    for (line, expected, remedy) in cases {
        card.window("first").store(0, &line);
        match Options::new().open(&card.location("first")) {
            Err(Error::Pool { location, problem }) => {
                assert_eq!((&location, &problem), (&card.location("first"), &expected));
                says(problem.clone(), &[remedy]);
                says(Error::Pool { location, problem }, &["card:damaged/first"]);
            }
            other => panic!("{expected:?}: {other:?}"),
        }
        assert!(card.bytes("first")[LINE..] == first[LINE..], "{expected:?}: a refusal changed the pool");
        assert!(card.bytes("second") == second, "{expected:?}: the next pool was changed");
    }
    Options::new().open(&card.location("second")).unwrap().check().unwrap();
    card.window("first").store(0, &head);
    Options::new().open(&card.location("first")).unwrap().check().unwrap();
}

#[test]
fn a_full_log_and_a_full_pool_on_a_card_are_refused_without_effect() {
    let card = NamedCard::open("full");
    let second = card.bytes("second");
    let pool = Options::new().engine(Engine::Card).open(&card.location("first")).unwrap();
    let root = pool.root().unwrap();
    let large = pool.tx(|tx| tx.alloc_zeroed(200 << 10)).unwrap();
    let (objects, free) = (pool.objects().unwrap(), pool.free_bytes().unwrap());
    let full_log = pool.tx(|tx| tx.write(root, &[1; 4096]).and_then(|()| tx.write(large, &vec![1; 200 << 10])));
    match full_log {
        Err(error @ Error::TooLarge { what: "the log ring", remedy: "Options::ring_bytes", .. }) => {
            says(error, &["too large", "the log ring", "split it", "Options::ring_bytes"]);
        }
        other => panic!("{other:?}"),
    }
    match pool.tx(|tx| tx.write(root, &[1; 4096]).and_then(|()| tx.alloc(1 << 20))) {
        Err(error @ Error::Full { requested: 0x10_0000, .. }) => {
            says(error, &["the pool is full", "1048576 bytes", "free objects or create a larger pool"]);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(pool.tx(|tx| tx.read_vec(root, 4096)).unwrap(), vec![0; 4096]);
    assert!(pool.tx(|tx| tx.read_vec(large, 200 << 10)).unwrap().iter().all(|&byte| byte == 0));
    assert_eq!((pool.objects().unwrap(), pool.free_bytes().unwrap()), (objects, free));
    pool.check().unwrap();
    assert!(card.bytes("second") == second);
}

/// Opens a file and wants this refusal, with its place and its remedy.
fn refused(path: &str, expected: Problem, remedy: &str) {
    match Options::new().survives(Survives::ProcessCrash).open(path) {
        Err(error @ Error::Pool { .. }) => {
            assert!(matches!(&error, Error::Pool { problem, .. } if *problem == expected), "{error}");
            says(error, &[path, remedy]);
        }
        other => panic!("{expected:?}: {other:?}"),
    }
}

/// Names the pool that another process has open, to the run of this test in a second process.
const OPEN_ELSEWHERE: &str = "NEARPM_TEST_OPEN_ELSEWHERE";

#[test]
fn a_pool_that_another_process_has_open_is_refused() {
    if let Ok(path) = std::env::var(OPEN_ELSEWHERE) {
        refused(&path, Problem::InUse { process: Some(std::os::unix::process::parent_id()) }, "close it there first");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("open").to_str().unwrap().to_owned();
    let pool = Options::new().survives(Survives::ProcessCrash).create(&path, 1 << 20).unwrap();
    pool.tx(|tx| tx.alloc_zeroed(64).and_then(|object| tx.set_root(object))).unwrap();
    let before = std::fs::read(&path).unwrap();
    let second = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_pool_that_another_process_has_open_is_refused"])
        .env(OPEN_ELSEWHERE, &path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&second.stdout);
    assert!(second.status.success() && said.contains("1 passed"), "{said}");
    assert!(std::fs::read(&path).unwrap() == before);
    pool.tx(|tx| tx.root()).unwrap();
}
