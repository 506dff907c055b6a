//! Loads firmware images and keeps what the decoder needs of the one in force.

use super::load_store_unit::LoadStoreUnit;
use crate::bundles::MemoryRequester;
use crate::cells::{AsyncRam, Crc32cBlock, Register};
use crate::dut::PortValue;
use crate::dut::Ports;
use nearpm_interface::command::OPCODES;
use nearpm_interface::firmware::{IMAGE_FORMAT, IMAGE_LINES, IMAGE_MAGIC, ISA_VERSION, ImageHead, PROGRAM_WORDS};
use nearpm_interface::geometry::{FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, FIRMWARE_SLOTS, LINE, LINE_U64, SAVE_BASE};
use nearpm_interface::registers::firmware_status;
use nearpm_interface::save::{FIRMWARE_WORD_OFFSET, firmware_word};
use nearpm_interface::seal::RESIDUE;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// What the store is doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Phase {
    Idle,
    ReadBody,
    Body,
    ReadHead,
    Head,
    Settle,
    Check,
    Word,
    WordData,
    WordAnswer,
    Apply,
}

/// Takes the head of an image apart, picks a 32-bit number of a line, and makes the firmware word;
/// combinational.
#[derive(LogicBlock, Default, Ports)]
pub struct ImageFields {
    /// A line.
    pub line: Signal<In, Bits<512>>,
    /// Which number of the line, 0 to 15.
    pub index: Signal<In, Bits<4>>,
    /// Slot of the image.
    pub slot: Signal<In, Bits<8>>,
    /// As a head: the magic is right.
    pub magic_ok: Signal<Out, Bit>,
    /// As a head: format and instruction version are this card's.
    pub version_ok: Signal<Out, Bit>,
    /// As a head: the checksum.
    pub crc: Signal<Out, Bits<32>>,
    /// The firmware word for that checksum in that slot.
    pub word: Signal<Out, Bits<64>>,
    /// The number.
    pub number: Signal<Out, Bits<32>>,
    /// First line of the slot.
    pub base: Signal<Out, Bits<34>>,
    /// There is such a slot.
    pub slot_ok: Signal<Out, Bit>,
}

/// Lowest bit of a field of the head.
fn head_bit(name: &str) -> usize {
    let field = ImageHead::LAYOUT.fields.iter().find(|f| f.name == name);
    field.expect("the head has the field").offset * 8
}

impl Logic for ImageFields {
    fn update(&mut self) {
        let bytes: [u8; LINE] = self.line.val().to_value().to_bytes(LINE).try_into().expect("a line");
        let head = ImageHead::from_bytes(&bytes);
        let slot = self.slot.val().to_u64();
        self.magic_ok.next = head.magic == IMAGE_MAGIC;
        self.version_ok.next = head.format == IMAGE_FORMAT && head.isa == ISA_VERSION;
        self.crc.next = u64::from(head.crc).into();
        self.word.next = firmware_word(slot as u8, head.crc).into();
        let at = 4 * self.index.val().to_u64() as usize;
        let number = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        self.number.next = u64::from(number).into();
        self.base.next = ((FIRMWARE_BASE + slot * FIRMWARE_SLOT_BYTES) / LINE_U64).into();
        self.slot_ok.next = slot < FIRMWARE_SLOTS as u64;
    }

    fn connect(&mut self) {
        self.magic_ok.connect();
        self.version_ok.connect();
        self.crc.connect();
        self.word.connect();
        self.number.connect();
        self.base.connect();
        self.slot_ok.connect();
    }

    fn hdl(&self) -> Verilog {
        const { assert!(FIRMWARE_SLOT_BYTES / LINE_U64 == 64, "a slot is 64 lines") };
        let tag = firmware_word(0, 0) >> 40;
        Verilog::Custom(format!(
            "always @(*) begin\n\
             \x20   magic_ok = line[{magic} +: 32] == 32'h{IMAGE_MAGIC:x};\n\
             \x20   version_ok = line[{format} +: 16] == 16'd{IMAGE_FORMAT} & line[{isa} +: 16] == 16'd{ISA_VERSION};\n\
             \x20   crc = line[{crc} +: 32];\n\
             \x20   word = {{24'h{tag:x}, slot, line[{crc} +: 32]}};\n\
             \x20   number = line[{{index, 5'd0}} +: 32];\n\
             \x20   base = {{20'd0, slot, 6'd0}} + 34'h{base:x};\n\
             \x20   slot_ok = slot < 8'd{FIRMWARE_SLOTS};\n\
             end\n",
            magic = head_bit("magic"),
            format = head_bit("format"),
            isa = head_bit("isa"),
            crc = head_bit("crc"),
            base = FIRMWARE_BASE / LINE_U64,
        ))
    }
}

/// Loads an image from a slot, checks it, and puts it in force.
///
/// Guarantees: an image is in force entirely or not at all. It is read once, checked, kept here
/// meanwhile and taken from there; outside of boot the firmware word is durable before the first
/// number of the image is used. A load that fails changes nothing but `status`. Bound: about 250
/// cycles and the memory's time for three accesses. Load only while no unit has a command.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct FirmwareStore {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: no image is in force.
    pub reset: Signal<In, Bit>,

    /// Pulse while not `busy`: load an image.
    pub load: Signal<In, Bit>,
    /// Its slot, with `load`; there are two.
    pub slot: Signal<In, Bits<8>>,
    /// Boot, with `load`: the image must have the checksum `expect_crc`, and the firmware word
    /// stands already.
    pub boot: Signal<In, Bit>,
    /// Checksum that the image must have, with `boot`.
    pub expect_crc: Signal<In, Bits<32>>,
    /// Loading, from the cycle after `load` on.
    pub busy: Signal<Out, Bit>,
    /// Pulse: the load has ended, with `status`. The control stores hold the last word one cycle
    /// later, before a unit can fetch it.
    pub load_done: Signal<Out, Bit>,
    /// One of `registers::firmware_status`.
    pub status: Signal<Out, Bits<8>>,
    /// An image is in force.
    pub valid: Signal<Out, Bit>,
    /// Its checksum; 0 if there is none.
    pub crc: Signal<Out, Bits<32>>,
    /// Its slot.
    pub slot_in_force: Signal<Out, Bits<8>>,

    /// Opcodes to look up.
    pub descriptor_index: [Signal<In, Bits<5>>; 2],
    /// Their descriptors, one cycle later; 0 (not valid) while no image is in force.
    pub descriptor: [Signal<Out, Bits<32>>; 2],

    /// Write a word of the units' control stores, one cycle after it was read here: the way out of
    /// the image's memory is long, and no command runs on it.
    pub prog_we: Signal<Out, Bit>,
    /// Which word.
    pub prog_addr: Signal<Out, Bits<7>>,
    /// Its value.
    pub prog_data: Signal<Out, Bits<32>>,

    /// Memory.
    pub mem: MemoryRequester,

    phase: DFF<Phase>,
    fields: ImageFields,
    crc_cell: Crc32cBlock,
    /// The body of the image.
    body: AsyncRam<Bits<512>, 4, 1>,
    head: Register<Bits<512>>,
    lookup: AsyncRam<Bits<32>, 5, 2>,
    word: LoadStoreUnit,
    data: [Register<Bits<32>>; 2],
    status_now: Register<Bits<8>>,
    done: DFF<Bit>,
    in_force: DFF<Bit>,
    crc_in_force: DFF<Bits<32>>,
    slot_now: DFF<Bits<8>>,
    loading: DFF<Bits<8>>,
    booting: DFF<Bit>,
    expected: DFF<Bits<32>>,
    error: DFF<Bit>,
    feed: DFF<Bit>,
    feed_first: DFF<Bit>,
    line: DFF<Bits<512>>,
    count: DFF<Bits<4>>,
    /// Number of the image that is put in force, descriptors first.
    number: DFF<Bits<8>>,
    program_we: DFF<Bit>,
    program_addr: DFF<Bits<7>>,
    program_data: DFF<Bits<32>>,
    verdict: Signal<Local, Bits<8>>,
    program_number: Signal<Local, Bits<8>>,
    #[default(Constant::new((IMAGE_LINES as u64 - 2).into()))]
    last_line: Constant<Bits<4>>,
    #[default(Constant::new((OPCODES as u64).into()))]
    descriptors: Constant<Bits<8>>,
    #[default(Constant::new((NUMBERS as u64 - 1).into()))]
    last_number: Constant<Bits<8>>,
    #[default(Constant::new(1.into()))]
    one4: Constant<Bits<4>>,
    #[default(Constant::new(1.into()))]
    one8: Constant<Bits<8>>,
    #[default(Constant::new((IMAGE_LINES as u64 - 2).into()))]
    last_body: Constant<Bits<6>>,
    #[default(Constant::new(4.into()))]
    settled: Constant<Bits<4>>,
    #[default(Constant::new((SAVE_BASE / LINE_U64).into()))]
    save_line: Constant<Bits<34>>,
    #[default(Constant::new(1.into()))]
    one34: Constant<Bits<34>>,
    #[default(Constant::new((FIRMWARE_WORD_OFFSET / 8).into()))]
    word_lane: Constant<Bits<3>>,
    #[default(Constant::new(u64::from(RESIDUE).into()))]
    residue: Constant<Bits<32>>,
    #[default(Constant::new(u64::from(firmware_status::OK).into()))]
    ok: Constant<Bits<8>>,
    #[default(Constant::new(u64::from(firmware_status::BUSY).into()))]
    is_busy: Constant<Bits<8>>,
    #[default(Constant::new(u64::from(firmware_status::BAD_MAGIC).into()))]
    bad_magic: Constant<Bits<8>>,
    #[default(Constant::new(u64::from(firmware_status::BAD_VERSION).into()))]
    bad_version: Constant<Bits<8>>,
    #[default(Constant::new(u64::from(firmware_status::BAD_CRC).into()))]
    bad_crc: Constant<Bits<8>>,
    #[default(Constant::new(u64::from(firmware_status::MEMORY_ERROR).into()))]
    memory_error: Constant<Bits<8>>,
}

/// Numbers of an image: descriptors and program.
const NUMBERS: usize = OPCODES + PROGRAM_WORDS;

const _: () = assert!(NUMBERS * 4 == (IMAGE_LINES - 1) * LINE);
const _: () = assert!(SAVE_BASE.is_multiple_of(LINE_U64) && FIRMWARE_WORD_OFFSET < LINE_U64);

impl Logic for FirmwareStore {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            phase,
            done,
            in_force,
            crc_in_force,
            slot_now,
            loading,
            booting,
            expected,
            error,
            feed,
            feed_first,
            line,
            count,
            number,
            program_we,
            program_addr,
            program_data
        );
        clock!(self, clock, crc_cell, body, head, lookup, status_now);
        self.status_now.reset.next = self.reset.val();
        self.status_now.enable.next = true;
        self.status_now.d.next = self.status_now.q.val();
        self.head.reset.next = false;
        self.head.enable.next = false;
        self.head.d.next = self.line.q.val();

        self.busy.next = self.phase.q.val() != Phase::Idle;
        self.load_done.next = self.done.q.val();
        self.status.next = self.status_now.q.val();
        self.valid.next = self.in_force.q.val();
        self.crc.next = self.crc_in_force.q.val();
        self.slot_in_force.next = self.slot_now.q.val();
        self.done.d.next = false;

        // Descriptors.
        for i in 0..2 {
            self.lookup.read_address[i].next = self.descriptor_index[i].val();
            self.data[i].clock.next = self.clock.val();
            self.data[i].reset.next = self.reset.val() | !self.in_force.q.val();
            self.data[i].enable.next = true;
            self.data[i].d.next = self.lookup.read_data[i].val();
            self.descriptor[i].next = self.data[i].q.val();
        }

        // Numbers of the image.
        self.body.write_enable.next = false;
        self.body.write_address.next = self.count.q.val();
        self.body.write_data.next = self.line.q.val();
        self.body.read_address[0].next = self.number.q.val().get_bits::<4>(4);
        self.fields.line.next = self.head.q.val();
        if self.phase.q.val() == Phase::Apply {
            self.fields.line.next = self.body.read_data[0].val();
        }
        self.fields.index.next = self.number.q.val().get_bits::<4>(0);
        self.fields.slot.next = self.loading.q.val();
        self.lookup.write_enable.next = false;
        self.lookup.write_address.next = self.number.q.val().get_bits::<5>(0);
        self.lookup.write_data.next = self.fields.number.val();
        self.program_we.d.next = false;
        self.program_number.next = self.number.q.val() - self.descriptors.val();
        self.program_addr.d.next = self.program_number.val().get_bits::<7>(0);
        self.program_data.d.next = self.fields.number.val();
        self.prog_we.next = self.program_we.q.val();
        self.prog_addr.next = self.program_addr.q.val();
        self.prog_data.next = self.program_data.q.val();

        // Checksum, body first.
        self.crc_cell.reset.next = self.reset.val();
        self.crc_cell.valid.next = self.feed.q.val();
        self.crc_cell.first.next = self.feed_first.q.val();
        self.crc_cell.block.next = self.line.q.val();
        self.feed.d.next = false;

        // Memory.
        self.mem.rd_valid.next = false;
        self.mem.rd_line.next = self.fields.base.val() + self.one34.val();
        self.mem.rd_beats.next = self.last_body.val();
        self.mem.rd_tag.next = 0.into();
        self.mem.wr_valid.next = false;
        self.mem.wr_line.next = self.save_line.val();
        self.mem.wr_beats.next = 0.into();
        self.mem.wr_tag.next = 0.into();
        self.word.lane.next = self.word_lane.val();
        self.word.value.next = self.fields.word.val();
        self.mem.wdata.next = self.word.line.val();
        self.mem.wstrb.next = self.word.strobes.val();

        // The verdict on what was read.
        self.verdict.next = self.ok.val();
        if (self.crc_cell.crc.val() != self.residue.val())
            | (self.booting.q.val() & (self.fields.crc.val() != self.expected.q.val()))
        {
            self.verdict.next = self.bad_crc.val();
        }
        if !self.fields.version_ok.val() {
            self.verdict.next = self.bad_version.val();
        }
        if !self.fields.magic_ok.val() | !self.fields.slot_ok.val() {
            self.verdict.next = self.bad_magic.val();
        }
        if self.error.q.val() {
            self.verdict.next = self.memory_error.val();
        }

        match self.phase.q.val() {
            Phase::Idle => {
                if self.load.val() {
                    self.phase.d.next = Phase::ReadBody;
                    self.status_now.d.next = self.is_busy.val();
                    self.loading.d.next = self.slot.val();
                    self.booting.d.next = self.boot.val();
                    self.expected.d.next = self.expect_crc.val();
                    self.error.d.next = false;
                    self.feed_first.d.next = true;
                    self.count.d.next = 0.into();
                    self.number.d.next = 0.into();
                }
            }
            Phase::ReadBody => {
                // A slot that does not exist is not read: its address is anybody's.
                self.mem.rd_valid.next = self.fields.slot_ok.val();
                if !self.fields.slot_ok.val() {
                    self.phase.d.next = Phase::Check;
                } else if self.mem.rd_ready.val() {
                    self.phase.d.next = Phase::Body;
                }
            }
            Phase::Body => {
                // A line is stored and added up in the cycle after its arrival.
                if self.feed.q.val() {
                    self.body.write_enable.next = true;
                    self.count.d.next = self.count.q.val() + self.one4.val();
                    self.feed_first.d.next = false;
                }
                if self.mem.rdata_valid.val() {
                    self.line.d.next = self.mem.rdata.val();
                    self.feed.d.next = true;
                    self.error.d.next = self.error.q.val() | self.mem.rdata_error.val();
                } else if self.feed.q.val() & (self.count.q.val() == self.last_line.val()) {
                    self.phase.d.next = Phase::ReadHead;
                }
            }
            Phase::ReadHead => {
                self.mem.rd_valid.next = true;
                self.mem.rd_line.next = self.fields.base.val();
                self.mem.rd_beats.next = 0.into();
                if self.mem.rd_ready.val() {
                    self.phase.d.next = Phase::Head;
                }
            }
            Phase::Head => {
                self.count.d.next = 0.into();
                if self.mem.rdata_valid.val() {
                    self.line.d.next = self.mem.rdata.val();
                    self.feed.d.next = true;
                    self.error.d.next = self.error.q.val() | self.mem.rdata_error.val();
                    self.phase.d.next = Phase::Settle;
                }
            }
            Phase::Settle => {
                self.head.enable.next = true;
                self.count.d.next = self.count.q.val() + self.one4.val();
                if self.count.q.val() == self.settled.val() {
                    self.phase.d.next = Phase::Check;
                }
            }
            Phase::Check => {
                self.status_now.d.next = self.verdict.val();
                self.done.d.next = true;
                self.phase.d.next = Phase::Idle;
                if self.verdict.val() == self.ok.val() {
                    self.status_now.d.next = self.is_busy.val();
                    self.done.d.next = false;
                    self.phase.d.next = Phase::Word;
                    if self.booting.q.val() {
                        self.phase.d.next = Phase::Apply;
                    }
                }
            }
            Phase::Word => {
                self.mem.wr_valid.next = true;
                if self.mem.wr_ready.val() {
                    self.phase.d.next = Phase::WordData;
                }
            }
            Phase::WordData => {
                if self.mem.wdata_ready.val() {
                    self.phase.d.next = Phase::WordAnswer;
                }
            }
            Phase::WordAnswer => {
                if self.mem.b_valid.val() {
                    self.phase.d.next = Phase::Apply;
                    if self.mem.b_error.val() {
                        self.status_now.d.next = self.memory_error.val();
                        self.done.d.next = true;
                        self.phase.d.next = Phase::Idle;
                    }
                }
            }
            Phase::Apply => {
                self.number.d.next = self.number.q.val() + self.one8.val();
                self.lookup.write_enable.next = self.number.q.val() < self.descriptors.val();
                self.program_we.d.next = self.number.q.val() >= self.descriptors.val();
                if self.number.q.val() == self.last_number.val() {
                    self.phase.d.next = Phase::Idle;
                    self.done.d.next = true;
                    self.status_now.d.next = self.ok.val();
                    self.in_force.d.next = true;
                    self.crc_in_force.d.next = self.head.q.val().get_bits::<32>(480);
                    self.slot_now.d.next = self.loading.q.val();
                }
            }
            _ => {
                self.phase.d.next = Phase::Idle;
            }
        }
        if self.reset.val() {
            self.phase.d.next = Phase::Idle;
            self.done.d.next = false;
            self.feed.d.next = false;
            self.program_we.d.next = false;
            self.in_force.d.next = false;
            self.crc_in_force.d.next = 0.into();
            self.slot_now.d.next = 0.into();
        }
    }
}
