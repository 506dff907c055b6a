//! Completion records and interrupts on their way to the host.

use super::header::request_type::MEMORY_WRITE;
use crate::bundles::AxiWriteSlave;
use crate::cells::{Concat, Widen};
use crate::dut::Ports;
use crate::dut::{PortValue, Value};
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// A memory write of up to four Dwords as one beat of the requester request stream (PG213,
/// requester request descriptor), combinationally.
#[derive(LogicBlock, Default, Ports)]
pub struct WritePacket {
    /// Byte address; a multiple of 4.
    pub address: Signal<In, Bits<64>>,
    /// Four Dwords, else one.
    pub four: Signal<In, Bit>,
    /// The Dwords, the first lowest.
    pub payload: Signal<In, Bits<128>>,
    /// The beat.
    pub data: Signal<Out, Bits<512>>,
    /// Its Dwords that count.
    pub keep: Signal<Out, Bits<16>>,
    /// What goes beside it: byte enables, begin and end of the packet.
    pub user: Signal<Out, Bits<137>>,
}

impl Logic for WritePacket {
    fn update(&mut self) {
        let four = self.four.val();
        let dwords = if four { 4usize } else { 1 };
        let address = self.address.val().to_u64() & !3;
        let data = Value::from(address).with_slice(64, 11, dwords as u64).with_slice(75, 4, MEMORY_WRITE).with_slice(
            128,
            32 * dwords,
            self.payload.val().to_value().slice(0, 32 * dwords),
        );
        self.data.next = PortValue::from_value(data);
        self.keep.next = ((1u64 << (4 + dwords)) - 1).into();
        // First enables 3:0, last 11:8, is_sop[0] 20, is_eop[0] 26, is_eop0_ptr 31:28.
        let user = Value::from(0xf | if four { 0xf00 } else { 0 } | 1 << 20 | 1 << 26 | (3 + dwords as u64) << 28);
        self.user.next = PortValue::from_value(user);
    }

    fn connect(&mut self) {
        self.data.connect();
        self.keep.connect();
        self.user.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!(
            "wire [127:0] words = four ? payload : {{96'd0, payload[31:0]}};\n\
             always @(*) begin\n\
             \x20   data = {{256'd0, words, 49'd0, 4'd{MEMORY_WRITE}, four ? 11'd4 : 11'd1, address[63:2], 2'd0}};\n\
             \x20   keep = four ? 16'h00ff : 16'h001f;\n\
             \x20   user = {{105'd0, four ? 4'd7 : 4'd4, 1'd0, 1'b1, 5'd0, 1'b1, 8'd0, four ? 4'hf : 4'h0, 4'd0, 4'hf}};\n\
             end\n"
        ))
    }
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Phase {
    Idle,
    Record,
    Answer,
    Interrupt,
}

/// Writes completion records to host memory, and the message of a vector behind them.
///
/// Guarantees: a record and then the interrupt of its page leave on the same stream, and PCIe keeps
/// posted writes in order, so that the host finds the record that it is told of. Records wait for
/// the stream, and are dropped while the function may not be bus master or the link is down;
/// interrupts wait for both. A record that was taken is answered whatever becomes of the link.
/// Bound: a record in three cycles.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct Requester {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high.
    pub reset: Signal<In, Bit>,
    /// The link is down.
    pub link_down: Signal<In, Bit>,
    /// The function may write host memory.
    pub bus_master: Signal<In, Bit>,
    /// The records: 16 bytes in one beat.
    pub axi: AxiWriteSlave<64, 512, 64, 1>,
    /// Pulse: a record of `page` was sent.
    pub fire: Signal<Out, Bit>,
    /// Its page.
    pub page: Signal<Out, Bits<2>>,
    /// An interrupt is to be sent.
    pub send: Signal<In, Bit>,
    /// Where to.
    pub address: Signal<In, Bits<64>>,
    /// What.
    pub message: Signal<In, Bits<32>>,
    /// Its vector.
    pub vector: Signal<In, Bits<2>>,
    /// Pulse: the interrupt of `sent_vector` was sent.
    pub sent: Signal<Out, Bit>,
    /// Which.
    pub sent_vector: Signal<Out, Bits<2>>,
    /// Requester requests.
    pub rq_tdata: Signal<Out, Bits<512>>,
    /// See PG213.
    pub rq_tkeep: Signal<Out, Bits<16>>,
    /// See PG213.
    pub rq_tuser: Signal<Out, Bits<137>>,
    /// Every packet is one beat.
    pub rq_tlast: Signal<Out, Bit>,
    /// A beat is here.
    pub rq_tvalid: Signal<Out, Bit>,
    /// It is taken.
    pub rq_tready: Signal<In, Bit>,

    phase: DFF<Phase>,
    may_send: Signal<Local, Bit>,
    takes: Signal<Local, Bit>,
    sending: Signal<Local, Bit>,
    target: DFF<Bits<64>>,
    payload: DFF<Bits<128>>,
    vector_now: DFF<Bits<2>>,
    id: DFF<Bits<1>>,
    quarter: Signal<Local, Bits<2>>,
    record: Signal<Local, Bits<128>>,
    low_address: Concat<2, 4, 6>,
    record_address: Concat<58, 6, 64>,
    wide_message: Widen<32, 128>,
    packet: WritePacket,
    #[default(Constant::new(0.into()))]
    zero4: Constant<Bits<4>>,
    #[default(Constant::new(0.into()))]
    okay: Constant<Bits<2>>,
    #[default(std::array::from_fn(|quarter| Constant::new((quarter as u64).into())))]
    quarters: [Constant<Bits<2>>; 4],
}

impl Logic for Requester {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, phase, target, payload, vector_now, id);
        // The record stands in the quarter of the line that is strobed.
        self.quarter.next = self.quarters[0].val();
        self.record.next = self.axi.wdata.val().get_bits::<128>(0);
        if self.axi.wstrb.val().get_bit(16) {
            self.quarter.next = self.quarters[1].val();
            self.record.next = self.axi.wdata.val().get_bits::<128>(128);
        }
        if self.axi.wstrb.val().get_bit(32) {
            self.quarter.next = self.quarters[2].val();
            self.record.next = self.axi.wdata.val().get_bits::<128>(256);
        }
        if self.axi.wstrb.val().get_bit(48) {
            self.quarter.next = self.quarters[3].val();
            self.record.next = self.axi.wdata.val().get_bits::<128>(384);
        }
        self.low_address.high.next = self.quarter.val();
        self.low_address.low.next = self.zero4.val();
        self.record_address.high.next = self.axi.awaddr.val().get_bits::<58>(6);
        self.record_address.low.next = self.low_address.o.val();
        self.wide_message.i.next = self.message.val();

        self.may_send.next = self.bus_master.val() & !self.link_down.val();
        // Not in reset, which would forget the record without an answer.
        self.takes.next =
            (self.phase.q.val() == Phase::Idle) & self.axi.awvalid.val() & self.axi.wvalid.val() & !self.reset.val();
        self.axi.awready.next = self.takes.val();
        self.axi.wready.next = self.takes.val();
        self.axi.bid.next = self.id.q.val();
        self.axi.bresp.next = self.okay.val();
        self.axi.bvalid.next = self.phase.q.val() == Phase::Answer;

        self.packet.address.next = self.target.q.val();
        self.packet.four.next = self.phase.q.val() == Phase::Record;
        self.packet.payload.next = self.payload.q.val();
        self.rq_tdata.next = self.packet.data.val();
        self.rq_tkeep.next = self.packet.keep.val();
        self.rq_tuser.next = self.packet.user.val();
        self.rq_tlast.next = true;
        self.rq_tvalid.next =
            ((self.phase.q.val() == Phase::Record) | (self.phase.q.val() == Phase::Interrupt)) & !self.link_down.val();
        self.sending.next = self.rq_tready.val() & !self.link_down.val();
        self.fire.next = (self.phase.q.val() == Phase::Record) & self.sending.val();
        // Byte 5 of a record is its page.
        self.page.next = self.payload.q.val().get_bits::<2>(40);
        self.sent.next = (self.phase.q.val() == Phase::Interrupt) & self.sending.val();
        self.sent_vector.next = self.vector_now.q.val();

        match self.phase.q.val() {
            Phase::Idle => {
                if self.takes.val() {
                    self.id.d.next = self.axi.awid.val();
                    self.target.d.next = self.record_address.o.val();
                    self.payload.d.next = self.record.val();
                    self.phase.d.next = Phase::Answer;
                    if self.may_send.val() {
                        self.phase.d.next = Phase::Record;
                    }
                } else if self.send.val() & self.may_send.val() {
                    self.target.d.next = self.address.val();
                    self.payload.d.next = self.wide_message.o.val();
                    self.vector_now.d.next = self.vector.val();
                    self.phase.d.next = Phase::Interrupt;
                }
            }
            Phase::Record => {
                if self.rq_tready.val() | self.link_down.val() {
                    self.phase.d.next = Phase::Answer;
                }
            }
            Phase::Answer => {
                if self.axi.bready.val() {
                    self.phase.d.next = Phase::Idle;
                }
            }
            Phase::Interrupt => {
                if self.rq_tready.val() | self.link_down.val() {
                    self.phase.d.next = Phase::Idle;
                }
            }
            _ => {
                self.phase.d.next = Phase::Idle;
            }
        }
        if self.reset.val() {
            self.phase.d.next = Phase::Idle;
        }
    }
}
