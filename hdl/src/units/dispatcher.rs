//! Issues commands to units and retires them.

use super::request_slots::Ticket;
use crate::cells::{Gather, PriorityPick, Register, RoundRobin};
use crate::dut::Ports;
use crate::sizes::Sizes;
use nearpm_interface::geometry::UNITS;
use nearpm_interface::status::Status;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// Keeps which slots are live, issues ready ones in turn to units in turn, and retires what is
/// done, one a cycle at most.
///
/// Guarantees: a slot is free from the cycle after its retirement on. A command of a latched
/// mapping entry retires as Latched without being issued, but for unmap and for what has waited for
/// other devices. A command for which a place is kept there leaves its slot for it instead of being
/// issued. So does a blocked one, which would wait for an unmap: it latches its own entry. A log
/// that fails latches its entry; it, a log that retires as Latched, and what was blocked keep their
/// slots until the entry's unmap is offered. Progress is taken only while `gate_ready`. Bound: a
/// ready command is issued three cycles later where a unit has room, one every three cycles; a
/// command retires two cycles after it is done, one every three cycles.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct Dispatcher {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: no slot is live.
    pub reset: Signal<In, Bit>,
    /// Issue nothing.
    pub quiesce: Signal<In, Bit>,
    /// Retire with success what would be issued: its effects in memory are durable.
    pub redo: Signal<In, Bit>,
    /// No issue, `done` or retirement is under way.
    pub quiet: Signal<Out, Bit>,
    /// No slot is live.
    pub empty: Signal<Out, Bit>,
    /// No slot becomes free before an unmap: every one holds a failed log, or what was blocked.
    pub slots_lost: Signal<Out, Bit>,
    /// Live slots, a bit each.
    pub live: Signal<Out, Bits<32>>,

    /// Some slot is free.
    pub slot_any: Signal<Out, Bit>,
    /// A free slot.
    pub slot_index: Signal<Out, Bits<5>>,
    /// A command enters that slot.
    pub enter_valid: Signal<In, Bit>,
    /// Slots whose dependencies are gone, a bit each.
    pub ready: Signal<In, Bits<32>>,
    /// Slots that wait for a store that a failed log holds, a bit each.
    pub blocked: Signal<In, Bits<32>>,
    /// Failed slots that are let go, a bit each.
    pub let_go: Signal<In, Bits<32>>,

    /// Slot to issue.
    pub issue_slot: Signal<Out, Bits<5>>,
    /// Its ticket.
    pub issue_ticket: Signal<In, Ticket>,
    /// The command in `issue_slot` is issued to this unit.
    pub issue_valid: [Signal<Out, Bit>; UNITS],
    /// The unit has a free context.
    pub issue_ready: [Signal<In, Bit>; UNITS],
    /// Mapping entries that are latched, a bit each.
    pub latched: Signal<In, Bits<16>>,
    /// Mapping entries whose unmap was numbered, a bit each.
    pub closing: Signal<In, Bits<16>>,

    /// A unit is done with a command.
    pub done_valid: [Signal<In, Bit>; UNITS],
    /// It is retired.
    pub done_ready: [Signal<Out, Bit>; UNITS],
    /// Its slot.
    pub done_slot: [Signal<In, Bits<5>>; UNITS],
    /// Its status.
    pub done_status: [Signal<In, Bits<8>>; UNITS],
    /// A unit has come behind a wait.
    pub progress_valid: [Signal<In, Bit>; UNITS],
    /// It may go on.
    pub progress_ready: [Signal<Out, Bit>; UNITS],
    /// Its slot.
    pub progress_slot: [Signal<In, Bits<5>>; UNITS],
    /// The instruction behind the wait.
    pub progress_pc: [Signal<In, Bits<8>>; UNITS],
    /// Some progress is offered.
    pub gate_valid: Signal<Out, Bit>,
    /// Its instruction.
    pub gate_pc: Signal<Out, Bits<8>>,
    /// It may be taken.
    pub gate_ready: Signal<In, Bit>,
    /// Store the progress of a slot.
    pub store_progress: Signal<Out, Bit>,
    /// The slot.
    pub store_slot: Signal<Out, Bits<5>>,

    /// Slot that retires.
    pub retire_slot: Signal<Out, Bits<5>>,
    /// Its ticket.
    pub retire_ticket: Signal<In, Ticket>,
    /// Pulse: it retires.
    pub retire_valid: Signal<Out, Bit>,
    /// It is a log that failed or was refused, or was blocked: its slot stays.
    pub retire_failed: Signal<Out, Bit>,
    /// Its mapping entry's committed transaction rises.
    pub commit_valid: Signal<Out, Bit>,
    /// Its mapping entry is latched.
    pub latch_valid: Signal<Out, Bit>,
    /// Its mapping entry is freed.
    pub free_valid: Signal<Out, Bit>,
    /// The entry.
    pub retire_map: Signal<Out, Bits<4>>,
    /// Its transaction.
    pub retire_txid: Signal<Out, Bits<64>>,
    /// Its status.
    pub retire_status: Signal<Out, Bits<8>>,
    /// Its page.
    pub retire_page: Signal<Out, Bits<2>>,
    /// Its tag.
    pub retire_tag: Signal<Out, Bits<32>>,
    /// Its order number.
    pub retire_order: Signal<Out, Bits<64>>,
    /// Pulse: it had success.
    pub retire_ok: Signal<Out, Bit>,
    /// Pulse: it had begun and failed.
    pub retire_bad: Signal<Out, Bit>,
    /// Pulse: it was refused.
    pub retire_refused: Signal<Out, Bit>,
    /// With `retire_valid`: it does not retire, but goes where commands wait for other devices.
    pub park_valid: Signal<Out, Bit>,
    /// A place is kept for it, and it retires without having waited.
    pub give_valid: Signal<Out, Bit>,
    /// It has waited, and retires.
    pub back_valid: Signal<Out, Bit>,
    /// A completion record is wanted, with the fields above.
    pub record_valid: Signal<Out, Bit>,
    /// It can be recorded.
    pub record_ready: Signal<In, Bit>,

    #[default(Register::new(0.into()))]
    alive: Register<Bits<32>>,
    #[default(Register::new(0.into()))]
    issued: Register<Bits<32>>,
    #[default(Register::new(0.into()))]
    failed: Register<Bits<32>>,
    enter_mask: Signal<Local, Bits<32>>,
    pick_mask: Signal<Local, Bits<32>>,
    retire_mask: Signal<Local, Bits<32>>,
    free: PriorityPick<32, 5>,
    /// The slot that is offered as free, picked ahead.
    spare: Register<Bit>,
    spare_index: Register<Bits<5>>,
    spare_mask: Register<Bits<32>>,
    pick: RoundRobin<32, 5>,
    picked: DFF<Bit>,
    picked_slot: DFF<Bits<5>>,
    picked_blocked: DFF<Bit>,
    /// What is picked may be issued, or retires as Latched; as of the cycle before.
    goes: DFF<Bit>,
    halts: DFF<Bit>,
    /// What halts is to wait for other devices.
    parks: DFF<Bit>,
    leaves: Signal<Local, Bit>,
    stops: Signal<Local, Bit>,
    units: RoundRobin<4, 2>,
    unit_ready: Gather<4>,
    done: RoundRobin<5, 3>,
    done_asks: Gather<5>,
    retiring: DFF<Bit>,
    slot: DFF<Bits<5>>,
    status: DFF<Bits<8>>,
    /// The ticket of what retires was read.
    known: DFF<Bit>,
    refuses: DFF<Bit>,
    parking: DFF<Bit>,
    ticket: DFF<Ticket>,
    ticket_now: Signal<Local, Ticket>,
    fires: Signal<Local, Bit>,
    wants: Signal<Local, Bit>,
    good: Signal<Local, Bit>,
    began: Signal<Local, Bit>,
    stays: Signal<Local, Bit>,
    issue_map: Signal<Local, Bits<4>>,
    issue_unmaps: Signal<Local, Bit>,
    refused_by_latch: Signal<Local, Bit>,
    issue_parks: Signal<Local, Bit>,
    map: Signal<Local, Bits<4>>,
    is_latched: Signal<Local, Bits<16>>,
    is_closing: Signal<Local, Bits<16>>,
    steps: RoundRobin<4, 2>,
    step_asks: Gather<4>,
    #[default(Constant::new(1.into()))]
    one: Constant<Bits<32>>,
    #[default(Constant::new(0.into()))]
    none: Constant<Bits<32>>,
    #[default(Constant::new(Bits::<32>::mask()))]
    all_slots: Constant<Bits<32>>,
    #[default(Constant::new(u64::from(Status::Latched.code()).into()))]
    latched_status: Constant<Bits<8>>,
    #[default(Constant::new(u64::from(Status::Ok.code()).into()))]
    success: Constant<Bits<8>>,
}

impl Dispatcher {
    /// With as many slots.
    pub fn new(sizes: &Sizes) -> Self {
        Self {
            free: PriorityPick::among(sizes.slots),
            all_slots: Constant::new((u64::MAX >> (64 - sizes.slots)).into()),
            ..Self::default()
        }
    }
}

impl Logic for Dispatcher {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            picked,
            picked_slot,
            goes,
            halts,
            parks,
            parking,
            retiring,
            slot,
            status,
            known,
            ticket,
            picked_blocked,
            refuses
        );
        clock!(self, clock, alive, spare, spare_index, spare_mask, issued, failed, pick, units, done, steps);
        self.alive.reset.next = self.reset.val();
        self.issued.reset.next = self.reset.val();
        self.failed.reset.next = self.reset.val();
        self.pick.reset.next = self.reset.val();
        self.units.reset.next = self.reset.val();
        self.done.reset.next = self.reset.val();
        self.steps.reset.next = self.reset.val();
        self.alive.enable.next = true;
        self.issued.enable.next = true;
        self.failed.enable.next = true;
        self.live.next = self.alive.q.val();
        self.slots_lost.next = self.failed.q.val() == self.all_slots.val();
        self.empty.next = !self.alive.q.val().any();

        // What retires now; its fields come from the slot's ticket, which is read a cycle before.
        self.retire_slot.next = self.slot.q.val();
        self.ticket.d.next = self.retire_ticket.val();
        self.ticket_now.next = self.ticket.q.val();
        self.good.next = !self.status.q.val().any();
        self.began.next = self.status.q.val().get_bit(7);
        self.wants.next = (self.ticket_now.val().complete | !self.good.val()) & !self.parking.q.val();
        self.fires.next = self.known.q.val() & (!self.wants.val() | self.record_ready.val());
        self.record_valid.next = self.known.q.val() & self.wants.val();
        self.map.next = self.ticket_now.val().map;
        self.is_closing.next = self.closing.val() >> self.map.val();
        // A log that was accepted and is refused by the latch has logged as little as the one that
        // failed.
        self.stays.next = self.fires.val()
            & !self.parking.q.val()
            & (((self.began.val() | (self.status.q.val() == self.latched_status.val())) & self.ticket_now.val().logs)
                | self.refuses.q.val())
            & !self.is_closing.val().get_bit(0);
        self.retire_valid.next = self.fires.val();
        self.retire_failed.next = self.stays.val();
        self.commit_valid.next =
            self.fires.val() & !self.parking.q.val() & self.good.val() & self.ticket_now.val().commits;
        // What comes behind a blocked command in its thread may rely on it, so that the thread ends
        // there.
        self.latch_valid.next =
            self.fires.val() & ((self.began.val() & self.ticket_now.val().logs) | self.refuses.q.val());
        self.free_valid.next =
            self.fires.val() & !self.parking.q.val() & self.good.val() & self.ticket_now.val().unmaps;
        self.park_valid.next = self.fires.val() & self.parking.q.val();
        self.give_valid.next = self.fires.val() & !self.parking.q.val() & self.ticket_now.val().parks;
        self.back_valid.next = self.fires.val() & self.ticket_now.val().released;
        self.retire_map.next = self.map.val();
        self.retire_txid.next = self.ticket_now.val().txid;
        self.retire_status.next = self.status.q.val();
        self.retire_page.next = self.ticket_now.val().page;
        self.retire_tag.next = self.ticket_now.val().tag;
        self.retire_order.next = self.ticket_now.val().order;
        self.retire_ok.next = self.fires.val() & !self.parking.q.val() & self.good.val();
        self.retire_bad.next = self.fires.val() & self.began.val();
        self.retire_refused.next = self.fires.val() & !self.parking.q.val() & !self.good.val() & !self.began.val();

        // Issue: a pick is held in a register until a unit has room.
        self.issue_slot.next = self.picked_slot.q.val();
        self.issue_map.next = self.issue_ticket.val().map;
        self.issue_unmaps.next = self.issue_ticket.val().unmaps;
        self.is_latched.next = self.latched.val() >> self.issue_map.val();
        // What has waited for other devices was reported before the log failed.
        self.refused_by_latch.next =
            self.is_latched.val().get_bit(0) & !self.issue_unmaps.val() & !self.issue_ticket.val().released;
        self.issue_parks.next = self.issue_ticket.val().parks;
        for i in 0..4 {
            self.unit_ready.i[i].next = self.issue_ready[i].val();
        }
        self.units.requests.next = self.unit_ready.o.val();
        self.leaves.next = self.goes.q.val() & !self.quiesce.val() & self.units.any.val();
        self.units.take.next = self.leaves.val();
        for i in 0..4 {
            self.issue_valid[i].next = self.leaves.val() & self.units.grant.val().get_bit(i);
        }

        // Retirement: one of the units, or a pick that is not issued.
        for i in 0..4 {
            self.done_asks.i[i].next = self.done_valid[i].val();
        }
        self.done_asks.i[4].next = self.halts.q.val() & !self.quiesce.val();
        self.done.requests.next = self.done_asks.o.val();
        self.done.take.next = false;
        self.stops.next = false;
        for i in 0..4 {
            self.done_ready[i].next = false;
        }
        self.known.d.next = self.retiring.q.val();
        if self.fires.val() {
            self.retiring.d.next = false;
            self.known.d.next = false;
        }
        if !self.retiring.q.val() {
            self.done.take.next = self.done.any.val();
            self.retiring.d.next = self.done.any.val();
            self.slot.d.next = self.picked_slot.q.val();
            self.status.d.next = self.latched_status.val();
            if self.redo.val() {
                self.status.d.next = self.success.val();
            }
            self.stops.next = self.done.grant.val().get_bit(4);
            self.refuses.d.next = self.done.grant.val().get_bit(4) & self.picked_blocked.q.val();
            self.parking.d.next = self.done.grant.val().get_bit(4) & self.parks.q.val();
            for i in 0..4 {
                if self.done.grant.val().get_bit(i) {
                    self.slot.d.next = self.done_slot[i].val();
                    self.status.d.next = self.done_status[i].val();
                    self.done_ready[i].next = true;
                }
            }
        }
        self.pick.requests.next =
            (self.ready.val() | self.blocked.val()) & self.alive.q.val() & !self.issued.q.val() & !self.failed.q.val();
        self.pick.take.next = false;
        self.pick_mask.next = self.none.val();
        self.goes.d.next = self.picked.q.val()
            & !self.redo.val()
            & !self.picked_blocked.q.val()
            & !self.refused_by_latch.val()
            & !self.issue_parks.val();
        self.halts.d.next = self.picked.q.val()
            & (self.redo.val() | self.picked_blocked.q.val() | self.refused_by_latch.val() | self.issue_parks.val());
        self.parks.d.next = self.issue_parks.val() & !self.picked_blocked.q.val() & !self.refused_by_latch.val();
        if self.leaves.val() | self.stops.val() {
            self.picked.d.next = false;
            self.goes.d.next = false;
            self.halts.d.next = false;
        }
        if !self.quiesce.val() & !self.picked.q.val() {
            self.pick.take.next = self.pick.any.val();
            self.picked.d.next = self.pick.any.val();
            self.picked_slot.d.next = self.pick.index.val();
            // Decided here: what is ready stays so, and what is blocked may wait for other items
            // too.
            self.picked_blocked.d.next = !(self.pick.grant.val() & self.ready.val()).any();
            self.pick_mask.next = self.pick.grant.val();
        }

        // Slots.
        self.free.requests.next = !self.alive.q.val() & !self.spare_mask.q.val();
        self.spare.reset.next = self.reset.val();
        self.spare_index.reset.next = self.reset.val();
        self.spare_mask.reset.next = self.reset.val();
        self.spare.enable.next = !self.spare.q.val() | self.enter_valid.val();
        self.spare_index.enable.next = !self.spare.q.val() | self.enter_valid.val();
        self.spare_mask.enable.next = !self.spare.q.val() | self.enter_valid.val();
        self.spare.d.next = self.free.any.val();
        self.spare_index.d.next = self.free.index.val();
        self.spare_mask.d.next = self.free.grant.val();
        self.slot_any.next = self.spare.q.val();
        self.slot_index.next = self.spare_index.q.val();
        self.enter_mask.next = self.none.val();
        if self.enter_valid.val() {
            self.enter_mask.next = self.spare_mask.q.val();
        }
        self.retire_mask.next = self.none.val();
        if self.fires.val() {
            self.retire_mask.next = self.one.val() << self.slot.q.val();
        }
        self.alive.d.next = (self.alive.q.val() & !self.let_go.val()) | self.enter_mask.val();
        self.issued.d.next = (self.issued.q.val() & !self.let_go.val() & !self.enter_mask.val()) | self.pick_mask.val();
        self.failed.d.next = self.failed.q.val() & !self.let_go.val();
        if self.stays.val() {
            self.failed.d.next = (self.failed.q.val() & !self.let_go.val()) | self.retire_mask.val();
        } else {
            self.alive.d.next =
                (self.alive.q.val() & !self.let_go.val() & !self.retire_mask.val()) | self.enter_mask.val();
        }

        // Progress, one unit at a time. A slot that is entered has the write port.
        for i in 0..4 {
            self.step_asks.i[i].next = self.progress_valid[i].val();
        }
        self.steps.requests.next = self.step_asks.o.val();
        self.gate_valid.next = self.steps.any.val();
        self.store_progress.next = self.steps.any.val() & self.gate_ready.val() & !self.enter_valid.val();
        self.steps.take.next = self.store_progress.val();
        self.gate_pc.next = self.progress_pc[0].val();
        self.store_slot.next = self.progress_slot[0].val();
        for i in 0..4 {
            self.progress_ready[i].next = false;
            if self.steps.grant.val().get_bit(i) {
                self.gate_pc.next = self.progress_pc[i].val();
                self.store_slot.next = self.progress_slot[i].val();
                self.progress_ready[i].next = self.store_progress.val();
            }
        }
        self.quiet.next = !self.retiring.q.val() & !self.done.any.val() & !self.leaves.val();
        if self.reset.val() {
            self.picked.d.next = false;
            self.goes.d.next = false;
            self.halts.d.next = false;
            self.retiring.d.next = false;
            self.known.d.next = false;
        }
    }
}
