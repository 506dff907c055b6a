//! Order, on its own and against the oracle: C1, C2, C4.

use super::super::{Bench, Line, Oracle, RING, any_command, base, blank, merge};
use super::{POOL, SPAN, line_of, log, simple};
use nearpm_hdl::dut::Dut;
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::completion::PageStatus;
use nearpm_interface::geometry::{HOST_QUEUE_LINES, LINE, LINE_U64, REQUEST_SLOTS};
use nearpm_interface::status::Status;
use rand::RngExt;

fn check_answers(b: &mut Bench, oracle: &Oracle) {
    b.items = oracle.items;
    for answer in std::mem::take(&mut b.answers) {
        let line = answer.address / LINE_U64;
        let from = answer.since;
        assert!(!answer.error);
        let held = oracle.held(line, from, oracle.items, &answer.data);
        assert!(held, "line {line:#x} answered {:02x?} after items {from} to {}", answer.data, oracle.items);
    }
}

fn random_items(dut: &mut dyn Dut, seed: u64, items: usize) {
    let mut b = Bench::new(dut, seed);
    let mut oracle = Oracle::default();
    for thread in 0..3 {
        b.map(POOL, thread);
    }
    b.relent = Some(300);
    for sequence in 0..items as u64 {
        if b.rng.random_ratio(1, 40) {
            b.issue = !b.issue || b.rng.random_ratio(3, 4);
            b.serve = !b.serve || b.rng.random_ratio(3, 4);
            b.laziness = b.rng.random_range(1..6);
        }
        match b.rng.random_range(0..10) {
            0..=4 => {
                let thread = b.rng.random_range(0..3u64);
                let c = any_command(&mut b.rng, POOL, thread, sequence, SPAN);
                let (page, slot) = (b.rng.random_range(0..4usize), b.rng.random_range(0..16usize));
                oracle.command(&c, base(POOL));
                if b.rng.random() { b.post(page, slot, &c) } else { b.post_in_pieces(page, slot, &c) }
            }
            5..=7 => {
                let line = line_of(LINE_U64 * b.rng.random_range(0..SPAN / LINE_U64));
                let data: Line = b.rng.random();
                let strobes = if b.rng.random() { u64::MAX } else { b.rng.random() };
                oracle.store(line, &data, strobes);
                b.store(line, data, strobes);
            }
            _ => {
                let line = line_of(LINE_U64 * b.rng.random_range(0..SPAN / LINE_U64));
                b.load(line);
            }
        }
        check_answers(&mut b, &oracle);
        if b.rng.random_ratio(1, 8) {
            let pause = b.rng.random_range(0..30);
            b.run(pause);
        }
    }
    (b.issue, b.serve) = (true, true);
    b.drain();
    check_answers(&mut b, &oracle);
    b.run(10);
    for (line, data) in &oracle.memory.0 {
        assert_eq!(b.memory.get(*line), *data, "line {line:#x}");
    }
    assert!(b.records.iter().all(|r| r.status.to_u64() == 0));
    assert_eq!(b.write_errors, 0);
    let retired: u32 = (0..4).map(|page| b.page_status(page).retired).sum();
    let accepted: u32 = (0..4).map(|page| b.page_status(page).accepted).sum();
    let refused: u32 = (0..4).map(|page| b.page_status(page).refused).sum();
    assert_eq!((retired, refused), (accepted, 0));
    assert_eq!(accepted as usize, b.issued.len());
}

pub fn random_items_act_as_if_executed_in_arrival_order(dut: &mut dyn Dut) {
    let items = if dut.back_end() == "verilator" { 3000 } else { 60 };
    random_items(dut, 5, items);
}

pub fn a_store_does_not_pass_the_log_of_its_line(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 1);
    b.map(POOL, 1);
    b.drain();
    b.issue = false;
    b.post(1, 0, &log(1, 7, 128, 0));
    b.settle_writes();
    let line = line_of(128);
    b.store(line, [9; LINE], u64::MAX);
    b.settle_writes();
    // Another line's store passes, as does its read.
    b.store(line + 1, [8; LINE], u64::MAX);
    assert_eq!(b.load_now(line + 1), [8; LINE]);
    b.run(200);
    assert_eq!(b.stored, [line + 1], "a store passed the log of its line");
    assert_eq!(b.memory.get(line), blank(line));
    b.issue = true;
    b.drain();
    assert_eq!(b.memory.get(line), [9; LINE]);
    assert_eq!(b.memory.get(line_of(RING) + 1), blank(line), "the log has the old value");
}

pub fn a_command_does_not_pass_a_held_store_nor_a_read(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 2);
    b.map(POOL, 1);
    b.map(POOL, 2);
    b.drain();
    b.issue = false;
    let line = line_of(128);
    b.post(1, 0, &log(1, 7, 128, 0));
    b.store(line, [9; LINE], 0xff);
    let copy = Command { source: 128, destination: 4096, length: 64, ..simple(Opcode::Apply, 2, 8) };
    b.post(2, 0, &copy);
    (b.issue, b.serve) = (true, false);
    b.run(200);
    assert!(b.issued.iter().all(|i| i.1 != 8), "a command passed a held store");
    b.serve = true;
    b.drain();
    let mut expected = blank(line);
    merge(&mut expected, &[9; LINE], 0xff);
    assert_eq!(b.memory.get(line_of(4096)), expected, "the copy saw the store");
    // A read that waits for memory; then a command that writes its line.
    b.serve = false;
    let id = b.load(line);
    b.run(20);
    let issued = b.issued.len();
    b.post(2, 0, &Command { source: 4096 + 64, destination: 128, ..copy });
    b.run(200);
    assert_eq!(b.issued.len(), issued, "the write waits for the read");
    b.serve = true;
    b.until("the read", |b| !b.answers.is_empty());
    assert_eq!((b.answers[0].id, b.answers[0].data), (id, expected));
    b.drain();
    assert_eq!(b.memory.get(line), blank(line_of(4096 + 64)));
}

pub fn a_commit_waits_for_every_earlier_command_of_its_thread_and_for_no_other(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 3);
    b.map(POOL, 1);
    b.map(POOL, 2);
    b.drain();
    b.work = false;
    b.post(1, 0, &log(1, 70, 128, 0));
    let commit = Command { destination: 8192, auxiliary: 1, ..simple(Opcode::Commit, 1, 71) };
    b.post(1, 1, &commit);
    b.post(2, 0, &Command { destination: 12288, ..simple(Opcode::Commit, 2, 72) });
    b.post(1, 2, &simple(Opcode::Fence, 1, 73));
    b.run(200);
    let issued: Vec<_> = b.issued.iter().map(|i| i.1).filter(|&s| s >= 70).collect();
    assert_eq!(issued, [70, 72], "a commit passed a log of its thread");
    b.work = true;
    b.drain();
    let issued: Vec<_> = b.issued.iter().map(|i| i.1).filter(|&s| s >= 70).collect();
    assert_eq!(issued, [70, 72, 71, 73]);
    // A stale log is refused now.
    b.records.clear();
    b.post(1, 3, &log(1, 74, 128, 0));
    b.settle_writes();
    b.until("the record", |b| !b.records.is_empty());
    let status = b.records[0].status.to_u64();
    assert_eq!(status, u64::from(Status::StaleTransaction.code()), "a log of a committed transaction");
}

pub fn a_command_waits_for_a_conflict_of_each_of_its_ranges(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 14);
    b.map(POOL, 1);
    b.map(POOL, 2);
    b.drain();
    // One range after the other is written by a log that runs; ranges that both only read are no
    // conflict.
    let free = Command {
        source: 4096,
        destination: 8192,
        auxiliary: RING + 4096,
        length: 64,
        ..simple(Opcode::UndoRedo, 2, 200)
    };
    let cases = [
        (Command { source: RING, ..free }, false),
        (Command { destination: 128, ..free }, false),
        (Command { auxiliary: RING, ..free }, false),
        (Command { source: 128, ..free }, true),
    ];
    for (i, (c, passes)) in cases.into_iter().enumerate() {
        b.work = false;
        b.issued.clear();
        b.post(1, 0, &log(1, 100, 128, 0));
        b.post(2, 0, &Command { sequence: 200 + i as u64, ..c });
        b.settle_writes();
        b.run(100);
        assert_eq!(b.issued.len(), if passes { 2 } else { 1 }, "what passed a log: {c:?}");
        b.work = true;
        b.drain();
        assert_eq!(b.issued.len(), 2);
    }
}

pub fn a_read_back_waits_for_what_its_line_waits_for(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 4);
    b.map(POOL, 1);
    b.drain();
    b.issue = false;
    let line = line_of(128);
    b.post(1, 0, &log(1, 7, 128, 0));
    b.store(line, [9; LINE], u64::MAX);
    let id = b.load(line);
    b.run(300);
    assert!(b.answers.is_empty(), "a read was answered before the store of its line");
    b.issue = true;
    b.until("the read", |b| !b.answers.is_empty());
    assert_eq!((b.answers[0].id, b.answers[0].data), (id, [9; LINE]));
    assert_eq!(b.memory.get(line_of(RING) + 1), blank(line));
}

/// The read-back is what a durable commit waits for: it may not run ahead of what has arrived, on
/// either port.
pub fn a_read_back_counts_what_arrived_before_it(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 14);
    b.map(POOL, 1);
    b.drain();
    let before = b.order();
    (b.issue, b.serve) = (false, false);
    // A command that finds every slot taken, and then a store that finds every line taken.
    for i in 0..=REQUEST_SLOTS as u64 {
        b.post(1, i as usize % 16, &Command { flags: 0, ..log(1, i, 64 * (i % 32), 128 * i) });
    }
    b.ask_page_status(1);
    b.run(300);
    assert!(b.answers.is_empty(), "a read-back passed a command that is not numbered");
    b.issue = true;
    b.until("the status line", |b| !b.answers.is_empty());
    let status = PageStatus::from_bytes(&b.answers[0].data);
    assert_eq!(status.accepted as usize, REQUEST_SLOTS + 1);
    b.run(2000);
    b.answers.clear();
    for i in 0..=HOST_QUEUE_LINES as u64 {
        if i < HOST_QUEUE_LINES as u64 {
            b.store(line_of(64 * i), [i as u8; LINE], u64::MAX);
        } else {
            b.offer_store(line_of(64 * i), [i as u8; LINE], u64::MAX);
        }
    }
    b.run(100);
    b.ask_page_status(1);
    b.run(300);
    assert!(b.answers.is_empty(), "a read-back passed a store that is not numbered");
    b.serve = true;
    b.until("the status line", |b| !b.answers.is_empty());
    let all = (REQUEST_SLOTS + 1 + HOST_QUEUE_LINES + 1) as u64;
    assert!(PageStatus::from_bytes(&b.answers[0].data).order >= before + all);
    b.drain();
}

pub fn the_save_reads_out_what_is_accepted_and_not_retired(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 10);
    b.map(POOL, 1);
    b.drain();
    b.dut.set("quiesce", true);
    let mut commands = vec![];
    let mut stores = vec![];
    for i in 0..20u64 {
        let c = log(1, i, 64 * i, 128 * i);
        b.post(i as usize % 4, 2, &c);
        b.settle_writes();
        commands.push((b.order(), c.encode(), i % 4));
        b.store(line_of(64 * i), [i as u8; LINE], 0xf0f0);
        b.settle_writes();
        stores.push((b.order(), line_of(64 * i), [i as u8; LINE], 0xf0f0));
    }
    b.load(line_of(0));
    b.dut.set("stop", true);
    b.run(40);
    assert!(b.dut.get_bool("quiet") && !b.dut.get_bool("idle"));
    let (mut found, mut found_stores) = (vec![], vec![]);
    for index in 0..64u64 {
        b.dut.set("save_index", index);
        b.dut.cycle();
        if index < 32 && b.dut.get_bool("saved_slot_valid") {
            let mut bytes = [0; LINE];
            let raw = b.dut.get("saved_slot_command");
            bytes.iter_mut().enumerate().for_each(|(i, byte)| *byte = raw.slice(8 * i, 8).to_u64() as u8);
            found.push((b.dut.get_u64("saved_slot_order"), bytes, b.dut.get_u64("saved_slot_page")));
        }
        if b.dut.get_bool("saved_line_valid") {
            let mut bytes = [0; LINE];
            let raw = b.dut.get("saved_line_data");
            bytes.iter_mut().enumerate().for_each(|(i, byte)| *byte = raw.slice(8 * i, 8).to_u64() as u8);
            let (order, line) = (b.dut.get_u64("saved_line_order"), b.dut.get_u64("saved_line_line"));
            found_stores.push((order, line, bytes, b.dut.get_u64("saved_line_strobes")));
        }
    }
    found.sort();
    found_stores.sort();
    assert_eq!(found, commands, "the saved commands");
    assert_eq!(found_stores, stores, "the saved stores");
    b.dut.set("stop", false);
    b.dut.set("quiesce", false);
    b.drain();
}
