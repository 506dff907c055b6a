//! Completion records into host memory.

use crate::bundles::AxiWriteMaster;
use crate::cells::{Concat, Fifo, Widen};
use crate::dut::Ports;
use crate::dut::{PortValue, Value};
use nearpm_interface::completion::Completion;
use nearpm_interface::geometry::{COMMAND_PAGES, LINE};
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// What a completion record says.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct, PortValue)]
pub struct Record {
    /// Tag of the command.
    pub tag: Bits<32>,
    /// Status code.
    pub status: Bits<8>,
    /// Page that the command came from.
    pub page: Bits<2>,
    /// Order number; 0 for a command that was refused before it was numbered.
    pub order: Bits<64>,
}

/// A line that repeats one `Completion` in each of its quarters, combinationally.
#[derive(LogicBlock, Default)]
pub struct CompletionLine {
    /// The record.
    pub record: Signal<In, Record>,
    /// Lap of the ring.
    pub lap: Signal<In, Bits<16>>,
    /// Four times the same 16 bytes.
    pub line: Signal<Out, Bits<512>>,
}

impl Logic for CompletionLine {
    fn update(&mut self) {
        let record = self.record.val();
        let completion = Completion {
            tag: record.tag.to_u64() as u32,
            status: record.status.to_u64() as u8,
            page: record.page.to_u64() as u8,
            lap: self.lap.val().to_u64() as u16,
            order: record.order.to_u64(),
        };
        let bytes = completion.to_bytes().repeat(LINE / Completion::SIZE);
        self.line.next = PortValue::from_value(Value::from_bytes(&bytes));
    }

    fn connect(&mut self) {
        self.line.connect();
    }

    fn hdl(&self) -> Verilog {
        let bits = Completion::SIZE * 8;
        let mut code = format!("reg [{}:0] one;\nalways @(*) begin\n    one = {bits}'d0;\n", bits - 1);
        let fields = [
            ("tag", 32, "record[31:0]"),
            ("status", 8, "record[39:32]"),
            ("page", 2, "record[41:40]"),
            ("lap", 16, "lap"),
            ("order", 64, "record[105:42]"),
        ];
        for (name, width, value) in fields {
            let field = Completion::LAYOUT.fields.iter().find(|f| f.name == name);
            let low = field.expect("a field of the record").offset * 8;
            code += &format!("    one[{}:{low}] = {value};\n", low + width - 1);
        }
        code += &format!("    line = {{{}{{one}}}};\nend\n", LINE / Completion::SIZE);
        Verilog::Custom(code)
    }
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Phase {
    Idle,
    Place,
    Send,
}

/// Queues completion records and writes them into the ring of their page.
///
/// Guarantees: records of a page lie in its ring in the order in which they were taken; each is one
/// beat of 64 bytes of which 16 are strobed. Records of a page without a ring vanish. Bound: one
/// record in three cycles; with `quiesce` high a record never waits, and is dropped where the queue
/// is full, so that a save does not hang on the host.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct CompletionWriter {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high.
    pub reset: Signal<In, Bit>,
    /// Pulse: disables all rings.
    pub clear: Signal<In, Bit>,
    /// A save is under way.
    pub quiesce: Signal<In, Bit>,
    /// A record is here.
    pub record_valid: Signal<In, Bit>,
    /// The record is taken.
    pub record_ready: Signal<Out, Bit>,
    /// The record.
    pub record: Signal<In, Record>,
    /// Bus address of the ring of each page, 64-byte aligned.
    pub ring_base: [Signal<In, Bits<64>>; COMMAND_PAGES],
    /// log2 of the records of each ring; above 12 counts as 12.
    pub ring_size: [Signal<In, Bits<4>>; COMMAND_PAGES],
    /// Pulse for each page: start the ring and enable it.
    pub ring_start: [Signal<In, Bit>; COMMAND_PAGES],
    /// Host memory.
    pub axi: AxiWriteMaster<64, 512, 64, 1>,
    /// Pulse: host memory refused a record, which nobody will read.
    pub ev_lost: Signal<Out, Bit>,

    queue: Fifo<Record, 6, 7>,
    phase: DFF<Phase>,
    record_now: DFF<Record>,
    enabled: [DFF<Bit>; COMMAND_PAGES],
    index: [DFF<Bits<12>>; COMMAND_PAGES],
    lap: [DFF<Bits<16>>; COMMAND_PAGES],
    base_now: DFF<Bits<64>>,
    size_now: DFF<Bits<4>>,
    index_now: DFF<Bits<12>>,
    lap_now: DFF<Bits<16>>,
    enabled_now: DFF<Bit>,
    address: DFF<Bits<64>>,
    data: DFF<Bits<512>>,
    strobes: DFF<Bits<64>>,
    address_done: DFF<Bit>,
    data_done: DFF<Bit>,
    page_now: Signal<Local, Bits<2>>,
    last: Signal<Local, Bits<12>>,
    wrap: Signal<Local, Bit>,
    line: CompletionLine,
    scaled: Concat<12, 4, 16>,
    offset: Widen<16, 64>,
    place: Signal<Local, Bits<64>>,
    aligned: Concat<58, 6, 64>,
    quarter: Concat<2, 4, 6>,
    #[default(Constant::new(((1u64 << Completion::SIZE) - 1).into()))]
    record_strobes: Constant<Bits<64>>,
    #[default(Constant::new(Bits::<12>::mask()))]
    ones: Constant<Bits<12>>,
    #[default(Constant::new(1.into()))]
    one12: Constant<Bits<12>>,
    #[default(Constant::new(1.into()))]
    one16: Constant<Bits<16>>,
    #[default(Constant::new(0.into()))]
    zero12: Constant<Bits<12>>,
    #[default(Constant::new(0.into()))]
    zero4: Constant<Bits<4>>,
    #[default(Constant::new(0.into()))]
    zero6: Constant<Bits<6>>,
    #[default(Constant::new(u64::from(LINE.trailing_zeros()).into()))]
    line_size: Constant<Bits<3>>,
    #[default(Constant::new(1.into()))]
    incrementing: Constant<Bits<2>>,
}

impl Logic for CompletionWriter {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            phase,
            record_now,
            base_now,
            size_now,
            index_now,
            lap_now,
            enabled_now,
            address,
            data,
            strobes,
            address_done,
            data_done
        );
        clock!(self, clock, queue);
        for i in 0..COMMAND_PAGES {
            self.enabled[i].clock.next = self.clock.val();
            self.index[i].clock.next = self.clock.val();
            self.lap[i].clock.next = self.clock.val();
            self.enabled[i].d.next = self.enabled[i].q.val();
            self.index[i].d.next = self.index[i].q.val();
            self.lap[i].d.next = self.lap[i].q.val();
        }

        self.queue.reset.next = self.reset.val();
        self.queue.data_in.next = self.record.val();
        self.queue.write.next = self.record_valid.val() & !self.queue.full.val();
        self.queue.read.next = false;
        self.record_ready.next = !self.queue.full.val() | self.quiesce.val();

        self.axi.awid.next = false.into();
        self.axi.awaddr.next = self.address.q.val();
        self.axi.awlen.next = 0.into();
        self.axi.awsize.next = self.line_size.val();
        self.axi.awburst.next = self.incrementing.val();
        self.axi.awvalid.next = (self.phase.q.val() == Phase::Send) & !self.address_done.q.val();
        self.axi.wdata.next = self.data.q.val();
        self.axi.wstrb.next = self.strobes.q.val();
        self.axi.wlast.next = true;
        self.axi.wvalid.next = (self.phase.q.val() == Phase::Send) & !self.data_done.q.val();
        self.axi.bready.next = true;
        self.ev_lost.next = self.axi.bvalid.val() & self.axi.bresp.val().get_bit(1);

        // Place of the record in its ring.
        self.page_now.next = self.record_now.q.val().page;
        self.last.next = self.ones.val() << self.size_now.q.val();
        self.wrap.next = (self.index_now.q.val() | self.last.val()) == self.ones.val();
        self.scaled.high.next = self.index_now.q.val();
        self.scaled.low.next = self.zero4.val();
        self.offset.i.next = self.scaled.o.val();
        self.place.next = self.base_now.q.val() + self.offset.o.val();
        self.aligned.high.next = self.place.val().get_bits::<58>(6);
        self.aligned.low.next = self.zero6.val();
        self.quarter.high.next = self.index_now.q.val().get_bits::<2>(0);
        self.quarter.low.next = self.zero4.val();
        self.line.record.next = self.record_now.q.val();
        self.line.lap.next = self.lap_now.q.val();

        match self.phase.q.val() {
            Phase::Idle => {
                self.record_now.d.next = self.queue.data_out.val();
                for i in 0..COMMAND_PAGES {
                    if self.queue.data_out.val().page.index() == i {
                        self.base_now.d.next = self.ring_base[i].val();
                        self.size_now.d.next = self.ring_size[i].val();
                        self.index_now.d.next = self.index[i].q.val();
                        self.lap_now.d.next = self.lap[i].q.val();
                        self.enabled_now.d.next = self.enabled[i].q.val();
                    }
                }
                if !self.queue.empty.val() {
                    self.queue.read.next = true;
                    self.phase.d.next = Phase::Place;
                }
            }
            Phase::Place => {
                self.address.d.next = self.aligned.o.val();
                self.data.d.next = self.line.line.val();
                self.strobes.d.next = self.record_strobes.val() << self.quarter.o.val();
                self.address_done.d.next = false;
                self.data_done.d.next = false;
                self.phase.d.next = Phase::Idle;
                if self.enabled_now.q.val() {
                    self.phase.d.next = Phase::Send;
                }
                for i in 0..COMMAND_PAGES {
                    if self.page_now.val().index() == i {
                        self.index[i].d.next = self.index_now.q.val() + self.one12.val();
                        if self.wrap.val() {
                            self.index[i].d.next = self.zero12.val();
                            self.lap[i].d.next = self.lap_now.q.val() + self.one16.val();
                        }
                    }
                }
            }
            Phase::Send => {
                if self.axi.awready.val() {
                    self.address_done.d.next = true;
                }
                if self.axi.wready.val() {
                    self.data_done.d.next = true;
                }
                if (self.address_done.q.val() | self.axi.awready.val())
                    & (self.data_done.q.val() | self.axi.wready.val())
                {
                    self.phase.d.next = Phase::Idle;
                }
            }
            _ => {
                self.phase.d.next = Phase::Idle;
            }
        }

        for i in 0..COMMAND_PAGES {
            if self.ring_start[i].val() {
                self.enabled[i].d.next = true;
                self.index[i].d.next = self.zero12.val();
                self.lap[i].d.next = self.one16.val();
            }
            if self.clear.val() | self.reset.val() {
                self.enabled[i].d.next = false;
            }
        }
        if self.reset.val() {
            self.phase.d.next = Phase::Idle;
        }
    }
}
