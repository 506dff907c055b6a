//! The AXI4-Lite register block, made from `nearpm_interface::registers::ALL`.

use super::multi_device::Brief;
use crate::bundles::{AxiLiteSlave, Lost};
use crate::dut::Ports;
use crate::sizes::Sizes;
use nearpm_interface::INTERFACE_VERSION;
use nearpm_interface::geometry::{COMMAND_PAGES, LINE_U64, MAX_DEVICES, UNITS};
use nearpm_interface::registers::{self as regs, ALL, Access, ID_VALUE, control, firmware_status, state};
use rust_hdl::prelude::*;
use smart_default::SmartDefault;
use std::collections::BTreeMap;

/// The name of the Verilog parameter that holds the first word of the build's hash.
pub const BUILD_HASH_NAME: &str = "NPM_BUILD_HASH";

/// Where the value of a register comes from.
enum Source {
    /// A constant of the build.
    Constant(u32),
    /// A Verilog expression of 32 bits over the ports.
    Ports(&'static str),
    /// A counter of cycles in which the port is high; `None` counts every cycle.
    Counter(Option<&'static str>),
    /// A value that was written.
    Kept,
    /// Nothing: write only.
    Nothing,
    /// Nothing here, so that it reads as 0: the PCIe bridge answers it.
    Bridge,
}

/// Where the value of the register at `offset` comes from.
///
/// # Panics
/// For a register that the interface defines and this unit does not know.
fn source(offset: u32, capabilities: u32, geometry: u32) -> Source {
    use Source::{Bridge, Constant, Counter, Kept, Nothing, Ports};
    match offset {
        regs::ID => Constant(ID_VALUE),
        regs::VERSION => Constant(INTERFACE_VERSION),
        regs::BUILD_HASH => Ports(BUILD_HASH_NAME),
        regs::CAPABILITIES => Constant(capabilities),
        regs::GEOMETRY => Constant(geometry),
        regs::PM_BYTES_LO => Ports("pm_bytes[31:0]"),
        regs::PM_BYTES_HI => Ports("pm_bytes[63:32]"),
        regs::STATE => Ports("{29'd0, state}"),
        regs::GENERATION => Ports("generation[31:0]"),
        regs::REPLAYED => Ports("replayed"),
        regs::LATCHED => Ports("{16'd0, latched}"),
        regs::MAPPED => Ports("{16'd0, mapped}"),
        regs::SAVE_CYCLES => Ports("save_cycles"),
        regs::FIRMWARE_STATUS => Ports("{16'd0, firmware_slot, shown_status}"),
        regs::FIRMWARE_CRC => Ports("firmware_crc"),
        regs::PARKED => Ports("parked"),
        // A `Brief`, first field lowest: pool, thread, opcode, participants, transaction, mapping
        // entry.
        regs::PARKED_POOL => Ports("shown_command[31:0]"),
        regs::PARKED_THREAD => Ports("{shown_command[63:56], shown_command[55:48], shown_command[47:32]}"),
        regs::PARKED_TXID_LO => Ports("shown_command[95:64]"),
        regs::PARKED_TXID_HI => Ports("shown_command[127:96]"),
        regs::PARKED_REACHED => Ports("{24'd0, shown_reached}"),
        // A `Lost`, first field lowest: count, first and last line.
        regs::STORES_LOST => Ports("lost[31:0]"),
        regs::LOST_FIRST_LO => Ports("{lost[57:32], 6'd0}"),
        regs::LOST_FIRST_HI => Ports("{24'd0, lost[65:58]}"),
        regs::LOST_LAST_LO => Ports("{lost[91:66], 6'd0}"),
        regs::LOST_LAST_HI => Ports("{24'd0, lost[99:92]}"),
        regs::CYCLES => Counter(None),
        regs::COMMANDS_ACCEPTED => Counter(Some("commands_accepted")),
        regs::COMMANDS_RETIRED => Counter(Some("commands_retired")),
        regs::COMMANDS_REFUSED => Counter(Some("commands_refused")),
        regs::COMMANDS_FAILED => Counter(Some("commands_failed")),
        regs::COMMANDS_DROPPED => Counter(Some("commands_dropped")),
        regs::COMMANDS_HELD => Counter(Some("commands_held")),
        regs::HOST_READS => Counter(Some("host_reads")),
        regs::HOST_WRITES => Counter(Some("host_writes")),
        regs::HOST_HELD => Counter(Some("host_held")),
        regs::HOST_REFUSED => Counter(Some("host_refused")),
        regs::HOST_LATCHED => Counter(Some("host_latched")),
        regs::RECORDS_LOST => Counter(Some("records_lost")),
        regs::UNIT_READ_LINES => Counter(Some("unit_read_lines")),
        regs::UNIT_WRITE_LINES => Counter(Some("unit_write_lines")),
        regs::DIRECTION_SWITCHES => Counter(Some("direction_switches")),
        regs::STALL_REQUEST_FULL => Counter(Some("stall_request_full")),
        regs::STALL_HOST_FULL => Counter(Some("stall_host_full")),
        regs::TLPS_POISONED => Bridge,
        _ => match ALL.iter().find(|r| r.offset == offset).map(|r| r.access) {
            Some(Access::ReadWrite) => Kept,
            Some(Access::WriteOnly) => Nothing,
            _ => panic!("register {offset:#x} has no source"),
        },
    }
}

/// Bits that a register keeps.
fn kept(offset: u32) -> u32 {
    match offset {
        regs::DEVICE_NUMBER => 2 * MAX_DEVICES as u32 - 1,
        _ => u32::MAX,
    }
}

/// Verilog name of what holds a register that is kept or counts.
fn holder(offset: u32) -> String {
    let register = ALL.iter().find(|r| r.offset == offset).expect("a register");
    format!("r_{}", register.name.to_lowercase())
}

/// The register block.
///
/// Guarantees: a write acts once, and is answered after it has acted; a read answers what stood
/// when it was taken. Writes honour byte strobes; a register that acts does so when its lowest byte
/// is written. Offsets without a register read as 0. Everything is answered OKAY. Counters wrap.
/// Bound: a write takes three cycles, a read two. The 64-bit values and the counters are not read
/// as a unit: read high, low, high.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct Registers {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: all registers start anew.
    pub reset: Signal<In, Bit>,
    /// Pulse: the completion rings are forgotten (their registers become 0).
    pub clear: Signal<In, Bit>,
    /// The register BAR.
    pub axi: AxiLiteSlave<12, 32, 4>,

    /// Bytes of persistent memory.
    pub pm_bytes: Signal<In, Bits<64>>,
    /// `STATE`.
    pub state: Signal<In, Bits<3>>,
    /// `GENERATION` shows its low half.
    pub generation: Signal<In, Bits<48>>,
    /// `REPLAYED`.
    pub replayed: Signal<In, Bits<32>>,
    /// `LATCHED`.
    pub latched: Signal<In, Bits<16>>,
    /// `MAPPED`.
    pub mapped: Signal<In, Bits<16>>,
    /// `STORES_LOST` and the lines.
    pub lost: Signal<In, Lost>,
    /// `SAVE_CYCLES`.
    pub save_cycles: Signal<In, Bits<32>>,
    /// A load of firmware was asked for and has not begun.
    pub load_waits: Signal<In, Bit>,
    /// The last request to load firmware was refused.
    pub load_refused: Signal<In, Bit>,
    /// Outcome of the last load.
    pub firmware_status: Signal<In, Bits<8>>,
    /// Slot in force.
    pub firmware_slot: Signal<In, Bits<8>>,
    /// `FIRMWARE_CRC`.
    pub firmware_crc: Signal<In, Bits<32>>,

    /// A replay begins: `DEVICE_NUMBER` was `device_restore` when the power went.
    pub device_restore_valid: Signal<In, Bit>,
    /// See `device_restore_valid`.
    pub device_restore: Signal<In, Bits<4>>,
    /// `PARKED`.
    pub parked: Signal<In, Bits<32>>,
    /// The command in the selected place; 0 where there is none.
    pub shown_command: Signal<In, Brief>,
    /// `PARKED_REACHED`.
    pub shown_reached: Signal<In, Bits<8>>,

    /// Pulse: `CONTROL` with `SHUT_DOWN`.
    pub shut_down: Signal<Out, Bit>,
    /// Pulse: `CONTROL` with `ACKNOWLEDGE_LOSS`.
    pub acknowledge_loss: Signal<Out, Bit>,
    /// Pulse: `CONTROL` with `FUNCTION_RESET`.
    pub function_reset: Signal<Out, Bit>,
    /// Pulse: `FIRMWARE_LOAD` was written.
    pub load_request: Signal<Out, Bit>,
    /// The slot that was written, with the pulse.
    pub load_slot: Signal<Out, Bits<8>>,
    /// `DEVICE_NUMBER`.
    pub device_number: Signal<Out, Bits<4>>,
    /// Pulse: it was written.
    pub numbered: Signal<Out, Bit>,
    /// `PARKED_SELECT`.
    pub select: Signal<Out, Bits<32>>,
    /// Pulse: `PARKED_ACT` was written.
    pub act_valid: Signal<Out, Bit>,
    /// The place that was written, with the pulse.
    pub act_place: Signal<Out, Bits<8>>,
    /// The action that was written, with the pulse.
    pub act_action: Signal<Out, Bits<8>>,
    /// Completion ring of each page: bus address.
    pub ring_base: [Signal<Out, Bits<64>>; COMMAND_PAGES],
    /// Completion ring of each page: log2 of its records.
    pub ring_size: [Signal<Out, Bits<4>>; COMMAND_PAGES],
    /// Pulse for each page: the ring starts anew and is enabled.
    pub ring_start: [Signal<Out, Bit>; COMMAND_PAGES],

    /// Pulse: counts `COMMANDS_ACCEPTED`.
    pub commands_accepted: Signal<In, Bit>,
    /// Pulse: counts `COMMANDS_RETIRED`.
    pub commands_retired: Signal<In, Bit>,
    /// Pulse: counts `COMMANDS_REFUSED`.
    pub commands_refused: Signal<In, Bit>,
    /// Pulse: counts `COMMANDS_FAILED`.
    pub commands_failed: Signal<In, Bit>,
    /// Pulse: counts `COMMANDS_DROPPED`.
    pub commands_dropped: Signal<In, Bit>,
    /// Pulse: counts `COMMANDS_HELD`.
    pub commands_held: Signal<In, Bit>,
    /// Pulse: counts `HOST_READS`.
    pub host_reads: Signal<In, Bit>,
    /// Pulse: counts `HOST_WRITES`.
    pub host_writes: Signal<In, Bit>,
    /// Pulse: counts `HOST_HELD`.
    pub host_held: Signal<In, Bit>,
    /// Pulse: counts `HOST_REFUSED`.
    pub host_refused: Signal<In, Bit>,
    /// Pulse: counts `HOST_LATCHED`.
    pub host_latched: Signal<In, Bit>,
    /// Pulse: counts `RECORDS_LOST`.
    pub records_lost: Signal<In, Bit>,
    /// Pulse: counts `UNIT_READ_LINES`.
    pub unit_read_lines: Signal<In, Bit>,
    /// Pulse: counts `UNIT_WRITE_LINES`.
    pub unit_write_lines: Signal<In, Bit>,
    /// Pulse: counts `DIRECTION_SWITCHES`.
    pub direction_switches: Signal<In, Bit>,
    /// Level: counts `STALL_REQUEST_FULL`.
    pub stall_request_full: Signal<In, Bit>,
    /// Level: counts `STALL_HOST_FULL`.
    pub stall_host_full: Signal<In, Bit>,

    #[default(regs::capability::HOST_ORDERED | regs::capability::COMPLETION_RECORDS | regs::capability::POWER_FAIL_SAFE)]
    _capabilities: u32,
    #[default(Sizes::FULL.geometry(UNITS))]
    _geometry: u32,
    _held: BTreeMap<u32, u32>,
    _write_address: Option<u32>,
    _write_data: Option<(u32, u32)>,
    _answer: bool,
    _read_address: Option<u32>,
    _read: Option<u32>,
    _pulses: Pulses,
}

/// What a write causes in the next cycle.
#[derive(Clone, Debug, Default)]
struct Pulses {
    control: u32,
    load: Option<u32>,
    numbered: bool,
    act: Option<u32>,
    start: [bool; COMMAND_PAGES],
}

impl Registers {
    /// A register block whose `CAPABILITIES` are these bits of `registers::capability`, and whose
    /// `GEOMETRY` is that of [`Sizes::geometry`].
    pub fn new(capabilities: u32, geometry: u32) -> Self {
        Self { _capabilities: capabilities, _geometry: geometry, ..Self::default() }
    }

    /// Which counters count in this cycle.
    fn counts(&self, offset: u32) -> bool {
        match offset {
            regs::CYCLES => true,
            regs::COMMANDS_ACCEPTED => self.commands_accepted.val(),
            regs::COMMANDS_RETIRED => self.commands_retired.val(),
            regs::COMMANDS_REFUSED => self.commands_refused.val(),
            regs::COMMANDS_FAILED => self.commands_failed.val(),
            regs::COMMANDS_DROPPED => self.commands_dropped.val(),
            regs::COMMANDS_HELD => self.commands_held.val(),
            regs::HOST_READS => self.host_reads.val(),
            regs::HOST_WRITES => self.host_writes.val(),
            regs::HOST_HELD => self.host_held.val(),
            regs::HOST_REFUSED => self.host_refused.val(),
            regs::HOST_LATCHED => self.host_latched.val(),
            regs::RECORDS_LOST => self.records_lost.val(),
            regs::UNIT_READ_LINES => self.unit_read_lines.val(),
            regs::UNIT_WRITE_LINES => self.unit_write_lines.val(),
            regs::DIRECTION_SWITCHES => self.direction_switches.val(),
            regs::STALL_REQUEST_FULL => self.stall_request_full.val(),
            regs::STALL_HOST_FULL => self.stall_host_full.val(),
            _ => unreachable!("not a counter"),
        }
    }

    /// What a read at `offset` gives.
    fn value(&self, offset: u32) -> u32 {
        if !ALL.iter().any(|r| r.offset == offset) {
            return 0;
        }
        let word = |value: Bits<32>| value.to_u64() as u32;
        match source(offset, self._capabilities, self._geometry) {
            Source::Constant(value) => value,
            Source::Counter(_) | Source::Kept => self._held.get(&offset).copied().unwrap_or(0),
            Source::Nothing | Source::Bridge => 0,
            Source::Ports(_) => match offset {
                // The model has no text to hash.
                regs::BUILD_HASH => 0,
                regs::PM_BYTES_LO => self.pm_bytes.val().to_u64() as u32,
                regs::PM_BYTES_HI => (self.pm_bytes.val().to_u64() >> 32) as u32,
                regs::STATE => self.state.val().to_u64() as u32,
                regs::GENERATION => self.generation.val().to_u64() as u32,
                regs::REPLAYED => word(self.replayed.val()),
                regs::LATCHED => self.latched.val().to_u64() as u32,
                regs::MAPPED => self.mapped.val().to_u64() as u32,
                regs::SAVE_CYCLES => word(self.save_cycles.val()),
                regs::STORES_LOST..=regs::LOST_LAST_HI => self.lost_word(offset),
                regs::FIRMWARE_STATUS => {
                    let status = match (self.load_waits.val(), self.load_refused.val()) {
                        (true, _) => firmware_status::BUSY,
                        (false, true) => firmware_status::NOT_IDLE,
                        // An image that is in force before the card is open is not shown so.
                        (false, false) if self.hides_firmware() => firmware_status::BUSY,
                        (false, false) => self.firmware_status.val().to_u64() as u32,
                    };
                    status | (self.firmware_slot.val().to_u64() as u32) << 8
                }
                regs::FIRMWARE_CRC => word(self.firmware_crc.val()),
                regs::PARKED => word(self.parked.val()),
                regs::PARKED_POOL..=regs::PARKED_REACHED => self.parked_value(offset),
                _ => unreachable!("a source over ports"),
            },
        }
    }

    /// What a register of the parked table shows.
    fn parked_value(&self, offset: u32) -> u32 {
        let Brief { pool, thread, opcode, participants, txid, .. } = self.shown_command.val();
        match offset {
            regs::PARKED_POOL => pool.to_u64() as u32,
            regs::PARKED_THREAD => (thread.to_u64() | opcode.to_u64() << 16 | participants.to_u64() << 24) as u32,
            regs::PARKED_TXID_LO => txid.to_u64() as u32,
            regs::PARKED_TXID_HI => (txid.to_u64() >> 32) as u32,
            _ => self.shown_reached.val().to_u64() as u32,
        }
    }

    /// The image is in force, and the card boots or replays.
    fn hides_firmware(&self) -> bool {
        let closed = [state::BOOTING, state::REPLAYING].contains(&(self.state.val().to_u64() as u32));
        closed && self.firmware_status.val().to_u64() == u64::from(firmware_status::OK)
    }

    /// What is known of lost stores.
    fn lost_word(&self, offset: u32) -> u32 {
        let Lost { count, first, last } = self.lost.val();
        let (first, last) = (first.to_u64() * LINE_U64, last.to_u64() * LINE_U64);
        match offset {
            regs::STORES_LOST => count.to_u64() as u32,
            regs::LOST_FIRST_LO => first as u32,
            regs::LOST_FIRST_HI => (first >> 32) as u32,
            regs::LOST_LAST_LO => last as u32,
            _ => (last >> 32) as u32,
        }
    }

    /// A write of the bytes that `strobes` selects.
    fn write(&mut self, offset: u32, data: u32, strobes: u32) {
        let mask = (0..4).fold(0, |m, byte| m | ((strobes >> byte & 1) * 0xff) << (8 * byte));
        let Some(register) = ALL.iter().find(|r| r.offset == offset) else { return };
        if register.access == Access::ReadWrite {
            let held = self._held.entry(offset).or_default();
            *held = *held & !mask | data & mask & kept(offset);
        }
        if strobes & 1 == 0 {
            return;
        }
        match offset {
            regs::CONTROL => self._pulses.control = data,
            regs::FIRMWARE_LOAD => self._pulses.load = Some(data & 0xff),
            regs::DEVICE_NUMBER => self._pulses.numbered = true,
            regs::PARKED_ACT => self._pulses.act = Some(data),
            _ => {
                for page in 0..COMMAND_PAGES {
                    self._pulses.start[page] = offset == ring_size(page);
                }
            }
        }
    }

    fn edge(&mut self) {
        if self.reset.val() {
            self._held.clear();
            (self._write_address, self._write_data, self._answer) = (None, None, false);
            (self._read_address, self._read) = (None, None);
            self._pulses = Pulses::default();
            return;
        }
        // A read shows what stood before this edge.
        let read = self._read_address.map(|offset| self.value(offset));
        for register in ALL {
            let offset = register.offset;
            if matches!(source(offset, self._capabilities, self._geometry), Source::Counter(_)) && self.counts(offset) {
                let count = self._held.entry(offset).or_default();
                *count = count.wrapping_add(1);
            }
        }
        self._pulses = Pulses::default();
        let answer = self._answer;
        if answer && self.axi.bready.val() {
            self._answer = false;
        }
        if let (Some(offset), Some((data, strobes)), false) = (self._write_address, self._write_data, answer) {
            self.write(offset, data, strobes);
            (self._write_address, self._write_data, self._answer) = (None, None, true);
        } else {
            if self._write_address.is_none() && self.axi.awvalid.val() {
                self._write_address = Some(self.axi.awaddr.val().to_u64() as u32 & !3);
            }
            if self._write_data.is_none() && self.axi.wvalid.val() {
                let data = self.axi.wdata.val().to_u64() as u32;
                self._write_data = Some((data, self.axi.wstrb.val().to_u64() as u32));
            }
        }
        if self.clear.val() {
            for page in 0..COMMAND_PAGES {
                for offset in [ring_base(page), ring_base(page) + 4, ring_size(page)] {
                    self._held.remove(&offset);
                }
            }
        }
        if self.device_restore_valid.val() {
            self._held.insert(regs::DEVICE_NUMBER, self.device_restore.val().to_u64() as u32);
        }
        if self._read.is_some() && self.axi.rready.val() {
            self._read = None;
        }
        if let Some(value) = read {
            (self._read, self._read_address) = (Some(value), None);
        } else if self._read.is_none() && self.axi.arready.val() && self.axi.arvalid.val() {
            self._read_address = Some(self.axi.araddr.val().to_u64() as u32 & !3);
        }
    }
}

/// Offset of the low address register of a page's ring.
fn ring_base(page: usize) -> u32 {
    regs::completion_ring(page)
}

/// Offset of the size register of a page's ring.
fn ring_size(page: usize) -> u32 {
    ring_base(page) + (regs::COMPLETION0_SIZE - regs::COMPLETION0_LO)
}

impl Logic for Registers {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            self.edge();
        }
        let held = |offset: u32| u64::from(self._held.get(&offset).copied().unwrap_or(0));
        self.axi.awready.next = self._write_address.is_none();
        self.axi.wready.next = self._write_data.is_none();
        self.axi.bvalid.next = self._answer;
        self.axi.bresp.next = 0.into();
        self.axi.arready.next = self._read_address.is_none() && self._read.is_none();
        self.axi.rvalid.next = self._read.is_some();
        self.axi.rdata.next = u64::from(self._read.unwrap_or(0)).into();
        self.axi.rresp.next = 0.into();
        self.shut_down.next = self._pulses.control & control::SHUT_DOWN != 0;
        self.acknowledge_loss.next = self._pulses.control & control::ACKNOWLEDGE_LOSS != 0;
        self.function_reset.next = self._pulses.control & control::FUNCTION_RESET != 0;
        self.load_request.next = self._pulses.load.is_some();
        self.load_slot.next = u64::from(self._pulses.load.unwrap_or(0)).into();
        self.device_number.next = held(regs::DEVICE_NUMBER).into();
        self.numbered.next = self._pulses.numbered;
        self.select.next = held(regs::PARKED_SELECT).into();
        let act = self._pulses.act.unwrap_or(0);
        self.act_valid.next = self._pulses.act.is_some();
        self.act_place.next = u64::from(act & 0xff).into();
        self.act_action.next = u64::from(act >> 8 & 0xff).into();
        for page in 0..COMMAND_PAGES {
            let base = held(ring_base(page)) | held(ring_base(page) + 4) << 32;
            self.ring_base[page].next = base.into();
            self.ring_size[page].next = (held(ring_size(page)) & 15).into();
            self.ring_start[page].next = self._pulses.start[page];
        }
    }

    fn connect(&mut self) {
        self.axi.awready.connect();
        self.axi.wready.connect();
        self.axi.bvalid.connect();
        self.axi.bresp.connect();
        self.axi.arready.connect();
        self.axi.rvalid.connect();
        self.axi.rdata.connect();
        self.axi.rresp.connect();
        self.shut_down.connect();
        self.acknowledge_loss.connect();
        self.function_reset.connect();
        self.load_request.connect();
        self.load_slot.connect();
        self.device_number.connect();
        self.numbered.connect();
        self.select.connect();
        self.act_valid.connect();
        self.act_place.connect();
        self.act_action.connect();
        self.ring_base.iter_mut().for_each(Logic::connect);
        self.ring_size.iter_mut().for_each(Logic::connect);
        self.ring_start.iter_mut().for_each(Logic::connect);
    }

    fn hdl(&self) -> Verilog {
        let (mut declared, mut starts, mut reads, mut writes, mut counters) =
            (String::new(), String::new(), String::new(), String::new(), String::new());
        for register in ALL {
            let (offset, name) = (register.offset, holder(register.offset));
            let mut hold = || {
                declared += &format!("reg [31:0] {name};\n");
                starts += &format!("{name} <= 32'd0; ");
                name.clone()
            };
            let value = match source(offset, self._capabilities, self._geometry) {
                Source::Constant(value) => format!("32'h{value:08x}"),
                Source::Ports(expression) => expression.into(),
                Source::Nothing | Source::Bridge => continue,
                Source::Counter(event) => {
                    let name = hold();
                    let when = event.map_or(String::new(), |event| format!("if ({event}) "));
                    counters += &format!("        {when}{name} <= {name} + 32'd1;\n");
                    name
                }
                Source::Kept => {
                    let name = hold();
                    writes += &format!(
                        "            if (write_address == 10'd{}) {name} <= {name} & ~mask | write_data & mask & 32'h{:08x};\n",
                        offset / 4,
                        kept(offset)
                    );
                    name
                }
            };
            reads += &format!("        10'd{}: shown = {value};\n", offset / 4);
        }
        let acts = |offset: u32| format!("acts & (write_address == 10'd{})", offset / 4);
        let bit = |mask: u32| mask.trailing_zeros();
        let (mut rings, mut wires, mut cleared) = (String::new(), String::new(), String::new());
        for page in 0..COMMAND_PAGES {
            let size = ring_size(page);
            rings += &format!("    ring_start${page} <= ~reset & {};\n", acts(size));
            let (low, high) = (holder(ring_base(page)), holder(ring_base(page) + 4));
            let size = holder(size);
            wires += &format!("    ring_base${page} = {{{high}, {low}}};\n    ring_size${page} = {size}[3:0];\n");
            cleared += &format!("{low} <= 32'd0; {high} <= 32'd0; {size} <= 32'd0; ");
        }
        Verilog::Custom(format!(
            "localparam [31:0] {BUILD_HASH_NAME} = 32'h00000000;\n\
             {declared}\
             reg [9:0] write_address;\n\
             reg [31:0] write_data;\n\
             reg [3:0] write_strobes;\n\
             reg [9:0] read_address;\n\
             reg address_full, data_full, reading;\n\
             reg [31:0] shown;\n\
             wire act = address_full & data_full & ~axi$bvalid;\n\
             wire acts = act & write_strobes[0];\n\
             wire [31:0] mask = {{{{8{{write_strobes[3]}}}}, {{8{{write_strobes[2]}}}}, {{8{{write_strobes[1]}}}}, {{8{{write_strobes[0]}}}}}};\n\
             wire closed = state == 3'd{booting} | state == 3'd{replaying};\n\
             wire [7:0] shown_status = load_waits ? 8'd{busy} : load_refused ? 8'd{not_idle} :\n\
             \x20   (closed & firmware_status == 8'd{ok}) ? 8'd{busy} : firmware_status;\n\
             always @(*) begin\n\
             \x20   case (read_address)\n\
             {reads}\
             \x20       default: shown = 32'd0;\n\
             \x20   endcase\n\
             end\n\
             always @(*) begin\n\
             \x20   axi$awready = ~address_full;\n\
             \x20   axi$wready = ~data_full;\n\
             \x20   axi$bresp = 2'd0;\n\
             \x20   axi$arready = ~reading & ~axi$rvalid;\n\
             \x20   axi$rresp = 2'd0;\n\
             \x20   device_number = {device}[3:0];\n\
             \x20   select = {select};\n\
             {wires}\
             end\n\
             always @(posedge clock) begin\n\
             \x20   shut_down <= ~reset & {control_acts} & write_data[{shut}];\n\
             \x20   acknowledge_loss <= ~reset & {control_acts} & write_data[{acknowledge}];\n\
             \x20   function_reset <= ~reset & {control_acts} & write_data[{function}];\n\
             \x20   load_request <= ~reset & {load_acts};\n\
             \x20   load_slot <= ({load_acts}) ? write_data[7:0] : 8'd0;\n\
             \x20   numbered <= ~reset & {number_acts};\n\
             \x20   act_valid <= ~reset & {parked_acts};\n\
             \x20   act_place <= (~reset & {parked_acts}) ? write_data[7:0] : 8'd0;\n\
             \x20   act_action <= (~reset & {parked_acts}) ? write_data[15:8] : 8'd0;\n\
             {rings}\
             \x20   if (reset) begin\n\
             \x20       {starts}\n\
             \x20       address_full <= 1'b0; data_full <= 1'b0; reading <= 1'b0;\n\
             \x20       axi$bvalid <= 1'b0; axi$rvalid <= 1'b0; axi$rdata <= 32'd0;\n\
             \x20   end else begin\n\
             {counters}\
             \x20       if (axi$bvalid & axi$bready) axi$bvalid <= 1'b0;\n\
             \x20       if (act) begin\n\
             {writes}\
             \x20           address_full <= 1'b0;\n\
             \x20           data_full <= 1'b0;\n\
             \x20           axi$bvalid <= 1'b1;\n\
             \x20       end else begin\n\
             \x20           if (~address_full & axi$awvalid) begin\n\
             \x20               address_full <= 1'b1;\n\
             \x20               write_address <= axi$awaddr[11:2];\n\
             \x20           end\n\
             \x20           if (~data_full & axi$wvalid) begin\n\
             \x20               data_full <= 1'b1;\n\
             \x20               write_data <= axi$wdata;\n\
             \x20               write_strobes <= axi$wstrb;\n\
             \x20           end\n\
             \x20       end\n\
             \x20       if (clear) begin {cleared}end\n\
             \x20       if (device_restore_valid) {device} <= {{28'd0, device_restore}};\n\
             \x20       if (axi$rvalid & axi$rready) begin axi$rvalid <= 1'b0; axi$rdata <= 32'd0; end\n\
             \x20       if (reading) begin\n\
             \x20           axi$rvalid <= 1'b1;\n\
             \x20           axi$rdata <= shown;\n\
             \x20           reading <= 1'b0;\n\
             \x20       end else if (axi$arready & axi$arvalid) begin\n\
             \x20           reading <= 1'b1;\n\
             \x20           read_address <= axi$araddr[11:2];\n\
             \x20       end\n\
             \x20   end\n\
             end\n",
            busy = firmware_status::BUSY,
            not_idle = firmware_status::NOT_IDLE,
            ok = firmware_status::OK,
            booting = state::BOOTING,
            replaying = state::REPLAYING,
            device = holder(regs::DEVICE_NUMBER),
            select = holder(regs::PARKED_SELECT),
            number_acts = acts(regs::DEVICE_NUMBER),
            parked_acts = acts(regs::PARKED_ACT),
            control_acts = acts(regs::CONTROL),
            load_acts = acts(regs::FIRMWARE_LOAD),
            shut = bit(control::SHUT_DOWN),
            acknowledge = bit(control::ACKNOWLEDGE_LOSS),
            function = bit(control::FUNCTION_RESET),
        ))
    }
}
