//! Counters of the command pages, as they are read, and the byte merge of a slot.

use crate::dut::Ports;
use nearpm_interface::completion::PageStatus;
use nearpm_interface::geometry::{COMMAND_PAGES, LINE};
use rust_hdl::prelude::*;

/// Puts the bytes that the strobes select over the old ones, combinationally.
#[derive(LogicBlock, Default, Ports)]
pub struct MergeBytes {
    /// The old bytes.
    pub old: Signal<In, Bits<512>>,
    /// The new bytes.
    pub new_bytes: Signal<In, Bits<512>>,
    /// Bytes to take from `new_bytes`, one bit each.
    pub strobes: Signal<In, Bits<64>>,
    /// The outcome.
    pub o: Signal<Out, Bits<512>>,
}

impl Logic for MergeBytes {
    fn update(&mut self) {
        let (old, new, strobes) = (self.old.val(), self.new_bytes.val(), self.strobes.val());
        let bits: [bool; 512] =
            std::array::from_fn(|i| if strobes.get_bit(i / 8) { new.get_bit(i) } else { old.get_bit(i) });
        self.o.next = Bits::Long(bits.into());
    }
    fn connect(&mut self) {
        self.o.connect();
    }
    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!(
            "integer i;\nalways @(*) begin\n    for (i = 0; i < {LINE}; i = i + 1)\n        o[8*i +: 8] = strobes[i] ? new_bytes[8*i +: 8] : old[8*i +: 8];\nend\n"
        ))
    }
}

/// Counters of the pages.
///
/// Guarantees: `line` is the status line of `read_page` with everything that was counted before
/// this cycle. Of a refusal and a failure in one cycle and page the failure is the last bad one.
#[derive(LogicBlock, Default, Ports)]
pub struct PageTable {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: all counters are 0.
    pub reset: Signal<In, Bit>,
    /// Pulse: counts `accepted`.
    pub accepted_valid: Signal<In, Bit>,
    /// The page.
    pub accepted_page: Signal<In, Bits<2>>,
    /// Pulse: counts `retired`.
    pub retired_valid: Signal<In, Bit>,
    /// The page.
    pub retired_page: Signal<In, Bits<2>>,
    /// Pulse: counts `refused`.
    pub refused_valid: Signal<In, Bit>,
    /// The page.
    pub refused_page: Signal<In, Bits<2>>,
    /// Tag of the command.
    pub refused_tag: Signal<In, Bits<32>>,
    /// Its status.
    pub refused_status: Signal<In, Bits<8>>,
    /// Pulse: counts `failed`.
    pub failed_valid: Signal<In, Bit>,
    /// The page.
    pub failed_page: Signal<In, Bits<2>>,
    /// Tag of the command.
    pub failed_tag: Signal<In, Bits<32>>,
    /// Its status.
    pub failed_status: Signal<In, Bits<8>>,
    /// Pulse: counts `dropped`.
    pub dropped_valid: Signal<In, Bit>,
    /// The page.
    pub dropped_page: Signal<In, Bits<2>>,
    /// Order number of the last numbered item.
    pub order: Signal<In, Bits<64>>,
    /// Mapping entries that are latched, a bit each.
    pub latched: Signal<In, Bits<16>>,
    /// Mapping entries with a command that waits, may have to wait, or has waited for other
    /// devices, a bit each.
    pub parked: Signal<In, Bits<16>>,
    /// Stores that memory refused.
    pub stores_lost: Signal<In, Bits<32>>,
    /// Page whose line is wanted.
    pub read_page: Signal<In, Bits<2>>,
    /// `PageStatus`, combinationally.
    pub line: Signal<Out, Bits<512>>,
    _pages: [PageStatus; COMMAND_PAGES],
}

impl PageTable {
    fn edge(&mut self) {
        let pages = &mut self._pages;
        let count = |valid: bool, counter: &mut u32| *counter = counter.wrapping_add(u32::from(valid));
        count(self.accepted_valid.val(), &mut pages[self.accepted_page.val().index()].accepted);
        count(self.retired_valid.val(), &mut pages[self.retired_page.val().index()].retired);
        count(self.refused_valid.val(), &mut pages[self.refused_page.val().index()].refused);
        count(self.failed_valid.val(), &mut pages[self.failed_page.val().index()].failed);
        count(self.dropped_valid.val(), &mut pages[self.dropped_page.val().index()].dropped);
        if self.refused_valid.val() {
            let page = &mut pages[self.refused_page.val().index()];
            page.last_bad_tag = self.refused_tag.val().to_u64() as u32;
            page.last_bad_status = self.refused_status.val().to_u64() as u8;
        }
        if self.failed_valid.val() {
            let page = &mut pages[self.failed_page.val().index()];
            page.last_bad_tag = self.failed_tag.val().to_u64() as u32;
            page.last_bad_status = self.failed_status.val().to_u64() as u8;
        }
        if self.reset.val() {
            *pages = Default::default();
        }
    }
}

/// Counters in the order of `PageStatus`, with their bits.
const COUNTERS: [&str; 5] = ["accepted", "retired", "refused", "failed", "dropped"];

impl Logic for PageTable {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            self.edge();
        }
        let page = PageStatus {
            order: self.order.val().to_u64(),
            latched: self.latched.val().to_u64() as u16,
            parked: self.parked.val().to_u64() as u16,
            stores_lost: self.stores_lost.val().to_u64() as u32,
            ..self._pages[self.read_page.val().index()]
        };
        let bytes = page.to_bytes();
        let bits: [bool; 512] = std::array::from_fn(|i| bytes[i / 8] >> (i % 8) & 1 == 1);
        self.line.next = Bits::Long(bits.into());
    }

    fn connect(&mut self) {
        self.line.connect();
    }

    fn hdl(&self) -> Verilog {
        let offset = |name: &str| {
            let field = PageStatus::LAYOUT.fields.iter().find(|f| f.name == name).expect("a field of the line");
            (8 * field.offset, 8 * field.size)
        };
        let last = COMMAND_PAGES - 1;
        let each = |f: &dyn Fn(&str) -> String| COUNTERS.iter().map(|c| f(c)).collect::<String>();
        let declare = each(&|c| format!("reg [31:0] n_{c} [0:{last}];\n"));
        let start = each(&|c| format!("n_{c}[start] = 0; "));
        let clear = each(&|c| format!("n_{c}[i] <= 0; "));
        let step = each(&|c| format!("    if ({c}_valid) n_{c}[{c}_page] <= n_{c}[{c}_page] + 32'd1;\n"));
        let show = each(&|c| {
            let (low, bits) = offset(c);
            format!("    line[{low} +: {bits}] = n_{c}[read_page];\n")
        });
        let (tag, tag_bits) = offset("last_bad_tag");
        let (status, status_bits) = offset("last_bad_status");
        let (order, order_bits) = offset("order");
        let (latched, latched_bits) = offset("latched");
        let (parked, parked_bits) = offset("parked");
        let (lost, lost_bits) = offset("stores_lost");
        Verilog::Custom(format!(
            "{declare}reg [31:0] tag [0:{last}];\nreg [7:0] status [0:{last}];\ninteger start;\ninteger i;\n\
             initial for (start = 0; start <= {last}; start = start + 1) begin {start}tag[start] = 0; status[start] = 0; end\n\
             always @(*) begin\n    line = 512'd0;\n{show}\
             \x20   line[{tag} +: {tag_bits}] = tag[read_page];\n\
             \x20   line[{status} +: {status_bits}] = status[read_page];\n\
             \x20   line[{order} +: {order_bits}] = order;\n\
             \x20   line[{latched} +: {latched_bits}] = latched;\n\
             \x20   line[{parked} +: {parked_bits}] = parked;\n\
             \x20   line[{lost} +: {lost_bits}] = stores_lost;\n\
             end\n\
             always @(posedge clock) begin\n{step}\
             \x20   if (refused_valid) begin tag[refused_page] <= refused_tag; status[refused_page] <= refused_status; end\n\
             \x20   if (failed_valid) begin tag[failed_page] <= failed_tag; status[failed_page] <= failed_status; end\n\
             \x20   if (reset) for (i = 0; i <= {last}; i = i + 1) begin {clear}tag[i] <= 0; status[i] <= 0; end\n\
             end\n"
        ))
    }

    fn timing(&self) -> Vec<TimingInfo> {
        let inputs = ["reset", "accepted_valid", "retired_valid", "refused_valid", "failed_valid", "dropped_valid"];
        crate::cells::clocked("page_table", &inputs, &[])
    }
}
