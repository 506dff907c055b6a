//! The PM window: host loads and stores, line by line.

use crate::bundles::AxiSlave;
use crate::dut::Ports;
use nearpm_interface::geometry::{FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, LINE_U64, SAVE_BASE, SAVE_BYTES};
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// Lines of the save area, as the upper bits of a line address that all of them share.
const SAVE_LINES: u64 = SAVE_BYTES / LINE_U64;

/// AXI slave of the PM window.
///
/// Guarantees: an access is handed over in the cycle in which its data (store) or address (load) is
/// taken, so that what arrives later is numbered later. A store whose address and data stand at the
/// port when a load comes goes before it, and no other does: neither a load here nor a read of a
/// status line waits for more than two beats of stores, or for a store that lacks its data. Each
/// beat of a burst is an access of its own, of the line in which it lies. Refused with SLVERR and
/// without effect: everything while the window is closed, what lies beyond memory, stores to the
/// save area and to the firmware slot in force, and what is not an incrementing burst of at most 64
/// bytes a beat; of a refused burst every beat is taken or answered. Loads of one identifier are
/// answered in order: the next is taken when the one before it is answered. Bound: a load of
/// another identifier a cycle, or a store a cycle; bursts are served a beat at a time, and a load
/// burst waits until no other load is open.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct HostPort {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high.
    pub reset: Signal<In, Bit>,
    /// The PM window; 64-byte beats.
    pub s: AxiSlave<40, 512, 64, 6>,
    /// Accesses are taken; else refused.
    pub window_open: Signal<In, Bit>,
    /// Lines of persistent memory.
    pub pm_lines: Signal<In, Bits<34>>,
    /// Firmware slot in force.
    pub firmware_slot: Signal<In, Bit>,
    /// An image is in force; else both slots may be written.
    pub firmware_ok: Signal<In, Bit>,
    /// An access could be numbered at once, but for `hold`.
    pub asks: Signal<Out, Bit>,
    /// Pulse: it is numbered or refused.
    pub takes: Signal<Out, Bit>,
    /// Hand nothing over: the command port has a write in hand.
    pub hold: Signal<In, Bit>,
    /// Take nothing.
    pub stop: Signal<In, Bit>,
    /// The command port has a read of a status line, which waits for the stores before it.
    pub status_waits: Signal<In, Bit>,
    /// An access of one line.
    pub acc_valid: Signal<Out, Bit>,
    /// It is numbered.
    pub acc_ready: Signal<In, Bit>,
    /// It stores.
    pub acc_write: Signal<Out, Bit>,
    /// Its line address.
    pub acc_line: Signal<Out, Bits<34>>,
    /// What it stores.
    pub acc_data: Signal<Out, Bits<512>>,
    /// Bytes that it stores.
    pub acc_strb: Signal<Out, Bits<64>>,
    /// Returned with the data.
    pub acc_id: Signal<Out, Bits<6>>,
    /// Data of a load.
    pub rsp_valid: Signal<In, Bit>,
    /// It is taken.
    pub rsp_ready: Signal<Out, Bit>,
    /// Its identifier.
    pub rsp_id: Signal<In, Bits<6>>,
    /// The line.
    pub rsp_data: Signal<In, Bits<512>>,
    /// The memory could not read it.
    pub rsp_error: Signal<In, Bit>,
    /// A store with its data is not numbered yet, and goes before a read that begins to wait.
    pub writes_pending: Signal<Out, Bit>,
    /// Pulse: a line is loaded.
    pub ev_read: Signal<Out, Bit>,
    /// Pulse: a line is stored.
    pub ev_write: Signal<Out, Bit>,
    /// Pulse: a line is refused.
    pub ev_refused: Signal<Out, Bit>,
    may_start: Signal<Local, Bit>,
    has_write: DFF<Bit>,
    answer: DFF<Bit>,
    answered_id: DFF<Bits<6>>,
    answered_error: DFF<Bit>,
    /// A store was let ahead of the read that waits: the next one is not.
    reads_turn: DFF<Bit>,
    read_waits: Signal<Local, Bit>,
    store_ahead: Signal<Local, Bit>,
    stored: Signal<Local, Bit>,
    burst_may_start: Signal<Local, Bit>,
    takes_burst: Signal<Local, Bit>,
    may_answer: Signal<Local, Bit>,
    write_line: DFF<Bits<34>>,
    /// Place of the beat in its line, and bytes of a beat; likewise of loads.
    write_place: DFF<Bits<7>>,
    write_step: DFF<Bits<7>>,
    write_odd: DFF<Bit>,
    write_next: Signal<Local, Bits<7>>,
    write_id: DFF<Bits<6>>,
    write_error: DFF<Bit>,
    has_burst: DFF<Bit>,
    burst_line: DFF<Bits<34>>,
    burst_place: DFF<Bits<7>>,
    burst_step: DFF<Bits<7>>,
    burst_odd: DFF<Bit>,
    burst_next: Signal<Local, Bits<7>>,
    read_odd: Signal<Local, Bit>,
    load_odd: Signal<Local, Bit>,
    writes_odd: Signal<Local, Bit>,
    write_mask: Signal<Local, Bits<7>>,
    read_mask: Signal<Local, Bits<7>>,
    has_store: Signal<Local, Bit>,
    burst_left: DFF<Bits<8>>,
    burst_id: DFF<Bits<6>>,
    burst_waits: DFF<Bit>,
    open_loads: DFF<Bits<8>>,
    open_ids: DFF<Bits<64>>,
    id_bits: Signal<Local, Bits<64>>,
    id_is_open: Signal<Local, Bit>,
    opened: Signal<Local, Bits<64>>,
    closed: Signal<Local, Bits<64>>,
    load_id: Signal<Local, Bits<6>>,
    answer_id: Signal<Local, Bits<6>>,
    refusal: DFF<Bit>,
    refusal_id: DFF<Bits<6>>,
    refusal_shown: DFF<Bit>,
    shows_data: Signal<Local, Bit>,
    offer_write: Signal<Local, Bit>,
    offer_read: Signal<Local, Bit>,
    write_bad: Signal<Local, Bit>,
    read_bad: Signal<Local, Bit>,
    read_line: Signal<Local, Bits<34>>,
    takes_write: Signal<Local, Bit>,
    takes_read: Signal<Local, Bit>,
    load_done: Signal<Local, Bit>,
    answers: Signal<Local, Bit>,
    single: Signal<Local, Bit>,
    #[default(Constant::new(0.into()))]
    zero2: Constant<Bits<2>>,
    #[default(Constant::new(2.into()))]
    slave_error: Constant<Bits<2>>,
    #[default(Constant::new(0.into()))]
    zero8: Constant<Bits<8>>,
    #[default(Constant::new(0.into()))]
    zero64: Constant<Bits<64>>,
    #[default(Constant::new(0.into()))]
    no_data: Constant<Bits<512>>,
    #[default(Constant::new(1.into()))]
    one64: Constant<Bits<64>>,
    #[default(Constant::new(1.into()))]
    one8: Constant<Bits<8>>,
    #[default(Constant::new(1.into()))]
    one34: Constant<Bits<34>>,
    #[default(Constant::new(1.into()))]
    one7: Constant<Bits<7>>,
    #[default(Constant::new(Bits::<7>::mask()))]
    ones7: Constant<Bits<7>>,
    #[default(Constant::new((LINE_U64 - 1).into()))]
    in_line: Constant<Bits<7>>,
    #[default(Constant::new(1.into()))]
    incrementing: Constant<Bits<2>>,
    #[default(Constant::new(7.into()))]
    too_wide: Constant<Bits<3>>,
    #[default(Constant::new((SAVE_BASE / LINE_U64 / SAVE_LINES).into()))]
    save_page: Constant<Bits<24>>,
    #[default(Constant::new((FIRMWARE_BASE / FIRMWARE_SLOT_BYTES).into()))]
    firmware0: Constant<Bits<28>>,
    #[default(Constant::new((FIRMWARE_BASE / FIRMWARE_SLOT_BYTES + 1).into()))]
    firmware1: Constant<Bits<28>>,
}

impl Logic for HostPort {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            has_write,
            answer,
            answered_id,
            answered_error,
            reads_turn,
            write_line,
            write_place,
            write_step,
            write_odd,
            write_id,
            write_error,
            has_burst,
            burst_line,
            burst_place,
            burst_step,
            burst_odd,
            burst_left,
            burst_id,
            burst_waits,
            open_loads,
            open_ids,
            refusal,
            refusal_id,
            refusal_shown
        );
        // Bursts: a beat begins where the one before it ends, and lies in one line.
        self.writes_odd.next =
            (self.s.awburst.val() != self.incrementing.val()) | (self.s.awsize.val() == self.too_wide.val());
        self.read_odd.next =
            (self.s.arburst.val() != self.incrementing.val()) | (self.s.arsize.val() == self.too_wide.val());
        self.write_mask.next = self.ones7.val() << self.s.awsize.val();
        self.read_mask.next = self.ones7.val() << self.s.arsize.val();
        self.write_next.next = self.write_place.q.val() + self.write_step.q.val();
        self.burst_next.next = self.burst_place.q.val() + self.burst_step.q.val();

        // A load: a single one is handed over as it comes; a burst is kept.
        self.single.next = !self.s.arlen.val().any();
        self.read_line.next = self.s.araddr.val().get_bits::<34>(6);
        self.load_id.next = self.s.arid.val();
        // Loads of one identifier are answered in order: the next waits for the one before it.
        self.id_bits.next = self.open_ids.q.val() >> self.s.arid.val();
        self.id_is_open.next = self.id_bits.val().get_bit(0);
        self.offer_read.next =
            self.s.arvalid.val() & self.single.val() & !self.has_burst.q.val() & !self.id_is_open.val();
        if self.has_burst.q.val() {
            self.read_line.next = self.burst_line.q.val();
            self.load_id.next = self.burst_id.q.val();
            self.offer_read.next = !self.burst_waits.q.val();
        }
        self.burst_may_start.next = self.s.arvalid.val()
            & !self.single.val()
            & !self.has_burst.q.val()
            & !self.open_loads.q.val().any()
            & !self.refusal.q.val();
        // Only what nothing but stores keeps waiting: a load behind an open one must not keep
        // stores waiting.
        self.read_waits.next =
            self.status_waits.val() | (self.offer_read.val() & !self.refusal.q.val()) | self.burst_may_start.val();

        // A store: the address is kept, the data goes straight on.
        self.write_bad.next = !self.window_open.val()
            | self.write_odd.q.val()
            | (self.write_line.q.val() >= self.pm_lines.val())
            | (self.write_line.q.val().get_bits::<24>(10) == self.save_page.val())
            | ((self.write_line.q.val().get_bits::<28>(6) == self.firmware0.val())
                & self.firmware_ok.val()
                & !self.firmware_slot.val())
            | ((self.write_line.q.val().get_bits::<28>(6) == self.firmware1.val())
                & self.firmware_ok.val()
                & self.firmware_slot.val());
        self.may_answer.next = !self.answer.q.val() | self.s.bready.val();
        self.has_store.next = self.has_write.q.val() & self.s.wvalid.val() & self.may_answer.val();
        self.offer_write.next = self.has_store.val() & !self.hold.val() & !self.stop.val();
        self.takes_write.next = self.offer_write.val() & (self.write_bad.val() | self.acc_ready.val());
        self.stored.next = self.takes_write.val() & self.s.wlast.val();
        // The next address is taken with the last data, unless it is a read's turn.
        self.may_start.next = (!self.has_write.q.val() | self.stored.val())
            & !(self.read_waits.val() & self.reads_turn.q.val())
            & !self.stop.val();
        self.s.awready.next = self.may_start.val();
        self.s.wready.next = self.takes_write.val();
        self.s.bvalid.next = self.answer.q.val();
        self.s.bid.next = self.answered_id.q.val();
        self.s.bresp.next = self.zero2.val();
        if self.answered_error.q.val() {
            self.s.bresp.next = self.slave_error.val();
        }
        if self.answer.q.val() & self.s.bready.val() {
            self.answer.d.next = false;
        }
        if self.takes_write.val() {
            self.write_place.d.next = self.write_next.val() & self.in_line.val();
            if self.write_next.val().get_bit(6) {
                self.write_line.d.next = self.write_line.q.val() + self.one34.val();
            }
            self.write_error.d.next = self.write_error.q.val() | self.write_bad.val();
        }
        if self.stored.val() {
            self.has_write.d.next = false;
            self.answer.d.next = true;
            self.answered_id.d.next = self.write_id.q.val();
            self.answered_error.d.next = self.write_error.q.val() | self.write_bad.val();
        }
        if self.s.awvalid.val() & self.may_start.val() {
            self.has_write.d.next = true;
            self.write_line.d.next = self.s.awaddr.val().get_bits::<34>(6);
            self.write_place.d.next = self.s.awaddr.val().get_bits::<7>(0) & self.write_mask.val() & self.in_line.val();
            self.write_step.d.next = self.one7.val() << self.s.awsize.val();
            self.write_odd.d.next = self.writes_odd.val();
            self.write_id.d.next = self.s.awid.val();
            self.write_error.d.next = false;
        }
        // A load never waits for a store that has not come whole.
        self.store_ahead.next =
            self.s.wvalid.val() & (self.has_write.q.val() | (self.s.awvalid.val() & !self.reads_turn.q.val()));
        self.writes_pending.next = self.store_ahead.val();

        // A load goes to the ordering point when no store is ahead of it.
        self.load_odd.next = self.read_odd.val();
        if self.has_burst.q.val() {
            self.load_odd.next = self.burst_odd.q.val();
        }
        self.read_bad.next =
            !self.window_open.val() | self.load_odd.val() | (self.read_line.val() >= self.pm_lines.val());
        self.takes_read.next = self.offer_read.val()
            & !self.store_ahead.val()
            & !self.hold.val()
            & !self.stop.val()
            & !self.refusal.q.val()
            & (self.read_bad.val() | self.acc_ready.val());
        self.s.arready.next = self.takes_read.val() & !self.has_burst.q.val();
        self.takes_burst.next =
            self.burst_may_start.val() & !self.store_ahead.val() & !self.hold.val() & !self.stop.val();
        self.reads_turn.d.next = self.read_waits.val()
            & !self.takes_read.val()
            & !self.takes_burst.val()
            & (self.reads_turn.q.val() | (self.s.awvalid.val() & self.may_start.val()));
        if self.takes_burst.val() {
            self.s.arready.next = true;
            self.has_burst.d.next = true;
            self.burst_waits.d.next = false;
            self.burst_line.d.next = self.s.araddr.val().get_bits::<34>(6);
            self.burst_place.d.next = self.s.araddr.val().get_bits::<7>(0) & self.read_mask.val() & self.in_line.val();
            self.burst_step.d.next = self.one7.val() << self.s.arsize.val();
            self.burst_odd.d.next = self.read_odd.val();
            self.burst_left.d.next = self.s.arlen.val();
            self.burst_id.d.next = self.s.arid.val();
        }
        if self.takes_read.val() {
            if self.has_burst.q.val() {
                self.burst_waits.d.next = true;
            }
            if self.read_bad.val() {
                self.refusal.d.next = true;
                self.refusal_id.d.next = self.load_id.val();
            }
        }

        self.acc_valid.next = (self.offer_write.val() & !self.write_bad.val())
            | (self.offer_read.val()
                & !self.read_bad.val()
                & !self.store_ahead.val()
                & !self.hold.val()
                & !self.stop.val()
                & !self.refusal.q.val());
        self.asks.next =
            self.has_store.val() | (self.offer_read.val() & !self.store_ahead.val() & !self.refusal.q.val());
        self.takes.next = self.takes_write.val() | self.takes_read.val();
        self.acc_write.next = self.offer_write.val();
        self.acc_line.next = self.read_line.val();
        self.acc_id.next = self.load_id.val();
        if self.offer_write.val() {
            self.acc_line.next = self.write_line.q.val();
            self.acc_id.next = self.write_id.q.val();
        }
        self.acc_data.next = self.s.wdata.val();
        self.acc_strb.next = self.s.wstrb.val();

        // Data of loads, and refusals.
        // What is shown stays until it is taken; data goes first where both begin.
        self.shows_data.next = self.rsp_valid.val() & !self.refusal_shown.q.val();
        self.refusal_shown.d.next = self.refusal.q.val() & !self.shows_data.val() & !self.s.rready.val();
        self.answers.next = self.rsp_valid.val() | self.refusal.q.val();
        self.s.rvalid.next = self.answers.val();
        self.answer_id.next = self.refusal_id.q.val();
        self.s.rdata.next = self.no_data.val();
        self.s.rresp.next = self.slave_error.val();
        self.s.rlast.next = !self.has_burst.q.val() | !self.burst_left.q.val().any();
        self.rsp_ready.next = self.s.rready.val() & !self.refusal_shown.q.val();
        self.load_done.next = self.answers.val() & self.s.rready.val();
        if self.shows_data.val() {
            self.answer_id.next = self.rsp_id.val();
            self.s.rdata.next = self.rsp_data.val();
            self.s.rresp.next = self.zero2.val();
            if self.rsp_error.val() {
                self.s.rresp.next = self.slave_error.val();
            }
        } else {
            if self.refusal.q.val() & self.s.rready.val() {
                self.refusal.d.next = false;
            }
        }
        self.s.rid.next = self.answer_id.val();
        if self.load_done.val() & self.has_burst.q.val() {
            self.burst_waits.d.next = false;
            self.burst_place.d.next = self.burst_next.val() & self.in_line.val();
            if self.burst_next.val().get_bit(6) {
                self.burst_line.d.next = self.burst_line.q.val() + self.one34.val();
            }
            self.burst_left.d.next = self.burst_left.q.val() - self.one8.val();
            if !self.burst_left.q.val().any() {
                self.has_burst.d.next = false;
            }
        }
        if self.takes_read.val() & !self.load_done.val() {
            self.open_loads.d.next = self.open_loads.q.val() + self.one8.val();
        }
        if !self.takes_read.val() & self.load_done.val() {
            self.open_loads.d.next = self.open_loads.q.val() - self.one8.val();
        }
        self.opened.next = self.zero64.val();
        if self.takes_read.val() {
            self.opened.next = self.one64.val() << self.load_id.val();
        }
        self.closed.next = self.zero64.val();
        if self.load_done.val() {
            self.closed.next = self.one64.val() << self.answer_id.val();
        }
        self.open_ids.d.next = (self.open_ids.q.val() & !self.closed.val()) | self.opened.val();
        self.ev_read.next = self.takes_read.val() & !self.read_bad.val();
        self.ev_write.next = self.takes_write.val() & !self.write_bad.val();
        self.ev_refused.next =
            (self.takes_write.val() & self.write_bad.val()) | (self.takes_read.val() & self.read_bad.val());
        if self.reset.val() {
            self.has_write.d.next = false;
            self.answer.d.next = false;
            self.has_burst.d.next = false;
            self.reads_turn.d.next = false;
            self.refusal.d.next = false;
            self.refusal_shown.d.next = false;
            self.open_loads.d.next = self.zero8.val();
            self.open_ids.d.next = self.zero64.val();
        }
    }
}
