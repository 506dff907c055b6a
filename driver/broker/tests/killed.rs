//! What a process had that was killed (SIGKILL) in the middle of something goes to the next one.
//! Each process is this test program, started again.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use common::{Shared, claim_after, connect, mapping, range, shared, works};
use nearpm_driver::mock::MockOptions;
use nearpm_driver::pci::{Caching, PciFunction};
use nearpm_driver::{Card, CardError, CommandError};
use nearpm_interface::geometry::{REGISTER_BAR, REGISTER_BAR_BYTES};
use nearpm_interface::registers as reg;
use nearpm_interface::sharing::{self, action, outcome};

/// Says what a process does before it waits to be killed, and to which broker it goes.
const DEED: &str = "NEARPM_TEST_DEED";
const SOCKET: &str = "NEARPM_TEST_SOCKET";
/// What it says when it has done it.
const DONE: &str = "done";

/// What the processes are when they run.
#[test]
fn role() {
    let (Ok(deed), Ok(socket)) = (std::env::var(DEED), std::env::var(SOCKET)) else { return };
    let card = Arc::new(connect(Path::new(&socket)));
    let mine = mapping(1, 0);
    let has = |what: &str| deed.split('+').any(|deed| deed == what);
    let _lock = has("lock").then(|| card.lock_table().unwrap());
    if has("claim") {
        assert!(card.claim_pool(mine.pool, range(&mine)).unwrap());
    }
    if has("map") {
        card.map_pool(mine).unwrap();
    }
    println!("\n{DONE}");
    std::io::stdout().flush().unwrap();
    loop {
        std::thread::park();
    }
}

/// A process that has done something and waits.
struct Process(Child);

impl Process {
    fn that_did(deed: &str, shared: &Shared) -> Process {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "role", "--nocapture", "--test-threads=1"])
            .env(DEED, deed)
            .env(SOCKET, &shared.socket);
        let mut process = Process(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap());
        let output = BufReader::new(process.0.stdout.take().unwrap());
        assert!(output.lines().any(|line| line.unwrap() == DONE), "it ended before it had done {deed}");
        process
    }

    /// SIGKILL.
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Maps the pool, with all the commands that a process can give.
fn claimed_pool_works(card: &Card) {
    card.map_pool(mapping(1, 0)).unwrap();
    works(card, &mapping(1, 0), 0x5a);
}

/// The card's own mask of mapping entries, past the broker.
fn mapped(shared: &Shared) -> u32 {
    let registers = shared.mock.map(REGISTER_BAR, 0..REGISTER_BAR_BYTES as u64, Caching::Uncached).unwrap();
    let mut mask = [0; 4];
    registers.load(u64::from(reg::MAPPED), &mut mask);
    u32::from_le_bytes(mask)
}

/// Tries once to get the lock of the table of pools.
fn try_lock(card: &Card) -> u32 {
    card.registers().write(sharing::CLAIM_ACT, action::LOCK);
    card.registers().read(sharing::CLAIM_OUTCOME)
}

#[test]
fn a_process_that_is_killed_between_claim_and_map_leaves_its_pool_to_the_next() {
    let shared = shared(MockOptions::default());
    let process = Process::that_did("claim", &shared);
    let card = shared.connect();
    let (theirs, beside) = (mapping(1, 0), mapping(2, 0));
    assert!(!card.claim_pool(theirs.pool, range(&theirs)).unwrap(), "another process has claimed it");
    for mapping in [theirs, beside] {
        match card.map_pool(mapping) {
            Err(CardError::Command(failure)) => assert_eq!(failure.error, CommandError::OutOfRange),
            other => panic!("{other:?}"),
        }
    }
    process.kill();
    claim_after(&card, &mapping(1, 0));
    claimed_pool_works(&card);
}

#[test]
fn a_process_that_is_killed_with_a_mapping_and_the_lock_leaves_both_to_the_next() {
    let shared = shared(MockOptions::default());
    let process = Process::that_did("lock+claim+map", &shared);
    let card = Arc::new(shared.connect());
    assert_eq!(try_lock(&card), outcome::TAKEN);
    assert_ne!(mapped(&shared), 0);
    process.kill();
    // It waits for who is leaving, whose mappings go first.
    let lock = card.lock_table().unwrap().expect("the card is shared");
    assert_eq!(mapped(&shared), 0);
    claim_after(&card, &mapping(1, 0));
    claimed_pool_works(&card);
    drop(lock);
    assert_eq!(try_lock(&card), outcome::DONE);
}

#[test]
fn a_process_that_is_killed_with_the_lock_alone_leaves_it_to_who_waits_for_it() {
    let shared = shared(MockOptions::default());
    let process = Process::that_did("lock", &shared);
    let (one, other) = (Arc::new(shared.connect()), shared.connect());
    assert_eq!((try_lock(&one), try_lock(&other)), (outcome::TAKEN, outcome::TAKEN));
    let waits = std::thread::spawn({
        let one = one.clone();
        move || one.lock_table().unwrap()
    });
    process.kill();
    let lock = waits.join().unwrap().expect("the card is shared");
    assert_eq!(try_lock(&other), outcome::TAKEN, "it has one holder again");
    drop(lock);
    assert_eq!(try_lock(&other), outcome::DONE);
}
