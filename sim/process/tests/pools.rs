//! Pools on the card of another process: power cuts by the control socket, and SIGKILL, under load,
//! in both modes of the window.

mod common;

use std::time::Duration;

use common::workload::{Known, create, options, reopen_and_verify, verify, work};
use common::{Registered, Simulator};
use nearpm::{Durability, Error, Mechanism, Pool, Synchronisation};
use nearpm_interface::registers as reg;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Numbers that are the same in each run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % limit
    }
}

/// More transactions than come to an end before a cut.
const MANY: u64 = 1_000_000;

fn cuts(window: &'static str, mechanism: Mechanism, rounds: u64) {
    cuts_on(&Simulator::new(window), mechanism, rounds);
}

fn cuts_on(simulator: &Simulator, mechanism: Mechanism, rounds: u64) {
    let registered = simulator.open();
    let mut known = Known::default();
    create(&registered, mechanism).close().unwrap();
    drop(registered);
    let mut draw = Draw(7);
    let mut replayed = 0;
    for round in 0..rounds {
        let registered = simulator.open();
        replayed += registered.card.registers().read(reg::REPLAYED);
        let pool = options(mechanism).open(&registered.location("bank")).unwrap();
        verify(&pool, &mut known);
        let cycle = simulator.statistic("cycle") + 2000 + draw.below(30_000);
        simulator.tell(&format!("cut-at cycle={cycle} seed={round}"));
        let error = work(&pool, &mut known, MANY).unwrap_err();
        assert!(error.to_string().contains("gone") || error.to_string().contains("card"), "{error}");
        assert_eq!(simulator.statistic("powered"), 0);
        drop(pool);
        drop(registered);
        simulator.tell("power-up");
    }
    assert_eq!(simulator.statistic("cuts"), rounds);
    assert!(known.transactions > rounds, "the cuts came before any work");
    println!("{rounds} cuts in {} transactions; {replayed} items were saved and replayed", known.transactions);
    reopen_and_verify(&simulator.open(), mechanism, &mut known);
}

#[test]
fn power_cuts_lose_nothing_under_undo_with_a_trapping_window() {
    cuts("trapping", Mechanism::Undo, 20);
}

#[test]
fn power_cuts_lose_nothing_under_redo_with_a_trapping_window() {
    cuts("trapping", Mechanism::Redo, 20);
}

#[test]
fn power_cuts_lose_nothing_under_undo_with_a_mapped_window() {
    cuts("mapped", Mechanism::Undo, 20);
}

#[test]
fn power_cuts_lose_nothing_under_redo_with_a_mapped_window() {
    cuts("mapped", Mechanism::Redo, 20);
}

/// It builds the RTL first, which takes a minute where it is not in the cache.
#[test]
fn power_cuts_lose_nothing_on_the_verilated_card() {
    if !nearpm_tier::thorough() {
        eprintln!("of the thorough tier: set NEARPM_THOROUGH=1");
        return;
    }
    cuts_on(&Simulator::of_rtl("trapping"), Mechanism::Undo, 3);
    cuts_on(&Simulator::of_rtl("mapped"), Mechanism::Redo, 3);
}

fn kills(window: &'static str, mechanism: Mechanism, rounds: u64) {
    let within = Duration::from_millis(150);
    let replayed = kills_on(&mut Simulator::new(window), mechanism, rounds, within);
    assert_eq!(replayed > 0, window == "trapping", "what the last process had taken is done by the next one");
}

/// Kills it at moments of that span; how many items of the cards were replayed.
fn kills_on(simulator: &mut Simulator, mechanism: Mechanism, rounds: u64, within: Duration) -> u64 {
    let mut known = Known::default();
    create(&simulator.open(), mechanism).close().unwrap();
    let mut draw = Draw(3);
    let mut replayed = 0;
    for _ in 0..rounds {
        let registered = simulator.open();
        let pool = options(mechanism).open(&registered.location("bank")).unwrap();
        verify(&pool, &mut known);
        let process = Pid::from_raw(simulator.id() as i32);
        let wait = Duration::from_micros(2000 + draw.below(within.as_micros() as u64));
        let killer = std::thread::spawn(move || {
            std::thread::sleep(wait);
            kill(process, Signal::SIGKILL).unwrap();
        });
        let error = work(&pool, &mut known, MANY).unwrap_err();
        killer.join().unwrap();
        assert!(registered.function.failure().is_some(), "{error}");
        drop(pool);
        drop(registered);
        simulator.kill();
        simulator.start();
        replayed += simulator.statistic("replayed");
    }
    assert!(known.transactions > rounds, "the kills came before any work");
    println!("{rounds} kills in {} transactions; {replayed} items were replayed", known.transactions);
    reopen_and_verify(&simulator.open(), mechanism, &mut known);
    replayed
}

/// The RTL runs some thousand times slower than a card, so that a moment under load is longer.
#[test]
fn a_verilated_card_that_is_killed_under_load_has_lost_nothing() {
    if !nearpm_tier::thorough() {
        eprintln!("of the thorough tier: set NEARPM_THOROUGH=1");
        return;
    }
    let within = Duration::from_secs(3);
    let replayed = kills_on(&mut Simulator::of_rtl("trapping"), Mechanism::Undo, 4, within);
    assert!(replayed > 0, "what the last process had taken is done by the next one");
    kills_on(&mut Simulator::of_rtl("mapped"), Mechanism::Redo, 4, within);
}

#[test]
fn a_simulator_that_is_killed_under_load_has_lost_nothing_with_a_trapping_window() {
    kills("trapping", Mechanism::Undo, 6);
    kills("trapping", Mechanism::Redo, 6);
}

#[test]
fn a_simulator_that_is_killed_under_load_has_lost_nothing_with_a_mapped_window() {
    kills("mapped", Mechanism::Undo, 6);
    kills("mapped", Mechanism::Redo, 6);
}

#[test]
fn a_memory_that_is_put_in_force_while_the_card_runs_is_followed_by_what_the_journal_needs() {
    let mut simulator = Simulator::new("trapping");
    let mut known = Known::default();
    let registered: Registered = simulator.open();
    let pool = create(&registered, Mechanism::Undo);
    while simulator.statistic("compactions") == 0 {
        let until = known.transactions + 500;
        work(&pool, &mut known, until).unwrap();
    }
    work(&pool, &mut known, 20).unwrap();
    simulator.kill();
    assert!(work(&pool, &mut known, MANY).is_err());
    drop(pool);
    drop(registered);
    simulator.start();
    reopen_and_verify(&simulator.open(), Mechanism::Undo, &mut known);
}

/// What a striped pool takes of each card, little more than the least.
const MEMBER_BYTES: u64 = 5 << 19;

/// Two simulators, each with a card that has no port to the other one, and says so: the processor
/// waits for both. One is killed.
#[test]
fn a_pool_on_two_simulators_outlives_the_loss_of_one() {
    let mut simulators = [(); 2].map(|()| Simulator::new("trapping"));
    let options = || options(Mechanism::Undo).durability(Durability::Durable).synchronisation(Synchronisation::Delayed);
    let open = |simulators: &[Simulator; 2]| {
        let cards = simulators.each_ref().map(Simulator::open);
        let location = format!("card:{}+{}/bank", cards[0].name(), cards[1].name());
        (cards, location)
    };
    let accepted = |card: &Registered| card.card.registers().read(reg::COMMANDS_ACCEPTED);
    let (cards, location) = open(&simulators);
    let pool = options().create(&location, 2 * MEMBER_BYTES).unwrap();
    // Two are in a chunk, and chunks go to the cards in turn.
    let objects: Vec<u64> = (0..4).map(|_| pool.tx(|tx| tx.alloc_zeroed(8192)).unwrap()).collect();
    let write = |pool: &Pool, number: u64| -> Result<(), Error> {
        pool.tx(|tx| objects.iter().try_for_each(|object| tx.write_u64(*object, number)))
    };
    let before = cards.each_ref().map(accepted);
    (1..=20).for_each(|number| write(&pool, number).unwrap());
    for (card, before) in cards.iter().zip(before) {
        assert!(accepted(card) > before, "a card has no part in the transactions");
    }
    assert_eq!(pool.statistics().fallbacks, 1);
    simulators[1].kill();
    let (mut acknowledged, mut error) = (20, None);
    while error.is_none() && acknowledged < 1000 {
        match write(&pool, acknowledged + 1) {
            Ok(()) => acknowledged += 1,
            Err(failure) => error = Some(failure.to_string()),
        }
    }
    let error = error.expect("a card has gone");
    assert!(error.contains("gone"), "{error}");
    drop((pool, cards));
    simulators[1].start();
    let (cards, location) = open(&simulators);
    let pool = options().open(&location).unwrap();
    pool.check().unwrap();
    let read = |object: &u64| pool.tx(|tx| tx.read_u64(*object)).unwrap();
    let found: Vec<u64> = objects.iter().map(read).collect();
    assert!([acknowledged, acknowledged + 1].contains(&found[0]), "{found:?}, acknowledged {acknowledged}");
    assert_eq!(found, [found[0]; 4], "half done");
    write(&pool, 5000).unwrap();
    pool.close().unwrap();
    drop(cards);
}
