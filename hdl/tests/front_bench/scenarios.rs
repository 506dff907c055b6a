//! The scenarios of the contract that a front must not fall for, and random items against the oracle.

use super::{Beat, Bench, Line, Oracle, PM_LINES, RING, any_command, base, blank, merge};
use nearpm_hdl::dut::Dut;
use nearpm_interface::command::{Command, FLAG_COMPLETE, Opcode, slot_offset};
use nearpm_interface::completion::PageStatus;
use nearpm_interface::geometry::{
    FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, HOST_QUEUE_LINES, LINE, LINE_U64, REQUEST_SLOTS, SAVE_BASE, SAVE_BYTES,
};
use nearpm_interface::status::Status;
use rand::RngExt;

/// Bytes at the start of the pool that the random items use: 16 lines, so that most of them are in conflict.
const SPAN: u64 = 16 * LINE_U64;
const POOL: u64 = 1;

fn line_of(offset: u64) -> u64 {
    (base(POOL) + offset) / LINE_U64
}

fn log(thread: u64, sequence: u64, source: u64, slot: u64) -> Command {
    Command {
        opcode: Opcode::UndoLog as u8,
        flags: FLAG_COMPLETE,
        thread: thread as u16,
        pool: POOL as u32,
        txid: 1,
        source,
        destination: RING + slot,
        length: LINE as u32,
        sequence,
        tag: sequence as u32,
        ..Command::default()
    }
}

fn simple(opcode: Opcode, thread: u64, sequence: u64) -> Command {
    Command {
        opcode: opcode as u8,
        flags: FLAG_COMPLETE,
        thread: thread as u16,
        pool: POOL as u32,
        txid: 1,
        sequence,
        tag: sequence as u32,
        ..Command::default()
    }
}

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
    // One range after the other is written by a log that runs; ranges that both only read are no conflict.
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

pub fn half_a_command_never_executes(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 5);
    b.map(POOL, 1);
    b.drain();
    let (first, second) = (log(1, 7, 128, 0), log(1, 8, 256, 0));
    let piece =
        |c: &Command, word: u64| Beat { address: slot_offset(1, 5), data: c.encode(), strobes: 0xff << (8 * word) };
    for word in 0..7 {
        b.command_beat(piece(&first, word));
    }
    // A whole command in the neighbouring slot is not disturbed.
    b.post(1, 6, &log(1, 9, 512, 4096));
    b.settle_writes();
    b.run(300);
    let sequences = |b: &Bench| b.issued.iter().map(|i| i.1).collect::<Vec<_>>();
    assert_eq!(sequences(&b), [0, 9], "half a command was executed");
    assert_eq!(b.page_status(1).accepted, 1);
    // The slot starts anew with a byte that it has already.
    for word in [3, 0, 1, 2, 7, 6, 5] {
        b.command_beat(piece(&second, word));
    }
    b.run(300);
    assert_eq!(sequences(&b), [0, 9]);
    b.command_beat(piece(&second, 4));
    b.drain();
    assert_eq!(sequences(&b), [0, 9, 8]);
    // A damaged one is dropped, counted, and answered.
    let mut data = second.encode();
    data[40] ^= 1;
    b.command_beat(Beat { address: slot_offset(1, 5), data, strobes: u64::MAX });
    b.settle_writes();
    b.run(100);
    assert_eq!(sequences(&b), [0, 9, 8], "a damaged command was executed");
    let status = b.page_status(1);
    assert_eq!((status.accepted, status.dropped, status.refused), (2, 1, 0));
}

pub fn a_refused_command_has_no_effect_and_is_told(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 6);
    b.map(POOL, 1);
    b.drain();
    let order = b.order();
    b.records.clear();
    let good = log(1, 7, 128, 0);
    let bad = [
        (Command { opcode: 0x1f, ..good }, Status::BadOpcode),
        (Command { opcode: 200, ..good }, Status::BadOpcode),
        (Command { length: 0, ..good }, Status::BadLength),
        (Command { source: u64::MAX - 10, ..good }, Status::OutOfRange),
        (Command { destination: 64, ..good }, Status::OutOfRange),
        (Command { thread: 9, ..good }, Status::Unmapped),
        (Command { destination: RING + 8, ..good }, Status::Misaligned),
        (Command { source: RING, ..good }, Status::Overlap),
        (simple(Opcode::Unmap, 1, 7), Status::NotPrivileged),
        (Command { txid: 0, ..good }, Status::StaleTransaction),
        (Command { participants: 1, ..good }, Status::BadParticipants),
    ];
    for (i, (c, status)) in bad.iter().enumerate() {
        let c = Command { flags: 0, tag: 100 + i as u32, ..*c };
        b.post(2, 0, &c);
        b.settle_writes();
        assert_eq!(b.page_status(2).accepted, 0, "{c:?} was taken");
        assert_eq!(b.order(), order, "{c:?} was numbered");
        b.until("the record", |b| b.records.len() > i);
        let record = b.records[i];
        let told = (record.status.to_u64(), record.tag.to_u64(), record.page.to_u64());
        assert_eq!(told, (u64::from(status.code()), 100 + i as u64, 2), "the record of {c:?}");
        let page = b.page_status(2);
        assert_eq!((page.refused as usize, page.accepted), (i + 1, 0));
        assert_eq!((page.last_bad_tag, page.last_bad_status), (100 + i as u32, status.code()));
    }
    // All entries in use, and one more; then the same once more.
    for thread in 2..17 {
        b.map(POOL, thread);
    }
    let count = b.records.len();
    b.map(POOL, 17);
    assert_eq!(b.page_status(0).refused, 1, "a mapping too many");
    b.map(POOL, 5);
    b.until("the records", |b| b.records.len() > count + 1);
    let codes: Vec<_> = b.records[count..].iter().map(|r| r.status.to_u64()).collect();
    assert_eq!(codes, [Status::MapFull, Status::MapExists].map(|s| u64::from(s.code())));
    assert_eq!(b.dut.get("mapped"), 0xffffu64);
}

pub fn a_failed_log_latches_holds_its_stores_and_refuses_the_commit(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 7);
    b.map(POOL, 1);
    b.map(POOL, 2);
    b.drain();
    b.failing = vec![50];
    b.work = false;
    let line = line_of(128);
    b.post(1, 0, &log(1, 50, 128, 0));
    b.post(1, 1, &Command { destination: 8192, ..simple(Opcode::Commit, 1, 51) });
    b.store(line, [9; LINE], u64::MAX);
    b.run(60);
    b.work = true;
    b.until("both records", |b| b.records.len() >= 2);
    let codes: Vec<_> = b.records.iter().map(|r| (r.tag.to_u64(), r.status.to_u64())).collect();
    let latched = u64::from(Status::Latched.code());
    assert_eq!(codes, [(50, 0x80), (51, latched)], "the commit behind a failed log");
    assert_eq!(b.dut.get("latched"), 1u64);
    // The store that came before and one that comes after are held; others pass; new logs are refused.
    b.store(line, [7; LINE], 1);
    b.store(line + 5, [6; LINE], u64::MAX);
    b.post(1, 2, &log(1, 52, 512, 0));
    b.post(2, 2, &log(2, 53, 640, 1024));
    b.settle_writes();
    b.run(300);
    assert_eq!(b.stored, [line + 5], "a store without its log");
    assert_eq!(b.memory.get(line_of(8192)), blank(line_of(8192)), "the commit wrote nothing");
    let codes: Vec<_> = b.records[2..].iter().map(|r| (r.tag.to_u64(), r.status.to_u64())).collect();
    assert_eq!(codes, [(52, u64::from(Status::Latched.code())), (53, 0)]);
    assert!(!b.dut.get_bool("idle"), "what is held has not retired");
    let status = b.page_status(1);
    assert_eq!((status.failed, status.accepted), (1, 2));
    b.post(0, 0, &simple(Opcode::Unmap, 1, 54));
    b.drain();
    let mut expected = [9; LINE];
    expected[0] = 7;
    assert_eq!(b.memory.get(line), expected);
    assert_eq!((b.dut.get_u64("latched"), b.dut.get_u64("mapped")), (0, 2));
}

pub fn what_a_latched_log_covers_is_held_like_what_the_failed_one_covers(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 13);
    b.map(POOL, 1);
    b.drain();
    b.failing = vec![50];
    b.issue = false;
    // Both logs are accepted; the first fails, the second is never issued: neither line has its old value logged.
    b.post(1, 0, &log(1, 50, 128, 0));
    b.post(1, 1, &log(1, 51, 512, 0));
    b.store(line_of(128), [9; LINE], u64::MAX);
    b.store(line_of(512), [8; LINE], u64::MAX);
    b.settle_writes();
    b.issue = true;
    b.until("both records", |b| b.records.len() >= 2);
    b.run(300);
    assert_eq!(b.stored, [0; 0], "a store without its log");
    b.post(0, 0, &simple(Opcode::Unmap, 1, 52));
    b.drain();
    assert_eq!(b.memory.get(line_of(512)), [8; LINE]);
}

pub fn an_unmap_finds_room_when_every_slot_holds_a_failed_log(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 8);
    for thread in 0..16 {
        b.map(POOL, thread);
    }
    b.drain();
    b.failing = (100..200).collect();
    // Eight logs at a time are in units, two of each of four threads, and fail together.
    for batch in 0..4 {
        b.work = false;
        for i in 0..8 {
            let sequence = 100 + 8 * batch + i;
            let c = log(4 * batch + i / 2, sequence, 64 * sequence, 128 * sequence);
            b.post(1, i as usize, &c);
            b.settle_writes();
        }
        b.run(40);
        b.work = true;
        b.run(200);
    }
    assert_eq!(b.dut.get("latched"), 0xffffu64);
    assert_eq!(b.page_status(1).failed as usize, REQUEST_SLOTS);
    for thread in 0..16 {
        b.post(0, 0, &simple(Opcode::Unmap, thread, 1));
        b.settle_writes();
    }
    b.drain();
    assert_eq!(b.dut.get("mapped"), 0u64);
}

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

pub fn the_host_may_not_write_what_is_the_cards_own(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 12);
    b.dut.set("firmware_slot", true);
    let firmware = |slot: u64| (FIRMWARE_BASE + slot * FIRMWARE_SLOT_BYTES) / LINE_U64;
    let save = SAVE_BASE / LINE_U64;
    let refused = [save, save + SAVE_BYTES / LINE_U64 - 1, firmware(1), firmware(1) + 63, PM_LINES, 1 << 33];
    let taken = [save - 1, firmware(0), firmware(0) + 63, firmware(2), PM_LINES - 1, 0];
    for (i, line) in refused.into_iter().enumerate() {
        b.store(line, [1; LINE], u64::MAX);
        b.settle_writes();
        assert_eq!(b.write_errors, i + 1, "line {line:#x}");
    }
    for line in taken {
        b.store(line, [1; LINE], u64::MAX);
    }
    b.drain();
    assert_eq!(b.write_errors, refused.len());
    assert_eq!(b.memory.0.len(), taken.len());
    // With no image in force both slots may be written; with the window closed nothing is taken.
    b.dut.set("firmware_ok", false);
    b.store(firmware(1), [1; LINE], u64::MAX);
    b.drain();
    assert_eq!(b.write_errors, refused.len());
    b.dut.set("window_open", false);
    b.store(firmware(1), [1; LINE], u64::MAX);
    b.load(0);
    b.post(0, 0, &simple(Opcode::Fence, 1, 1));
    b.until("the read", |b| !b.answers.is_empty());
    b.drain();
    assert!(b.answers[0].error);
    assert_eq!((b.write_errors, b.order()), (refused.len() + 1, taken.len() as u64 + 1));
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

/// The read-back is what a durable commit waits for: it may not run ahead of what has arrived, on either port.
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

/// Commands that may be issued before one that was ready with them: twice as many as there are slots.
const ISSUES: usize = 2 * REQUEST_SLOTS;

/// A thread that refills every slot as it is freed does not keep the command in the last slot from its turn.
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
