//! The way to memory.

use super::request_stage::RequestStage;
use crate::bundles::{AxiMaster, MemoryResponder, REQUESTERS};
use crate::cells::{Concat, Gather, OneHotMux, Register, RoundRobin, Widen};
use crate::dut::Ports;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// Beats that one direction gets while the other waits: 2 KiB.
pub const DIRECTION_BEATS: u64 = 32;

/// The direction in force and what is outstanding.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct State {
    writing: Bit,
    ar: Bit,
    aw: Bit,
    w: Bit,
    w_last: Bit,
    streaming: Bit,
}

/// The requester whose data is written.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Source {
    Unit0,
    Unit1,
    Unit2,
    Unit3,
    HostQueue,
    System,
}

/// Joins the requesters to one AXI4 port.
///
/// Guarantees: within a direction requesters take turns, and `system` goes first; a direction keeps
/// the port until 32 beats are asked for while the other waits (the burst that passes them is
/// whole, and one more may follow it, because the count is a cycle behind), and gives it up at once
/// when it has nothing to ask.
/// A write burst is granted only when the data of every earlier one is taken, the last beat at the
/// latest in that cycle, and its own data is asked for from the next cycle on: data is never waited
/// for. Responses go to the requester that the identifier names; requesters and memory need not
/// keep any order between identifiers.
/// Bound: a request is on AXI one cycle after its grant, data one cycle after it is taken; the
/// system's requests, which come from deep logic, pass a [`RequestStage`] first and all others come
/// from registers. At most 512 bursts of a direction are outstanding.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct MemoryPort {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high.
    pub reset: Signal<In, Bit>,
    /// Requesters: units 0 to 3, host queue, system.
    pub req: [MemoryResponder; REQUESTERS],
    /// Memory.
    pub m: AxiMaster<40, 512, 64, 6>,
    /// No burst is asked for or outstanding.
    pub quiet: Signal<Out, Bit>,
    /// Pulse: a line was read for a unit.
    pub ev_read_line: Signal<Out, Bit>,
    /// Pulse: a line was written for a unit.
    pub ev_write_line: Signal<Out, Bit>,
    /// Pulse: the direction changed.
    pub ev_direction: Signal<Out, Bit>,

    rd_any: Gather<REQUESTERS>,
    wr_any: Gather<REQUESTERS>,
    rd_turn: RoundRobin<REQUESTERS, 3>,
    wr_turn: RoundRobin<REQUESTERS, 3>,
    rd_stage: RequestStage,
    wr_stage: RequestStage,
    rd_line: OneHotMux<Bits<34>, REQUESTERS>,
    rd_beats: OneHotMux<Bits<6>, REQUESTERS>,
    rd_tag: OneHotMux<Bits<3>, REQUESTERS>,
    wr_line: OneHotMux<Bits<34>, REQUESTERS>,
    wr_beats: OneHotMux<Bits<6>, REQUESTERS>,
    wr_tag: OneHotMux<Bits<3>, REQUESTERS>,
    rd_id: Concat<3, 3, 6>,
    wr_id: Concat<3, 3, 6>,
    rd_address: Concat<34, 6, 40>,
    wr_address: Concat<34, 6, 40>,
    rd_length: Widen<6, 8>,
    wr_length: Widen<6, 8>,
    state: Register<State>,
    /// Beats that the direction may still ask for while the other waits; 0 when spent.
    #[default(Register::new(DIRECTION_BEATS.into()))]
    budget: Register<Bits<6>>,
    reads: Register<Bits<10>>,
    writes: Register<Bits<10>>,
    ar_id: Register<Bits<6>>,
    ar_address: Register<Bits<40>>,
    ar_length: Register<Bits<8>>,
    aw_id: Register<Bits<6>>,
    aw_address: Register<Bits<40>>,
    aw_length: Register<Bits<8>>,
    w_source: DFF<Source>,
    w_left: Register<Bits<6>>,
    w_data: Register<Bits<512>>,
    w_strobe: Register<Bits<64>>,
    r_valid: Register<Bit>,
    /// Whose the data is, a bit each.
    r_for: [Register<Bit>; REQUESTERS],
    r_id: Register<Bits<6>>,
    r_data: Register<Bits<512>>,
    r_last: Register<Bit>,
    r_error: Register<Bit>,
    b_valid: Register<Bit>,
    /// Whose the answer is, a bit each.
    b_for: [Register<Bit>; REQUESTERS],
    b_id: Register<Bits<6>>,
    b_error: Register<Bit>,

    ar_free: Signal<Local, Bit>,
    aw_free: Signal<Local, Bit>,
    w_free: Signal<Local, Bit>,
    w_take: Signal<Local, Bit>,
    serve_write: Signal<Local, Bit>,
    spent: Signal<Local, Bit>,
    do_read: Signal<Local, Bit>,
    do_write: Signal<Local, Bit>,
    /// A burst was granted in the cycle before: its beats less one, and whether the direction
    /// changed with it.
    granted: DFF<Bit>,
    asked: DFF<Bits<6>>,
    turned: DFF<Bit>,
    rest: Signal<Local, Bits<6>>,
    idle: Signal<Local, Bit>,
    r_index: Signal<Local, Bits<3>>,
    b_index: Signal<Local, Bits<3>>,
    #[default(Constant::new(1.into()))]
    one6: Constant<Bits<6>>,
    #[default(Constant::new(1.into()))]
    one10: Constant<Bits<10>>,
    #[default(Constant::new(DIRECTION_BEATS.into()))]
    whole_budget: Constant<Bits<6>>,
    #[default(Constant::new(6.into()))]
    size: Constant<Bits<3>>,
    #[default(Constant::new(1.into()))]
    incrementing: Constant<Bits<2>>,
}

impl Logic for MemoryPort {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, w_source, granted, asked, turned);
        clock!(
            self, clock, rd_stage, wr_stage, rd_turn, wr_turn, state, budget, reads, writes, ar_id, ar_address,
            ar_length, aw_id, aw_address, aw_length, w_left, w_data, w_strobe, r_valid, r_id, r_data, r_last, r_error,
            b_valid, b_id, b_error
        );
        self.rd_turn.reset.next = self.reset.val();
        self.wr_turn.reset.next = self.reset.val();
        self.state.reset.next = self.reset.val();
        self.state.enable.next = true;
        self.state.d.next = self.state.q.val();
        self.budget.reset.next = self.reset.val();
        self.budget.enable.next = true;
        self.budget.d.next = self.budget.q.val();
        self.reads.reset.next = self.reset.val();
        self.reads.enable.next = true;
        self.reads.d.next = self.reads.q.val();
        self.writes.reset.next = self.reset.val();
        self.writes.enable.next = true;
        self.writes.d.next = self.writes.q.val();

        // Who asks. `system` hides the others.
        self.idle.next = !self.reads.q.val().any() & !self.writes.q.val().any();
        self.rd_stage.reset.next = self.reset.val();
        self.rd_stage.valid.next = self.req[5].rd_valid.val();
        self.rd_stage.line.next = self.req[5].rd_line.val();
        self.rd_stage.beats.next = self.req[5].rd_beats.val();
        self.rd_stage.tag.next = self.req[5].rd_tag.val();
        self.wr_stage.reset.next = self.reset.val();
        self.wr_stage.valid.next = self.req[5].wr_valid.val();
        self.wr_stage.line.next = self.req[5].wr_line.val();
        self.wr_stage.beats.next = self.req[5].wr_beats.val();
        self.wr_stage.tag.next = self.req[5].wr_tag.val();
        if self.rd_stage.held.val() | self.wr_stage.held.val() {
            self.idle.next = false;
        }
        for i in 0..5 {
            self.rd_any.i[i].next = self.req[i].rd_valid.val() & !self.rd_stage.held.val();
            self.wr_any.i[i].next = self.req[i].wr_valid.val() & !self.wr_stage.held.val();
        }
        self.rd_any.i[5].next = self.rd_stage.held.val();
        self.wr_any.i[5].next = self.wr_stage.held.val();
        self.rd_turn.requests.next = self.rd_any.o.val();
        self.wr_turn.requests.next = self.wr_any.o.val();

        // Which direction.
        self.ar_free.next = (!self.state.q.val().ar | self.m.arready.val()) & !self.reads.q.val().get_bit(9);
        self.aw_free.next = (!self.state.q.val().aw | self.m.awready.val()) & !self.writes.q.val().get_bit(9);
        self.w_free.next = !self.state.q.val().w | self.m.wready.val();
        self.w_take.next = self.state.q.val().streaming & self.w_free.val();
        self.spent.next = !self.budget.q.val().any();
        self.serve_write.next =
            self.wr_turn.any.val() & (!self.rd_turn.any.val() | (self.state.q.val().writing != self.spent.val()));
        self.do_read.next = self.rd_turn.any.val() & !self.serve_write.val() & self.ar_free.val();
        self.do_write.next = self.serve_write.val()
            & self.aw_free.val()
            & (!self.state.q.val().streaming | (self.w_take.val() & !self.w_left.q.val().any()));
        self.rd_turn.take.next = self.do_read.val();
        self.wr_turn.take.next = self.do_write.val();

        // The request.
        for i in 0..5 {
            self.rd_line.i[i].next = self.req[i].rd_line.val();
            self.rd_beats.i[i].next = self.req[i].rd_beats.val();
            self.rd_tag.i[i].next = self.req[i].rd_tag.val();
            self.wr_line.i[i].next = self.req[i].wr_line.val();
            self.wr_beats.i[i].next = self.req[i].wr_beats.val();
            self.wr_tag.i[i].next = self.req[i].wr_tag.val();
            self.req[i].rd_ready.next = self.do_read.val() & self.rd_turn.grant.val().get_bit(i);
            self.req[i].wr_ready.next = self.do_write.val() & self.wr_turn.grant.val().get_bit(i);
        }
        self.rd_line.i[5].next = self.rd_stage.held_line.val();
        self.rd_beats.i[5].next = self.rd_stage.held_beats.val();
        self.rd_tag.i[5].next = self.rd_stage.held_tag.val();
        self.wr_line.i[5].next = self.wr_stage.held_line.val();
        self.wr_beats.i[5].next = self.wr_stage.held_beats.val();
        self.wr_tag.i[5].next = self.wr_stage.held_tag.val();
        self.req[5].rd_ready.next = self.rd_stage.ready.val();
        self.req[5].wr_ready.next = self.wr_stage.ready.val();
        self.rd_stage.take.next = self.do_read.val() & self.rd_turn.grant.val().get_bit(5);
        self.wr_stage.take.next = self.do_write.val() & self.wr_turn.grant.val().get_bit(5);
        self.rd_line.select.next = self.rd_turn.grant.val();
        self.rd_beats.select.next = self.rd_turn.grant.val();
        self.rd_tag.select.next = self.rd_turn.grant.val();
        self.wr_line.select.next = self.wr_turn.grant.val();
        self.wr_beats.select.next = self.wr_turn.grant.val();
        self.wr_tag.select.next = self.wr_turn.grant.val();
        self.rd_address.high.next = self.rd_line.o.val();
        self.wr_address.high.next = self.wr_line.o.val();
        self.rd_address.low.next = 0.into();
        self.wr_address.low.next = 0.into();
        self.rd_id.high.next = self.rd_turn.index.val();
        self.rd_id.low.next = self.rd_tag.o.val();
        self.wr_id.high.next = self.wr_turn.index.val();
        self.wr_id.low.next = self.wr_tag.o.val();
        self.rd_length.i.next = self.rd_beats.o.val();
        self.wr_length.i.next = self.wr_beats.o.val();

        // What the direction may still ask for, a cycle behind the grants.
        self.ev_direction.next =
            (self.do_read.val() & self.state.q.val().writing) | (self.do_write.val() & !self.state.q.val().writing);
        if self.do_read.val() | self.do_write.val() {
            self.state.d.next.writing = self.do_write.val();
        }
        self.granted.d.next = self.do_read.val() | self.do_write.val();
        self.turned.d.next = self.ev_direction.val();
        self.asked.d.next = self.rd_beats.o.val();
        if self.serve_write.val() {
            self.asked.d.next = self.wr_beats.o.val();
        }
        self.rest.next = self.budget.q.val();
        if self.turned.q.val() {
            self.rest.next = self.whole_budget.val();
        }
        if self.granted.q.val() {
            self.budget.d.next = 0.into();
            if self.rest.val() > self.asked.q.val() {
                self.budget.d.next = self.rest.val() - self.asked.q.val() - self.one6.val();
            }
        }

        // Address channels.
        self.ar_id.reset.next = false;
        self.ar_address.reset.next = false;
        self.ar_length.reset.next = false;
        self.ar_id.enable.next = self.do_read.val();
        self.ar_address.enable.next = self.do_read.val();
        self.ar_length.enable.next = self.do_read.val();
        self.ar_id.d.next = self.rd_id.o.val();
        self.ar_address.d.next = self.rd_address.o.val();
        self.ar_length.d.next = self.rd_length.o.val();
        if self.m.arready.val() {
            self.state.d.next.ar = false;
        }
        if self.do_read.val() {
            self.state.d.next.ar = true;
        }
        self.m.arvalid.next = self.state.q.val().ar;
        self.m.arid.next = self.ar_id.q.val();
        self.m.araddr.next = self.ar_address.q.val();
        self.m.arlen.next = self.ar_length.q.val();
        self.m.arsize.next = self.size.val();
        self.m.arburst.next = self.incrementing.val();
        self.aw_id.reset.next = false;
        self.aw_address.reset.next = false;
        self.aw_length.reset.next = false;
        self.aw_id.enable.next = self.do_write.val();
        self.aw_address.enable.next = self.do_write.val();
        self.aw_length.enable.next = self.do_write.val();
        self.aw_id.d.next = self.wr_id.o.val();
        self.aw_address.d.next = self.wr_address.o.val();
        self.aw_length.d.next = self.wr_length.o.val();
        if self.m.awready.val() {
            self.state.d.next.aw = false;
        }
        if self.do_write.val() {
            self.state.d.next.aw = true;
        }
        self.m.awvalid.next = self.state.q.val().aw;
        self.m.awid.next = self.aw_id.q.val();
        self.m.awaddr.next = self.aw_address.q.val();
        self.m.awlen.next = self.aw_length.q.val();
        self.m.awsize.next = self.size.val();
        self.m.awburst.next = self.incrementing.val();

        // Write data.
        self.w_data.reset.next = false;
        self.w_strobe.reset.next = false;
        self.w_data.enable.next = self.w_take.val();
        self.w_strobe.enable.next = self.w_take.val();
        self.w_data.d.next = self.req[0].wdata.val();
        self.w_strobe.d.next = self.req[0].wstrb.val();
        for i in 0..6 {
            self.req[i].wdata_ready.next = false;
        }
        match self.w_source.q.val() {
            Source::Unit1 => {
                self.w_data.d.next = self.req[1].wdata.val();
                self.w_strobe.d.next = self.req[1].wstrb.val();
                self.req[1].wdata_ready.next = self.w_take.val();
            }
            Source::Unit2 => {
                self.w_data.d.next = self.req[2].wdata.val();
                self.w_strobe.d.next = self.req[2].wstrb.val();
                self.req[2].wdata_ready.next = self.w_take.val();
            }
            Source::Unit3 => {
                self.w_data.d.next = self.req[3].wdata.val();
                self.w_strobe.d.next = self.req[3].wstrb.val();
                self.req[3].wdata_ready.next = self.w_take.val();
            }
            Source::HostQueue => {
                self.w_data.d.next = self.req[4].wdata.val();
                self.w_strobe.d.next = self.req[4].wstrb.val();
                self.req[4].wdata_ready.next = self.w_take.val();
            }
            Source::System => {
                self.w_data.d.next = self.req[5].wdata.val();
                self.w_strobe.d.next = self.req[5].wstrb.val();
                self.req[5].wdata_ready.next = self.w_take.val();
            }
            _ => {
                self.req[0].wdata_ready.next = self.w_take.val();
            }
        }
        self.w_left.reset.next = false;
        self.w_left.enable.next = self.w_take.val() | self.do_write.val();
        self.w_left.d.next = self.w_left.q.val() - self.one6.val();
        if self.m.wready.val() {
            self.state.d.next.w = false;
        }
        if self.w_take.val() {
            self.state.d.next.w = true;
            self.state.d.next.w_last = !self.w_left.q.val().any();
            if !self.w_left.q.val().any() {
                self.state.d.next.streaming = false;
            }
        }
        if self.do_write.val() {
            self.state.d.next.streaming = true;
            self.w_left.d.next = self.wr_beats.o.val();
            self.w_source.d.next = Source::Unit0;
            if self.wr_turn.grant.val().get_bit(1) {
                self.w_source.d.next = Source::Unit1;
            }
            if self.wr_turn.grant.val().get_bit(2) {
                self.w_source.d.next = Source::Unit2;
            }
            if self.wr_turn.grant.val().get_bit(3) {
                self.w_source.d.next = Source::Unit3;
            }
            if self.wr_turn.grant.val().get_bit(4) {
                self.w_source.d.next = Source::HostQueue;
            }
            if self.wr_turn.grant.val().get_bit(5) {
                self.w_source.d.next = Source::System;
            }
        }
        self.m.wvalid.next = self.state.q.val().w;
        self.m.wlast.next = self.state.q.val().w_last;
        self.m.wdata.next = self.w_data.q.val();
        self.m.wstrb.next = self.w_strobe.q.val();

        // Read data.
        self.m.rready.next = true;
        self.r_valid.reset.next = self.reset.val();
        self.r_valid.enable.next = true;
        self.r_valid.d.next = self.m.rvalid.val();
        self.r_id.reset.next = false;
        self.r_data.reset.next = false;
        self.r_last.reset.next = false;
        self.r_error.reset.next = false;
        self.r_id.enable.next = self.m.rvalid.val();
        self.r_data.enable.next = self.m.rvalid.val();
        self.r_last.enable.next = self.m.rvalid.val();
        self.r_error.enable.next = self.m.rvalid.val();
        self.r_id.d.next = self.m.rid.val();
        self.r_data.d.next = self.m.rdata.val();
        self.r_last.d.next = self.m.rlast.val();
        self.r_error.d.next = self.m.rresp.val().get_bit(1);
        self.r_index.next = self.m.rid.val().get_bits::<3>(3);

        // Write answers.
        self.m.bready.next = true;
        self.b_valid.reset.next = self.reset.val();
        self.b_valid.enable.next = true;
        self.b_valid.d.next = self.m.bvalid.val();
        self.b_id.reset.next = false;
        self.b_error.reset.next = false;
        self.b_id.enable.next = self.m.bvalid.val();
        self.b_error.enable.next = self.m.bvalid.val();
        self.b_id.d.next = self.m.bid.val();
        self.b_error.d.next = self.m.bresp.val().get_bit(1);
        self.b_index.next = self.m.bid.val().get_bits::<3>(3);
        for i in 0..6 {
            self.req[i].rdata.next = self.r_data.q.val();
            self.req[i].rdata_tag.next = self.r_id.q.val().get_bits::<3>(0);
            self.req[i].rdata_last.next = self.r_last.q.val();
            self.req[i].rdata_error.next = self.r_error.q.val();
            self.r_for[i].clock.next = self.clock.val();
            self.r_for[i].reset.next = self.reset.val();
            self.r_for[i].enable.next = true;
            self.r_for[i].d.next = self.m.rvalid.val() & (self.r_index.val().index() == i);
            self.req[i].rdata_valid.next = self.r_for[i].q.val();
            self.req[i].b_tag.next = self.b_id.q.val().get_bits::<3>(0);
            self.req[i].b_error.next = self.b_error.q.val();
            self.b_for[i].clock.next = self.clock.val();
            self.b_for[i].reset.next = self.reset.val();
            self.b_for[i].enable.next = true;
            self.b_for[i].d.next = self.m.bvalid.val() & (self.b_index.val().index() == i);
            self.req[i].b_valid.next = self.b_for[i].q.val();
        }

        // What is outstanding.
        if self.do_read.val() & !(self.r_valid.q.val() & self.r_last.q.val()) {
            self.reads.d.next = self.reads.q.val() + self.one10.val();
        }
        if !self.do_read.val() & self.r_valid.q.val() & self.r_last.q.val() {
            self.reads.d.next = self.reads.q.val() - self.one10.val();
        }
        if self.do_write.val() & !self.b_valid.q.val() {
            self.writes.d.next = self.writes.q.val() + self.one10.val();
        }
        if !self.do_write.val() & self.b_valid.q.val() {
            self.writes.d.next = self.writes.q.val() - self.one10.val();
        }
        self.quiet.next = self.idle.val();
        self.ev_read_line.next =
            self.r_for[0].q.val() | self.r_for[1].q.val() | self.r_for[2].q.val() | self.r_for[3].q.val();
        self.ev_write_line.next = self.req[0].wdata_ready.val()
            | self.req[1].wdata_ready.val()
            | self.req[2].wdata_ready.val()
            | self.req[3].wdata_ready.val();
    }
}
