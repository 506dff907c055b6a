//! Cuts a run of lines into bursts.

use rust_hdl::prelude::*;

/// Longest burst of a unit, in lines. Bursts end at multiples of it, so none crosses 4 KiB.
pub const BURST_LINES: u64 = 16;

/// The next burst of a run of lines, and what is left of the run; combinational.
///
/// A burst ends where the run does or at a multiple of [`BURST_LINES`] lines, whichever comes first. Three levels of
/// logic to `lines`, a carry chain behind it to `next_line` and `next_left`.
#[derive(LogicBlock, Default)]
pub struct Burst {
    /// First line of what is left of the run.
    pub line: Signal<In, Bits<34>>,
    /// Lines left, 1 to 4097.
    pub left: Signal<In, Bits<13>>,
    /// Lines of the burst, 1 to 16.
    pub lines: Signal<Out, Bits<7>>,
    /// Lines of the burst less one.
    pub beats: Signal<Out, Bits<6>>,
    /// Whether the burst is the run's last.
    pub last: Signal<Out, Bit>,
    /// First line behind the burst.
    pub next_line: Signal<Out, Bits<34>>,
    /// Lines left behind the burst.
    pub next_left: Signal<Out, Bits<13>>,
}

impl Logic for Burst {
    fn update(&mut self) {
        let (line, left) = (self.line.val().to_u64(), self.left.val().to_u64());
        let lines = left.min(BURST_LINES - line % BURST_LINES);
        self.lines.next = lines.into();
        self.beats.next = (lines.wrapping_sub(1) & 63).into();
        self.last.next = lines == left;
        self.next_line.next = (line.wrapping_add(lines) & ((1 << 34) - 1)).into();
        self.next_left.next = (left - lines).into();
    }

    fn connect(&mut self) {
        self.lines.connect();
        self.beats.connect();
        self.last.connect();
        self.next_line.connect();
        self.next_left.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!(
            "wire [4:0] room = 5'd{BURST_LINES} - {{1'b0, line[3:0]}};\n\
             wire ends = left <= {{8'd0, room}};\n\
             wire [4:0] take = ends ? left[4:0] : room;\n\
             always @(*) begin\n\
             \x20   lines = {{2'd0, take}};\n\
             \x20   beats = {{1'b0, take}} - 6'd1;\n\
             \x20   last = ends;\n\
             \x20   next_line = line + {{29'd0, take}};\n\
             \x20   next_left = left - {{8'd0, take}};\n\
             end\n"
        ))
    }
}

crate::dut_ports!(Burst { line, left, lines, beats, last, next_line, next_left });
