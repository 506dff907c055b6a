//! What is not executed, and what a failure holds back: C3, C5.

use super::super::{Beat, Bench, Line, Oracle, PM_LINES, RING, any_command, base, blank};
use super::{POOL, SPAN, line_of, log, simple};
use nearpm_hdl::dut::Dut;
use nearpm_interface::command::{Command, FLAG_COMPLETE, Opcode, slot_offset};
use nearpm_interface::geometry::{
    FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, LINE, LINE_U64, REQUEST_SLOTS, SAVE_BASE, SAVE_BYTES,
};
use nearpm_interface::status::Status;
use rand::RngExt;
use std::collections::BTreeMap;

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

/// What a function-level reset finds half arrived is no part of a command that comes after it. A
/// power cut needs no such care: slots are registers, and no part of the save.
pub fn a_reset_forgets_half_a_command(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 22);
    b.map(POOL, 1);
    b.drain();
    let piece = |c: &Command, strobes: u64| Beat { address: slot_offset(1, 5), data: c.encode(), strobes };
    let (early, late) = (log(1, 7, 128, 0), u64::MAX << 32);
    b.command_beat(piece(&early, !late));
    b.settle_writes();
    b.dut.set("clear", true);
    b.run(1);
    b.dut.set("clear", false);
    b.run(100);
    b.map(POOL, 1);
    b.command_beat(piece(&early, late));
    b.settle_writes();
    b.run(300);
    let sequences: Vec<_> = b.issued.iter().map(|i| i.1).filter(|sequence| *sequence != 0).collect();
    assert_eq!(sequences, [0; 0], "half a command of before the reset was executed with half of one behind it");
    assert_eq!(b.page_status(1).accepted, 0);
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
    // The store that came before and one that comes after are held; others pass; new logs are
    // refused.
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
    assert_eq!(b.page_status(2).latched, 1, "the status line hides that a log has failed");
    b.post(0, 0, &simple(Opcode::Unmap, 1, 54));
    b.drain();
    let mut expected = [9; LINE];
    expected[0] = 7;
    assert_eq!(b.memory.get(line), expected);
    assert_eq!((b.dut.get_u64("latched"), b.dut.get_u64("mapped")), (0, 2));
}

/// A store was answered, and then memory refuses it: nothing of it is there, so that its pool is
/// latched and software hears of it.
pub fn a_store_that_memory_refuses_latches_its_pool(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 20);
    // Two threads of a pool, and another pool behind it.
    for (pool, thread) in [(POOL, 1), (POOL, 2), (POOL + 1, 1)] {
        b.map(pool, thread);
    }
    b.drain();
    let lost = [line_of(128), line_of(64), base(POOL + 1) / LINE_U64 - 1];
    b.refusing = lost[..1].to_vec();
    b.store(lost[0], [9; LINE], u64::MAX);
    b.store(line_of(512), [8; LINE], u64::MAX);
    b.drain();
    b.run(20);
    assert_eq!(b.write_errors, 0, "it was answered when it was accepted");
    assert_eq!(b.dut.get_u64("latched"), 0b011, "the pool of a lost store is not latched");
    let status = b.page_status(3);
    assert_eq!((status.latched, status.stores_lost), (0b011, 1), "the status line hides that a store was lost");
    assert_eq!(b.memory.get(line_of(512)), [8; LINE], "others go on");
    b.post(1, 0, &Command { destination: 8192, ..simple(Opcode::Commit, 1, 51) });
    b.until("its record", |b| !b.records.is_empty());
    assert_eq!(b.records[0].status.to_u64(), u64::from(Status::Latched.code()), "the commit behind a lost store");
    assert_eq!(b.memory.get(line_of(8192)), blank(line_of(8192)), "the commit wrote nothing");
    // The other pool goes on; its neighbour's last line is not its own.
    b.refusing = lost.to_vec();
    b.store(lost[1], [7; LINE], u64::MAX);
    b.store(lost[2], [7; LINE], u64::MAX);
    b.drain();
    b.run(20);
    assert_eq!(b.dut.get_u64("latched"), 0b011);
    let known = b.dut.get("lost");
    let (count, first, last) = (known.slice(0, 32), known.slice(32, 34), known.slice(66, 34));
    assert_eq!((count, first, last), (3u64.into(), lost[1].into(), lost[2].into()), "the lines that were lost");
    // Software has read that; what is lost later counts anew.
    b.dut.set("lost_forget", true);
    b.cycle();
    b.dut.set("lost_forget", false);
    assert_eq!(b.page_status(1).stores_lost, 0);
    b.post(0, 0, &simple(Opcode::Unmap, 1, 60));
    b.post(0, 1, &simple(Opcode::Unmap, 2, 61));
    b.drain();
    assert_eq!((b.dut.get_u64("latched"), b.dut.get_u64("mapped")), (0, 0b100));
    b.store(lost[1], [7; LINE], u64::MAX);
    b.drain();
    b.run(20);
    assert_eq!((b.dut.get_u64("latched"), b.page_status(1).stores_lost), (0, 1), "no mapping is there to be latched");
}

pub fn what_a_latched_log_covers_is_held_like_what_the_failed_one_covers(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 13);
    b.map(POOL, 1);
    b.drain();
    b.failing = vec![50];
    b.issue = false;
    // Both logs are accepted; the first fails, the second is never issued: neither line has its old
    // value logged.
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

/// A thread logs and stores the same line again and again and does not wait; the first log fails.
/// Every later log is refused for the store before it, which is held, and keeps its slot: what is
/// offered next must not keep the unmap out.
pub fn an_unmap_arrives_when_every_slot_waits_for_a_held_store(dut: &mut dyn Dut) {
    let mut b = Bench::new(dut, 19);
    b.map(POOL, 1);
    b.map(POOL, 2);
    b.drain();
    b.failing = vec![50];
    b.work = false;
    let line = line_of(128);
    for i in 0..REQUEST_SLOTS as u64 {
        b.post(1, i as usize % 16, &log(1, 50 + i, 128, 128 * i));
        b.store(line, [i as u8; LINE], u64::MAX);
    }
    // Another thread, which has nothing to do with it.
    b.post(2, 0, &log(2, 90, 4096, 128 * 60));
    b.run(100);
    b.work = true;
    b.until("the failure", |b| b.dut.get_u64("latched") == 1);
    b.post(0, 0, &simple(Opcode::Unmap, 1, 91));
    b.drain();
    assert_eq!(b.memory.get(line), [REQUEST_SLOTS as u8 - 1; LINE]);
}

/// Something that arrived.
enum Item {
    Command(Command),
    Store(u64, Line, u64),
}

/// Logs fail at random while other threads go on. Whatever was done had success in its record, and
/// memory ends as if exactly that had been executed in arrival order: no store is lost, and none
/// passes what it has to wait for.
pub fn what_fails_at_random_has_no_effect_and_loses_no_store(dut: &mut dyn Dut) {
    const THREADS: u64 = 3;
    const UNMAP: u64 = 1 << 20;
    let items = if dut.back_end() == "verilator" { 3000 } else { 40 };
    let mut b = Bench::new(dut, 18);
    let (mut arrived, mut since_latch, mut latches) = (Vec::new(), 0, 0);
    let map_all = |b: &mut Bench| (0..THREADS).for_each(|thread| b.map(POOL, thread));
    let unmap_all = |b: &mut Bench| {
        (0..THREADS).for_each(|thread| b.post(0, thread as usize, &simple(Opcode::Unmap, thread, UNMAP)));
        b.drain();
    };
    map_all(&mut b);
    for sequence in 0..items {
        if b.rng.random_range(0..3) > 0 {
            let thread = b.rng.random_range(0..THREADS);
            let c = Command { flags: FLAG_COMPLETE, ..any_command(&mut b.rng, POOL, thread, sequence, SPAN) };
            if b.rng.random_ratio(1, 15) {
                b.failing.push(sequence);
            }
            b.post(1, sequence as usize % 16, &c);
            arrived.push(Item::Command(c));
        } else {
            let line = line_of(LINE_U64 * b.rng.random_range(0..SPAN / LINE_U64));
            let (data, strobes) = (b.rng.random(), b.rng.random());
            b.store(line, data, strobes);
            arrived.push(Item::Store(line, data, strobes));
        }
        since_latch += u64::from(b.dut.get_u64("latched") != 0);
        if since_latch > 20 {
            (since_latch, latches) = (0, latches + 1);
            unmap_all(&mut b);
            map_all(&mut b);
        }
    }
    unmap_all(&mut b);
    b.run(50);
    let status: BTreeMap<u64, u64> = b.records.iter().map(|r| (r.tag.to_u64(), r.status.to_u64())).collect();
    let mut oracle = Oracle::default();
    for item in &arrived {
        match item {
            Item::Command(c) if status[&u64::from(c.tag)] == 0 => oracle.command(c, base(POOL)),
            Item::Command(_) => {}
            Item::Store(line, data, strobes) => oracle.store(*line, data, *strobes),
        }
    }
    for (line, data) in &b.memory.0 {
        assert_eq!(oracle.memory.get(*line), *data, "line {line:#x} after failures");
    }
    assert!(latches > 20 || items < 100, "{latches} latches");
}
