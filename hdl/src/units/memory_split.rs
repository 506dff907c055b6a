//! The second port to memory.

use super::burst::BURST_LINES;
use crate::bundles::{AxiMaster, AxiSlave};
use crate::cells::{Fifo, Register, Widen};
use crate::dut::Ports;
use nearpm_interface::firmware::IMAGE_LINES;
use nearpm_interface::geometry::{ADDRESS_BITS, FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, LINE_U64};
use nearpm_interface::memory_ports::{INTERLEAVE, on_port};
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// Lines that can be asked for at one port and not taken by their requesters.
const READ_LINES: u64 = 128;

// No burst leaves its port: those of units end at multiples of 16 lines, the firmware store's lie
// inside an image, and all others are single lines.
const _: () = assert!(INTERLEAVE == BURST_LINES * LINE_U64 && BURST_LINES == 16);
const _: () = assert!(IMAGE_LINES as u64 * LINE_U64 <= INTERLEAVE);
const _: () = assert!(FIRMWARE_BASE.is_multiple_of(INTERLEAVE) && FIRMWARE_SLOT_BYTES.is_multiple_of(INTERLEAVE));

/// The port of a device address, and the address there; combinational, and only wires.
#[derive(LogicBlock, Default, Ports)]
pub struct PortOfAddress {
    /// A device address.
    pub address: Signal<In, Bits<40>>,
    /// Its port.
    pub port: Signal<Out, Bits<1>>,
    /// Where it lies behind the port.
    pub there: Signal<Out, Bits<40>>,
}

impl Logic for PortOfAddress {
    fn update(&mut self) {
        let (port, there) = on_port(self.address.val().to_u64());
        self.port.next = port.to_bits();
        self.there.next = there.into();
    }

    fn connect(&mut self) {
        self.port.connect();
        self.there.connect();
    }

    fn hdl(&self) -> Verilog {
        let (bit, top) = (INTERLEAVE.ilog2(), ADDRESS_BITS - 1);
        Verilog::Custom(format!(
            "always @(*) begin\n\
             \x20   port = address[{bit}];\n\
             \x20   there = {{1'b0, address[{top}:{above}], address[{below}:0]}};\n\
             end\n",
            above = bit + 1,
            below = bit - 1,
        ))
    }
}

/// An address channel's burst.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Request {
    id: Bits<6>,
    address: Bits<40>,
    length: Bits<8>,
}

/// A beat of write data.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct WriteBeat {
    data: Bits<512>,
    strobes: Bits<64>,
    last: Bit,
}

/// A beat of read data.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct ReadBeat {
    data: Bits<512>,
    response: Bits<2>,
    last: Bit,
}

/// The answer to a write.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Answer {
    id: Bits<6>,
    response: Bits<2>,
}

/// Who gets the data of a read, and from which port.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Turn {
    port: Bits<1>,
    id: Bits<6>,
}

/// What waits at one port: addresses and data of writes on their way to it, read data and answers
/// on their way back.
///
/// Guarantees: order in each channel; an offer stays until it is taken. A read passes only while
/// there is room for the longest burst, so that read data is always taken. Bound: 4 addresses of a
/// direction, 4 answers, 32 beats of write data, [`READ_LINES`] of read data; a beat of read data
/// or an answer that finds nobody waiting shows in the cycle in which it comes.
#[derive(SmartDefault, LogicBlock)]
struct Lane {
    clock: Signal<In, Clock>,
    reset: Signal<In, Bit>,
    m: AxiMaster<40, 512, 64, 6>,

    ar_write: Signal<In, Bit>,
    ar_request: Signal<In, Request>,
    ar_full: Signal<Out, Bit>,
    aw_write: Signal<In, Bit>,
    aw_request: Signal<In, Request>,
    aw_full: Signal<Out, Bit>,
    w_write: Signal<In, Bit>,
    w_beat: Signal<In, WriteBeat>,
    w_full: Signal<Out, Bit>,
    r_valid: Signal<Out, Bit>,
    r_beat: Signal<Out, ReadBeat>,
    r_take: Signal<In, Bit>,
    b_valid: Signal<Out, Bit>,
    b_answer: Signal<Out, Answer>,
    b_take: Signal<In, Bit>,

    ar: Fifo<Request, 2, 3>,
    aw: Fifo<Request, 2, 3>,
    w: Fifo<WriteBeat, 5, 6>,
    r: Fifo<ReadBeat, 7, 8>,
    b: Fifo<Answer, 2, 3>,
    /// Lines that no read has claimed.
    #[default(Register::new(READ_LINES.into()))]
    credit: Register<Bits<8>>,
    claims: Widen<5, 8>,
    length: Signal<Local, Bits<8>>,
    beats: Signal<Local, Bits<5>>,
    claimed: Signal<Local, Bits<8>>,
    given: Signal<Local, Bits<8>>,
    r_come: Signal<Local, ReadBeat>,
    b_come: Signal<Local, Answer>,
    #[default(Constant::new(1.into()))]
    one5: Constant<Bits<5>>,
    #[default(Constant::new(1.into()))]
    one8: Constant<Bits<8>>,
    #[default(Constant::new(6.into()))]
    size: Constant<Bits<3>>,
    #[default(Constant::new(1.into()))]
    incrementing: Constant<Bits<2>>,
}

impl Logic for Lane {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, ar, aw, w, r, b, credit);
        self.ar.reset.next = self.reset.val();
        self.aw.reset.next = self.reset.val();
        self.w.reset.next = self.reset.val();
        self.r.reset.next = self.reset.val();
        self.b.reset.next = self.reset.val();

        self.ar.write.next = self.ar_write.val();
        self.ar.data_in.next = self.ar_request.val();
        // Room for fewer than 16 lines, the longest burst.
        self.ar_full.next = self.ar.full.val() | !self.credit.q.val().get_bits::<4>(4).any();
        self.ar.read.next = self.m.arready.val();
        self.m.arvalid.next = !self.ar.empty.val();
        self.m.arid.next = self.ar.data_out.val().id;
        self.m.araddr.next = self.ar.data_out.val().address;
        self.m.arlen.next = self.ar.data_out.val().length;
        self.m.arsize.next = self.size.val();
        self.m.arburst.next = self.incrementing.val();

        self.aw.write.next = self.aw_write.val();
        self.aw.data_in.next = self.aw_request.val();
        self.aw_full.next = self.aw.full.val();
        self.aw.read.next = self.m.awready.val();
        self.m.awvalid.next = !self.aw.empty.val();
        self.m.awid.next = self.aw.data_out.val().id;
        self.m.awaddr.next = self.aw.data_out.val().address;
        self.m.awlen.next = self.aw.data_out.val().length;
        self.m.awsize.next = self.size.val();
        self.m.awburst.next = self.incrementing.val();

        self.w.write.next = self.w_write.val();
        self.w.data_in.next = self.w_beat.val();
        self.w_full.next = self.w.full.val();
        self.w.read.next = self.m.wready.val();
        self.m.wvalid.next = !self.w.empty.val();
        self.m.wdata.next = self.w.data_out.val().data;
        self.m.wstrb.next = self.w.data_out.val().strobes;
        self.m.wlast.next = self.w.data_out.val().last;

        // Lines are claimed when a read is taken, and given back when its data leaves.
        // By way of a signal of its own: bits of a field's bits are no Verilog, and yosys reads
        // other bits there.
        self.length.next = self.ar_request.val().length;
        self.beats.next = self.length.val().get_bits::<5>(0) + self.one5.val();
        self.claims.i.next = self.beats.val();
        self.claimed.next = 0.into();
        if self.ar_write.val() {
            self.claimed.next = self.claims.o.val();
        }
        self.given.next = 0.into();
        if self.r_valid.val() & self.r_take.val() {
            self.given.next = self.one8.val();
        }
        self.credit.reset.next = self.reset.val();
        self.credit.enable.next = true;
        self.credit.d.next = self.credit.q.val() - self.claimed.val() + self.given.val();

        // What comes while nothing waits shows at once, and waits only if it is not taken.
        self.r_come.next.data = self.m.rdata.val();
        self.r_come.next.response = self.m.rresp.val();
        self.r_come.next.last = self.m.rlast.val();
        self.r.data_in.next = self.r_come.val();
        self.r.write.next = self.m.rvalid.val() & !(self.r.empty.val() & self.r_take.val());
        self.r.read.next = self.r_take.val();
        self.m.rready.next = true;
        self.r_valid.next = !self.r.empty.val() | self.m.rvalid.val();
        self.r_beat.next = self.r.data_out.val();
        if self.r.empty.val() {
            self.r_beat.next = self.r_come.val();
        }

        self.b_come.next.id = self.m.bid.val();
        self.b_come.next.response = self.m.bresp.val();
        self.b.data_in.next = self.b_come.val();
        self.b.write.next = self.m.bvalid.val() & !(self.b.empty.val() & self.b_take.val());
        self.b.read.next = self.b_take.val();
        self.m.bready.next = !self.b.full.val();
        self.b_valid.next = !self.b.empty.val() | self.m.bvalid.val();
        self.b_answer.next = self.b.data_out.val();
        if self.b.empty.val() {
            self.b_answer.next = self.b_come.val();
        }
    }
}

/// Puts the memory behind two AXI4 ports, by the mapping of [`nearpm_interface::memory_ports`].
///
/// Guarantees:
/// - Reads are answered in the order in which they were asked, whichever port is faster, because a
///   unit asks for lines of both ports with one identifier. Towards memory all reads have the
///   identifier 0, so that each port keeps the order, too: the oldest read is always the next of
///   its port, and neither port starves.
/// - Read data of a port is always taken: a read passes only while there is room for it. So no
///   memory has a reason to hold writes back until the other port has answered, and the ports
///   cannot wait for each other in a circle.
/// - Data of writes goes where its address went: the ports of the addresses that were taken wait in
///   a queue, and a beat passes only when its own address has. Both are offered to a port
///   independently, as AXI asks for.
/// - Answers to writes keep their identifiers and come in the order of each port; the ports take
///   turns.
/// - An offer that is not taken stays as it is. What is offered follows from no `ready`, and
///   `ready` from registers and, in front, from the port of the address.
///
/// Whoever counts bursts in front of this unit counts right: a burst is taken here once, and is
/// answered here only when its port has answered it. So
/// [`MemoryPort`](super::memory_port::MemoryPort)'s `quiet` needs to know nothing of this unit, and
/// an answer to a write says that the memory has it.
///
/// Bound: one address of a direction, one beat of data each way and one answer a cycle. An address
/// or a beat that is taken is at its port in the next cycle; read data and answers pass in the
/// cycle in which they come, when it is their turn and none waits. At most 64 reads are
/// outstanding, and 128 lines of them at a port. Five LUT levels between registers.
#[derive(LogicBlock, Default, Ports)]
pub struct MemorySplit {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high.
    pub reset: Signal<In, Bit>,
    /// The master: bursts of whole lines, none across a multiple of the interleave.
    pub s: AxiSlave<40, 512, 64, 6>,
    /// The ports.
    pub m: [AxiMaster<40, 512, 64, 6>; 2],

    lane: [Lane; 2],
    ar_place: PortOfAddress,
    aw_place: PortOfAddress,
    /// Reads in the order in which they were asked.
    turns: Fifo<Turn, 6, 7>,
    /// Ports of the writes whose data is not complete, in order.
    targets: Fifo<Bits<1>, 4, 5>,
    /// The port whose answer goes first when both have one.
    b_turn: Register<Bit>,

    ar_full: Signal<Local, Bit>,
    aw_full: Signal<Local, Bit>,
    w_full: Signal<Local, Bit>,
    ar_go: Signal<Local, Bit>,
    aw_go: Signal<Local, Bit>,
    w_go: Signal<Local, Bit>,
    ar_request: Signal<Local, Request>,
    aw_request: Signal<Local, Request>,
    w_beat: Signal<Local, WriteBeat>,
    target: Signal<Local, Bits<1>>,
    r_port: Signal<Local, Bits<1>>,
    r_valid: Signal<Local, Bit>,
    r_beat: Signal<Local, ReadBeat>,
    b_second: Signal<Local, Bit>,
    b_answer: Signal<Local, Answer>,
}

impl Logic for MemorySplit {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, turns, targets, b_turn);
        self.turns.reset.next = self.reset.val();
        self.targets.reset.next = self.reset.val();
        self.b_turn.reset.next = self.reset.val();
        for i in 0..2 {
            AxiMaster::<40, 512, 64, 6>::link(&mut self.m[i], &mut self.lane[i].m);
            self.lane[i].clock.next = self.clock.val();
            self.lane[i].reset.next = self.reset.val();
        }

        // Addresses and data of writes, each to its port.
        self.ar_place.address.next = self.s.araddr.val();
        self.aw_place.address.next = self.s.awaddr.val();
        self.target.next = self.targets.data_out.val();
        self.ar_full.next = self.turns.full.val();
        self.aw_full.next = self.targets.full.val();
        self.w_full.next = self.targets.empty.val();
        for i in 0..2 {
            if self.lane[i].ar_full.val() & (self.ar_place.port.val().index() == i) {
                self.ar_full.next = true;
            }
            if self.lane[i].aw_full.val() & (self.aw_place.port.val().index() == i) {
                self.aw_full.next = true;
            }
            if self.lane[i].w_full.val() & (self.target.val().index() == i) {
                self.w_full.next = true;
            }
        }
        self.s.arready.next = !self.ar_full.val();
        self.s.awready.next = !self.aw_full.val();
        self.s.wready.next = !self.w_full.val();
        self.ar_go.next = self.s.arvalid.val() & !self.ar_full.val();
        self.aw_go.next = self.s.awvalid.val() & !self.aw_full.val();
        self.w_go.next = self.s.wvalid.val() & !self.w_full.val();
        self.turns.write.next = self.ar_go.val();
        self.turns.data_in.next.port = self.ar_place.port.val();
        self.turns.data_in.next.id = self.s.arid.val();
        self.targets.write.next = self.aw_go.val();
        self.targets.data_in.next = self.aw_place.port.val();
        self.targets.read.next = self.w_go.val() & self.s.wlast.val();
        self.ar_request.next.id = 0.into();
        self.ar_request.next.address = self.ar_place.there.val();
        self.ar_request.next.length = self.s.arlen.val();
        self.aw_request.next.id = self.s.awid.val();
        self.aw_request.next.address = self.aw_place.there.val();
        self.aw_request.next.length = self.s.awlen.val();
        self.w_beat.next.data = self.s.wdata.val();
        self.w_beat.next.strobes = self.s.wstrb.val();
        self.w_beat.next.last = self.s.wlast.val();
        for i in 0..2 {
            self.lane[i].ar_write.next = self.ar_go.val() & (self.ar_place.port.val().index() == i);
            self.lane[i].ar_request.next = self.ar_request.val();
            self.lane[i].aw_write.next = self.aw_go.val() & (self.aw_place.port.val().index() == i);
            self.lane[i].aw_request.next = self.aw_request.val();
            self.lane[i].w_write.next = self.w_go.val() & (self.target.val().index() == i);
            self.lane[i].w_beat.next = self.w_beat.val();
        }

        // Read data, in the order of the reads.
        self.r_port.next = self.turns.data_out.val().port;
        self.r_valid.next = false;
        self.r_beat.next = self.lane[0].r_beat.val();
        for i in 0..2 {
            self.lane[i].r_take.next = false;
            if self.r_port.val().index() == i {
                self.r_valid.next = !self.turns.empty.val() & self.lane[i].r_valid.val();
                self.r_beat.next = self.lane[i].r_beat.val();
                self.lane[i].r_take.next = !self.turns.empty.val() & self.s.rready.val();
            }
        }
        self.s.rvalid.next = self.r_valid.val();
        self.s.rid.next = self.turns.data_out.val().id;
        self.s.rdata.next = self.r_beat.val().data;
        self.s.rresp.next = self.r_beat.val().response;
        self.s.rlast.next = self.r_beat.val().last;
        self.turns.read.next = self.r_valid.val() & self.s.rready.val() & self.r_beat.val().last;

        // Answers to writes. One that is offered and not taken keeps the turn.
        self.b_second.next = self.lane[1].b_valid.val() & (self.b_turn.q.val() | !self.lane[0].b_valid.val());
        self.b_answer.next = self.lane[0].b_answer.val();
        if self.b_second.val() {
            self.b_answer.next = self.lane[1].b_answer.val();
        }
        self.b_turn.enable.next = self.lane[0].b_valid.val() | self.lane[1].b_valid.val();
        self.b_turn.d.next = self.b_second.val() != self.s.bready.val();
        self.s.bvalid.next = self.lane[0].b_valid.val() | self.lane[1].b_valid.val();
        self.s.bid.next = self.b_answer.val().id;
        self.s.bresp.next = self.b_answer.val().response;
        self.lane[0].b_take.next = self.s.bready.val() & !self.b_second.val();
        self.lane[1].b_take.next = self.s.bready.val() & self.b_second.val();
    }
}
