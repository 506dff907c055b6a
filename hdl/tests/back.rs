//! The execution side against an AXI memory with random delays, and an oracle built on `EntryHead::encode`.

mod memory;

use memory::{Line, Memory};
use nearpm_firmware::standard;
use nearpm_hdl::bundles::Work;
use nearpm_hdl::dut::{Dut, PortId, PortValue, on_both_back_ends};
use nearpm_hdl::units::back::Back;
use nearpm_interface::command::Opcode;
use nearpm_interface::geometry::{FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, LINE, LINE_U64, POOLS_BASE, SAVE_BASE, UNITS};
use nearpm_interface::media::{ENTRY_MAGIC, ENTRY_VERSION, EntryHead, EntryKind, entry_bytes};
use nearpm_interface::registers::firmware_status;
use nearpm_interface::save::{FIRMWARE_WORD_OFFSET, firmware_word};
use nearpm_interface::status::Status;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

/// A command that a unit has.
#[derive(Clone, Debug)]
struct Running {
    /// First byte and bytes of what it writes.
    writes: Vec<(u64, u64)>,
    unit: usize,
    issued: u64,
    progress: Option<u8>,
}

/// Handles of the ports that are looked at in each cycle.
struct Pins {
    issue_valid: [PortId; UNITS],
    issue_ready: [PortId; UNITS],
    work: PortId,
    done_valid: [PortId; UNITS],
    done_ready: [PortId; UNITS],
    done_slot: [PortId; UNITS],
    done_status: [PortId; UNITS],
    progress_valid: [PortId; UNITS],
    progress_ready: [PortId; UNITS],
    progress_slot: [PortId; UNITS],
    progress_pc: [PortId; UNITS],
    sync_valid: [PortId; UNITS],
    sync_ready: [PortId; UNITS],
    sync_txid: [PortId; UNITS],
}

impl Pins {
    fn new(dut: &dyn Dut) -> Self {
        let array = |name: &str| std::array::from_fn(|unit| dut.port(&format!("{name}${unit}")));
        Self {
            issue_valid: array("issue_valid"),
            issue_ready: array("issue_ready"),
            work: dut.port("work"),
            done_valid: array("done_valid"),
            done_ready: array("done_ready"),
            done_slot: array("done_slot"),
            done_status: array("done_status"),
            progress_valid: array("progress_valid"),
            progress_ready: array("progress_ready"),
            progress_slot: array("progress_slot"),
            progress_pc: array("progress_pc"),
            sync_valid: array("sync_valid"),
            sync_ready: array("sync_ready"),
            sync_txid: array("sync_txid"),
        }
    }
}

struct Bench<'a> {
    dut: &'a mut dyn Dut,
    pins: Pins,
    rng: ChaCha8Rng,
    memory: Memory,
    /// What the memory must hold in the end, where it differs from the start.
    oracle: BTreeMap<u64, Line>,
    slots: BTreeMap<u64, Running>,
    /// Next free byte of the medium.
    next: u64,
    /// Chance that what a unit offers is taken in a cycle.
    answer: f64,
    hold_progress: bool,
    done: Vec<(u64, u8, u64)>,
}

impl<'a> Bench<'a> {
    fn new(dut: &'a mut dyn Dut, seed: u64) -> Self {
        let pins = Pins::new(dut);
        let memory = Memory::new(dut, seed);
        dut.reset();
        Self {
            dut,
            pins,
            rng: ChaCha8Rng::seed_from_u64(seed),
            memory,
            oracle: BTreeMap::new(),
            slots: BTreeMap::new(),
            next: POOLS_BASE,
            answer: 0.5,
            hold_progress: false,
            done: Vec::new(),
        }
    }

    /// A bench with the standard firmware in force.
    fn with_firmware(dut: &'a mut dyn Dut, seed: u64) -> Self {
        let mut bench = Self::new(dut, seed);
        bench.place_image(0, standard().bytes());
        let status = bench.load(0, None);
        assert_eq!(status, firmware_status::OK);
        let line = SAVE_BASE / LINE_U64;
        let held = bench.memory.line(line);
        bench.oracle.insert(line, held);
        bench
    }

    fn place_image(&mut self, slot: u64, image: &[u8]) {
        let base = (FIRMWARE_BASE + slot * FIRMWARE_SLOT_BYTES) / LINE_U64;
        for (line, bytes) in (base..).zip(image.chunks(LINE)) {
            self.memory.put(line, bytes.try_into().expect("whole lines"));
            self.oracle.insert(line, self.memory.line(line));
        }
    }

    /// Loads a slot; with a checksum as at boot.
    fn load(&mut self, slot: u64, boot: Option<u32>) -> u32 {
        self.dut.set("firmware_slot", slot);
        self.dut.set("firmware_boot", boot.is_some());
        self.dut.set("firmware_expect", u64::from(boot.unwrap_or(0)));
        self.dut.set("firmware_load", true);
        self.step();
        self.dut.set("firmware_load", false);
        for _ in 0..5000 {
            if self.dut.get_bool("firmware_done") {
                let status = self.dut.get_u64("firmware_status") as u32;
                self.step();
                assert!(!self.dut.get_bool("firmware_busy"));
                return status;
            }
            assert!(self.dut.get_bool("firmware_busy"));
            self.step();
        }
        panic!("the load does not end");
    }

    fn high(&mut self, port: PortId) -> bool {
        self.dut.read(port).bit(0)
    }

    /// One cycle: memory, and what units offer.
    fn step(&mut self) {
        for unit in 0..UNITS {
            let take = self.rng.random_bool(self.answer);
            self.dut.write(self.pins.done_ready[unit], take.into());
            if self.high(self.pins.done_valid[unit]) && take {
                let slot = self.dut.read(self.pins.done_slot[unit]).to_u64();
                let status = self.dut.read(self.pins.done_status[unit]).to_u64() as u8;
                let running = self.slots.remove(&slot).expect("the slot has a command");
                assert_eq!(running.unit, unit);
                for (first, bytes) in &running.writes {
                    let touched = self.memory.unanswered(first / LINE_U64, (first + bytes - 1) / LINE_U64);
                    assert!(!touched, "done before the memory answered");
                }
                self.done.push((slot, status, self.dut.cycles() - running.issued));
            }
            let take = !self.hold_progress && self.rng.random_bool(self.answer);
            self.dut.write(self.pins.progress_ready[unit], take.into());
            if self.high(self.pins.progress_valid[unit]) {
                let slot = self.dut.read(self.pins.progress_slot[unit]).to_u64();
                let pc = self.dut.read(self.pins.progress_pc[unit]).to_u64() as u8;
                let running = self.slots.get_mut(&slot).expect("the slot has a command");
                assert_eq!(running.unit, unit);
                assert_eq!(*running.progress.get_or_insert(pc), pc);
            }
            let take = self.rng.random_bool(self.answer);
            self.dut.write(self.pins.sync_ready[unit], take.into());
            if self.high(self.pins.sync_valid[unit]) {
                let txid = self.dut.read(self.pins.sync_txid[unit]).to_u64();
                let matching = self.slots.iter().any(|(slot, r)| r.unit == unit && txid == slot + 100);
                assert!(matching, "the transaction of a command of the unit");
            }
        }
        self.memory.step(self.dut);
    }

    /// Issues to `unit` when it takes it.
    fn issue(&mut self, unit: usize, work: Work, writes: Vec<(u64, u64)>) {
        let mut limit = 200_000;
        while !self.high(self.pins.issue_ready[unit]) {
            self.step();
            limit -= 1;
            assert!(limit > 0, "the unit takes nothing");
        }
        let slot = work.slot.to_u64();
        let issued = self.dut.cycles();
        self.slots.insert(slot, Running { writes, unit, issued, progress: None });
        self.dut.write(self.pins.work, work.to_value());
        self.dut.write(self.pins.issue_valid[unit], true.into());
        self.step();
        self.dut.write(self.pins.issue_valid[unit], false.into());
    }

    fn free_slot(&mut self) -> u64 {
        let mut limit = 200_000;
        loop {
            if let Some(slot) = (0..32).find(|slot| !self.slots.contains_key(slot)) {
                return slot;
            }
            self.step();
            limit -= 1;
            assert!(limit > 0, "nothing is ever done");
        }
    }

    fn drain(&mut self) {
        for _ in 0..400_000 {
            if self.slots.is_empty() {
                return;
            }
            self.step();
        }
        panic!("commands are never done: {:?}", self.slots);
    }

    /// Room for `bytes` at `offset` in its line, with a neighbour's bytes around it.
    fn room(&mut self, bytes: u64, offset: u64) -> u64 {
        let at = self.next + LINE_U64 * self.rng.random_range(0..4u64) + offset;
        self.next = (at + bytes).next_multiple_of(LINE_U64);
        at
    }

    fn expect(&mut self, at: u64, bytes: &[u8]) {
        for (address, byte) in (at..).zip(bytes) {
            let line = address / LINE_U64;
            let start = self.memory.start(line);
            self.oracle.entry(line).or_insert(start)[(address % LINE_U64) as usize] = *byte;
        }
    }

    /// Makes a command of `opcode` on new ranges, and notes what it must leave.
    fn command(&mut self, opcode: Opcode, length: u64, offset: u64) -> (Work, Vec<(u64, u64)>) {
        let slot = self.free_slot();
        let pc = standard().descriptor(opcode as u8).expect("a program").entry();
        let value: u64 = self.rng.random();
        let source = self.room(length, offset);
        let source_offset = (self.rng.random::<u64>() & !63) | offset;
        let destination_offset = (self.rng.random::<u64>() & !63) | offset;
        let head = EntryHead {
            magic: ENTRY_MAGIC,
            kind: EntryKind::Undo as u8,
            version: ENTRY_VERSION,
            thread: self.rng.random(),
            sequence: self.rng.random(),
            txid: slot + 100,
            offset: source_offset,
            length: length as u32,
            pool: self.rng.random(),
            participants: self.rng.random(),
            ..EntryHead::default()
        };
        let data = self.memory.bytes(source, length);
        let mut writes = Vec::new();
        let (mut destination, mut auxiliary) = (0, 0);
        let mut entry = |bench: &mut Self, head: EntryHead, data: &[u8]| {
            let bytes = entry_bytes(head.offset, head.length);
            let at = bench.room(bytes, 0);
            bench.expect(at, &head.encode(data));
            writes.push((at, bytes));
            at
        };
        match opcode {
            Opcode::Fence => {}
            Opcode::UndoLog => destination = entry(self, head, &data),
            Opcode::Checkpoint => {
                destination = entry(self, EntryHead { kind: EntryKind::Checkpoint as u8, ..head }, &data);
            }
            Opcode::MirrorLog => {
                destination = entry(self, head, &data);
                auxiliary = entry(self, head, &data);
            }
            Opcode::UndoRedo => {
                destination = self.room(length, offset);
                let old = self.memory.bytes(destination, length);
                auxiliary = entry(self, EntryHead { offset: destination_offset, ..head }, &old);
                self.expect(destination, &data);
                writes.push((destination, length));
            }
            Opcode::Apply | Opcode::Recover | Opcode::ShadowCopy => {
                destination = self.room(length, offset);
                self.expect(destination, &data);
                writes.push((destination, length));
            }
            Opcode::Commit | Opcode::Switch => {
                destination = self.room(8, offset & 56);
                self.expect(destination, &value.to_le_bytes());
                writes.push((destination, 8));
            }
            Opcode::Map | Opcode::Unmap => unreachable!("not run here"),
        }
        let work = Work {
            slot: slot.into(),
            pc: u64::from(pc).into(),
            source: source.into(),
            destination: destination.into(),
            auxiliary: auxiliary.into(),
            value: value.into(),
            source_offset: source_offset.into(),
            destination_offset: destination_offset.into(),
            length: length.into(),
            thread: u64::from(head.thread).into(),
            pool: u64::from(head.pool).into(),
            txid: head.txid.into(),
            sequence: head.sequence.into(),
            participants: u64::from(head.participants).into(),
        };
        (work, writes)
    }

    fn check_memory(&self) {
        for (line, bytes) in self.memory.written() {
            let expected = self.oracle.get(line).copied().unwrap_or(self.memory.start(*line));
            assert_eq!(bytes, &expected, "line {line:#x}");
        }
        for (line, bytes) in &self.oracle {
            assert_eq!(&self.memory.line(*line), bytes, "line {line:#x}");
        }
    }

    fn slow(&self) -> bool {
        self.dut.back_end() == "rust-hdl"
    }
}

const RUN: [Opcode; 9] = [
    Opcode::Fence,
    Opcode::UndoLog,
    Opcode::Apply,
    Opcode::UndoRedo,
    Opcode::Commit,
    Opcode::Checkpoint,
    Opcode::ShadowCopy,
    Opcode::MirrorLog,
    Opcode::Recover,
];

#[test]
fn one_undo_log() {
    on_both_back_ends::<Back>(|dut| {
        let mut bench = Bench::with_firmware(dut, 1);
        bench.memory.calm(27, 8);
        bench.answer = 1.0;
        let (work, writes) = bench.command(Opcode::UndoLog, 64, 0);
        bench.issue(0, work, writes);
        bench.drain();
        let log = &bench.memory.log;
        println!("{}: {:?} {log:?}", bench.dut.back_end(), bench.done);
        assert_eq!(bench.done[0].1, Status::Ok.code());
        bench.check_memory();
        let at = |what: &str| log.iter().filter(|(name, _)| *name == what).map(|(_, at)| *at).last().unwrap();
        let issued = at("b") ;
        assert!(issued > 0);
    });
}

#[test]
fn every_program_leaves_what_the_oracle_says() {
    on_both_back_ends::<Back>(|dut| {
        let mut bench = Bench::with_firmware(dut, 2);
        let (commands, longest) = if bench.slow() { (24, 700) } else { (1500, 20_000) };
        for _ in 0..commands {
            let opcode = RUN[bench.rng.random_range(0..RUN.len())];
            let longest = if bench.rng.random_bool(0.8) { 300 } else { longest };
            let length = bench.rng.random_range(1..=longest);
            let offset = bench.rng.random_range(0..LINE_U64);
            let (work, writes) = bench.command(opcode, length, offset);
            let unit = bench.rng.random_range(0..UNITS);
            bench.issue(unit, work, writes);
        }
        bench.drain();
        assert!(bench.done.iter().all(|(_, status, _)| *status == Status::Ok.code()));
        bench.check_memory();
    });
}
