//! The one point at which every item gets its number.

use super::request_slots::Ticket;
use crate::bundles::Work;
use crate::cells::{Concat, Register};
use crate::dut::Ports;
use crate::sizes::Sizes;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// Which query of a command is next.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Phase {
    Ready,
    Second,
    Third,
}

/// Numbers commands, host accesses and replayed stores, one at a time, and asks for what each has
/// to wait for.
///
/// Guarantees: an item is numbered after everything that was offered and taken before it; from the
/// edge of its numbering on it stands in its slot or line, and every later query sees it. A command
/// takes precedence over a host access that is offered in the same cycle: the command port holds
/// host accesses back that arrived after the command. Bound: a host access a cycle, a command in at
/// most three.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct OrderingPoint {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high.
    pub reset: Signal<In, Bit>,
    /// Order number of the last numbered item.
    pub order: Signal<Out, Bits<64>>,
    /// Go on from `restore_order`: a replay begins. Nothing is numbered meanwhile.
    pub restore_valid: Signal<In, Bit>,
    /// Order number of the last item before the power went.
    pub restore_order: Signal<In, Bits<64>>,
    /// Something is being numbered.
    pub busy: Signal<Out, Bit>,

    /// The decoder offers a command.
    pub item_valid: Signal<In, Bit>,
    /// It is numbered.
    pub item_ready: Signal<Out, Bit>,
    /// See `Decoder`.
    pub item_work: Signal<In, Work>,
    /// See `Decoder`.
    pub item_ticket: Signal<In, Ticket>,
    /// See `Decoder`.
    pub item_ranges: [Signal<In, Bit>; 3],
    /// See `Decoder`.
    pub item_first: [Signal<In, Bits<34>>; 3],
    /// See `Decoder`.
    pub item_last: [Signal<In, Bits<34>>; 3],
    /// See `Decoder`.
    pub item_ordered: Signal<In, Bit>,
    /// It was accepted before, under `item_accepted`.
    pub item_again: Signal<In, Bit>,
    /// See `item_again`.
    pub item_accepted: Signal<In, Bits<64>>,
    /// Some request slot is free.
    pub slot_any: Signal<In, Bit>,
    /// It.
    pub slot_index: Signal<In, Bits<5>>,

    /// HostPort offers an access.
    pub acc_valid: Signal<In, Bit>,
    /// It is numbered.
    pub acc_ready: Signal<Out, Bit>,
    /// It writes.
    pub acc_write: Signal<In, Bit>,
    /// Its line address.
    pub acc_line: Signal<In, Bits<34>>,
    /// A store is replayed; it takes precedence over HostPort.
    pub store_valid: Signal<In, Bit>,
    /// It is numbered.
    pub store_ready: Signal<Out, Bit>,
    /// Its line address.
    pub store_line: Signal<In, Bits<34>>,
    /// Some host line is free.
    pub line_any: Signal<In, Bit>,
    /// It.
    pub line_index: Signal<In, Bits<6>>,

    /// A command enters `slot_index` at this edge.
    pub enter_slot: Signal<Out, Bit>,
    /// What a unit executes, with its slot.
    pub enter_work: Signal<Out, Work>,
    /// What retirement needs, with its order number.
    pub enter_ticket: Signal<Out, Ticket>,
    /// Order number under which it was accepted.
    pub enter_accepted: Signal<Out, Bits<64>>,
    /// A host access enters `line_index` at this edge; a replayed store where `store_ready` is
    /// high.
    pub enter_line: Signal<Out, Bit>,
    /// Its line address.
    pub enter_address: Signal<Out, Bits<34>>,
    /// It writes.
    pub enter_write: Signal<Out, Bit>,
    /// The order number of what enters.
    pub enter_order: Signal<Out, Bits<64>>,
    /// Row of what enters: slot, or number of slots + line.
    pub enter_row: Signal<Out, Bits<7>>,

    /// To `RangeTable`.
    pub query_valid: Signal<Out, Bit>,
    /// To `RangeTable`.
    pub query_first: Signal<Out, Bits<34>>,
    /// To `RangeTable`.
    pub query_last: Signal<Out, Bits<34>>,
    /// To `RangeTable`.
    pub query_range: Signal<Out, Bit>,
    /// To `RangeTable`.
    pub query_write: Signal<Out, Bit>,
    /// To `RangeTable`.
    pub query_command: Signal<Out, Bit>,
    /// To `RangeTable`.
    pub query_ordered: Signal<Out, Bit>,
    /// To `RangeTable`.
    pub query_map: Signal<Out, Bits<4>>,
    /// To `RangeTable`.
    pub query_row: Signal<Out, Bits<7>>,
    /// To `RangeTable`.
    pub query_end: Signal<Out, Bit>,

    phase: DFF<Phase>,
    #[default(Register::new(0.into()))]
    number: Register<Bits<64>>,
    next_number: Signal<Local, Bits<64>>,
    row: DFF<Bits<7>>,
    map: DFF<Bits<4>>,
    ordered: DFF<Bit>,
    first: [DFF<Bits<34>>; 2],
    last: [DFF<Bits<34>>; 2],
    ranges: [DFF<Bit>; 2],
    take_command: Signal<Local, Bit>,
    take_host: Signal<Local, Bit>,
    slot_row: Concat<2, 5, 7>,
    line_row: Concat<1, 6, 7>,
    host_line: Signal<Local, Bits<34>>,
    ticket_map: Signal<Local, Bits<4>>,
    #[default(Constant::new(1.into()))]
    one: Constant<Bits<64>>,
    #[default(Constant::new(0.into()))]
    zero_two: Constant<Bits<2>>,
    #[default(Constant::new(0.into()))]
    zero_one: Constant<Bits<1>>,
    #[default(Constant::new((Sizes::FULL.slots as u64).into()))]
    lines_start: Constant<Bits<7>>,
}

impl OrderingPoint {
    /// For tables with as many slots.
    pub fn new(sizes: &Sizes) -> Self {
        Self { lines_start: Constant::new((sizes.slots as u64).into()), ..Self::default() }
    }
}

impl Logic for OrderingPoint {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, phase, row, map, ordered);
        clock!(self, clock, number);
        for i in 0..2 {
            self.first[i].clock.next = self.clock.val();
            self.first[i].d.next = self.first[i].q.val();
            self.last[i].clock.next = self.clock.val();
            self.last[i].d.next = self.last[i].q.val();
            self.ranges[i].clock.next = self.clock.val();
            self.ranges[i].d.next = self.ranges[i].q.val();
        }
        self.take_command.next =
            (self.phase.q.val() == Phase::Ready) & self.item_valid.val() & self.slot_any.val() & !self.reset.val();
        self.take_host.next = (self.phase.q.val() == Phase::Ready)
            & !self.take_command.val()
            & (self.acc_valid.val() | self.store_valid.val())
            & self.line_any.val()
            & !self.reset.val();
        self.next_number.next = self.number.q.val() + self.one.val();
        self.number.reset.next = self.reset.val();
        self.number.enable.next = self.take_command.val() | self.take_host.val();
        self.number.d.next = self.next_number.val();
        if self.restore_valid.val() {
            self.number.enable.next = true;
            self.number.d.next = self.restore_order.val();
        }
        self.order.next = self.number.q.val();
        self.busy.next = (self.phase.q.val() != Phase::Ready) | self.take_command.val() | self.take_host.val();

        self.item_ready.next = self.take_command.val();
        self.store_ready.next = self.take_host.val() & self.store_valid.val();
        self.acc_ready.next = self.take_host.val() & !self.store_valid.val();

        self.slot_row.high.next = self.zero_two.val();
        self.slot_row.low.next = self.slot_index.val();
        self.line_row.high.next = self.zero_one.val();
        self.line_row.low.next = self.line_index.val();
        self.host_line.next = self.acc_line.val();
        if self.store_valid.val() {
            self.host_line.next = self.store_line.val();
        }
        self.enter_slot.next = self.take_command.val();
        self.enter_work.next = self.item_work.val();
        self.enter_work.next.slot = self.slot_index.val();
        self.enter_ticket.next = self.item_ticket.val();
        self.enter_ticket.next.order = self.next_number.val();
        self.enter_accepted.next = self.next_number.val();
        if self.item_again.val() {
            self.enter_accepted.next = self.item_accepted.val();
        }
        self.enter_line.next = self.take_host.val();
        self.enter_address.next = self.host_line.val();
        self.enter_write.next = self.acc_write.val() | self.store_valid.val();
        self.enter_order.next = self.next_number.val();
        self.enter_row.next = self.line_row.o.val() + self.lines_start.val();
        self.ticket_map.next = self.item_ticket.val().map;

        // A host access, unless a command is on: one range of one line.
        self.query_valid.next = self.take_host.val();
        self.query_first.next = self.host_line.val();
        self.query_last.next = self.host_line.val();
        self.query_range.next = true;
        self.query_write.next = self.acc_write.val() | self.store_valid.val();
        self.query_command.next = false;
        self.query_ordered.next = false;
        self.query_map.next = self.map.q.val();
        self.query_row.next = self.line_row.o.val() + self.lines_start.val();
        self.query_end.next = true;
        if self.take_command.val() {
            self.enter_row.next = self.slot_row.o.val();
            self.query_valid.next = true;
            self.query_first.next = self.item_first[0].val();
            self.query_last.next = self.item_last[0].val();
            self.query_range.next = self.item_ranges[0].val();
            self.query_write.next = false;
            self.query_command.next = true;
            self.query_ordered.next = self.item_ordered.val();
            self.query_map.next = self.ticket_map.val();
            self.query_row.next = self.slot_row.o.val();
            self.query_end.next = !self.item_ranges[1].val() & !self.item_ranges[2].val();
            self.row.d.next = self.slot_row.o.val();
            self.map.d.next = self.ticket_map.val();
            self.ordered.d.next = self.item_ordered.val();
            for i in 0..2 {
                self.first[i].d.next = self.item_first[i + 1].val();
                self.last[i].d.next = self.item_last[i + 1].val();
                self.ranges[i].d.next = self.item_ranges[i + 1].val();
            }
            if self.item_ranges[1].val() | self.item_ranges[2].val() {
                self.phase.d.next = Phase::Second;
            }
        }
        if self.phase.q.val() != Phase::Ready {
            self.query_valid.next = true;
            self.query_write.next = true;
            self.query_command.next = true;
            self.query_ordered.next = self.ordered.q.val();
            self.query_row.next = self.row.q.val();
            self.query_first.next = self.first[0].q.val();
            self.query_last.next = self.last[0].q.val();
            self.query_range.next = self.ranges[0].q.val();
            self.query_end.next = !self.ranges[1].q.val();
            self.phase.d.next = Phase::Ready;
            if self.ranges[1].q.val() {
                self.phase.d.next = Phase::Third;
            }
        }
        if self.phase.q.val() == Phase::Third {
            self.query_first.next = self.first[1].q.val();
            self.query_last.next = self.last[1].q.val();
            self.query_range.next = true;
            self.query_end.next = true;
            self.phase.d.next = Phase::Ready;
        }
        if self.reset.val() {
            self.phase.d.next = Phase::Ready;
        }
    }
}
