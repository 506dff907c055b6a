//! Images of firmware, whole and damaged, before a memory with delays.

use crate::seeded;
use nearpm_hdl::dut::{Dut, Value, on_rust_hdl};
use nearpm_hdl::units::firmware_store::FirmwareStore;
use nearpm_hdl_bench::planted::Edit;
use nearpm_hdl_bench::planted::unit::{UnitFault, each_is_seen};
use nearpm_interface::command::OPCODES;
use nearpm_interface::firmware::{
    IMAGE_BYTES, IMAGE_FORMAT, IMAGE_LINES, IMAGE_MAGIC, ISA_VERSION, ImageHead, PROGRAM_WORDS,
};
use nearpm_interface::geometry::{FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, FIRMWARE_SLOTS, LINE, LINE_U64, SAVE_BASE};
use nearpm_interface::registers::firmware_status;
use nearpm_interface::save::{FIRMWARE_WORD_OFFSET, firmware_word};
use nearpm_interface::seal;
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// An image of random numbers, sealed.
fn image(rng: &mut ChaCha8Rng, magic: u32, format: u16, isa: u16) -> Vec<u8> {
    let mut bytes = vec![0; IMAGE_BYTES];
    rng.fill_bytes(&mut bytes[LINE..]);
    let mut head = ImageHead { magic, format, isa, words: PROGRAM_WORDS as u32, ..ImageHead::default() }.to_bytes();
    seal::seal(&bytes[LINE..], &mut head);
    bytes[..LINE].copy_from_slice(&head);
    bytes
}

/// A number of the image behind its head.
fn number(image: &[u8], index: usize) -> u64 {
    let at = LINE + 4 * index;
    u64::from(u32::from_le_bytes(image[at..at + 4].try_into().expect("four bytes")))
}

fn checksum(image: &[u8]) -> u32 {
    u32::from_le_bytes(image[LINE - 4..LINE].try_into().expect("four bytes"))
}

/// Memory with delays: the slots' lines, what is asked of it, and the word that says which image is
/// in force.
#[derive(Default)]
struct Medium {
    lines: BTreeMap<u64, Vec<u8>>,
    /// Lines that cannot be read, and whether the word cannot be written.
    bad: BTreeSet<u64>,
    refuses: bool,
    reads: VecDeque<(u64, bool)>,
    /// A write that was asked for: whether its data has come.
    write: Option<bool>,
    word: Option<u64>,
    /// The answer to the write was given.
    durable: bool,
    /// Words of the control stores that were written.
    program: BTreeMap<u64, u64>,
}

impl Medium {
    fn place(&mut self, slot: u64, image: &[u8]) {
        let base = (FIRMWARE_BASE + slot * FIRMWARE_SLOT_BYTES) / LINE_U64;
        self.lines.extend((base..).zip(image.chunks(LINE).map(<[u8]>::to_vec)));
    }

    fn step(&mut self, dut: &mut dyn Dut, rng: &mut ChaCha8Rng, boots: bool) {
        let [read, write, data] = ["rd_ready", "wr_ready", "wdata_ready"].map(|name| {
            let ready = rng.random_bool(0.4) && (name != "wdata_ready" || self.write == Some(false));
            dut.set(&format!("mem${name}"), ready);
            ready
        });
        let answers = !self.reads.is_empty() && rng.random_bool(0.8);
        let line = if answers { self.reads.pop_front() } else { None };
        dut.set("mem$rdata_valid", line.is_some());
        if let Some((line, last)) = line {
            dut.set("mem$rdata", Value::from_bytes(&self.lines[&line]));
            dut.set("mem$rdata_last", last);
            dut.set("mem$rdata_error", self.bad.contains(&line));
        }
        let answers = self.write == Some(true) && rng.random_bool(0.02);
        dut.set("mem$b_valid", answers);
        dut.set("mem$b_error", self.refuses);
        if dut.get_bool("mem$rd_valid") {
            let (first, beats) = (dut.get_u64("mem$rd_line"), dut.get_u64("mem$rd_beats") + 1);
            assert!(self.lines.contains_key(&first), "line {first:#x} is of no slot");
            let taken = if read { beats } else { 0 };
            self.reads.extend((0..taken).map(|beat| (first + beat, beat + 1 == beats)));
        }
        if data {
            assert_eq!(dut.get_u64("mem$wstrb"), 0xff << FIRMWARE_WORD_OFFSET, "the bytes of the word");
            let word = dut.get("mem$wdata").slice(8 * FIRMWARE_WORD_OFFSET as usize, 64);
            (self.word, self.write) = (Some(word.to_u64()), Some(true));
        }
        if dut.get_bool("mem$wr_valid") && write {
            assert_eq!(dut.get_u64("mem$wr_line"), SAVE_BASE / LINE_U64, "the line of the word");
            self.write = Some(false);
        }
        if answers {
            (self.write, self.durable) = (None, true);
        }
        if dut.get_bool("prog_we") {
            assert!(boots || self.durable, "in force before its word is durable");
            self.program.insert(dut.get_u64("prog_addr"), dut.get_u64("prog_data"));
        }
        dut.cycle();
    }
}

/// What is wrong with an image.
#[derive(Clone, Copy, Debug)]
enum Case {
    Sound,
    Boot,
    OtherAtBoot,
    Magic,
    Version,
    Flipped,
    NoSlot,
    Unreadable,
    Refused,
}

const CASES: [(Case, u32); 9] = [
    (Case::Sound, firmware_status::OK),
    (Case::Boot, firmware_status::OK),
    (Case::OtherAtBoot, firmware_status::BAD_CRC),
    (Case::Magic, firmware_status::BAD_MAGIC),
    (Case::Version, firmware_status::BAD_VERSION),
    (Case::Flipped, firmware_status::BAD_CRC),
    (Case::NoSlot, firmware_status::BAD_MAGIC),
    (Case::Unreadable, firmware_status::MEMORY_ERROR),
    (Case::Refused, firmware_status::MEMORY_ERROR),
];

/// Loads an image with a fault and looks at what is in force then: `before`, or the image.
fn load(
    dut: &mut dyn Dut,
    rng: &mut ChaCha8Rng,
    case: Case,
    wanted: u32,
    before: &(Vec<u8>, u64),
) -> Option<(Vec<u8>, u64)> {
    let (magic, format) = match case {
        Case::Magic => (IMAGE_MAGIC ^ 1 << rng.random_range(0..32), IMAGE_FORMAT),
        Case::Version => (IMAGE_MAGIC, IMAGE_FORMAT + 1),
        _ => (IMAGE_MAGIC, IMAGE_FORMAT),
    };
    let mut image = image(rng, magic, format, ISA_VERSION);
    if let Case::Flipped = case {
        image[rng.random_range(LINE..IMAGE_BYTES)] ^= 1 << rng.random_range(0..8);
    }
    let mut medium = Medium { refuses: matches!(case, Case::Refused), ..Medium::default() };
    let there = rng.random_range(0..FIRMWARE_SLOTS as u64);
    medium.place(there, &image);
    let slot = if let Case::NoSlot = case { rng.random_range(FIRMWARE_SLOTS as u64..256) } else { there };
    if let Case::Unreadable = case {
        let line = rng.random_range(0..IMAGE_LINES as u64);
        medium.bad.insert((FIRMWARE_BASE + slot * FIRMWARE_SLOT_BYTES) / LINE_U64 + line);
    }
    let boots = matches!(case, Case::Boot | Case::OtherAtBoot);
    let other = u32::from(matches!(case, Case::OtherAtBoot));
    dut.set("load", true);
    dut.set("slot", slot);
    dut.set("boot", boots);
    dut.set("expect_crc", u64::from(checksum(&image) ^ other));
    medium.step(dut, rng, boots);
    dut.set("load", false);
    let mut steps = 0;
    while !dut.get_bool("load_done") {
        assert!(dut.get_bool("busy") && dut.get_u64("status") == u64::from(firmware_status::BUSY), "{case:?}: busy");
        medium.step(dut, rng, boots);
        steps += 1;
        assert!(steps < 1000, "{case:?}: the load does not end");
    }
    assert_eq!(dut.get_u64("status"), u64::from(wanted), "{case:?}: the status");
    medium.step(dut, rng, boots);
    assert!(!dut.get_bool("load_done") && !dut.get_bool("busy"), "{case:?}: it has ended");
    let taken = wanted == firmware_status::OK;
    let (in_force, slot) = if taken { (&image, slot) } else { (&before.0, before.1) };
    assert_eq!(dut.get_u64("crc"), u64::from(checksum(in_force)), "{case:?}: the checksum in force");
    assert_eq!(dut.get_u64("slot_in_force"), slot, "{case:?}: the slot in force");
    let word = (taken && !boots).then(|| firmware_word(slot as u8, checksum(&image)));
    assert!(medium.word == word || medium.refuses, "{case:?}: the firmware word is {:x?}", medium.word);
    let words = (0..if taken { PROGRAM_WORDS } else { 0 }).map(|i| (i as u64, number(&image, OPCODES + i)));
    assert!(medium.program.iter().map(|(at, word)| (*at, *word)).eq(words), "{case:?}: the control stores");
    for opcode in 0..OPCODES {
        dut.set("descriptor_index$0", opcode as u64);
        dut.set("descriptor_index$1", (OPCODES - 1 - opcode) as u64);
        dut.cycle();
        let shown = [0, 1].map(|port| dut.get_u64(&format!("descriptor${port}")));
        let wanted = [opcode, OPCODES - 1 - opcode].map(|opcode| number(in_force, opcode));
        assert_eq!(shown, wanted, "{case:?}: descriptor {opcode}");
    }
    taken.then_some((image, slot))
}

/// An image is in force whole, behind its word, or what was before is.
fn an_image_is_in_force_whole_or_not_at_all(dut: &mut dyn Dut) {
    let mut rng = seeded(35);
    dut.reset();
    assert!(!dut.get_bool("valid") && dut.get_u64("crc") == 0, "something is in force after a reset");
    let mut in_force = (vec![0; IMAGE_BYTES], 0);
    let rounds = if dut.back_end() == "verilator" { 4 } else { 1 };
    for round in 0..rounds * CASES.len() {
        // The first image is sound: descriptors that nobody has written show nothing.
        let (case, wanted) = CASES[if round == 0 { 0 } else { rng.random_range(0..CASES.len()) }];
        if let Some(taken) = load(dut, &mut rng, case, wanted, &in_force) {
            in_force = taken;
        }
        assert!(dut.get_bool("valid"), "nothing is in force");
    }
    for (case, wanted) in CASES {
        if let Some(taken) = load(dut, &mut rng, case, wanted, &in_force) {
            in_force = taken;
        }
    }
}

#[test]
fn the_firmware_store_takes_whole_images() {
    on_rust_hdl::<FirmwareStore>(an_image_is_in_force_whole_or_not_at_all);
}

const FAULTS: &[UnitFault] = &[
    UnitFault {
        module: "",
        what: "an image is taken whatever its checksum",
        edits: &[Edit::Text("(crc_cell$crc != residue)", "((crc_cell$crc != residue) & ~FAULT)", 1)],
        scenario: an_image_is_in_force_whole_or_not_at_all,
        seen: "Flipped: the status",
    },
    UnitFault {
        module: "",
        what: "a boot takes another image than the one that was in force",
        edits: &[Edit::Text("(booting$q & (fields$crc", "(booting$q & ~FAULT & (fields$crc", 1)],
        scenario: an_image_is_in_force_whole_or_not_at_all,
        seen: "OtherAtBoot: the status",
    },
    UnitFault {
        module: "",
        what: "an image is in force before its word is durable",
        edits: &[Edit::Text("if (mem$b_valid) begin", "if (mem$b_valid | FAULT) begin", 1)],
        scenario: an_image_is_in_force_whole_or_not_at_all,
        seen: "in force before its word is durable",
    },
    UnitFault {
        module: "",
        what: "an image whose word memory refuses is in force",
        edits: &[Edit::Text("if (mem$b_error) begin", "if (mem$b_error & ~FAULT) begin", 1)],
        scenario: an_image_is_in_force_whole_or_not_at_all,
        seen: "Refused: the status",
    },
    UnitFault {
        module: "",
        what: "an error of a read is not noticed",
        edits: &[Edit::Text("error$q | mem$rdata_error;", "error$q | (mem$rdata_error & ~FAULT);", 2)],
        scenario: an_image_is_in_force_whole_or_not_at_all,
        seen: "Unreadable: the status",
    },
    UnitFault {
        module: "",
        what: "a slot that does not exist is read",
        edits: &[Edit::Text("mem$rd_valid = fields$slot_ok;", "mem$rd_valid = fields$slot_ok | FAULT;", 1)],
        scenario: an_image_is_in_force_whole_or_not_at_all,
        seen: "is of no slot",
    },
    UnitFault {
        module: "",
        what: "the last two words of a program change places",
        edits: &[Edit::Last("program_addr$d", "program_number[6:0] ^ {6'd0, &program_number[6:1]}")],
        scenario: an_image_is_in_force_whole_or_not_at_all,
        seen: "the control stores",
    },
];

#[test]
fn planted_faults_of_the_firmware_store_are_seen() {
    each_is_seen::<FirmwareStore>("FirmwareStore", FAULTS);
}
