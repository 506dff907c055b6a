//! A register between who asks for memory and who decides.

use crate::cells::Register;
use crate::dut::Ports;
use rust_hdl::prelude::*;

/// Holds one request of one direction for the memory port, so that neither side's logic reaches
/// through to the other.
///
/// Guarantees: a request is held from the cycle after it is offered while `ready`, until `take`.
/// Bound: one request every two cycles, since `ready` follows from the register alone.
#[derive(LogicBlock, Default, Ports)]
pub struct RequestStage {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: nothing is held.
    pub reset: Signal<In, Bit>,
    /// A burst is asked for.
    pub valid: Signal<In, Bit>,
    /// It is taken over.
    pub ready: Signal<Out, Bit>,
    /// Its first line.
    pub line: Signal<In, Bits<34>>,
    /// Its beats less one.
    pub beats: Signal<In, Bits<6>>,
    /// Its tag.
    pub tag: Signal<In, Bits<3>>,
    /// A burst is held.
    pub held: Signal<Out, Bit>,
    /// Its first line.
    pub held_line: Signal<Out, Bits<34>>,
    /// Its beats less one.
    pub held_beats: Signal<Out, Bits<6>>,
    /// Its tag.
    pub held_tag: Signal<Out, Bits<3>>,
    /// It goes on at the next edge; only while `held`.
    pub take: Signal<In, Bit>,
    full: Register<Bit>,
    line_now: Register<Bits<34>>,
    beats_now: Register<Bits<6>>,
    tag_now: Register<Bits<3>>,
}

impl Logic for RequestStage {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, full, line_now, beats_now, tag_now);
        self.full.reset.next = self.reset.val();
        self.full.enable.next = true;
        self.full.d.next = self.valid.val();
        if self.full.q.val() {
            self.full.d.next = !self.take.val();
        }
        self.ready.next = !self.full.q.val();
        self.line_now.reset.next = false;
        self.beats_now.reset.next = false;
        self.tag_now.reset.next = false;
        self.line_now.enable.next = !self.full.q.val();
        self.beats_now.enable.next = !self.full.q.val();
        self.tag_now.enable.next = !self.full.q.val();
        self.line_now.d.next = self.line.val();
        self.beats_now.d.next = self.beats.val();
        self.tag_now.d.next = self.tag.val();
        self.held.next = self.full.q.val();
        self.held_line.next = self.line_now.q.val();
        self.held_beats.next = self.beats_now.q.val();
        self.held_tag.next = self.tag_now.q.val();
    }
}
