//! Everybody has a turn, and nothing waits for the host: C10.

use super::super::{Bench, DEVICE};
use super::{POOL, line_of, log, simple};
use nearpm_hdl::dut::{Dut, Value};
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::firmware::descriptor;
use nearpm_interface::geometry::{LINE, REQUEST_SLOTS};
use nearpm_interface::peer::{PEER_TELLS, PeerMessage};
use nearpm_interface::status::Status;

pub fn a_flood_of_stores_or_commands_leaves_room_for_the_others(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 9);
    b.laziness = 1;
    b.map(POOL, 1);
    b.drain();
    // A store is offered in every cycle in which the port is free; the command must get through.
    let mut worst = 0;
    for round in 0..6u64 {
        for i in 0..10 {
            b.store(line_of(64 * (i % 16)), [1; LINE], u64::MAX);
        }
        let start = b.dut.cycles();
        b.post(1, 0, &log(1, 10 + round, 1024, 0));
        while b.unanswered().0 > 0 {
            b.store(line_of(2048), [1; LINE], u64::MAX);
        }
        worst = worst.max(b.dut.cycles() - start);
    }
    println!("{}: a command is numbered at most {worst} cycles after its offer", b.dut.back_end());
    assert!(worst < 300, "{worst} cycles");
    b.drain();
    // Commands back to back; the store must get through.
    let mut worst = 0;
    for round in 0..6u64 {
        for i in 0..6 {
            b.post(1, i, &log(1, 30 + i as u64, 64 * i as u64, 128 * i as u64));
        }
        let start = b.dut.cycles();
        b.store(line_of(4096), [round as u8; LINE], u64::MAX);
        worst = worst.max(b.dut.cycles() - start);
    }
    println!("{}: a store is taken at most {worst} cycles after its offer", b.dut.back_end());
    assert!(worst < 100, "{worst} cycles");
    b.drain();
}

/// A command every ten cycles is 30 million in a second.
pub fn commands_flow_at_one_in_ten_cycles(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 11);
    b.laziness = 1;
    b.map(POOL, 1);
    b.drain();
    b.issue_cycles.clear();
    let count = 40;
    for i in 0..count {
        let c = Command { flags: 0, ..log(1, i, 64 * (i % 32), 128 * i) };
        b.post_fast(1, i as usize % 16, &c);
    }
    b.drain();
    let cycles = b.issue_cycles.last().unwrap() - b.issue_cycles[0];
    println!("{}: a command in {:.2} cycles", b.dut.back_end(), cycles as f64 / (count - 1) as f64);
    assert!(cycles <= 10 * (count - 1), "{cycles} cycles for {count} commands");
}

/// Cycles after which what is offered on one port is numbered, whatever the other port brings.
const TURN: u64 = 200;

/// Both ports at once: each is offered something in every cycle in which it could take it.
pub fn a_flood_on_one_port_does_not_starve_the_other(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 15);
    b.laziness = 1;
    b.map(POOL, 1);
    b.drain();
    let line = |b: &Bench| line_of(64 * (b.dut.cycles() % 256));
    let stores: fn(&mut Bench, u64) = |b, line| b.offer_store(line, [1; LINE], u64::MAX);
    let loads: fn(&mut Bench, u64) = |b, line| b.offer_load(line);
    for (what, flood) in [("stores", stores), ("loads", loads)] {
        for round in 0..8u64 {
            for _ in 0..100 {
                let line = line(&b);
                flood(&mut b, line);
                b.run(1);
            }
            b.offer_post(1, 0, &Command { flags: 0, ..log(1, 10 + round, 0x6000, 128 * round) });
            let start = b.dut.cycles();
            while b.has_offer().0 || b.unanswered().0 > 0 {
                let line = line(&b);
                flood(&mut b, line);
                b.run(1);
                assert!(b.dut.cycles() - start < TURN, "a flood of {what} starves a command");
            }
        }
        b.drain();
    }
    for round in 0..8u64 {
        let c = Command { flags: 0, ..log(1, 100, 64, 128) };
        for i in 0..100 {
            b.offer_post(1, i % 16, &c);
            b.run(1);
        }
        b.offer_store(line_of(4096), [round as u8; LINE], u64::MAX);
        let start = b.dut.cycles();
        while b.has_offer().1 || b.unanswered().1 > 0 {
            b.offer_post(1, 0, &c);
            b.run(1);
            assert!(b.dut.cycles() - start < TURN, "a flood of commands starves a store");
        }
    }
    b.drain();
}

/// Commands that may be issued before one that was ready with them: twice as many as there are
/// slots.
const ISSUES: usize = 2 * REQUEST_SLOTS;

/// A thread that refills every slot as it is freed does not keep the command in the last slot from
/// its turn.
pub fn a_flooding_thread_does_not_keep_another_from_its_turn(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 17);
    b.map(POOL, 1);
    b.map(POOL, 2);
    b.drain();
    b.issue = false;
    let flood = |i: u64| Command { flags: 0, ..log(1, 1000 + i, 64 * (i % 16), 128 * (i % 100)) };
    let others = REQUEST_SLOTS as u64 - 1;
    for i in 0..others {
        b.post(1, i as usize % 16, &flood(i));
    }
    b.post(2, 0, &log(2, 777, 0x4000, 128 * 200));
    b.settle_writes();
    b.issued.clear();
    b.issue = true;
    let mut posted = others;
    while b.issued.iter().all(|i| i.1 != 777) {
        assert!(b.issued.len() < ISSUES, "a flooding thread starves another");
        if !b.has_offer().0 {
            b.offer_post(1, posted as usize % 16, &flood(posted));
            posted += 1;
        }
        // Units that are slower than the flood.
        b.work = b.dut.cycles().is_multiple_of(16);
        b.run(1);
    }
    assert!(b.issued.len() > 1 && posted > others + 4, "there was no flood");
    b.work = true;
    b.drain();
}

/// What has waited for another device gets a slot beside a thread that refills every one as it is
/// freed, though nothing keeps one for it: what the page says of that.
pub fn what_was_let_go_gets_a_slot_beside_a_flood_of_commands(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 27);
    let other = DEVICE + 1;
    let commit = &mut b.descriptors[Opcode::Commit as usize];
    *commit = commit.with(descriptor::SYNCHRONISES);
    b.map(POOL, 1);
    b.map(POOL, 2);
    b.drain();
    b.dut.set("numbered", true);
    b.run(1);
    b.dut.set("numbered", false);
    let participants = 1 << DEVICE | 1 << other;
    b.post(2, 0, &Command { destination: 8192, auxiliary: 1, participants, ..simple(Opcode::Commit, 2, 777) });
    b.until("a command that waits", |b| b.dut.get_bool("parked_any"));
    b.issue = false;
    let flood = |i: u64| Command { flags: 0, ..log(1, 1000 + i, 64 * (i % 16), 128 * (i % 100)) };
    let mut posted = REQUEST_SLOTS as u64;
    (0..posted).for_each(|i| b.post(1, i as usize % 16, &flood(i)));
    b.settle_writes();
    // One more is decoded, and waits for a slot.
    b.offer_post(1, 0, &flood(posted));
    b.run(TURN);
    let told = PeerMessage { pool: POOL as u32, thread: 2, device: other as u8, status: PEER_TELLS, txid: 1 };
    b.dut.set("peer_in_data", Value::from_bytes(&told.to_bytes()));
    b.dut.set("peer_in_valid", true);
    b.run(1);
    b.dut.set("peer_in_valid", false);
    b.run(TURN);
    b.issued.clear();
    b.issue = true;
    let start = b.dut.cycles();
    while b.issued.iter().all(|i| i.1 != 777) {
        let is_in_time = b.issued.len() < 2 * ISSUES && b.dut.cycles() - start < 20_000;
        assert!(is_in_time, "a flood of commands keeps what was let go from a slot");
        if !b.has_offer().0 {
            posted += 1;
            b.offer_post(1, posted as usize % 16, &flood(posted));
        }
        // Units that are slower than the flood.
        b.work = b.dut.cycles().is_multiple_of(16);
        b.run(1);
    }
    println!("{}: issued behind {} others", b.dut.back_end(), b.issued.len() - 1);
    assert!(posted > REQUEST_SLOTS as u64 + 4, "there was no flood");
    b.work = true;
    b.drain();
}

/// A host that posts and then sleeps must find the work done.
pub fn a_command_needs_no_later_access_to_finish(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 16);
    b.map(POOL, 1);
    b.settle_writes();
    b.records.clear();
    b.post(1, 0, &log(1, 7, 128, 0));
    b.store(line_of(128), [9; LINE], u64::MAX);
    b.post(1, 1, &Command { destination: 8192, auxiliary: 1, ..simple(Opcode::Commit, 1, 8) });
    b.settle_writes();
    b.run(2000);
    let done: Vec<_> = b.records.iter().map(|r| (r.tag.to_u64(), r.status.to_u64())).collect();
    assert_eq!(done, [(7, 0), (8, 0)], "a command waits for the host");
    assert_eq!(b.memory.get(line_of(128)), [9; LINE], "a store waits for the host");
}

/// A store that a failed log holds stays until an unmap, which is an access of the host: what is
/// behind it is refused, and its thread ends there, so that nothing relies on what was refused.
pub fn a_command_behind_a_held_store_is_refused_and_waits_for_nobody(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 21);
    (1..4).for_each(|thread| b.map(POOL, thread));
    b.drain();
    b.failing = vec![50];
    b.post(1, 0, &log(1, 50, 128, 0));
    b.until("the failure", |b| !b.records.is_empty());
    b.store(line_of(128), [9; LINE], u64::MAX);
    b.settle_writes();
    b.records.clear();
    b.post(2, 0, &log(2, 60, 128, 1024));
    b.post(2, 1, &Command { destination: 8192, auxiliary: 1, ..simple(Opcode::Commit, 2, 61) });
    b.post(3, 0, &log(3, 62, 640, 2048));
    b.settle_writes();
    b.run(300);
    let status = |tag: u64| b.records.iter().find(|r| r.tag.to_u64() == tag).map(|r| r.status.to_u64());
    let latched = Some(u64::from(Status::Latched.code()));
    assert_eq!(status(60), latched, "a command waits for the unmap");
    assert_eq!(status(61), latched, "a commit behind a refused log");
    assert_eq!(status(62), Some(0), "a thread that has nothing to do with it");
    assert_eq!(b.dut.get_u64("latched"), 3);
    b.post(0, 0, &simple(Opcode::Unmap, 1, 63));
    b.post(0, 1, &simple(Opcode::Unmap, 2, 64));
    b.drain();
    assert_eq!(b.memory.get(line_of(128)), [9; LINE]);
    assert_eq!(b.dut.get_u64("latched"), 0);
}
