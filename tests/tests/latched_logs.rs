//! A log that fails for a memory error, and what it then holds, and a store that memory refuses, on
//! the RTL and on the model: one behaviour, by one scenario.

use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::completion::PageStatus;
use nearpm_interface::geometry::{HELD_STORES, LINE, LINE_U64, POOLS_BASE, REQUEST_SLOTS};
use nearpm_interface::media::{RING_EPOCH, entry_bytes};
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_interface::registers;
use nearpm_interface::seal::seal_word;
use nearpm_interface::status::Status;
use nearpm_sim::bench::{CardBench, Posted};
use nearpm_sim::core::{Access, Answer, CardCore};
use nearpm_sim::model::{Config, ModelCard};
use nearpm_tests::rig::{medium, rtl_cards, without_save};
use nearpm_tests::trace::POOL;

/// Lines that the failing log covers: more than stores can be held.
const LOGGED: u64 = 80;
/// Cycles in which anything but a wait for the host has ended.
const SETTLED: u64 = 2_000;
/// Energy that any save ends in.
const WHOLE_SAVE: u64 = 1 << 40;

fn command(opcode: Opcode, thread: u16, sequence: u64) -> Command {
    Command { opcode: opcode as u8, pool: 1, thread, txid: 1, sequence, ..Command::default() }
}

fn log(thread: u16, source: u64, length: u64, slot: u64) -> Command {
    let destination = POOL.slots() + slot;
    Command { source, destination, length: length as u32, ..command(Opcode::UndoLog, thread, slot + 1) }
}

fn address(line: u64) -> u64 {
    POOLS_BASE + line * LINE_U64
}

/// A card at its ports, and everything that was seen there but time.
struct Rig {
    bench: CardBench,
    seen: Vec<String>,
}

impl Rig {
    /// A card with threads 0 to 2 mapped.
    fn new(card: Box<dyn CardCore>) -> Rig {
        let mut rig = Rig { bench: CardBench::open(card, POOL), seen: Vec::new() };
        for thread in 1..3 {
            let map = Command {
                source: POOLS_BASE,
                destination: POOL.bytes,
                auxiliary: POOL.ring,
                length: POOL.ring_bytes as u32,
                sequence: 0,
                ..command(Opcode::Map, thread, 0)
            };
            assert_eq!(rig.run(map), Status::Ok);
        }
        rig
    }

    fn note(&mut self, what: &str, value: impl std::fmt::Debug) {
        self.seen.push(format!("{what}: {value:x?}"));
    }

    fn finish(&mut self, posted: Posted) -> Status {
        let status = self.bench.finish(posted).status;
        self.note("status", status);
        status
    }

    fn run(&mut self, command: Command) -> Status {
        let posted = self.bench.post(command);
        self.finish(posted)
    }

    fn store(&mut self, line: u64, value: u8) {
        let access = Access::PmWrite { address: address(line), data: [value; LINE], strobes: u64::MAX };
        assert!(!self.bench.access(access).error, "a store is answered when it is accepted");
    }

    fn load(&mut self, line: u64) -> Answer {
        let answer = self.bench.access(Access::PmRead { address: address(line) });
        self.note("load", (line, answer.error, &answer.data[..8]));
        answer
    }

    fn register(&mut self, offset: u32) -> u32 {
        let value = self.bench.register(offset);
        self.note("register", (offset, value));
        value
    }

    fn latched_in_status(&mut self) -> u16 {
        let line = self.bench.access(Access::CommandRead { page: 2 }).data;
        let latched = PageStatus::from_bytes(&line).latched;
        self.note("status line", latched);
        latched
    }

    fn settle(&mut self) {
        let end = self.bench.card.cycle() + SETTLED;
        self.bench.card.advance_to(end);
    }

    /// What was seen, and memory without what a failed log of `length` bytes has written to its
    /// slot: that is undefined.
    fn end(self, length: u64) -> (Vec<String>, Vec<u8>) {
        let mut memory = without_save(&self.bench.card.power_fail(WHOLE_SAVE, 0));
        let slot = (POOLS_BASE + POOL.slots()) as usize;
        memory[slot..slot + entry_bytes(0, length as u32) as usize].fill(0);
        (self.seen, memory)
    }
}

/// Loads are answered, stores are kept to a number and then dropped, commands behind them are
/// refused, and an unmap lets go.
fn what_a_failed_log_holds(card: Box<dyn CardCore>) -> (Vec<String>, Vec<u8>) {
    let mut rig = Rig::new(card);
    assert_eq!(rig.latched_in_status(), 0);
    assert_eq!(rig.run(log(0, 0, LOGGED * LINE_U64, 0)), Status::MemoryError);
    assert_eq!(rig.latched_in_status(), 1);
    assert!(!rig.load(0).error, "what was logged can be read until it is stored to");
    assert!(rig.load(POOL.slots() / LINE_U64 + 1).error, "the entry was not written");
    const STORES: u64 = HELD_STORES as u64 + 12;
    for line in 0..STORES {
        rig.store(line, line as u8 + 1);
    }
    rig.settle();
    assert_eq!(rig.register(registers::HOST_LATCHED), 13, "a load, and the stores beyond those that are kept");
    assert!(rig.load(0).error, "its store is held");
    assert!(!rig.load(STORES - 1).error, "its store was dropped");
    rig.store(LOGGED + 1, 7);
    assert_eq!(rig.load(LOGGED + 1).data, [7; LINE], "others go on");
    // Behind a store that is held: refused, with all of its thread. Others go on.
    assert_eq!(rig.run(log(1, 0, LINE_U64, 0x8000)), Status::Latched);
    let epoch = Command {
        destination: POOL.ring + RING_EPOCH,
        auxiliary: seal_word(1),
        length: 8,
        ..command(Opcode::Commit, 1, 0)
    };
    assert_eq!(rig.run(epoch), Status::Latched);
    assert!(rig.load((POOL.slots() + 0x8000) / LINE_U64).error, "what was refused holds its lines too");
    assert_eq!(rig.run(log(2, (LOGGED + 1) * LINE_U64, LINE_U64, 0xc000)), Status::Ok);
    assert_eq!(rig.latched_in_status(), 3);
    assert_eq!(rig.run(command(Opcode::Unmap, 0, 0)), Status::Ok);
    assert_eq!(rig.run(command(Opcode::Unmap, 1, 0)), Status::Ok);
    assert_eq!((rig.latched_in_status(), rig.register(registers::MAPPED)), (0, 4));
    for line in 0..STORES {
        let kept = rig.load(line).data == [line as u8 + 1; LINE];
        assert_eq!(kept, line < HELD_STORES as u64, "line {line}");
    }
    assert_eq!(rig.register(registers::HOST_LATCHED), 15);
    rig.end(LOGGED * LINE_U64)
}

/// Stores and loads wait for the log when it fails.
fn what_waits_when_a_log_fails(card: Box<dyn CardCore>) -> (Vec<String>, Vec<u8>) {
    let mut rig = Rig::new(card);
    let failing = rig.bench.post(log(0, 0, LOGGED * LINE_U64, 0));
    let mut loads = Vec::new();
    for line in 0..10 {
        let store = Access::PmWrite { address: address(line), data: [line as u8 + 1; LINE], strobes: u64::MAX };
        rig.bench.card.submit(store);
        loads.push(rig.bench.card.submit(Access::PmRead { address: address(line) }));
    }
    let behind = rig.bench.post(log(1, 0, LINE_U64, 0x8000));
    assert_eq!(rig.finish(failing), Status::MemoryError);
    for load in loads {
        let answer = rig.bench.card.wait(load, SETTLED);
        rig.note("load", (answer.error, &answer.data[..8]));
        assert!(answer.error);
    }
    assert_eq!(rig.finish(behind), Status::Latched);
    assert_eq!(rig.register(registers::HOST_LATCHED), 10);
    rig.end(LOGGED * LINE_U64)
}

/// Every slot holds what failed: what needs a slot is refused, and an unmap finds one.
fn what_waits_when_every_slot_is_lost(card: Box<dyn CardCore>) -> (Vec<String>, Vec<u8>) {
    let mut rig = Rig::new(card);
    let long = 128 << 10;
    let posted: Vec<Posted> = (0..REQUEST_SLOTS).map(|_| rig.bench.post(log(0, 0, long, 0))).collect();
    for (n, posted) in posted.into_iter().enumerate() {
        assert_eq!(rig.finish(posted), if n == 0 { Status::MemoryError } else { Status::Latched });
    }
    assert_eq!(rig.run(log(2, 0x4_0000, LINE_U64, 0x6_0000)), Status::Latched);
    assert_eq!(rig.latched_in_status(), 1, "a command that finds no slot does not end its thread");
    assert_eq!(rig.run(command(Opcode::Unmap, 0, 0)), Status::Ok);
    assert_eq!(rig.run(log(2, 0x4_0000, LINE_U64, 0x6_0000)), Status::Ok);
    rig.end(long)
}

/// Memory refuses a store that was answered: every thread of its pool is latched, and software
/// hears of it until it says so.
fn what_a_lost_store_latches(card: Box<dyn CardCore>) -> (Vec<String>, Vec<u8>) {
    let mut rig = Rig::new(card);
    rig.store(0, 1);
    rig.store(LOGGED - 1, 7);
    rig.store(LOGGED, 2);
    rig.settle();
    assert_eq!(rig.latched_in_status(), 7);
    assert_eq!(rig.register(registers::STORES_LOST), 1);
    let named = [registers::LOST_FIRST_LO, registers::LOST_FIRST_HI, registers::LOST_LAST_LO, registers::LOST_LAST_HI];
    let line = address(LOGGED - 1);
    assert_eq!(
        named.map(|offset| rig.register(offset)),
        [line as u32, (line >> 32) as u32, line as u32, (line >> 32) as u32]
    );
    assert_eq!((rig.load(0).data, rig.load(LOGGED).data), ([1; LINE], [2; LINE]), "others go on");
    let epoch = Command {
        destination: POOL.ring + RING_EPOCH,
        auxiliary: seal_word(1),
        length: 8,
        ..command(Opcode::Commit, 1, 0)
    };
    assert_eq!(rig.run(epoch), Status::Latched);
    assert_eq!(rig.run(log(2, 0x4_0000, LINE_U64, 0x6_0000)), Status::Latched);
    rig.store(LOGGED - 1, 8);
    rig.settle();
    assert_eq!(rig.register(registers::STORES_LOST), 2);
    for thread in 0..3 {
        assert_eq!(rig.run(command(Opcode::Unmap, thread, 0)), Status::Ok);
    }
    assert_eq!((rig.latched_in_status(), rig.register(registers::STORES_LOST)), (0, 2));
    rig.bench
        .card
        .submit(Access::RegisterWrite { offset: registers::CONTROL, value: registers::control::ACKNOWLEDGE_LOSS });
    rig.settle();
    assert_eq!(named.map(|offset| rig.register(offset)), [0; 4]);
    assert_eq!(rig.register(registers::STORES_LOST), 0);
    rig.end(LOGGED * LINE_U64)
}

#[test]
fn rtl_and_model_hold_the_same() {
    let cards = rtl_cards(MemoryPorts::One);
    type Scenario = fn(Box<dyn CardCore>) -> (Vec<String>, Vec<u8>);
    let scenarios: [(&str, Scenario); 4] = [
        ("lost", what_a_lost_store_latches),
        ("held", what_a_failed_log_holds),
        ("waiting", what_waits_when_a_log_fails),
        ("no slots", what_waits_when_every_slot_is_lost),
    ];
    for (name, scenario) in scenarios {
        // The last line of the log: none of its scenarios stores to it.
        let broken = address(LOGGED - 1);
        let mut model = ModelCard::new(Config::default(), medium());
        model.plant_memory_error(broken);
        let mut rtl = cards.card(medium()).expect("the generated card has the ports");
        rtl.plant_memory_error(broken);
        let (model, rtl) = (scenario(Box::new(model)), scenario(Box::new(rtl)));
        assert_eq!(rtl.0, model.0, "{name}");
        assert!(rtl.1 == model.1, "{name}: memory differs");
    }
}
