//! Several devices where things end early: resets, shutdowns, cards that are gone, torn saves, cuts
//! at every cycle; and what a synchronisation costs.

use crate::peers_support::{Cards, Computer, LONG, commit, data, epoch, log, map, slot_of};
use nearpm_driver::pci::PciFunction;
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::registers::{self, parked_action};
use nearpm_interface::status::Status;
use nearpm_sim::core::Activity;
use nearpm_sim::host::{Cut, Event, Mischief, Parameters, Peers};
use nearpm_sim::machine::until_power_cut;

fn a_reset_leaves_what_waits_and_software_decides(kind: Cards) {
    let mut c = Computer::open(2, 2, kind);
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

fn a_mask_that_leaves_the_card_out_or_names_no_device_is_refused(kind: Cards) {
    let mut c = Computer::open(2, 1, kind);
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

/// All messages are lost, so that what is accepted everywhere still waits everywhere when the power
/// fails.
fn deaf(cards: usize, kind: Cards) -> Computer {
    let lost = Mischief { drop_one_in: 1, double_one_in: 1, delay_ps: 1, seed: 1 };
    let peers = Peers { adversary: Some(lost), ..Peers::default() };
    let mut c = Computer::new(cards, peers, Parameters::default(), kind);
    c.attach();
    (0..cards).for_each(|card| c.join(card, 2, |_| 0));
    c
}

fn a_card_that_does_not_come_back_loses_nothing_on_the_others(kind: Cards) {
    for complete in [false, true] {
        let mut c = deaf(3, kind);
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

/// Redo applies and page switches wait like commits, and what they will write can be read and
/// written meanwhile.
fn applies_and_switches_wait_and_hold_no_range(kind: Cards) {
    let mut c = Computer::open(2, 2, kind);
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

/// What a commit on several cards costs beside one on a single card: one message each way of a
/// link, at the same time.
fn a_synchronisation_takes_one_way_of_a_link(kind: Cards) {
    let cycles = |participants: u32| {
        let mut c = Computer::open(4, 1, kind);
        c.machine.settle();
        c.machine.watch_card(true);
        c.machine.record_events(true);
        let devices: Vec<usize> = (0..4).filter(|card| participants >> card & 1 == 1).collect();
        for card in &devices {
            c.views[*card].post(log(0, 1, participants));
            c.views[*card].post(commit(0, 1, participants));
            c.views[*card].fence();
        }
        devices.iter().for_each(|card| c.wait_for_epoch(*card, 0, 1));
        let events = c.machine.record_events(false);
        let last = |kind: Event| events.iter().filter(|e| e.event == kind).map(|e| e.cycle).max().unwrap();
        last(Event::Inside(Activity::Durable)) - last(Event::CommandAccepted)
    };
    let (alone, two, four) = (cycles(1), cycles(3), cycles(15));
    println!("from acceptance to the durable epoch, in cycles: 1 card {alone}, 2 cards {two}, 4 cards {four}");
    // 400 ns are 120 cycles; the rest is the port and the second numbering.
    assert!((alone + 120..alone + 200).contains(&two), "{alone} {two}");
    assert!((alone + 120..alone + 200).contains(&four), "{alone} {four}");
}

/// Power cuts at every cycle of an exchange, and at some cycle of the boot behind it: both cards
/// commit, or neither does.
fn a_cut_at_every_cycle_of_an_exchange_leaves_both_or_none(kind: Cards) {
    let thorough = nearpm_tier::thorough();
    // The Verilated card takes what is posted sooner, so that fewer cuts leave none.
    let (step, least) = match (kind.rtl, thorough) {
        (None, true) => (1, 100),
        (None, false) => (7, 100),
        (Some(_), true) => (7, 50),
        (Some(_), false) => (21, 50),
    };
    let (mut both, mut cycle) = ([0; 2], 0);
    loop {
        let mut c = Computer::open(2, 1, kind);
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
    assert!(both.iter().all(|cuts| *cuts > least / step), "{both:?}");
}

/// An apply that waits already while its commit still waits for a log: a replay that took them the
/// other way round would let each card wait for the other's report.
fn a_replay_keeps_the_order_of_what_waits_and_what_did_not_yet(kind: Cards) {
    for cycle in (1..900).step_by(30) {
        let mut c = Computer::open(2, 1, kind);
        c.machine.settle();
        c.machine.arm_cut(Cut::AtCycle(c.machine.cycle() + 300 + cycle), cycle);
        let (new, home) = (epoch(0) + (14 << 10), 16 << 10);
        _ = until_power_cut(|| {
            for card in 0..2 {
                c.views[card].post(Command { length: 12 << 10, ..log(0, 1, 3) });
                c.views[card].post(commit(0, 1, 3));
                let apply = Command { opcode: Opcode::Apply as u8, source: new, destination: home, ..commit(0, 1, 3) };
                c.views[card].post(Command { auxiliary: 0, length: 8, ..apply });
                c.views[card].post(commit(0, 2, 0));
                c.views[card].fence();
            }
            c.rest(1_000_000);
        });
        c.boot_again();
        let accepted: Vec<bool> = c.views.iter().map(|view| view.parked().iter().any(|p| p.opcode == 4)).collect();
        (0..2).for_each(|card| c.views[card].number(card));
        if accepted == [true, true] {
            (0..2).for_each(|card| c.wait_for_epoch(card, 0, 1));
        }
    }
}

/// A card whose save was torn says so; what waits on the other stays for software to decide.
fn a_torn_save_of_one_card_is_its_loss_alone(kind: Cards) {
    let mut c = Computer::open(2, 1, kind);
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

fn a_shutdown_keeps_what_waits(kind: Cards) {
    let mut c = Computer::open(2, 1, kind);
    c.views[0].post(commit(0, 1, 3));
    c.views[0].status();
    c.views[0].set(registers::CONTROL, registers::control::SHUT_DOWN);
    c.wait_for("the end", |c| c.views[0].get(registers::STATE) == registers::state::SAVED);
    c.machine.cut_now(1);
    c.boot_again();
    assert_eq!(c.views[0].parked().iter().map(|p| p.txid).collect::<Vec<_>>(), [1]);
}

on_both_cards!(
    a_reset_leaves_what_waits_and_software_decides,
    a_mask_that_leaves_the_card_out_or_names_no_device_is_refused,
    a_card_that_does_not_come_back_loses_nothing_on_the_others,
    applies_and_switches_wait_and_hold_no_range,
    a_synchronisation_takes_one_way_of_a_link,
    a_cut_at_every_cycle_of_an_exchange_leaves_both_or_none,
    a_replay_keeps_the_order_of_what_waits_and_what_did_not_yet,
    a_torn_save_of_one_card_is_its_loss_alone,
    a_shutdown_keeps_what_waits,
);
