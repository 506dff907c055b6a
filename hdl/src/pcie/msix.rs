//! MSI-X vectors.

use crate::cells::clocked;
use crate::dut::Ports;
use crate::dut::{PortValue, Value};
use nearpm_interface::geometry::{COMMAND_PAGES, LINE, MSIX_PENDING_OFFSET};
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// The table of vectors, one a command page, and their pending bits (PCI local bus specification
/// 3.0, 6.8.2).
///
/// A vector that fires stays pending until it is sent, which waits while it or the function is
/// masked. While MSI-X is disabled nothing is pending. Bound: one write and one event of each kind
/// a cycle; what is read shows the state before.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct MsixTable {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: all vectors masked, nothing pending.
    pub reset: Signal<In, Bit>,
    /// MSI-X is enabled.
    pub enable: Signal<In, Bit>,
    /// All vectors are masked.
    pub function_mask: Signal<In, Bit>,
    /// Write a line of the BAR.
    pub write: Signal<In, Bit>,
    /// Which line is written or read.
    pub line: Signal<In, Bits<6>>,
    /// The bytes.
    pub data: Signal<In, Bits<512>>,
    /// Which of them.
    pub strobes: Signal<In, Bits<64>>,
    /// The line as it reads.
    pub read: Signal<Out, Bits<512>>,
    /// Pulse: a record of a page was sent.
    pub fire: Signal<In, Bit>,
    /// The page.
    pub page: Signal<In, Bits<2>>,
    /// A message is to be sent.
    pub send: Signal<Out, Bit>,
    /// Its address.
    pub address: Signal<Out, Bits<64>>,
    /// Its data.
    pub message: Signal<Out, Bits<32>>,
    /// Its vector.
    pub vector: Signal<Out, Bits<2>>,
    /// Pulse: the message of `sent_vector` was sent.
    pub sent: Signal<In, Bit>,
    /// Which.
    pub sent_vector: Signal<In, Bits<2>>,
    #[default(masked())]
    _table: Value,
    #[default(0)]
    _pending: u64,
}

/// Bits of a vector.
const VECTOR: usize = 128;
/// The line of the pending bits.
const PENDING_LINE: u64 = (MSIX_PENDING_OFFSET / LINE) as u64;

/// The table after a reset: every vector masked.
fn masked() -> Value {
    (0..COMMAND_PAGES).fold(Value::ZERO, |table, vector| table.with_slice(vector * VECTOR + 96, 1, 1u64))
}

impl MsixTable {
    fn edge(&mut self) {
        if self.reset.val() {
            self._table = masked();
            self._pending = 0;
            return;
        }
        if self.sent.val() {
            self._pending &= !(1 << self.sent_vector.val().to_u64());
        }
        if self.fire.val() {
            self._pending |= 1 << self.page.val().to_u64();
        }
        if !self.enable.val() {
            self._pending = 0;
        }
        if self.write.val() && self.line.val().to_u64() == 0 {
            let (data, strobes) = (self.data.val().to_value(), self.strobes.val().to_u64());
            for byte in (0..LINE).filter(|byte| strobes >> byte & 1 == 1) {
                self._table = self._table.with_slice(byte * 8, 8, data.slice(byte * 8, 8));
            }
        }
    }
}

impl Logic for MsixTable {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            self.edge();
        }
        self.read.next = match self.line.val().to_u64() {
            0 => PortValue::from_value(self._table),
            PENDING_LINE => PortValue::from_value(self._pending.into()),
            _ => 0.into(),
        };
        let open = |vector: &usize| {
            self._pending >> vector & 1 == 1 && !self._table.bit(vector * VECTOR + 96) && !self.function_mask.val()
        };
        let next = (0..COMMAND_PAGES).find(open);
        let vector = next.unwrap_or(0);
        self.send.next = next.is_some();
        self.vector.next = (vector as u64).into();
        self.address.next = PortValue::from_value(self._table.slice(vector * VECTOR, 64));
        self.message.next = PortValue::from_value(self._table.slice(vector * VECTOR + 64, 32));
    }

    fn connect(&mut self) {
        self.read.connect();
        self.send.connect();
        self.address.connect();
        self.message.connect();
        self.vector.connect();
    }

    fn hdl(&self) -> Verilog {
        let bits: Vec<_> = masked().words()[..LINE / 4].iter().rev().map(|word| format!("{word:08x}")).collect();
        let masked = format!("512'h{}", bits.concat());
        Verilog::Custom(format!(
            "reg [511:0] table_now;\n\
             reg [3:0] pending;\n\
             initial begin table_now = {masked}; pending = 4'd0; end\n\
             wire [3:0] open = pending & ~{{table_now[480], table_now[352], table_now[224], table_now[96]}} & {{4{{~function_mask}}}};\n\
             integer n;\n\
             always @(*) begin\n\
             \x20   read = line == 6'd0 ? table_now : line == 6'd{PENDING_LINE} ? {{508'd0, pending}} : 512'd0;\n\
             \x20   send = |open;\n\
             \x20   vector = open[0] ? 2'd0 : open[1] ? 2'd1 : open[2] ? 2'd2 : open[3] ? 2'd3 : 2'd0;\n\
             \x20   case (vector)\n\
             \x20       2'd0: begin address = table_now[63:0]; message = table_now[95:64]; end\n\
             \x20       2'd1: begin address = table_now[191:128]; message = table_now[223:192]; end\n\
             \x20       2'd2: begin address = table_now[319:256]; message = table_now[351:320]; end\n\
             \x20       default: begin address = table_now[447:384]; message = table_now[479:448]; end\n\
             \x20   endcase\n\
             end\n\
             always @(posedge clock) begin\n\
             \x20   if (reset) begin table_now <= {masked}; pending <= 4'd0; end\n\
             \x20   else begin\n\
             \x20       for (n = 0; n < 4; n = n + 1)\n\
             \x20           if (~enable) pending[n] <= 1'b0;\n\
             \x20           else if (fire & (page == n[1:0])) pending[n] <= 1'b1;\n\
             \x20           else if (sent & (sent_vector == n[1:0])) pending[n] <= 1'b0;\n\
             \x20       for (n = 0; n < 64; n = n + 1)\n\
             \x20           if (write & strobes[n] & (line == 6'd0)) table_now[8 * n +: 8] <= data[8 * n +: 8];\n\
             \x20   end\n\
             end\n"
        ))
    }

    fn timing(&self) -> Vec<rust_hdl::core::timing::TimingInfo> {
        let inputs = ["reset", "enable", "write", "line", "data", "strobes", "fire", "page", "sent", "sent_vector"];
        clocked("msix_table", &inputs, &["read", "send", "address", "message", "vector"])
    }
}
