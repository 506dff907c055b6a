//! Cuts a run of lines into bursts.

use crate::cells::clocked;
use crate::dut::Ports;
use rust_hdl::prelude::*;

/// Longest burst of a unit, in lines. Bursts end at multiples of it, so none crosses 4 KiB.
pub const BURST_LINES: u64 = 16;

/// The bursts of a run of lines, one after the other.
///
/// A burst ends where the run does or at a multiple of [`BURST_LINES`] lines, whichever comes
/// first. Each burst is cut while the one before it is taken, so that the outputs are registers and
/// a run is ready in the cycle after its `load`.
#[derive(LogicBlock, Default, Ports)]
pub struct Burst {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Begin a run; stronger than `step`.
    pub load: Signal<In, Bit>,
    /// Its first line.
    pub from: Signal<In, Bits<34>>,
    /// Its lines, 1 to 4097.
    pub count: Signal<In, Bits<13>>,
    /// Go on to the next burst; not behind the last.
    pub step: Signal<In, Bit>,
    /// First line of the burst.
    pub line: Signal<Out, Bits<34>>,
    /// Lines of the burst, 1 to 16.
    pub lines: Signal<Out, Bits<7>>,
    /// Lines of the burst less one.
    pub beats: Signal<Out, Bits<6>>,
    /// Whether the burst is the run's last.
    pub last: Signal<Out, Bit>,
    _left: u64,
}

impl Logic for Burst {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            let (line, lines) = (self.line.val().to_u64(), self.lines.val().to_u64());
            let run = if self.load.val() {
                Some((self.from.val().to_u64(), self.count.val().to_u64()))
            } else {
                self.step.val().then(|| (line.wrapping_add(lines) & ((1 << 34) - 1), self._left.saturating_sub(lines)))
            };
            if let Some((line, left)) = run {
                let lines = left.min(BURST_LINES - line % BURST_LINES);
                self.line.next = line.into();
                self.lines.next = lines.into();
                self.beats.next = (lines.wrapping_sub(1) & 31).into();
                self.last.next = lines == left;
                self._left = left;
            }
        }
    }

    fn connect(&mut self) {
        self.line.connect();
        self.lines.connect();
        self.beats.connect();
        self.last.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!(
            "reg [12:0] left;\n\
             reg [4:0] take;\n\
             reg [4:0] less;\n\
             wire [4:0] room = 5'd{BURST_LINES} - {{1'b0, from[3:0]}};\n\
             wire fits = count <= {{8'd0, room}};\n\
             wire [4:0] first = fits ? count[4:0] : room;\n\
             wire [12:0] behind = left - {{8'd0, take}};\n\
             wire ends = behind <= 13'd{BURST_LINES};\n\
             wire [4:0] next = ends ? behind[4:0] : 5'd{BURST_LINES};\n\
             initial begin line = 34'd0; left = 13'd0; take = 5'd0; less = 5'd0; last = 1'b0; end\n\
             always @(*) begin\n\
             \x20   lines = {{2'd0, take}};\n\
             \x20   beats = {{1'b0, less}};\n\
             end\n\
             always @(posedge clock)\n\
             \x20   if (load) begin line <= from; left <= count; take <= first; less <= first - 5'd1; last <= fits; end\n\
             \x20   else if (step) begin line <= line + {{29'd0, take}}; left <= behind; take <= next; less <= next - 5'd1; last <= ends; end\n"
        ))
    }

    fn timing(&self) -> Vec<TimingInfo> {
        clocked("burst", &["load", "from", "count", "step"], &["line", "lines", "beats", "last"])
    }
}
