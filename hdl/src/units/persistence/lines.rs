//! The lines of the save area as wires: every position comes from `nearpm_interface::save`.

use crate::bundles::{Lost, MapEntry};
use crate::dut::{PortValue, Value};
use nearpm_interface::Layout;
use nearpm_interface::geometry::LINE_U64;
use nearpm_interface::save::{
    ARM_CLEAN, ARM_RUNNING, ArmWord, FIRMWARE_WORD_OFFSET, FIRMWARE_WORD_TAG, ITEM_COMMAND, ITEM_PARKED, ITEM_STORE,
    ProgressWord, SAVE_MAGIC, SAVE_VERSION, SaveHead, SavedItem, SavedMapping, firmware_word,
};
use rust_hdl::prelude::*;

/// Lowest bit of a field in its line.
fn bit_of(layout: Layout, field: &str) -> usize {
    let found = layout.fields.iter().find(|f| f.name == field);
    found.unwrap_or_else(|| panic!("{} has no field {field}", layout.name)).offset * 8
}

/// Lowest bit in which two words differ: where a field lies in a word that has no layout table.
fn lowest_difference(a: u64, b: u64) -> usize {
    (a ^ b).trailing_zeros() as usize
}

/// Lowest bit of the generation in an arm word.
fn arm_generation_bit() -> usize {
    lowest_difference(ArmWord::Running(0).encode(), ArmWord::Running(1).encode())
}

/// Lowest bit of the tag in an arm word: above the generation of 48 bits.
fn arm_tag_bit() -> usize {
    (ArmWord::Running(0).encode() / u64::from(ARM_RUNNING)).trailing_zeros() as usize
}

/// Lowest bits of generation, items, resume and tag in a progress word.
fn progress_bits() -> [usize; 4] {
    let zero = ProgressWord { generation: 0, items: 0, resume: 0 };
    [
        lowest_difference(zero.encode(), ProgressWord { generation: 1, ..zero }.encode()),
        lowest_difference(zero.encode(), ProgressWord { items: 1, ..zero }.encode()),
        lowest_difference(zero.encode(), ProgressWord { resume: 1, ..zero }.encode()),
        (zero.encode() / u64::from(ProgressWord::TAG)).trailing_zeros() as usize,
    ]
}

/// Lowest bits of checksum, slot and tag of the firmware word in the arm line.
fn firmware_bits() -> [usize; 3] {
    let base = FIRMWARE_WORD_OFFSET as usize * 8;
    [
        base + lowest_difference(firmware_word(0, 0), firmware_word(0, 1)),
        base + lowest_difference(firmware_word(0, 0), firmware_word(1, 0)),
        base + (firmware_word(0, 0) / u64::from(FIRMWARE_WORD_TAG)).trailing_zeros() as usize,
    ]
}

/// Bits of a device address below the line address.
fn line_shift() -> usize {
    LINE_U64.trailing_zeros() as usize
}

/// Takes a line of the save area apart, combinationally. What the line is, the reader knows.
#[derive(LogicBlock, Default)]
pub struct SaveFields {
    /// The line.
    pub line: Signal<In, Bits<512>>,
    /// Arm line: the arm word is zero.
    pub arm_blank: Signal<Out, Bit>,
    /// Arm line: the tag says running.
    pub arm_running: Signal<Out, Bit>,
    /// Arm line: the tag says clean.
    pub arm_clean: Signal<Out, Bit>,
    /// Arm line: the generation.
    pub arm_generation: Signal<Out, Bits<48>>,
    /// Arm line: there is a firmware word.
    pub firmware_tagged: Signal<Out, Bit>,
    /// Arm line: slot of the firmware in force.
    pub firmware_slot: Signal<Out, Bits<8>>,
    /// Arm line: checksum of the firmware in force.
    pub firmware_crc: Signal<Out, Bits<32>>,
    /// Progress line: there is a progress word.
    pub progress_tagged: Signal<Out, Bit>,
    /// Progress line: low half of the generation.
    pub progress_generation: Signal<Out, Bits<32>>,
    /// Progress line: items that are durable.
    pub progress_items: Signal<Out, Bits<16>>,
    /// Progress line: where the next item resumes.
    pub progress_resume: Signal<Out, Bits<8>>,
    /// Head: magic and version are right.
    pub head_ours: Signal<Out, Bit>,
    /// Head: items that follow.
    pub head_items: Signal<Out, Bits<16>>,
    /// Head: generation.
    pub head_generation: Signal<Out, Bits<48>>,
    /// Head: checksum of the firmware that accepted the items.
    pub head_firmware: Signal<Out, Bits<32>>,
    /// Head: order number of the last item.
    pub head_order: Signal<Out, Bits<64>>,
    /// Head: number of the device.
    pub head_device: Signal<Out, Bits<4>>,
    /// Head: stores that were lost before the power went.
    pub head_lost: Signal<Out, Lost>,
    /// Item: its place in the order.
    pub item_order: Signal<Out, Bits<64>>,
    /// Item: a command.
    pub item_command: Signal<Out, Bit>,
    /// Item: a command that waits for other devices. What is neither is a store.
    pub item_parked: Signal<Out, Bit>,
    /// Item: a command that waits for no device any more.
    pub item_released: Signal<Out, Bit>,
    /// Item: page of a command.
    pub item_page: Signal<Out, Bits<2>>,
    /// Item: where a command resumes.
    pub item_resume: Signal<Out, Bits<8>>,
    /// Item: line address of a store.
    pub item_line: Signal<Out, Bits<34>>,
    /// Item: strobes of a store.
    pub item_strobes: Signal<Out, Bits<64>>,
    /// Mapping: the entry is in use.
    pub mapping_used: Signal<Out, Bit>,
    /// Mapping: the entry, with no other flag than *in use*, but that an orphan is closing.
    pub mapping: Signal<Out, MapEntry>,
}

/// Fields of a saved mapping, lowest first in a `MapEntry` above its flags, with their bits.
const MAPPING_FIELDS: [(&str, usize); 8] = [
    ("thread", 16),
    ("pool", 32),
    ("base", 40),
    ("bytes", 40),
    ("ring", 40),
    ("ring_bytes", 40),
    ("committed", 64),
    ("reached", 64),
];

/// Bit of the saved flags that says of an entry that a function-level reset left it to commands
/// that wait.
const ORPHAN_BIT: usize = 3;

/// A field of `N` bits from bit `low` of a line.
fn part<const N: usize>(line: &Bits<512>, low: usize) -> Bits<N> {
    line.get_bits::<N>(low)
}

impl Logic for SaveFields {
    fn update(&mut self) {
        let line = self.line.val();
        let tag = part::<16>(&line, arm_tag_bit()).to_u64();
        self.arm_blank.next = !part::<64>(&line, 0).any();
        self.arm_running.next = tag == u64::from(ARM_RUNNING);
        self.arm_clean.next = tag == u64::from(ARM_CLEAN);
        self.arm_generation.next = part(&line, arm_generation_bit());
        let [crc, slot, tag] = firmware_bits();
        self.firmware_crc.next = part(&line, crc);
        self.firmware_slot.next = part(&line, slot);
        self.firmware_tagged.next = part::<8>(&line, tag).to_u64() == u64::from(FIRMWARE_WORD_TAG);
        let [generation, items, resume, tag] = progress_bits();
        self.progress_generation.next = part(&line, generation);
        self.progress_items.next = part(&line, items);
        self.progress_resume.next = part(&line, resume);
        self.progress_tagged.next = part::<8>(&line, tag).to_u64() == u64::from(ProgressWord::TAG);
        let head = SaveHead::LAYOUT;
        self.head_ours.next = part::<32>(&line, bit_of(head, "magic")).to_u64() == u64::from(SAVE_MAGIC)
            && part::<16>(&line, bit_of(head, "version")).to_u64() == u64::from(SAVE_VERSION);
        self.head_items.next = part(&line, bit_of(head, "items"));
        self.head_generation.next = part(&line, bit_of(head, "generation"));
        self.head_firmware.next = part(&line, bit_of(head, "firmware_crc"));
        self.head_order.next = part(&line, bit_of(head, "order"));
        self.head_device.next = part(&line, bit_of(head, "device"));
        self.head_lost.next = Lost {
            count: part(&line, bit_of(head, "stores_lost")),
            first: part(&line, bit_of(head, "lost_first") + line_shift()),
            last: part(&line, bit_of(head, "lost_last") + line_shift()),
        };
        let item = SavedItem::LAYOUT;
        let kind = part::<8>(&line, bit_of(item, "kind")).to_u64();
        self.item_order.next = part(&line, bit_of(item, "order"));
        self.item_command.next = kind == u64::from(ITEM_COMMAND);
        self.item_parked.next = kind == u64::from(ITEM_PARKED);
        self.item_released.next = line.get_bit(bit_of(item, "released"));
        self.item_page.next = part(&line, bit_of(item, "page"));
        self.item_resume.next = part(&line, bit_of(item, "resume"));
        self.item_line.next = part(&line, bit_of(item, "address") + line_shift());
        self.item_strobes.next = part(&line, bit_of(item, "strobes"));
        let at = |field| bit_of(SavedMapping::LAYOUT, field);
        self.mapping_used.next = line.get_bit(at("flags"));
        let orphan = line.get_bit(at("flags") + ORPHAN_BIT);
        self.mapping.next = MapEntry {
            flags: (u64::from(line.get_bit(at("flags"))) | u64::from(orphan) << 2).into(),
            thread: part(&line, at("thread")),
            pool: part(&line, at("pool")),
            base: part(&line, at("base")),
            bytes: part(&line, at("bytes")),
            ring: part(&line, at("ring")),
            ring_bytes: part(&line, at("ring_bytes")),
            committed: part(&line, at("committed")),
            reached: part(&line, at("reached")),
            orphan,
        };
    }

    fn connect(&mut self) {
        self.arm_blank.connect();
        self.arm_running.connect();
        self.arm_clean.connect();
        self.arm_generation.connect();
        self.firmware_tagged.connect();
        self.firmware_slot.connect();
        self.firmware_crc.connect();
        self.progress_tagged.connect();
        self.progress_generation.connect();
        self.progress_items.connect();
        self.progress_resume.connect();
        self.head_ours.connect();
        self.head_items.connect();
        self.head_generation.connect();
        self.head_firmware.connect();
        self.head_order.connect();
        self.head_device.connect();
        self.head_lost.connect();
        self.item_order.connect();
        self.item_command.connect();
        self.item_parked.connect();
        self.item_released.connect();
        self.item_page.connect();
        self.item_resume.connect();
        self.item_line.connect();
        self.item_strobes.connect();
        self.mapping_used.connect();
        self.mapping.connect();
    }

    fn hdl(&self) -> Verilog {
        let cut = |low: usize, bits: usize| format!("line[{}:{low}]", low + bits - 1);
        let mut code = String::from("always @(*) begin\n");
        let mut set = |name: &str, value: String| code += &format!("    {name} = {value};\n");
        set("arm_blank", format!("~|{}", cut(0, 64)));
        for (name, tag) in [("arm_running", ARM_RUNNING), ("arm_clean", ARM_CLEAN)] {
            set(name, format!("{} == 16'h{tag:x}", cut(arm_tag_bit(), 16)));
        }
        set("arm_generation", cut(arm_generation_bit(), 48));
        let [crc, slot, tag] = firmware_bits();
        set("firmware_crc", cut(crc, 32));
        set("firmware_slot", cut(slot, 8));
        set("firmware_tagged", format!("{} == 8'h{FIRMWARE_WORD_TAG:x}", cut(tag, 8)));
        let [generation, items, resume, tag] = progress_bits();
        set("progress_generation", cut(generation, 32));
        set("progress_items", cut(items, 16));
        set("progress_resume", cut(resume, 8));
        set("progress_tagged", format!("{} == 8'h{:x}", cut(tag, 8), ProgressWord::TAG));
        let head = |field| bit_of(SaveHead::LAYOUT, field);
        set(
            "head_ours",
            format!(
                "({} == 32'h{SAVE_MAGIC:x}) & ({} == 16'h{SAVE_VERSION:x})",
                cut(head("magic"), 32),
                cut(head("version"), 16)
            ),
        );
        set("head_items", cut(head("items"), 16));
        set("head_generation", cut(head("generation"), 48));
        set("head_firmware", cut(head("firmware_crc"), 32));
        set("head_order", cut(head("order"), 64));
        set("head_device", cut(head("device"), 4));
        let line_of = |field| cut(head(field) + line_shift(), 34);
        let lost = [line_of("lost_last"), line_of("lost_first"), cut(head("stores_lost"), 32)].join(", ");
        set("head_lost", format!("{{{lost}}}"));
        let item = |field| bit_of(SavedItem::LAYOUT, field);
        set("item_order", cut(item("order"), 64));
        set("item_command", format!("{} == 8'd{ITEM_COMMAND}", cut(item("kind"), 8)));
        set("item_parked", format!("{} == 8'd{ITEM_PARKED}", cut(item("kind"), 8)));
        set("item_released", format!("line[{}]", item("released")));
        set("item_page", cut(item("page"), 2));
        set("item_resume", cut(item("resume"), 8));
        set("item_line", cut(item("address") + line_shift(), 34));
        set("item_strobes", cut(item("strobes"), 64));
        let at = |field| bit_of(SavedMapping::LAYOUT, field);
        let fields = MAPPING_FIELDS.iter().rev().map(|&(name, bits)| cut(at(name), bits));
        let fields: Vec<_> = fields.collect();
        set("mapping_used", format!("line[{}]", at("flags")));
        let orphan = format!("line[{}]", at("flags") + ORPHAN_BIT);
        set("mapping", format!("{{{orphan}, {}, {orphan}, 1'd0, line[{}]}}", fields.join(", "), at("flags")));
        Verilog::Custom(code + "end\n")
    }
}

/// What [`SaveLine`] makes.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum Form {
    /// The arm word `Running(generation)`.
    Running,
    /// The arm word `Clean(generation)`.
    Clean,
    /// The progress word.
    Progress,
    /// A mapping line.
    Mapping,
    /// `SavedItem` of a command.
    Command,
    /// `SavedItem` of a store.
    Store,
    /// `SavedItem` of a command that waits for other devices.
    Parked,
    /// `SaveHead` with the checksum.
    Head,
}

/// Puts a line of the save area together, combinationally. Words stand in the lowest 8 bytes.
#[derive(LogicBlock, Default)]
pub struct SaveLine {
    /// Which line.
    pub form: Signal<In, Form>,
    /// Words and head.
    pub generation: Signal<In, Bits<48>>,
    /// Progress and head: items.
    pub items: Signal<In, Bits<16>>,
    /// Progress and command: where to resume.
    pub resume: Signal<In, Bits<8>>,
    /// Mapping: the entry.
    pub mapping: Signal<In, MapEntry>,
    /// Item: its order; head: the last order.
    pub order: Signal<In, Bits<64>>,
    /// Command: its page.
    pub page: Signal<In, Bits<2>>,
    /// Command: it waits for no device any more.
    pub released: Signal<In, Bit>,
    /// Store: its line address.
    pub address: Signal<In, Bits<34>>,
    /// Store: its strobes.
    pub strobes: Signal<In, Bits<64>>,
    /// Head: number of the device.
    pub device: Signal<In, Bits<4>>,
    /// Head: stores that memory refused.
    pub lost: Signal<In, Lost>,
    /// Head: checksum of the firmware.
    pub firmware: Signal<In, Bits<32>>,
    /// Head: its checksum.
    pub crc: Signal<In, Bits<32>>,
    /// The line.
    pub line: Signal<Out, Bits<512>>,
}

impl Logic for SaveLine {
    fn update(&mut self) {
        let generation = self.generation.val().to_u64();
        let order = self.order.val().to_u64();
        let word = |word: u64| word.to_le_bytes().to_vec();
        let bytes = match self.form.val() {
            Form::Running => word(ArmWord::Running(generation).encode()),
            Form::Clean => word(ArmWord::Clean(generation).encode()),
            Form::Progress => word(
                ProgressWord {
                    generation: generation as u32,
                    items: self.items.val().to_u64() as u16,
                    resume: self.resume.val().to_u64() as u8,
                }
                .encode(),
            ),
            Form::Mapping => {
                let entry = self.mapping.val();
                let saved = SavedMapping {
                    flags: entry.flags.to_u64() as u8 | u8::from(entry.orphan) << ORPHAN_BIT,
                    thread: entry.thread.to_u64() as u16,
                    pool: entry.pool.to_u64() as u32,
                    base: entry.base.to_u64(),
                    bytes: entry.bytes.to_u64(),
                    ring: entry.ring.to_u64(),
                    ring_bytes: entry.ring_bytes.to_u64(),
                    committed: entry.committed.to_u64(),
                    reached: entry.reached.to_u64(),
                    ..SavedMapping::default()
                };
                saved.to_bytes().to_vec()
            }
            Form::Command => {
                let (page, resume) = (self.page.val().to_u64(), self.resume.val().to_u64());
                let (kind, released) = (ITEM_COMMAND, self.released.val().into());
                let (page, resume) = (page as u8, resume as u8);
                SavedItem { order, kind, page, resume, released, ..SavedItem::default() }.to_bytes().to_vec()
            }
            Form::Parked => {
                let (kind, page) = (ITEM_PARKED, self.page.val().to_u64() as u8);
                SavedItem { order, kind, page, ..SavedItem::default() }.to_bytes().to_vec()
            }
            Form::Store => {
                let address = self.address.val().to_u64() << line_shift();
                let (strobes, kind) = (self.strobes.val().to_u64(), ITEM_STORE);
                SavedItem { order, address, strobes, kind, ..SavedItem::default() }.to_bytes().to_vec()
            }
            Form::Head => {
                let head = SaveHead {
                    magic: SAVE_MAGIC,
                    version: SAVE_VERSION,
                    items: self.items.val().to_u64() as u16,
                    generation,
                    order,
                    firmware_crc: self.firmware.val().to_u64() as u32,
                    device: self.device.val().to_u64() as u8,
                    stores_lost: self.lost.val().count.to_u64() as u32,
                    lost_first: self.lost.val().first.to_u64() << line_shift(),
                    lost_last: self.lost.val().last.to_u64() << line_shift(),
                    crc: self.crc.val().to_u64() as u32,
                    ..SaveHead::default()
                };
                head.to_bytes().to_vec()
            }
        };
        self.line.next = PortValue::from_value(Value::from_bytes(&bytes));
    }

    fn connect(&mut self) {
        self.line.connect();
    }

    fn hdl(&self) -> Verilog {
        let mut code = String::from("always @(*) begin\n    line = 512'd0;\n    case (form)\n");
        let mut form = |form: Form, fields: &[(usize, usize, &str)]| {
            code += &format!("        3'd{}: begin\n", form as usize);
            for (low, bits, value) in fields {
                code += &format!("            line[{}:{low}] = {value};\n", low + bits - 1);
            }
            code += "        end\n";
        };
        let tag = |tag: u16| format!("16'h{tag:x}");
        for (name, value) in [(Form::Running, ARM_RUNNING), (Form::Clean, ARM_CLEAN)] {
            form(name, &[(arm_generation_bit(), 48, "generation"), (arm_tag_bit(), 16, &tag(value))]);
        }
        let [generation, items, resume, at] = progress_bits();
        form(
            Form::Progress,
            &[
                (generation, 32, "generation[31:0]"),
                (items, 16, "items"),
                (resume, 8, "resume"),
                (at, 8, &format!("8'h{:x}", ProgressWord::TAG)),
            ],
        );
        let at = |field| bit_of(SavedMapping::LAYOUT, field);
        let orphan = format!("mapping[{}]", MapEntry::BITS - 1);
        let mut fields = vec![(at("flags"), 3, "mapping[2:0]".to_owned()), (at("flags") + ORPHAN_BIT, 1, orphan)];
        let mut low = 3;
        for (name, bits) in MAPPING_FIELDS {
            fields.push((at(name), bits, format!("mapping[{}:{low}]", low + bits - 1)));
            low += bits;
        }
        let fields: Vec<_> = fields.iter().map(|(at, bits, s)| (*at, *bits, s.as_str())).collect();
        form(Form::Mapping, &fields);
        let at = |field| bit_of(SavedItem::LAYOUT, field);
        form(
            Form::Command,
            &[
                (at("order"), 64, "order"),
                (at("kind"), 8, &format!("8'd{ITEM_COMMAND}")),
                (at("page"), 2, "page"),
                (at("resume"), 8, "resume"),
                (at("released"), 1, "released"),
            ],
        );
        form(
            Form::Parked,
            &[(at("order"), 64, "order"), (at("kind"), 8, &format!("8'd{ITEM_PARKED}")), (at("page"), 2, "page")],
        );
        form(
            Form::Store,
            &[
                (at("order"), 64, "order"),
                (at("address") + line_shift(), 34, "address"),
                (at("strobes"), 64, "strobes"),
                (at("kind"), 8, &format!("8'd{ITEM_STORE}")),
            ],
        );
        let at = |field| bit_of(SaveHead::LAYOUT, field);
        form(
            Form::Head,
            &[
                (at("magic"), 32, &format!("32'h{SAVE_MAGIC:x}")),
                (at("version"), 16, &format!("16'h{SAVE_VERSION:x}")),
                (at("items"), 16, "items"),
                (at("generation"), 48, "generation"),
                (at("order"), 64, "order"),
                (at("firmware_crc"), 32, "firmware"),
                (at("device"), 4, "device"),
                (at("stores_lost"), 32, "lost[31:0]"),
                (at("lost_first") + line_shift(), 34, "lost[65:32]"),
                (at("lost_last") + line_shift(), 34, "lost[99:66]"),
                (at("crc"), 32, "crc"),
            ],
        );
        code += "        default: line = 512'd0;\n    endcase\nend\n";
        Verilog::Custom(code)
    }
}
