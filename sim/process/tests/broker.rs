//! Several processes on one card: `nearpm card share` on a simulated card, and users in processes
//! of their own.

mod common;

use std::collections::BTreeSet;

use common::shared::{self, Shared};
use common::workload::{Known, create_named, options, verify, work};
use common::{Registered, TIMEOUT};
use nearpm::{Mechanism, Pool};
use nearpm_cli::card::{CardArgument, CardCommand, Transport, report};
use nearpm_driver::card::PoolMapping;
use nearpm_driver::pci::PciFunction;
use nearpm_driver::vfio_user::{self, VfioUserError};
use nearpm_driver::{CardError, CommandError, FirmwareError};
use nearpm_interface::geometry::POOLS_BASE;
use nearpm_interface::registers as reg;

/// What broker and clients are when they run: this program, for one role.
#[test]
fn role() {
    shared::play();
}

/// Works in this process until a pool has had so many transactions.
fn work_on(pool: &Pool, known: &mut Known, transactions: u64) {
    let until = known.transactions + transactions;
    work(pool, known, until).unwrap();
}

fn two_at_work(window: &'static str, transactions: u64) {
    let shared = Shared::new(window);
    let mine = shared.connect();
    let pool = create_named(&mine, Mechanism::Redo, "mine");
    let mut theirs = shared.client("theirs");
    let mut known = Known::default();
    theirs.wait_for(1);
    work_on(&pool, &mut known, 6 * transactions);
    theirs.wait_for(transactions);
    verify(&pool, &mut known);
    theirs.kill();
    let (mut their_knowledge, failure) = theirs.end();
    assert_eq!(failure, None);
    assert!(their_knowledge.acknowledged > 0);
    work_on(&pool, &mut known, transactions);
    shared.verify("theirs", &mut their_knowledge);
    verify(&pool, &mut known);
    pool.close().unwrap();
}

#[test]
fn two_processes_work_at_once_and_one_that_is_killed_leaves_a_pool_that_recovers() {
    two_at_work("trapping", 10);
}

#[test]
fn the_same_with_a_mapped_window() {
    two_at_work("mapped", 2);
}

#[test]
fn a_killed_process_leaves_no_mapping_and_its_place_is_taken_again() {
    let shared = Shared::new("trapping");
    for round in 0..5 {
        let mut clients: Vec<_> = (0..2).map(|n| shared.client(&format!("pool{round}{n}"))).collect();
        clients.iter_mut().for_each(|client| client.wait_for(2));
        clients.iter_mut().for_each(|client| client.kill());
        let known: Vec<_> = clients.into_iter().map(|client| client.end().0).collect();
        for (n, mut known) in known.into_iter().enumerate() {
            shared.verify(&format!("pool{round}{n}"), &mut known);
        }
        let registered = shared.connect();
        (0..2).for_each(|n| nearpm::remove(&registered.location(&format!("pool{round}{n}"))).unwrap());
    }
    // Each process gets all of its entries: none was left with those that were killed.
    let clients: Vec<_> = (0..3).map(|_| shared.connect()).collect();
    for (n, client) in (0..).zip(&clients) {
        for thread in 0..5 {
            client.card.map_pool(PoolMapping { thread, ..mapping(100 + n as u32, n << 20) }).unwrap();
        }
    }
}

#[test]
fn a_broker_that_is_killed_has_gone_for_everybody_and_nothing_durable_is_lost() {
    let mut shared = Shared::new("trapping");
    let mine = shared.connect();
    let pool = create_named(&mine, Mechanism::Undo, "mine");
    let mut theirs = shared.client("theirs");
    let mut known = Known::default();
    theirs.wait_for(3);
    work_on(&pool, &mut known, 5);
    shared.kill_broker();
    let error = work(&pool, &mut known, u64::MAX).unwrap_err().to_string();
    assert!(error.contains("gone"), "{error}");
    let (mut their_knowledge, failure) = theirs.end();
    assert!(failure.is_some_and(|why| why.contains("gone")));
    drop((pool, mine));
    shared.start_broker();
    shared.verify("mine", &mut known);
    shared.verify("theirs", &mut their_knowledge);
}

#[test]
fn a_power_cut_under_two_processes_leaves_two_pools_that_recover() {
    let mut shared = Shared::new("trapping");
    let (mut mine_known, mut theirs_known) = (Known::default(), None);
    drop(create_named(&shared.connect(), Mechanism::Undo, "mine"));
    for seed in 0..3 {
        let mine = shared.connect();
        let pool = options(Mechanism::Undo).open(&mine.location("mine")).unwrap();
        verify(&pool, &mut mine_known);
        let name = format!("theirs{seed}");
        let mut theirs = shared.client(&name);
        theirs.wait_for(1);
        let cycle = shared.simulator.statistic("cycle") + 2000 + 1777 * seed;
        shared.simulator.tell(&format!("cut-at cycle={cycle} seed={seed}"));
        let error = work(&pool, &mut mine_known, u64::MAX).unwrap_err().to_string();
        assert!(error.contains("gone") || error.contains("card"), "{error}");
        let (known, failure) = theirs.end();
        assert!(failure.is_some(), "it was told");
        theirs_known = Some(known);
        drop((pool, mine));
        shared.await_broker();
        shared.simulator.tell("power-up");
        shared.start_broker();
        shared.verify(&name, theirs_known.as_mut().unwrap());
        nearpm::remove(&shared.connect().location(&name)).unwrap();
    }
    shared.verify("mine", &mut mine_known);
    assert!(theirs_known.is_some_and(|known| known.acknowledged > 0));
}

#[test]
fn who_comes_when_every_page_is_taken_is_told_so_and_may_come_later() {
    let shared = Shared::new("trapping");
    let mut clients: Vec<_> = (0..3).map(|_| shared.connect()).collect();
    match vfio_user::open(&shared.socket(), TIMEOUT) {
        Err(error @ VfioUserError::Full { .. }) => assert!(error.to_string().contains("every command page")),
        other => panic!("{other:?}"),
    }
    let seat = |client: &Registered| client.card.seat().unwrap().number;
    assert_eq!(clients.iter().map(seat).collect::<BTreeSet<_>>(), BTreeSet::from([1, 2, 3]));
    let left = seat(&clients.remove(1));
    assert_eq!(seat(&shared.connect()), left);
}

fn mapping(pool: u32, base: u64) -> PoolMapping {
    let (base, bytes) = (POOLS_BASE + base, 1 << 20);
    PoolMapping { pool, thread: 0, base, bytes, ring: bytes - 65536, ring_bytes: 65536, committed: 0 }
}

fn refusal(done: Result<(), CardError>) -> CommandError {
    match done {
        Err(CardError::Command(failure)) => failure.error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pool_that_one_process_has_open_is_in_use_for_the_others() {
    let shared = Shared::new("trapping");
    let (first, second): (Registered, Registered) = (shared.connect(), shared.connect());
    let pool = create_named(&first, Mechanism::Undo, "bank");
    let mut known = Known::default();
    work_on(&pool, &mut known, 3);
    let options = options(Mechanism::Undo);
    let error = options.open(&second.location("bank")).unwrap_err().to_string();
    assert!(error.contains("in use") || error.contains("is open already"), "{error}");
    assert!(nearpm::remove(&second.location("bank")).is_err());
    assert_eq!(refusal(second.card.map_pool(mapping(99, 0))), CommandError::OutOfRange, "over the other's pool");
    work_on(&pool, &mut known, 3);
    pool.close().unwrap();
    let pool = options.open(&second.location("bank")).unwrap();
    verify(&pool, &mut known);
    pool.close().unwrap();
}

#[test]
fn what_is_for_the_whole_card_is_refused_and_a_reset_is_for_one_process() {
    let shared = Shared::new("trapping");
    let (first, second) = (shared.connect(), shared.connect());
    let pool = create_named(&first, Mechanism::Undo, "bank");
    let mut known = Known::default();
    work_on(&pool, &mut known, 3);
    let image = nearpm_firmware::standard();
    let refused = second.card.load_firmware(image.bytes());
    assert!(matches!(refused, Err(CardError::Firmware(FirmwareError::Shared))), "{refused:?}");
    assert!(matches!(second.card.shut_down(), Err(CardError::Shared { .. })));
    // Without the driver's own look, too.
    let registers = second.card.registers();
    let before = [reg::FIRMWARE_STATUS, reg::STATE].map(|register| registers.read(register));
    registers.write(reg::FIRMWARE_LOAD, 0);
    registers.write(reg::CONTROL, reg::control::SHUT_DOWN | reg::control::ACKNOWLEDGE_LOSS);
    assert_eq!([reg::FIRMWARE_STATUS, reg::STATE].map(|register| registers.read(register)), before);
    second.card.map_pool(mapping(99, 2 << 20)).unwrap();
    assert_eq!(registers.read(reg::MAPPED).count_ones(), 1, "its own alone");
    second.function.reset().unwrap();
    work_on(&pool, &mut known, 3);
    verify(&pool, &mut known);
    pool.close().unwrap();
}

#[test]
fn the_commands_of_nearpm_card_work_on_a_shared_card() {
    let shared = Shared::new("trapping");
    let other = shared.connect();
    let pool = create_named(&other, Mechanism::Undo, "bank");
    let argument = || CardArgument { card: Transport::vfio_user(shared.socket()) };
    let text = report(&CardCommand::Info(argument())).unwrap();
    assert!(text.contains("of at most 3") && text.contains("bank"), "{text}");
    let text = report(&CardCommand::Selftest(argument())).unwrap();
    assert_eq!(text.matches("pass").count(), 6, "{text}");
    let text = report(&CardCommand::Bench { card: argument(), count: 300 }).unwrap();
    println!("{text}");
    let error = report(&CardCommand::Share { card: argument(), socket: shared.socket().with_extension("again") });
    assert!(format!("{:#}", error.unwrap_err()).contains("shared by another broker"));
    pool.close().unwrap();
}
