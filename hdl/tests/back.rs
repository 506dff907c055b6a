//! The execution side against an AXI memory with random delays, and an oracle built on
//! `EntryHead::encode`.

use nearpm_firmware::{Image, standard};
use nearpm_hdl::bundles::Work;
use nearpm_hdl::dut::{Dut, PortId, PortValue, on_both_back_ends};
use nearpm_hdl::units::back::Back;
use nearpm_hdl_bench::memory::{Line, Memory};
use nearpm_interface::command::{OPCODES, Opcode};
use nearpm_interface::firmware::{IMAGE_BYTES, IMAGE_FORMAT, IMAGE_MAGIC, ISA_VERSION, ImageHead};
use nearpm_interface::geometry::{
    FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, LINE, LINE_U64, MAX_COMMAND_BYTES, POOLS_BASE, SAVE_BASE, UNITS,
};
use nearpm_interface::media::{ENTRY_MAGIC, ENTRY_VERSION, EntryHead, EntryKind, entry_bytes};
use nearpm_interface::registers::firmware_status;
use nearpm_interface::save::{FIRMWARE_WORD_OFFSET, firmware_word};
use nearpm_interface::seal;
use nearpm_interface::status::Status;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};

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
    /// Slot, status and cycles of what is done.
    done: Vec<(u64, u8, u64)>,
    /// Lines that a failed command may have written.
    unknown: BTreeSet<u64>,
    image: Image,
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
            unknown: BTreeSet::new(),
            image: standard(),
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
        let pc = self.image.descriptor(opcode as u8).expect("a program").entry();
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

    /// As [`Bench::command`], and issues it.
    fn command_at(&mut self, unit: usize, opcode: Opcode, length: u64, offset: u64) {
        let (work, writes) = self.command(opcode, length, offset);
        self.issue(unit, work, writes);
    }

    /// A command at a random offset, in a random unit.
    fn start(&mut self, opcode: Opcode, length: u64) {
        let offset = self.rng.random_range(0..LINE_U64);
        let unit = self.rng.random_range(0..UNITS);
        self.command_at(unit, opcode, length, offset);
    }

    /// The ranges are not to be compared: a command failed there.
    fn forget(&mut self, writes: &[(u64, u64)]) {
        for (first, bytes) in writes {
            for line in first / LINE_U64..=(first + bytes - 1) / LINE_U64 {
                self.oracle.remove(&line);
                self.unknown.insert(line);
            }
        }
    }

    /// A line that is not as the oracle says.
    fn difference(&self) -> Option<u64> {
        let lines = self.memory.written().keys().chain(self.oracle.keys());
        let differs = |line: &&u64| {
            let expected = self.oracle.get(line).copied().unwrap_or(self.memory.start(**line));
            !self.unknown.contains(line) && self.memory.line(**line) != expected
        };
        lines.copied().collect::<BTreeSet<_>>().iter().find(differs).copied()
    }

    fn check_memory(&self) {
        assert_eq!(self.difference(), None, "a line is not what it must be");
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

/// Cycle of the last entry `what` of the memory's log.
fn last(bench: &Bench, what: &str) -> u64 {
    bench.memory.log.iter().rfind(|(name, _)| *name == what).expect("it passed").1
}

#[test]
fn a_short_undo_log_takes_as_long_as_the_page_says() {
    on_both_back_ends::<Back>(|dut| {
        let mut bench = Bench::with_firmware(dut, 1);
        bench.memory.calm(27, 8);
        bench.answer = 1.0;
        let (work, writes) = bench.command(Opcode::UndoLog, 64, 0);
        bench.issue(0, work, writes);
        let issued = bench.slots.values().next().expect("it runs").issued;
        bench.drain();
        bench.check_memory();
        let (ar, r, w, b) = (last(&bench, "ar"), last(&bench, "r"), last(&bench, "w"), last(&bench, "b"));
        let total = bench.done[0].2;
        println!("issue to AR {}, R to W {}, B to done {}, in all {total}", ar - issued, w - r, issued + total - b);
        assert!(ar - issued <= 4, "issue to AR: {}", ar - issued);
        assert!(w - r <= 6, "R to the head's W: {}", w - r);
        assert!(total <= 48, "in all: {total}");
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
            bench.start(opcode, length);
        }
        if !bench.slow() {
            for opcode in [Opcode::UndoLog, Opcode::UndoRedo, Opcode::ShadowCopy, Opcode::MirrorLog] {
                bench.start(opcode, u64::from(MAX_COMMAND_BYTES));
                let length = bench.rng.random_range(100_000..u64::from(MAX_COMMAND_BYTES));
                bench.start(opcode, length);
            }
        }
        bench.drain();
        assert!(bench.done.iter().all(|(_, status, _)| *status == Status::Ok.code()));
        bench.check_memory();
        assert!(bench.dut.get_bool("quiet"));
    });
}

#[test]
fn the_check_of_memory_finds_stores_of_whole_lines() {
    on_both_back_ends::<Back>(|dut| {
        for opcode in [Opcode::Apply, Opcode::Switch] {
            let mut bench = Bench::with_firmware(dut, 3);
            bench.memory.round_to_lines = true;
            bench.command_at(0, opcode, 20, 9);
            bench.drain();
            assert!(bench.difference().is_some(), "{opcode:?}: a neighbour was overwritten and nobody saw it");
        }
    });
}

#[test]
fn a_memory_error_is_told_and_nothing_follows_it() {
    on_both_back_ends::<Back>(|dut| {
        let mut bench = Bench::with_firmware(dut, 4);
        let rounds = if bench.slow() { 2 } else { 40 };
        for round in 0..rounds {
            // A log whose source cannot be read gets no head.
            let (work, writes) = bench.command(Opcode::UndoLog, 700, 5);
            let entry = work.destination.to_u64();
            let bad = work.source.to_u64() / LINE_U64 + bench.rng.random_range(0..11u64);
            bench.memory.bad_reads.insert(bad);
            bench.forget(&writes);
            bench.issue(round % UNITS, work, writes);
            // Undo and redo whose log cannot be written leaves its destination alone.
            let (work, writes) = bench.command(Opcode::UndoRedo, 300, 9);
            let log = work.auxiliary.to_u64() / LINE_U64;
            bench.memory.bad_writes.insert(log + bench.rng.random_range(0..3u64));
            bench.forget(&writes);
            bench.issue((round + 1) % UNITS, work, writes);
            let home = (work.destination.to_u64(), 300);
            // A neighbour in the same unit does not suffer.
            bench.command_at(round % UNITS, Opcode::UndoLog, 200, 7);
            bench.drain();
            let codes: Vec<_> = bench.done.drain(..).map(|(_, status, _)| status).collect();
            assert_eq!(codes.iter().filter(|c| **c == Status::MemoryError.code()).count(), 2, "{codes:?}");
            assert_eq!(codes.iter().filter(|c| **c == Status::Ok.code()).count(), 1);
            let head = entry / LINE_U64;
            assert_eq!(bench.memory.line(head), bench.memory.start(head), "a head over data that was not read");
            for line in home.0 / LINE_U64..=(home.0 + home.1 - 1) / LINE_U64 {
                assert_eq!(bench.memory.line(line), bench.memory.start(line), "redone without its log");
            }
        }
    });
}

/// An image with these program words, sealed but not checked.
fn image_of(words: &[u32]) -> Vec<u8> {
    let mut head = ImageHead {
        magic: IMAGE_MAGIC,
        format: IMAGE_FORMAT,
        isa: ISA_VERSION,
        words: words.len() as u32,
        ..ImageHead::default()
    }
    .to_bytes();
    let mut image = vec![0; IMAGE_BYTES];
    for (to, word) in image[LINE + OPCODES * 4..].chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    seal::seal(&image[LINE..], &mut head);
    image[..LINE].copy_from_slice(&head);
    image
}

#[test]
fn what_is_no_instruction_faults_and_writes_nothing() {
    let faults = [
        0x6000_0000,
        0xf000_0000,
        0x0000_0100,
        0x1c00_0000,
        0x1300_0000,
        0x1001_0000,
        0x2200_0001,
        0x2000_0101,
        0x2000_0001, // a head without a copy
        0x3c00_0000,
        0x3000_0001,
        0x3100_0000,
        0x4000_0001,
        0x5800_0000,
    ];
    on_both_back_ends::<Back>(|dut| {
        let mut bench = Bench::new(dut, 5);
        bench.place_image(1, &image_of(&faults));
        assert_eq!(bench.load(1, None), firmware_status::OK);
        let before = bench.memory.written().clone();
        for pc in (0..faults.len() as u64).chain([128, 200, 255]) {
            let (mut work, writes) = bench.command(Opcode::UndoLog, 64, 0);
            bench.forget(&writes);
            work.pc = pc.into();
            bench.issue(0, work, writes);
            bench.drain();
            assert_eq!(bench.done.pop().expect("one is done").1, Status::FirmwareFault.code(), "pc {pc}");
        }
        assert_eq!(&before, bench.memory.written());
    });
}

#[test]
fn with_quiesce_no_burst_begins_and_all_that_began_ends() {
    on_both_back_ends::<Back>(|dut| {
        let mut bench = Bench::with_firmware(dut, 6);
        let rounds = if bench.slow() { 2 } else { 60 };
        for _ in 0..rounds {
            for _ in 0..8 {
                let opcode = RUN[bench.rng.random_range(0..RUN.len())];
                let length = bench.rng.random_range(1..2000);
                bench.start(opcode, length);
            }
            for _ in 0..bench.rng.random_range(0..200) {
                bench.step();
            }
            bench.dut.set("quiesce", true);
            let mut waited = 0;
            while !bench.dut.get_bool("quiet") {
                bench.step();
                waited += 1;
                assert!(waited < 2000, "never quiet");
            }
            let began = bench.memory.log.iter().filter(|(what, _)| what.starts_with('a')).count();
            for _ in 0..100 {
                assert!(bench.memory.idle(), "a burst is under way");
                bench.step();
            }
            let begun = bench.memory.log.iter().filter(|(what, _)| what.starts_with('a')).count();
            assert_eq!(began, begun, "a burst began");
            bench.dut.set("quiesce", false);
        }
        bench.drain();
        bench.check_memory();
    });
}

#[test]
fn nothing_is_overwritten_before_the_progress_is_taken() {
    on_both_back_ends::<Back>(|dut| {
        let mut bench = Bench::with_firmware(dut, 7);
        bench.hold_progress = true;
        let (work, writes) = bench.command(Opcode::UndoRedo, 300, 11);
        let (home, pc) = (work.destination.to_u64(), work.pc.to_u64());
        let log = work.auxiliary.to_u64();
        bench.issue(2, work, writes);
        // The other context of the unit goes on meanwhile.
        bench.command_at(2, Opcode::UndoLog, 100, 3);
        bench.command_at(2, Opcode::Apply, 100, 3);
        for _ in 0..600 {
            bench.step();
        }
        assert_eq!(bench.slots.len(), 1, "the waiting command holds up the other ones");
        let running = bench.slots.values().next().expect("it waits");
        assert_eq!(u64::from(running.progress.expect("it offers its progress")), pc + 3);
        let start = bench.memory.start(home / LINE_U64);
        assert_eq!(bench.memory.line(home / LINE_U64), start, "the new value is there before the progress is taken");
        let entry = bench.memory.bytes(log, entry_bytes(11, 300));
        assert!(EntryHead::decode(&entry).is_some(), "the log is durable when the progress is offered");
        bench.hold_progress = false;
        bench.drain();
        bench.check_memory();
        // A replay resumes behind the wait: it applies, and logs nothing.
        let (mut work, writes) = bench.command(Opcode::UndoRedo, 128, 0);
        bench.forget(&writes);
        let data = bench.memory.bytes(work.source.to_u64(), 128);
        bench.expect(work.destination.to_u64(), &data);
        work.pc = (work.pc.to_u64() + 3).into();
        bench.issue(1, work, writes);
        bench.drain();
        bench.check_memory();
    });
}

#[test]
fn an_image_is_in_force_entirely_or_not_at_all() {
    on_both_back_ends::<Back>(|dut| {
        let mut bench = Bench::new(dut, 8);
        let image = standard();
        assert!(!bench.dut.get_bool("firmware_ok"));
        bench.dut.set("descriptor_index$0", 1u64);
        bench.step();
        assert_eq!(bench.dut.get_u64("descriptor$0"), 0, "no opcode is valid without firmware");
        // Nothing but an image.
        assert_eq!(bench.load(0, None), firmware_status::BAD_MAGIC);
        assert_eq!(bench.load(2, None), firmware_status::BAD_MAGIC);
        bench.place_image(0, image.bytes());
        assert_eq!(bench.load(0, Some(image.crc() ^ 1)), firmware_status::BAD_CRC);
        let save_line = SAVE_BASE / LINE_U64;
        // At boot the firmware word stands already.
        assert_eq!(bench.load(0, Some(image.crc())), firmware_status::OK);
        assert_eq!(bench.memory.line(save_line), bench.memory.start(save_line));
        assert_eq!(bench.dut.get_u64("firmware_crc"), u64::from(image.crc()));
        for (opcode, descriptor) in (0u64..).zip(image.descriptors()) {
            bench.dut.set("descriptor_index$0", opcode);
            bench.dut.set("descriptor_index$1", 31 - opcode);
            bench.step();
            assert_eq!(bench.dut.get_u64("descriptor$0"), u64::from(descriptor.0));
            let other = image.descriptors()[31 - opcode as usize];
            assert_eq!(bench.dut.get_u64("descriptor$1"), u64::from(other.0));
        }
        // What is damaged is refused, and the image in force stays.
        let damage: [(usize, u32); 4] = [
            (0, firmware_status::BAD_MAGIC),
            (4, firmware_status::BAD_VERSION),
            (20, firmware_status::BAD_CRC),
            (IMAGE_BYTES - 1, firmware_status::BAD_CRC),
        ];
        for (at, status) in damage {
            let mut bytes = image.bytes().to_vec();
            bytes[at] ^= 1;
            bench.place_image(1, &bytes);
            assert_eq!(bench.load(1, None), status);
        }
        bench.place_image(1, &image_of(&[0]));
        let lines = (FIRMWARE_BASE + FIRMWARE_SLOT_BYTES) / LINE_U64;
        bench.memory.bad_reads.insert(lines + 3);
        assert_eq!(bench.load(1, None), firmware_status::MEMORY_ERROR);
        bench.memory.bad_reads.clear();
        bench.memory.bad_writes.insert(save_line);
        assert_eq!(bench.load(1, None), firmware_status::MEMORY_ERROR);
        bench.memory.bad_writes.clear();
        assert_eq!(bench.dut.get_u64("firmware_crc"), u64::from(image.crc()));
        assert_eq!(bench.dut.get_u64("firmware_slot_in_force"), 0);
        bench.check_memory();
        bench.command_at(1, Opcode::UndoLog, 77, 5);
        bench.drain();
        bench.check_memory();
        // Another image, with its word.
        assert_eq!(bench.load(1, None), firmware_status::OK);
        let crc = bench.dut.get_u64("firmware_crc");
        assert_eq!(bench.dut.get_u64("firmware_slot_in_force"), 1);
        bench.expect(SAVE_BASE + FIRMWARE_WORD_OFFSET, &firmware_word(1, crc as u32).to_le_bytes());
        bench.check_memory();
    });
}

#[test]
fn short_logs_and_long_copies_keep_their_rate() {
    on_both_back_ends::<Back>(|dut| {
        let mut bench = Bench::with_firmware(dut, 9);
        bench.memory.calm(27, 8);
        bench.answer = 1.0;
        let logs = if bench.slow() { 24 } else { 1000 };
        let begin = bench.dut.cycles();
        for index in 0..logs {
            bench.command_at(index % UNITS, Opcode::UndoLog, 64, 0);
        }
        bench.drain();
        let each = (bench.dut.cycles() - begin) as f64 / logs as f64;
        println!("{}: one 64-byte undo log in {each:.1} cycles", bench.dut.back_end());
        assert!(each <= 10.0 || bench.slow(), "{each} cycles");
        // One unit alone, then all of them; a line is read and written.
        for units in [1, UNITS] {
            let bytes = if bench.slow() { 4096 } else { 262_144 };
            let begin = bench.dut.cycles();
            for unit in 0..units {
                bench.command_at(unit, Opcode::ShadowCopy, bytes, 0);
            }
            bench.drain();
            let cycles = (bench.dut.cycles() - begin) as f64;
            let lines = (units as u64 * bytes / LINE_U64) as f64;
            println!("{}: {units} units copy a line in {:.2} cycles", bench.dut.back_end(), cycles / lines);
            assert!(cycles / lines <= 1.1 || bench.slow());
        }
        bench.check_memory();
    });
}
