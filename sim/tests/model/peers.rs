//! Several devices: what waits for peers, what it holds meanwhile, and what is left of it by power
//! cuts.
//!
//! A scenario that names a fault holds without it, and fails with the fault by the words behind it:
//! `each_rule_is_needed`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::peers_support::{Cards, Computer, LONG, commit, data, epoch, log, slot_of};
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::{MAP_ENTRIES, PARKED_COMMANDS, POOLS_BASE};
use nearpm_interface::registers::parked_action;
use nearpm_interface::status::Status;
use nearpm_sim::host::{Cut, Parameters, Peers};
use nearpm_sim::machine::until_power_cut;
use nearpm_sim::model::fault::Fault;

/// Two cards commit when both have the commit, whichever comes first.
fn commits_wait_for_each_other(kind: Cards) {
    let mut c = Computer::open(2, 1, kind);
    for (txid, order) in [(1, [0, 1]), (2, [1, 0])] {
        for card in order {
            assert!(c.epochs(0).iter().all(|e| *e < txid), "an epoch without the other card's commit");
            c.views[card].post(log(0, txid, 3));
            c.views[card].post(commit(0, txid, 3));
            c.views[card].status();
            c.rest(LONG);
        }
        (0..2).for_each(|card| c.wait_for_epoch(card, 0, txid));
        assert!(c.views.iter().all(|view| view.parked().is_empty() && view.status().parked == 0));
    }
}

/// The card whose log fails never reports, although it accepted the commit.
fn a_failed_log_holds_the_other_card(kind: Cards) {
    let mut c = Computer::new(2, Peers::default(), Parameters::default(), kind);
    c.attach();
    // The line of the head is bad on both cards; the first one logs elsewhere.
    c.machine.cut_now(1);
    c.cards.bad_line = Some(POOLS_BASE + slot_of(0, 1));
    c.boot_again();
    (0..2).for_each(|card| c.join(card, 1, |_| 0));
    c.views[1].post(log(0, 1, 3));
    c.views[1].post(commit(0, 1, 3));
    c.views[0].post(commit(0, 1, 3));
    (0..2).for_each(|card| _ = c.views[card].status());
    c.rest(LONG);
    assert_eq!(c.epochs(0), [0, 0], "a commit passed the failure of another card's log");
    assert_eq!(c.views[1].status().last_bad_status, Status::Latched.code());
}

/// A transaction that stays behind one that waits is not reported.
fn a_commit_behind_a_parked_one_is_not_reported(kind: Cards) {
    let mut c = Computer::open(3, 1, kind);
    c.views[0].post(commit(0, 1, 0b101));
    c.views[0].post(commit(0, 2, 0b011));
    c.views[0].status();
    c.views[1].post(commit(0, 2, 0b011));
    c.views[1].status();
    c.rest(LONG);
    assert_eq!(c.epochs(0), [0, 0, 0], "a transaction was committed behind one that waits");
    c.views[2].post(commit(0, 1, 0b101));
    [(0, 2), (1, 2), (2, 1)].into_iter().for_each(|(card, txid)| c.wait_for_epoch(card, 0, txid));
}

/// Whatever is ordered or synchronises stays behind a parked command of its thread; other threads
/// and logs do not.
fn what_follows_in_the_thread_stays_behind(kind: Cards) {
    let mut c = Computer::open(2, 2, kind);
    let before = c.views[0].status().retired;
    c.views[0].post(commit(0, 1, 3));
    c.views[0].post(commit(0, 2, 0));
    c.views[0].post(Command { opcode: Opcode::Fence as u8, ..Command::default() });
    c.views[0].post(log(0, 3, 0));
    c.views[0].post(commit(1, 1, 0));
    c.views[0].status();
    c.wait_for("the log and the other thread", |c| c.views[0].status().retired >= before + 2);
    c.rest(LONG);
    assert_eq!(c.views[0].load(epoch(0)), 0, "a commit passed one that waits");
    assert_eq!((c.views[0].load(epoch(1)), c.views[0].status().parked), (1, 1));
    assert_eq!(c.views[0].parked().len(), 3);
    c.views[1].post(commit(0, 1, 3));
    c.wait_for("all", |c| c.views[0].status().retired == before + 5);
    assert_eq!((c.epochs(0), c.views[0].parked().len()), (vec![2, 1], 0));
}

/// As many commands as can wait hold no slot: the card takes and does all other work. One more is
/// refused, not held.
fn a_full_table_stalls_nobody(kind: Cards) {
    let threads = MAP_ENTRIES as u16 - 1;
    let mut c = Computer::open(2, threads, kind);
    let before = c.views[0].status();
    for i in 0..PARKED_COMMANDS as u64 {
        c.views[0].post(commit((i % 15) as u16, 1 + i / 15, 3));
    }
    let status = c.views[0].status();
    assert_eq!((status.accepted - before.accepted, status.refused), (PARKED_COMMANDS as u32, 0));
    c.rest(LONG);
    c.views[0].post(commit(0, 9, 3));
    c.views[0].post(log(14, 9, 0));
    let status = c.views[0].status();
    assert_eq!((status.refused, status.last_bad_status), (1, Status::ParkedFull.code()));
    c.wait_for("the log", |c| c.views[0].status().retired == before.retired + 1);
    assert_eq!(c.views[0].load(data(14)), 0);
    for i in 0..PARKED_COMMANDS as u64 {
        c.views[1].post(commit((i % 15) as u16, 1 + i / 15, 3));
    }
    c.wait_for("all", |c| c.views.iter().all(|view| view.parked().is_empty()));
    (0..threads).for_each(|t| c.wait_for_epoch(0, t, if t < 2 { 3 } else { 2 }));
}

/// A parked command survives a cut and another one in the replay, is shown, and goes on when both
/// cards speak again.
fn what_waits_survives_power_cuts(kind: Cards) {
    let mut c = Computer::open(2, 2, kind);
    c.views[0].post(commit(0, 5, 3));
    c.views[0].post(commit(0, 6, 0));
    c.views[1].post(commit(1, 7, 3));
    (0..2).for_each(|card| _ = c.views[card].status());
    c.rest(LONG);
    let parked = c.views[0].parked();
    assert_eq!(parked.iter().map(|p| (p.txid, p.participants, p.reached)).collect::<Vec<_>>(), [(5, 3, 1), (6, 0, 0)]);
    c.machine.cut_now(3);
    for cycle in [40, 90, 140, 190, 240] {
        c.machine.power_up(&c.cards);
        c.machine.arm_cut(Cut::AtCycle(cycle), cycle);
        _ = until_power_cut(|| c.rest(1_000_000));
    }
    c.boot_again();
    assert_eq!(c.views[0].parked(), parked, "what waited is not there after a cut");
    c.rest(LONG);
    assert_eq!(c.epochs(0), [0, 0], "a silent card goes on");
    (0..2).for_each(|card| c.views[card].number(card));
    c.views[1].post(commit(0, 5, 3));
    c.views[0].post(commit(1, 7, 3));
    [(0, 0, 6), (1, 0, 5), (0, 1, 7), (1, 1, 7)]
        .into_iter()
        .for_each(|(card, t, txid)| c.wait_for_epoch(card, t, txid));
}

/// Lost messages are asked for again.
fn lost_messages_come_again(kind: Cards) {
    for seed in 0..6 {
        let mut c = Computer::new(3, Peers::default().adversarial(seed), Parameters::default(), kind);
        c.attach();
        (0..3).for_each(|card| c.join(card, 1, |_| 0));
        for txid in 1..=10 {
            for card in 0..3 {
                c.views[card].post(commit(0, txid, 7));
                c.views[card].fence();
            }
            (0..3).for_each(|card| c.wait_for_epoch(card, 0, txid));
        }
        assert!(c.machine.statistics().peer_drops > 0);
    }
}

/// What waits is not taken away while its device would report what comes behind it.
fn only_a_silent_card_discards(kind: Cards) {
    let mut c = Computer::open(2, 1, kind);
    c.views[0].post(commit(0, 1, 3));
    c.views[0].post(commit(0, 2, 3));
    c.views[0].status();
    c.rest(LONG);
    let first = c.views[0].parked()[0];
    c.views[0].act(first.place, parked_action::DISCARD);
    c.views[1].post(commit(0, 1, 3));
    c.views[1].status();
    c.rest(LONG);
    let (here, there) = (c.views[0].load(epoch(0)), c.views[1].load(epoch(0)));
    assert!(here >= there, "one card committed what another has discarded");
}

type Scenario = fn(Cards);

const RULES: [(Fault, Scenario, &str); 9] = [
    (Fault::SynchronisesWithNobody, commits_wait_for_each_other, "an epoch without the other card's commit"),
    (Fault::ReportsWhenAccepted, a_failed_log_holds_the_other_card, "passed the failure of another card's log"),
    (Fault::ReportsBehindParked, a_commit_behind_a_parked_one_is_not_reported, "committed behind one that waits"),
    (Fault::LaterPassesParked, what_follows_in_the_thread_stays_behind, "a commit passed one that waits"),
    (Fault::ParkedHoldsItsSlot, a_full_table_stalls_nobody, "hangs"),
    (Fault::FullTableStalls, a_full_table_stalls_nobody, "hangs"),
    (Fault::ParkedIsNotSaved, what_waits_survives_power_cuts, "is not there after a cut"),
    (Fault::NobodyAsks, lost_messages_come_again, "waited in vain"),
    (Fault::DiscardsWhileSpeaking, only_a_silent_card_discards, "what another has discarded"),
];

#[test]
fn every_rule_holds() {
    RULES.iter().for_each(|(_, scenario, _)| scenario(Cards::default()));
}

#[test]
fn every_rule_holds_on_the_rtl() {
    RULES.iter().for_each(|(_, scenario, _)| scenario(Cards::rtl()));
}

#[test]
fn each_rule_is_needed() {
    for (fault, scenario, words) in RULES {
        let failure =
            catch_unwind(AssertUnwindSafe(|| scenario(Cards::faulty(fault)))).expect_err("the fault is not seen");
        let text = failure.downcast_ref::<String>().cloned();
        let text = text.or_else(|| failure.downcast_ref::<&str>().map(|text| text.to_string())).unwrap_or_default();
        assert!(text.contains(words), "{fault:?}: {text}");
    }
}
