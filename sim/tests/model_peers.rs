//! Several devices: what waits for peers, what it holds meanwhile, and what is left of it by power cuts.
//!
//! A scenario that names a fault holds without it, and fails with the fault by the words behind it: `each_rule_is_needed`.

mod peers_support;

use std::panic::{AssertUnwindSafe, catch_unwind};

use nearpm_driver::pci::PciFunction;
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::{MAP_ENTRIES, PARKED_COMMANDS, POOLS_BASE};
use nearpm_interface::registers::{self, parked_action};
use nearpm_interface::status::Status;
use nearpm_sim::host::{Cut, Mischief, Parameters, Peers};
use nearpm_sim::machine::until_power_cut;
use nearpm_sim::model::fault::Fault;
use peers_support::{Cards, Computer, commit, data, epoch, log, map, slot_of};

/// Longer than any exchange of messages takes that are not lost, in nanoseconds.
const LONG: u64 = 60_000;

fn computer(cards: usize, threads: u16, fault: Option<Fault>) -> Computer {
    Computer::open(cards, threads, Cards { fault, ..Cards::default() })
}

/// Two cards commit when both have the commit, whichever comes first.
fn commits_wait_for_each_other(fault: Option<Fault>) {
    let mut c = computer(2, 1, fault);
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
fn a_failed_log_holds_the_other_card(fault: Option<Fault>) {
    let mut c = Computer::new(2, Peers::default(), Parameters::default(), Cards { fault, bad_line: None });
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
fn a_commit_behind_a_parked_one_is_not_reported(fault: Option<Fault>) {
    let mut c = computer(3, 1, fault);
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

/// Whatever is ordered or synchronises stays behind a parked command of its thread; other threads and logs do not.
fn what_follows_in_the_thread_stays_behind(fault: Option<Fault>) {
    let mut c = computer(2, 2, fault);
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

/// As many commands as can wait hold no slot: the card takes and does all other work. One more is refused, not held.
fn a_full_table_stalls_nobody(fault: Option<Fault>) {
    let threads = MAP_ENTRIES as u16 - 1;
    let mut c = computer(2, threads, fault);
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

/// A parked command survives a cut and another one in the replay, is shown, and goes on when both cards speak again.
fn what_waits_survives_power_cuts(fault: Option<Fault>) {
    let mut c = computer(2, 2, fault);
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
fn lost_messages_come_again(fault: Option<Fault>) {
    let cards = Cards { fault, ..Cards::default() };
    for seed in 0..6 {
        let mut c = Computer::new(3, Peers::default().adversarial(seed), Parameters::default(), cards);
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
fn only_a_silent_card_discards(fault: Option<Fault>) {
    let mut c = computer(2, 1, fault);
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

type Scenario = fn(Option<Fault>);

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
    RULES.iter().for_each(|(_, scenario, _)| scenario(None));
}

#[test]
fn each_rule_is_needed() {
    for (fault, scenario, words) in RULES {
        let failure = catch_unwind(AssertUnwindSafe(|| scenario(Some(fault)))).expect_err("the fault is not seen");
        let text = failure.downcast_ref::<String>().cloned();
        let text = text.or_else(|| failure.downcast_ref::<&str>().map(|text| text.to_string())).unwrap_or_default();
        assert!(text.contains(words), "{fault:?}: {text}");
    }
}

#[test]
fn a_reset_leaves_what_waits_and_software_decides() {
    let mut c = computer(2, 2, None);
    c.views[0].post(commit(0, 1, 3));
    c.views[0].post(commit(1, 1, 3));
    c.views[0].status();
    c.rest(LONG);
    c.machine.function_of(0).reset().unwrap();
    c.attach();
    assert_eq!((c.views[0].get(registers::MAPPED), c.views[0].parked().len()), (0, 2));
    // The other card was told before the reset, and is not heard now.
    c.views[1].post(commit(0, 1, 3));
    c.views[1].status();
    c.rest(LONG);
    assert_eq!((c.epochs(0), c.views[0].parked().len()), (vec![0, 1], 2));
    let refused = c.views[0].status().refused;
    for parked in c.views[0].parked() {
        let action = [parked_action::RELEASE, parked_action::DISCARD][parked.thread as usize];
        c.views[0].act(parked.place, action);
    }
    c.wait_for_epoch(0, 0, 1);
    assert_eq!((c.views[0].load(epoch(1)), c.views[0].parked().len()), (0, 0));
    let status = c.views[0].status();
    assert_eq!((status.refused, status.last_bad_status), (refused + 1, Status::Discarded.code()));
    // Both entries are free for their threads again.
    c.views[0].post(map(0, 1));
    c.views[0].post(map(1, 1));
    assert_eq!(c.views[0].status().refused, refused + 1);
}

#[test]
fn a_mask_that_leaves_the_card_out_or_names_no_device_is_refused() {
    let mut c = computer(2, 1, None);
    for participants in [0b10, 0b101 << 8, 1 << 31 | 1] {
        let refused = c.views[0].status().refused;
        c.views[0].post(commit(0, 1, participants));
        let status = c.views[0].status();
        assert_eq!((status.refused, status.last_bad_status), (refused + 1, Status::BadParticipants.code()));
    }
    c.machine.cut_now(1);
    c.boot_again();
    // Nobody has numbered the card: it reaches nobody.
    c.views[0].post(commit(0, 1, 0b11));
    assert_eq!(c.views[0].status().last_bad_status, Status::BadParticipants.code());
    c.views[0].post(commit(0, 1, 0b01));
    c.wait_for_epoch(0, 0, 1);
}

/// All messages are lost, so that what is accepted everywhere still waits everywhere when the power fails.
fn deaf(cards: usize) -> Computer {
    let lost = Mischief { drop_one_in: 1, double_one_in: 1, delay_ps: 1, seed: 1 };
    let peers = Peers { adversary: Some(lost), ..Peers::default() };
    let mut c = Computer::new(cards, peers, Parameters::default(), Cards::default());
    c.attach();
    (0..cards).for_each(|card| c.join(card, 2, |_| 0));
    c
}

#[test]
fn a_card_that_does_not_come_back_loses_nothing_on_the_others() {
    for complete in [false, true] {
        let mut c = deaf(3);
        for card in 0..3 {
            c.views[card].post(log(0, 1, 7));
            c.views[card].fence();
            c.views[card].store(data(0), 1);
            if complete || card < 2 {
                c.views[card].post(commit(0, 1, 7));
            }
            c.views[card].status();
        }
        c.rest(LONG);
        for seed in 0..3 {
            c.machine.cut_now(seed);
            c.boot_without(2);
            c.machine.functions()[..2].iter().for_each(|function| function.reset().unwrap());
            c.attach();
            for view in &c.views {
                let parked: Vec<_> = view.parked().iter().map(|p| (p.thread, p.txid, p.participants)).collect();
                assert_eq!((parked, view.load(data(0)), view.load(epoch(0))), (vec![(0, 1, 7)], 1, 0));
            }
        }
        c.machine.cut_now(9);
        c.boot_again();
        c.recover(2);
        let value = complete as u64;
        let found: Vec<_> = c.views.iter().map(|view| (view.load(data(0)), view.parked().len())).collect();
        assert_eq!(found, [(value, 0); 3], "committed where all hold the commit, and only there");
    }
}

/// Redo applies and page switches wait like commits, and what they will write can be read and written meanwhile.
#[test]
fn applies_and_switches_wait_and_hold_no_range() {
    let mut c = computer(2, 2, None);
    let (new, home, page) = (slot_of(0, 1) + 64, data(0), 8192);
    c.views[0].store(new, 77);
    let apply = Command { opcode: Opcode::Apply as u8, source: new, destination: home, length: 8, ..commit(0, 1, 3) };
    let switch = Command { opcode: Opcode::Switch as u8, destination: page, auxiliary: 88, ..commit(1, 1, 3) };
    c.views[0].post(commit(0, 1, 3));
    c.views[0].post(Command { auxiliary: 0, ..apply });
    // Of a transaction of this card alone, behind in the thread.
    c.views[0].post(Command { auxiliary: 0, txid: 2, participants: 0, destination: home + 64, ..apply });
    c.views[0].post(switch);
    c.views[0].status();
    c.rest(LONG);
    assert_eq!(c.views[0].parked().iter().map(|p| p.opcode).collect::<Vec<_>>(), [4, 2, 2, 7]);
    for place in [home, home + 64, page] {
        assert_eq!(c.views[0].load(place), 0, "it waits, and a load of what it writes does not");
    }
    c.views[0].store(page + 8, 5);
    assert_eq!(c.views[0].load(page + 8), 5);
    c.views[1].post(commit(0, 1, 3));
    c.views[1].post(Command { opcode: Opcode::Switch as u8, destination: page, auxiliary: 99, ..commit(1, 1, 3) });
    c.wait_for("all", |c| c.views.iter().all(|view| view.status().parked == 0));
    c.wait_for("the applies", |c| c.views[0].load(home + 64) == 77);
    assert_eq!((c.views[0].load(home), c.views[0].load(page), c.views[1].load(page)), (77, 88, 99));
}

/// Power cuts at every cycle of an exchange, and at some cycle of the boot behind it: both cards commit, or neither does.
#[test]
fn a_cut_at_every_cycle_of_an_exchange_leaves_both_or_none() {
    let step = if std::env::var_os("NEARPM_THOROUGH").is_some() { 1 } else { 7 };
    let (mut both, mut cycle) = ([0; 2], 0);
    loop {
        let mut c = computer(2, 1, None);
        c.machine.settle();
        c.machine.arm_cut(Cut::AtCycle(c.machine.cycle() + 1 + cycle), cycle);
        let finished = until_power_cut(|| {
            (0..2).for_each(|card| c.views[card].post(log(0, 1, 3)));
            c.views[0].fence();
            (0..2).for_each(|card| c.views[card].store(data(0), 1));
            (0..2).for_each(|card| c.views[card].post(commit(0, 1, 3)));
            (0..2).for_each(|card| _ = c.views[card].status());
            c.wait_for("both", |c| c.epochs(0) == [1, 1]);
        });
        if finished.is_ok() {
            break;
        }
        c.machine.power_up(&c.cards);
        c.machine.arm_cut(Cut::AtCycle(1 + cycle % 300), cycle);
        if until_power_cut(|| c.rest(2000)).is_err() {
            c.machine.power_up(&c.cards);
        }
        c.machine.disarm_cut();
        c.attach();
        c.recover(1);
        let values: Vec<u64> = c.views.iter().map(|view| view.load(data(0))).collect();
        assert!(values == [0, 0] || values == [1, 1], "cut {cycle} cycles behind the start: {values:?}");
        both[values[0] as usize] += 1;
        cycle += step;
    }
    println!("cuts that left none: {}, both: {}", both[0], both[1]);
    assert!(both.iter().all(|cuts| *cuts > 100 / step), "{both:?}");
}

/// A card whose save was torn says so; what waits on the other stays for software to decide.
#[test]
fn a_torn_save_of_one_card_is_its_loss_alone() {
    let mut c = computer(2, 1, None);
    c.views[0].post(commit(0, 1, 3));
    c.views[0].status();
    c.views[1].post(log(0, 1, 3));
    c.machine.set_save_cycles_of(1, 20);
    c.machine.cut_now(4);
    c.machine.power_up(&c.cards);
    c.reach_functions();
    c.wait_for("a loss", |c| c.views[1].get(registers::STATE) == registers::state::LOSS);
    c.wait_for("the other", |c| c.views[0].get(registers::STATE) == registers::state::OPEN);
    assert_eq!(c.views[0].parked().iter().map(|p| p.txid).collect::<Vec<_>>(), [1]);
}

#[test]
fn a_shutdown_keeps_what_waits() {
    let mut c = computer(2, 1, None);
    c.views[0].post(commit(0, 1, 3));
    c.views[0].status();
    c.views[0].set(registers::CONTROL, registers::control::SHUT_DOWN);
    c.wait_for("the end", |c| c.views[0].get(registers::STATE) == registers::state::SAVED);
    c.machine.cut_now(1);
    c.boot_again();
    assert_eq!(c.views[0].parked().iter().map(|p| p.txid).collect::<Vec<_>>(), [1]);
}
