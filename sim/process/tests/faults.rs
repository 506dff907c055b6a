//! Ten faults of the transport. Each is a clear error, nobody waits for ever, and nothing durable
//! is lost.

mod common;

use std::process::Command as Process;
use std::time::{Duration, Instant};

use common::proxy::{self, End};
use common::workload::{Known, create, options, reopen_and_verify, work};
use common::{BYTES, Registered, Simulator, TIMEOUT};
use nearpm::Mechanism;
use nearpm_driver::card::PoolMapping;
use nearpm_driver::pci::{Caching, PciFunction};
use nearpm_driver::vfio_user::{self, VfioUserError};
use nearpm_driver::{Card, CardError, FirmwareError, Waiting};
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::firmware::ImageHead;
use nearpm_interface::geometry::POOLS_BASE;
use nearpm_interface::registers as reg;

/// How long a client in a hurry waits.
const SHORT: Duration = Duration::from_secs(1);
/// More transactions than are done before a fault.
const MANY: u64 = 1_000_000;
const PAGE: u64 = 4096;

/// A simulator with a pool in which something was done.
fn prepared() -> (Simulator, Known) {
    let simulator = Simulator::new("trapping");
    let registered = simulator.open();
    let pool = create(&registered, Mechanism::Undo);
    let mut known = Known::default();
    work(&pool, &mut known, 3).unwrap();
    pool.close().unwrap();
    drop(registered);
    (simulator, known)
}

fn still_there(simulator: &Simulator, mut known: Known) {
    reopen_and_verify(&simulator.open(), Mechanism::Undo, &mut known);
}

/// Maps a part of the card that no pool has, on page 0.
fn map(card: &Card) -> PoolMapping {
    let bytes = 1 << 20;
    let mapping = PoolMapping {
        pool: 77,
        thread: 0,
        base: POOLS_BASE + (2 << 20),
        bytes,
        ring: bytes - 65536,
        ring_bytes: 65536,
        committed: 0,
    };
    card.map_pool(mapping).unwrap();
    mapping
}

fn fence(mapping: &PoolMapping) -> Command {
    Command { opcode: Opcode::Fence as u8, pool: mapping.pool, thread: mapping.thread, ..Command::default() }
}

fn copy(mapping: &PoolMapping, from: u64, to: u64) -> Command {
    Command {
        opcode: Opcode::ShadowCopy as u8,
        source: from * PAGE,
        destination: to * PAGE,
        length: PAGE as u32,
        ..fence(mapping)
    }
}

#[test]
fn a_truncated_reply() {
    let (simulator, mut known) = prepared();
    let mut among_transactions = 0;
    for (budget, end) in [
        (0, End::Closed),
        (9, End::Closed),
        (9, End::Silent),
        (16, End::Silent),
        (180, End::Closed),
        (700, End::Closed),
        (1000, End::Silent),
        (20_000, End::Closed),
        (20_007, End::Silent),
        (300_000, End::Closed),
        (300_007, End::Silent),
    ] {
        let start = Instant::now();
        let path = proxy::start(&simulator.socket(), budget, end);
        let function = match vfio_user::open(&path, SHORT) {
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("did not answer") || text.contains("ended"), "{budget} {end:?}: {text}");
                continue;
            }
            Ok(function) => std::sync::Arc::new(function),
        };
        if let Ok(registered) = Registered::open(function.clone(), SHORT)
            && let Ok(pool) = options(Mechanism::Undo).open(&registered.location("bank"))
        {
            let before = known.acknowledged;
            work(&pool, &mut known, MANY).unwrap_err();
            among_transactions += u32::from(known.acknowledged > before);
        }
        let failure = function.failure().expect("it was given up");
        let expected = if end == End::Closed { "ended" } else { "did not answer" };
        assert!(failure.contains(expected), "{budget} {end:?}: {failure}");
        assert!(function.config_read(0, &mut [0; 4]).is_err());
        assert!(start.elapsed() < TIMEOUT, "{budget} {end:?}");
    }
    assert!(among_transactions >= 2, "replies broke off among transactions {among_transactions} times");
    still_there(&simulator, known);
}

#[test]
fn a_lost_interrupt() {
    let (simulator, known) = prepared();
    let registered = simulator.open();
    let mapping = map(&registered.card);
    let wait = |ns| registered.function.wait_interrupt(1, ns).unwrap();
    let command = || registered.card.post(1, fence(&mapping), true).unwrap();
    simulator.tell("lose-interrupts 1");
    let ticket = command();
    assert!(!wait(SHORT.as_nanos() as u64), "it was lost");
    registered.card.wait(ticket).unwrap();
    let ticket = command();
    assert!(wait(TIMEOUT.as_nanos() as u64), "the next one comes");
    registered.card.wait(ticket).unwrap();
    drop(registered);
    still_there(&simulator, known);
}

#[test]
fn who_sleeps_until_interrupts_outlives_their_loss() {
    let (simulator, mut known) = prepared();
    let registered = Registered::waiting(simulator.connect(), TIMEOUT, Waiting::Interrupts).unwrap();
    let mapping = map(&registered.card);
    // The card goes on only as accesses come, and a sleeper makes one only when no interrupt came
    // in time.
    simulator.tell("pause");
    for (to, lost) in [(100, 0), (101, 1000)] {
        simulator.tell(&format!("lose-interrupts {lost}"));
        let ticket = registered.card.post(1, copy(&mapping, 0, to), true).unwrap();
        let start = Instant::now();
        registered.card.wait(ticket).unwrap();
        assert!(start.elapsed() >= Duration::from_millis(1), "it has not slept");
    }
    simulator.tell("resume");
    simulator.tell("lose-interrupts 3");
    let pool = options(Mechanism::Undo).open(&registered.location("bank")).unwrap();
    let until = known.transactions + 30;
    work(&pool, &mut known, until).unwrap();
    pool.close().unwrap();
    drop(registered);
    still_there(&simulator, known);
}

#[test]
fn a_reset_in_the_middle_of_commands() {
    let (simulator, known) = prepared();
    let registered = simulator.open();
    let mapping = map(&registered.card);
    let pages = 12;
    let window = registered.card.window(mapping.base..mapping.base + mapping.bytes, Caching::Uncached).unwrap();
    for page in 0..pages {
        window.store(page * PAGE, &[page as u8 + 1; PAGE as usize]);
    }
    let commands: Vec<_> = (0..pages).map(|page| copy(&mapping, page, 100 + page)).collect();
    // The card goes on only as accesses come, so that the reset cannot come too late.
    simulator.tell("pause");
    let last = registered.card.post_all(1, &commands, false).unwrap().unwrap();
    registered.card.read_back(last).unwrap();
    let before = simulator.statistic("resets_under_way");
    registered.function.reset().unwrap();
    assert_eq!(simulator.statistic("resets_under_way"), before + 1, "commands are under way");
    assert_eq!(simulator.statistic("idle"), 1, "the reset drains before it returns");
    // Memory space is decoded again: a reset clears the command register.
    registered.function.config_write(4, &[2, 0]).unwrap();
    assert_eq!(registered.card.registers().read(reg::MAPPED), 0, "mappings are forgotten");
    simulator.tell("resume");
    drop(window);
    drop(registered);
    let registered = simulator.open();
    let window = registered.card.window(mapping.base..mapping.base + mapping.bytes, Caching::Uncached).unwrap();
    for page in 0..pages {
        let mut found = vec![0; PAGE as usize];
        window.load((100 + page) * PAGE, &mut found);
        assert!(found.iter().all(|&byte| byte == page as u8 + 1), "page {page} was accepted and is not copied");
    }
    drop(window);
    drop(registered);
    still_there(&simulator, known);
}

#[test]
fn a_completion_timeout() {
    let (simulator, mut known) = prepared();
    let function = std::sync::Arc::new(vfio_user::open(&simulator.socket(), SHORT).unwrap());
    let registered = Registered::open(function.clone(), SHORT).unwrap();
    let pool = options(Mechanism::Undo).open(&registered.location("bank")).unwrap();
    simulator.tell("freeze");
    let start = Instant::now();
    let error = work(&pool, &mut known, MANY).unwrap_err().to_string();
    assert!(error.contains("gone"), "{error}");
    assert!(function.failure().unwrap().contains("did not answer"), "{:?}", function.failure());
    drop(pool);
    drop(registered);
    assert!(start.elapsed() < TIMEOUT);
    simulator.tell("thaw");
    still_there(&simulator, known);
}

#[test]
fn all_ones() {
    let (simulator, mut known) = prepared();
    let registered = simulator.open();
    let pool = options(Mechanism::Undo).open(&registered.location("bank")).unwrap();
    simulator.tell("unplug");
    let error = work(&pool, &mut known, MANY).unwrap_err().to_string();
    assert!(error.contains("gone"), "{error}");
    assert!(!registered.card.registers().is_present());
    let text = Registered::open(registered.function.clone(), TIMEOUT).map(drop).unwrap_err().to_string();
    assert!(text.contains("gone"), "{text}");
    drop(pool);
    simulator.tell("plug");
    assert!(!registered.card.registers().is_present(), "who was there when it was pulled out has to open it again");
    drop(registered);
    still_there(&simulator, known);
}

#[test]
fn firmware_of_another_version() {
    let (simulator, known) = prepared();
    let registered = simulator.open();
    let before = registered.card.registers().read(reg::FIRMWARE_CRC);
    let mut image = nearpm_firmware::standard().bytes().to_vec();
    let mut head = ImageHead::from_bytes(image[..ImageHead::SIZE].try_into().unwrap());
    head.isa += 1;
    image[..ImageHead::SIZE].copy_from_slice(&head.to_bytes());
    match registered.card.load_firmware(&image) {
        Err(CardError::Firmware(FirmwareError::BadVersion)) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(registered.card.registers().read(reg::FIRMWARE_CRC), before, "the one of before is in force");
    drop(registered);
    still_there(&simulator, known);
}

#[test]
fn a_second_process() {
    let (simulator, known) = prepared();
    let first = simulator.open();
    match vfio_user::open(&simulator.socket(), TIMEOUT) {
        Err(error @ VfioUserError::Busy { .. }) => {
            let text = error.to_string();
            assert!(text.contains("in use by another process") && text.contains("card.socket"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    // Another program, too, and not only this library.
    let error = nearpm_simcard::store::Store::open(&simulator.pm(), BYTES).err().unwrap().to_string();
    assert!(error.contains("another process"), "{error}");
    assert!(first.card.registers().is_present());
    drop(first);
    still_there(&simulator, known);
}

#[test]
fn memory_that_is_taken_away_from_the_card() {
    let (simulator, known) = prepared();
    let registered = Registered::open(simulator.connect(), SHORT).unwrap();
    let mapping = map(&registered.card);
    simulator.tell("revoke");
    let start = Instant::now();
    let ticket = registered.card.post(1, fence(&mapping), true).unwrap();
    registered.card.read_back(ticket).unwrap();
    match registered.card.wait(ticket) {
        Err(CardError::Timeout { what, .. }) => assert!(what.contains("completion record"), "{what}"),
        other => panic!("{other:?}"),
    }
    assert!(start.elapsed() < TIMEOUT);
    assert!(simulator.statistic("faults") > 0);
    drop(registered);
    still_there(&simulator, known);
}

#[test]
fn a_full_disk_under_the_memory() {
    let (mut simulator, mut known) = prepared();
    simulator.kill();
    let command = simulator.command();
    let mut limited = Process::new("sh");
    // The file may have its images and 128 KiB of journal, and no signal comes: writes fail as on a
    // full disk.
    let blocks = (2 * BYTES + (64 << 10) + (128 << 10)) / 512;
    limited.args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\""), "sh"]);
    limited.arg(command.get_program()).args(command.get_args());
    simulator.start_as(limited);
    let registered = simulator.open();
    let pool = options(Mechanism::Undo).open(&registered.location("bank")).unwrap();
    let error = work(&pool, &mut known, MANY).unwrap_err().to_string();
    assert!(error.contains("gone"), "{error}");
    drop(pool);
    let told = simulator.tell("statistics");
    assert!(told.contains("make room") && told.contains("powered=0"), "{told}");
    drop(registered);
    simulator.kill();
    simulator.start();
    still_there(&simulator, known);
}

#[test]
fn a_simulator_that_is_killed() {
    let (mut simulator, mut known) = prepared();
    let registered = simulator.open();
    let pool = options(Mechanism::Undo).open(&registered.location("bank")).unwrap();
    work(&pool, &mut known, 5).unwrap();
    simulator.kill();
    let start = Instant::now();
    let error = work(&pool, &mut known, MANY).unwrap_err().to_string();
    assert!(error.contains("gone"), "{error}");
    assert!(registered.function.failure().unwrap().contains("ended"));
    let text = vfio_user::open(&simulator.socket(), TIMEOUT).unwrap_err().to_string();
    assert!(text.contains("start the simulator"), "{text}");
    drop(pool);
    drop(registered);
    assert!(start.elapsed() < TIMEOUT);
    simulator.start();
    still_there(&simulator, known);
}
