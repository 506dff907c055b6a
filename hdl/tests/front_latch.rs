//! What a latched log leaves behind holds nobody up: the front with a log that fails.

use nearpm_hdl::dut::{Dut, on_both_back_ends};
use nearpm_hdl::units::front::Front;
use nearpm_hdl_bench::front::{Bench, Line, RING, base, blank};
use nearpm_interface::command::{Command, FLAG_COMPLETE, Opcode};
use nearpm_interface::geometry::{HELD_STORES, HOST_QUEUE_LINES, LINE, LINE_U64};
use nearpm_interface::status::Status;

const POOL: u64 = 1;
/// Lines that the log covers; more than the host queue has.
const LOGGED: u64 = 80;
const FAILS: u64 = 50;

fn line_of(offset: u64) -> u64 {
    (base(POOL) + offset) / LINE_U64
}

fn command(opcode: Opcode, sequence: u64) -> Command {
    Command {
        opcode: opcode as u8,
        flags: FLAG_COMPLETE,
        thread: 1,
        pool: POOL as u32,
        txid: 1,
        sequence,
        tag: sequence as u32,
        ..Command::default()
    }
}

/// A log of the first lines of the pool, and its failure.
fn latched(dut: &mut dyn Dut, seed: u64) -> Bench<'_> {
    let mut b = Bench::new(dut, seed);
    b.map(POOL, 1);
    b.map(POOL, 2);
    b.drain();
    b.failing = vec![FAILS];
    let log = Command { destination: RING, length: (LOGGED * LINE_U64) as u32, ..command(Opcode::UndoLog, FAILS) };
    b.post(1, 0, &log);
    b.until("its record", |b| !b.records.is_empty());
    assert_eq!(b.records[0].status.to_u64(), 0x80);
    assert_eq!(b.dut.get_u64("latched"), 1);
    b
}

/// Loads a line, and gives how long that took with the answer.
fn load(b: &mut Bench, line: u64) -> (Line, bool, u64) {
    let start = b.dut.cycles();
    b.answers.clear();
    let id = b.load(line);
    b.until("the answer", |b| b.answers.iter().any(|a| a.id == id));
    let answer = b.answers.iter().find(|a| a.id == id).expect("it has come");
    (answer.data, answer.error, b.dut.cycles() - start)
}

#[test]
fn a_load_of_what_a_failed_log_holds_is_answered_with_an_error() {
    on_both_back_ends::<Front>(|dut| {
        let mut b = latched(dut, 1);
        let entry = line_of(RING) + 1;
        let mut worst = 0;
        for round in 0..10 {
            let (data, error, cycles) = load(&mut b, entry + round);
            assert!(error && data == [0; LINE], "the entry was not written");
            worst = worst.max(cycles);
        }
        // What was logged may be read until a store of it is held, and then not: the store has not
        // happened.
        let (data, error, _) = load(&mut b, line_of(0));
        assert_eq!((data, error), (blank(line_of(0)), false));
        b.store(line_of(0), [9; LINE], u64::MAX);
        let (data, error, cycles) = load(&mut b, line_of(0));
        assert!(error && data == [0; LINE]);
        worst = worst.max(cycles);
        println!("{}: an error takes at most {worst} cycles", b.dut.back_end());
        assert!(worst < 200, "{worst} cycles");
        b.post(0, 0, &command(Opcode::Unmap, 51));
        b.drain();
        let (data, error, _) = load(&mut b, line_of(0));
        assert_eq!((data, error), ([9; LINE], false), "the held store was let go");
    });
}

#[test]
fn a_load_that_waits_when_its_log_fails_is_answered_too() {
    on_both_back_ends::<Front>(|dut| {
        let mut b = Bench::new(dut, 2);
        b.map(POOL, 1);
        b.drain();
        b.failing = vec![FAILS];
        b.work = false;
        let log = Command { destination: RING, length: LINE as u32, ..command(Opcode::UndoLog, FAILS) };
        b.post(1, 0, &log);
        // A load of the entry, a store of the source, a load of the store's line, and a store
        // behind that load.
        b.load(line_of(RING) + 1);
        b.store(line_of(0), [5; LINE], u64::MAX);
        b.load(line_of(0));
        b.store(line_of(0), [6; LINE], 1);
        b.settle_writes();
        b.run(100);
        assert!(b.answers.is_empty());
        b.work = true;
        b.until("both answers", |b| b.answers.len() == 2);
        assert!(b.answers.iter().all(|a| a.error));
        assert_eq!(b.stored, [0; 0], "the stores stay held");
        b.post(0, 0, &command(Opcode::Unmap, 51));
        b.drain();
        let mut expected = [5; LINE];
        expected[0] = 6;
        assert_eq!(b.memory.get(line_of(0)), expected);
    });
}

#[test]
fn a_load_behind_a_command_that_a_held_store_blocks_is_answered() {
    on_both_back_ends::<Front>(|dut| {
        let mut b = latched(dut, 4);
        b.store(line_of(0), [9; LINE], u64::MAX);
        b.settle_writes();
        // Of another thread: it is refused for the store, and the load of what it would have
        // written is answered with an error.
        let log = Command { thread: 2, destination: RING + 0x4000, length: 64, ..command(Opcode::UndoLog, 60) };
        b.post(2, 0, &log);
        b.settle_writes();
        let (data, error, cycles) = load(&mut b, line_of(RING + 0x4000));
        assert!(error && data == [0; LINE] && cycles < 200, "{cycles} cycles");
        assert_eq!(b.dut.get_u64("latched"), 3);
        b.post(0, 0, &command(Opcode::Unmap, 61));
        b.post(0, 1, &Command { thread: 2, ..command(Opcode::Unmap, 62) });
        b.drain();
        assert_eq!(b.memory.get(line_of(0)), [9; LINE]);
        let (_, error, _) = load(&mut b, line_of(RING + 0x4000));
        assert!(!error);
    });
}

#[test]
fn held_stores_leave_lines_for_others() {
    on_both_back_ends::<Front>(|dut| {
        let mut b = latched(dut, 3);
        assert!(LOGGED as usize > HOST_QUEUE_LINES);
        // The link goes on, whatever is stored to what the log covers.
        let start = b.dut.cycles();
        for i in 0..LOGGED {
            b.store(line_of(i * LINE_U64), [i as u8 + 1; LINE], u64::MAX);
        }
        b.settle_writes();
        let cycles = b.dut.cycles() - start;
        println!("{}: {LOGGED} stores of latched lines in {cycles} cycles", b.dut.back_end());
        assert_eq!(b.stored, [0; 0], "no store without its log");
        // Others use what is left.
        for i in 0..100u64 {
            let line = line_of(0x4000 + i * LINE_U64);
            b.store(line, [i as u8; LINE], u64::MAX);
            let (data, error, _) = load(&mut b, line);
            assert_eq!((data, error), ([i as u8; LINE], false));
        }
        let log = Command {
            thread: 2,
            source: 0x4000,
            destination: RING + 0x4000,
            length: 64,
            ..command(Opcode::UndoLog, 60)
        };
        b.records.clear();
        b.post(2, 0, &log);
        b.until("its record", |b| !b.records.is_empty());
        assert_eq!(b.records[0].status.to_u64(), 0);
        // The commit is refused; the unmap lets the kept stores go, and no other.
        b.records.clear();
        b.post(1, 1, &Command { destination: 8192, ..command(Opcode::Commit, 61) });
        b.until("its record", |b| !b.records.is_empty());
        assert_eq!(b.records[0].status.to_u64(), u64::from(Status::Latched.code()));
        b.post(0, 0, &command(Opcode::Unmap, 62));
        b.drain();
        let mut kept = 0;
        for i in 0..LOGGED {
            let line = line_of(i * LINE_U64);
            let data = b.memory.get(line);
            assert!(data == blank(line) || data == [i as u8 + 1; LINE], "a line is stored or it is not");
            kept += usize::from(data != blank(line));
        }
        assert_eq!(kept, HELD_STORES);
    });
}
