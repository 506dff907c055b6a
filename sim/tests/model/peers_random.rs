//! Random transactions over several model cards, power cuts at any moment (also in the recovery,
//! also twice), links between the cards that drop, double and delay, and one oracle: after a
//! recovery every thread's transactions are committed up to one of them, the same on all cards, and
//! that one is not before the last that was acknowledged.

use crate::peers_support::{Cards, Computer, SLOTS, commit, data, log};
use nearpm_interface::status::Status;
use nearpm_sim::host::{Cut, Parameters, Peers};
use nearpm_sim::machine::until_power_cut;
use nearpm_sim::model::fault::Fault;
use nearpm_sim::rng::Rng;

const THREADS: u16 = 3;
/// Transactions of a thread that may wait at once: fewer than there are log slots, and together
/// fewer than places.
const UNDER_WAY: u64 = 8;
const _: () = assert!(UNDER_WAY < SLOTS && UNDER_WAY * (THREADS as u64) < 32);

/// What the program knows of a thread: it outlives the power.
#[derive(Clone, Debug, Default)]
struct Thread {
    /// Participants of each transaction, by number from 1.
    participants: Vec<u32>,
    /// Transactions up to here were acknowledged.
    acknowledged: u64,
    /// Transactions up to here were settled by a recovery, and the last of them that was committed
    /// for each card.
    settled: u64,
    values: Vec<u64>,
}

impl Thread {
    fn last(&self) -> u64 {
        self.participants.len() as u64
    }

    /// What a card's line holds if this is the last committed transaction.
    fn value(&self, card: usize, last: u64) -> u64 {
        let of_card = |txid: &u64| self.participants[*txid as usize - 1] >> card & 1 == 1;
        (self.settled + 1..=last).rev().find(of_card).unwrap_or(self.values[card])
    }
}

/// One transaction: logs, stores and commits on every participant; durable ones are read back.
fn transact(c: &mut Computer, threads: &mut [Thread], rng: &mut Rng) {
    let cards = c.machine.cards();
    let t = rng.below(THREADS as u64) as usize;
    let thread = t as u16;
    let participants = 1 + rng.below((1 << cards) - 1) as u32;
    let devices: Vec<usize> = (0..cards).filter(|card| participants >> card & 1 == 1).collect();
    threads[t].participants.push(participants);
    let txid = threads[t].last();
    // The slot is free when the transaction that had it is deleted; this also waits for what must
    // come by itself.
    if let Some(old) = txid.checked_sub(UNDER_WAY).filter(|old| *old > threads[t].settled) {
        let mask = threads[t].participants[old as usize - 1];
        (0..cards).filter(|card| mask >> card & 1 == 1).for_each(|card| c.wait_for_epoch(card, thread, old));
    }
    for card in &devices {
        c.views[*card].post(log(thread, txid, participants));
    }
    c.views[devices[0]].fence();
    for card in &devices {
        c.views[*card].store(data(thread), txid);
    }
    for card in &devices {
        c.views[*card].post(commit(thread, txid, participants));
        if rng.one_in(2) {
            c.views[*card].fence();
        }
    }
    c.views[devices[0]].fence();
    if rng.one_in(2) {
        for status in devices.iter().map(|card| c.views[*card].status()) {
            // The recovery before may have discarded.
            let discarded = status.last_bad_status == Status::Discarded.code();
            assert!(status.refused == 0 || discarded, "nothing is refused: {status:?}");
        }
        // What it depends on went before it over the same links only where the participants are the
        // same.
        (0..cards).for_each(|card| _ = c.views[card].status());
        threads[t].acknowledged = txid;
    }
}

/// The oracle, after a recovery.
fn verify(c: &Computer, threads: &mut [Thread], what: &str) {
    for (t, thread) in threads.iter_mut().enumerate() {
        let found: Vec<u64> = c.views.iter().map(|view| view.load(data(t as u16))).collect();
        let fits = |last: &u64| (0..found.len()).all(|card| found[card] == thread.value(card, *last));
        let from = thread.acknowledged.max(thread.settled);
        let last = (from..=thread.last()).find(fits);
        let Some(_) = last else {
            panic!("{what}: thread {t} has {found:?}, which no transaction leaves: {thread:?}");
        };
        thread.values = found;
        thread.settled = thread.last();
        thread.acknowledged = thread.settled;
        let epochs = c.epochs(t as u16);
        assert!(epochs.iter().all(|epoch| *epoch <= thread.last()), "{what}: {epochs:?}");
    }
}

fn random_cut(c: &Computer, rng: &mut Rng, accesses: u64) {
    let cut = match rng.below(3) {
        0 => Cut::AtAccess(1 + rng.below(accesses)),
        1 => Cut::AtCycle(c.machine.cycle() + 1 + rng.below(600)),
        _ => Cut::AtCycle(c.machine.cycle() + 1 + rng.below(40 * accesses)),
    };
    c.machine.arm_cut(cut, rng.bits());
}

/// Powers up and recovers, through further cuts.
fn recover(c: &mut Computer, rng: &mut Rng) {
    loop {
        c.machine.power_up(&c.cards);
        if rng.one_in(2) {
            random_cut(c, rng, 300);
        }
        let recovered = until_power_cut(|| {
            c.attach();
            c.recover(THREADS);
            c.machine.disarm_cut();
        });
        if recovered.is_ok() {
            return;
        }
    }
}

/// Some lives of a computer.
fn lives(cards: usize, seed: u64, lives: usize, kind: Cards) {
    let mut rng = Rng::new(seed);
    let peers = if rng.one_in(2) { Peers::default().adversarial(seed) } else { Peers::default() };
    let parameters = if rng.one_in(2) { Parameters::default().adversarial(seed) } else { Parameters::default() };
    let mut c = Computer::new(cards, peers, parameters, kind);
    let mut threads = vec![Thread { values: vec![0; cards], ..Thread::default() }; THREADS as usize];
    c.attach();
    c.recover(THREADS);
    for life in 0..lives {
        random_cut(&c, &mut rng, 400);
        let outcome = until_power_cut(|| {
            for _ in 0..rng.below(30) {
                transact(&mut c, &mut threads, &mut rng);
            }
        });
        if outcome.is_ok() {
            c.machine.cut_now(rng.bits());
        }
        recover(&mut c, &mut rng);
        verify(&c, &mut threads, &format!("{cards} cards, seed {seed}, life {life}"));
    }
}

#[test]
fn transactions_over_several_cards_are_committed_on_all_or_on_none() {
    let seeds: u64 = std::env::var("NEARPM_SEEDS").ok().map_or(5, |n| n.parse().expect("a number of seeds"));
    for cards in [1, 2, 4, 8] {
        (0..seeds).for_each(|seed| lives(cards, seed, 6, Cards::default()));
    }
}

#[test]
fn transactions_over_several_verilated_cards_are_committed_on_all_or_on_none() {
    let thorough = nearpm_tier::thorough();
    let runs = if thorough { [(1, 4), (2, 12), (4, 6), (8, 2)] } else { [(1, 1), (2, 2), (4, 1), (8, 0)] };
    for (cards, seeds) in runs {
        (0..seeds).for_each(|seed| lives(cards, seed, 4, Cards::rtl()));
    }
}

#[test]
fn random_lives_find_broken_cards() {
    for fault in [Fault::ParkedIsNotSaved, Fault::LaterPassesParked] {
        let found = (0..60).any(|seed| {
            std::panic::catch_unwind(|| lives(2 + seed as usize % 3, seed, 6, Cards::faulty(fault))).is_err()
        });
        assert!(found, "{fault:?} is not found");
    }
}
