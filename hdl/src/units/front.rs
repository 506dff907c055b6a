//! The ordering side of the card: from the host's ports to the units.

use super::address_map::AddressMap;
use super::command_port::CommandPort;
use super::completion_writer::Record;
use super::decoder::Decoder;
use super::dependency_matrix::DependencyMatrix;
use super::dispatcher::Dispatcher;
use super::host_port::HostPort;
use super::host_queue::HostQueue;
use super::lost_stores::LostStores;
use super::multi_device::{Brief, Message, MultiDevice};
use super::ordering_point::OrderingPoint;
use super::range_table::RangeTable;
use super::request_slots::{RequestSlots, Ticket};
use crate::bundles::{AxiSlave, Lost, MapEntry, MemoryRequester, Work};
use crate::dut::Ports;
use crate::sizes::Sizes;
use nearpm_interface::geometry::UNITS;
use nearpm_interface::status::Status;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// Command port, host port and queue, decoder, ordering point and dispatcher with their tables.
///
/// Guarantees and bounds are those of the units; this block only wires them. The signals towards
/// Persistence are listed in `docs/hardware.md`.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct Front {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high.
    pub reset: Signal<In, Bit>,
    /// The command BAR.
    pub cmd: AxiSlave<16, 512, 64, 6>,
    /// The PM window.
    pub host: AxiSlave<40, 512, 64, 6>,
    /// Memory, for host accesses.
    pub mem: MemoryRequester,
    /// Number of this device.
    pub device_number: Signal<In, Bits<4>>,
    /// Pulse: software has written that number.
    pub numbered: Signal<In, Bit>,
    /// Lines of persistent memory.
    pub pm_lines: Signal<In, Bits<34>>,
    /// Firmware slot in force: the host may not write it.
    pub firmware_slot: Signal<In, Bit>,
    /// An image is in force.
    pub firmware_ok: Signal<In, Bit>,
    /// Host accesses and commands are taken; else refused and dropped.
    pub window_open: Signal<In, Bit>,
    /// The ports take no new work.
    pub stop: Signal<In, Bit>,
    /// Issue nothing and request no burst.
    pub quiesce: Signal<In, Bit>,
    /// Pulse: free all mapping entries but those of commands that wait, and failed slots; zero the
    /// page counters.
    pub clear: Signal<In, Bit>,
    /// No numbering, issue or retirement is under way, and no burst is outstanding.
    pub quiet: Signal<Out, Bit>,
    /// Every slot and line was empty and nothing was being numbered in the cycle before.
    pub idle: Signal<Out, Bit>,
    /// Order number of the last numbered item.
    pub order: Signal<Out, Bits<64>>,
    /// A replay begins: go on from `restore_order`.
    pub restore_valid: Signal<In, Bit>,
    /// Order number of the last item before the power went.
    pub restore_order: Signal<In, Bits<64>>,
    /// Some command waits for other devices.
    pub parked_any: Signal<Out, Bit>,
    /// Entry to read out; everything below answers in the next cycle.
    pub save_index: Signal<In, Bits<7>>,
    /// The mapping entry (low 4 bits of the index).
    pub saved_map: Signal<Out, MapEntry>,
    /// The slot (low 5 bits) holds a live command.
    pub saved_slot_valid: Signal<Out, Bit>,
    /// Its bytes.
    pub saved_slot_command: Signal<Out, Bits<512>>,
    /// Order number under which it was accepted.
    pub saved_slot_order: Signal<Out, Bits<64>>,
    /// Its page.
    pub saved_slot_page: Signal<Out, Bits<2>>,
    /// Where it resumes.
    pub saved_slot_resume: Signal<Out, Bits<8>>,
    /// It has waited for other devices.
    pub saved_slot_released: Signal<Out, Bit>,
    /// The place (low 5 bits) holds a command that waits for other devices.
    pub saved_parked_valid: Signal<Out, Bit>,
    /// Its bytes.
    pub saved_parked_command: Signal<Out, Bits<512>>,
    /// Order number under which it was accepted.
    pub saved_parked_order: Signal<Out, Bits<64>>,
    /// Its page.
    pub saved_parked_page: Signal<Out, Bits<2>>,
    /// The host line (low 6 bits) holds a write.
    pub saved_line_valid: Signal<Out, Bit>,
    /// Its data.
    pub saved_line_data: Signal<Out, Bits<512>>,
    /// Its line address.
    pub saved_line_line: Signal<Out, Bits<34>>,
    /// Its strobes.
    pub saved_line_strobes: Signal<Out, Bits<64>>,
    /// Its order number.
    pub saved_line_order: Signal<Out, Bits<64>>,
    /// Write a mapping entry; not while commands are taken.
    pub map_restore_valid: Signal<In, Bit>,
    /// Which.
    pub map_restore_index: Signal<In, Bits<4>>,
    /// What.
    pub map_restore: Signal<In, MapEntry>,
    /// A command to replay.
    pub inject_command_valid: Signal<In, Bit>,
    /// It was numbered or refused.
    pub inject_command_ready: Signal<Out, Bit>,
    /// Its bytes.
    pub inject_command: Signal<In, Bits<512>>,
    /// Its page.
    pub inject_page: Signal<In, Bits<2>>,
    /// Where it resumes; 0 from its entry.
    pub inject_resume: Signal<In, Bits<8>>,
    /// It waits for no device any more.
    pub inject_released: Signal<In, Bit>,
    /// It waited for other devices when the power went, and does so again.
    pub inject_parks: Signal<In, Bit>,
    /// Order number under which it was accepted.
    pub inject_accepted: Signal<In, Bits<64>>,
    /// What is injected retires with success without being executed.
    pub redo: Signal<In, Bit>,
    /// A store to replay.
    pub inject_store_valid: Signal<In, Bit>,
    /// It was numbered.
    pub inject_store_ready: Signal<Out, Bit>,
    /// Its line address.
    pub inject_store_line: Signal<In, Bits<34>>,
    /// Its data.
    pub inject_store_data: Signal<In, Bits<512>>,
    /// Its strobes.
    pub inject_store_strobes: Signal<In, Bits<64>>,
    /// A unit offers progress.
    pub gate_valid: Signal<Out, Bit>,
    /// Its instruction.
    pub gate_pc: Signal<Out, Bits<8>>,
    /// It may be taken.
    pub gate_ready: Signal<In, Bit>,
    /// Opcode whose descriptor is wanted.
    pub descriptor_index: Signal<Out, Bits<5>>,
    /// It, one cycle later.
    pub descriptor: Signal<In, Bits<32>>,
    /// See `Dispatcher`.
    pub issue_valid: [Signal<Out, Bit>; UNITS],
    /// See `Dispatcher`.
    pub issue_ready: [Signal<In, Bit>; UNITS],
    /// What is issued.
    pub work: Signal<Out, Work>,
    /// See `Dispatcher`.
    pub done_valid: [Signal<In, Bit>; UNITS],
    /// See `Dispatcher`.
    pub done_ready: [Signal<Out, Bit>; UNITS],
    /// See `Dispatcher`.
    pub done_slot: [Signal<In, Bits<5>>; UNITS],
    /// See `Dispatcher`.
    pub done_status: [Signal<In, Bits<8>>; UNITS],
    /// See `Dispatcher`.
    pub progress_valid: [Signal<In, Bit>; UNITS],
    /// See `Dispatcher`.
    pub progress_ready: [Signal<Out, Bit>; UNITS],
    /// See `Dispatcher`.
    pub progress_slot: [Signal<In, Bits<5>>; UNITS],
    /// See `Dispatcher`.
    pub progress_pc: [Signal<In, Bits<8>>; UNITS],
    /// A completion record is to be written.
    pub record_valid: Signal<Out, Bit>,
    /// It is taken.
    pub record_ready: Signal<In, Bit>,
    /// The record.
    pub record: Signal<Out, Record>,
    /// A message to every other device; see `MultiDevice`.
    pub peer_out_valid: Signal<Out, Bit>,
    /// It is taken.
    pub peer_out_ready: Signal<In, Bit>,
    /// The message.
    pub peer_out_data: Signal<Out, Message>,
    /// A message from another device.
    pub peer_in_valid: Signal<In, Bit>,
    /// It is taken.
    pub peer_in_ready: Signal<Out, Bit>,
    /// The message.
    pub peer_in_data: Signal<In, Message>,
    /// Pulse: `PARKED_ACT` was written.
    pub act_valid: Signal<In, Bit>,
    /// Its place.
    pub act_place: Signal<In, Bits<8>>,
    /// Its action.
    pub act_action: Signal<In, Bits<8>>,
    /// `PARKED_SELECT`.
    pub select: Signal<In, Bits<32>>,
    /// `PARKED`.
    pub parked: Signal<Out, Bits<32>>,
    /// The selected command.
    pub shown: Signal<Out, Brief>,
    /// `PARKED_REACHED`.
    pub shown_reached: Signal<Out, Bits<8>>,
    /// Mapping entries in use, but for those that a function-level reset left to commands that
    /// wait.
    pub mapped: Signal<Out, Bits<16>>,
    /// Mapping entries that are latched.
    pub latched: Signal<Out, Bits<16>>,
    /// Pulse: a command was numbered.
    pub ev_accepted: Signal<Out, Bit>,
    /// Pulse: a command retired with success.
    pub ev_retired: Signal<Out, Bit>,
    /// Pulse: a command was refused.
    pub ev_refused: Signal<Out, Bit>,
    /// Pulse: a command began and failed.
    pub ev_failed: Signal<Out, Bit>,
    /// Pulse: a full slot was dropped.
    pub ev_dropped: Signal<Out, Bit>,
    /// Pulse: a command has to wait for another item.
    pub ev_command_held: Signal<Out, Bit>,
    /// Pulse: a host access has to wait.
    pub ev_host_held: Signal<Out, Bit>,
    /// Pulse: a host read.
    pub ev_host_read: Signal<Out, Bit>,
    /// Pulse: a host write.
    pub ev_host_write: Signal<Out, Bit>,
    /// Pulse: a host access was refused.
    pub ev_host_refused: Signal<Out, Bit>,
    /// Pulse: a host access is refused because a latched log holds its line.
    pub ev_host_latched: Signal<Out, Bit>,
    /// Stores that memory refused.
    pub lost: Signal<Out, Lost>,
    /// There are some.
    pub lost_any: Signal<Out, Bit>,
    /// Pulse: memory refused a store.
    pub ev_lost: Signal<Out, Bit>,
    /// Pulse: software has acknowledged them.
    pub lost_forget: Signal<In, Bit>,
    /// Pulse: these are known from before the power went.
    pub lost_restore_valid: Signal<In, Bit>,
    /// See `lost_restore_valid`.
    pub lost_restore: Signal<In, Lost>,
    /// A command waits for a slot.
    pub ev_stall_request: Signal<Out, Bit>,
    /// A host access waits for a line.
    pub ev_stall_host: Signal<Out, Bit>,

    command_port: CommandPort,
    decoder: Decoder,
    address_map: AddressMap,
    ordering: OrderingPoint,
    ranges: RangeTable,
    matrix: DependencyMatrix,
    slots: RequestSlots,
    dispatcher: Dispatcher,
    host_port: HostPort,
    queue: HostQueue,
    multi: MultiDevice,
    losses: LostStores,
    injects_replay: Signal<Local, Bit>,
    discarded: Signal<Local, Bit>,
    ticket_in: Signal<Local, Ticket>,
    enters_released: Signal<Local, Bit>,
    saved_index: DFF<Bits<7>>,
    idle_now: DFF<Bit>,
    saved_live: Signal<Local, Bits<32>>,
    saved_ticket: Signal<Local, Ticket>,
    closed: Signal<Local, Bit>,
    retire_refused: Signal<Local, Bit>,
    #[default(Constant::new(Record::default()))]
    no_record: Constant<Record>,
    #[default(Constant::new(0.into()))]
    no_resume: Constant<Bits<8>>,
    #[default(Constant::new(u64::from(Status::Discarded.code()).into()))]
    discarded_status: Constant<Bits<8>>,
}

impl Front {
    /// With tables of these sizes.
    pub fn new(sizes: &Sizes) -> Self {
        Self {
            address_map: AddressMap::new(sizes),
            ordering: OrderingPoint::new(sizes),
            ranges: RangeTable::new(sizes),
            matrix: DependencyMatrix::new(sizes),
            slots: RequestSlots::new(sizes),
            dispatcher: Dispatcher::new(sizes),
            queue: HostQueue::new(sizes),
            multi: MultiDevice::new(sizes),
            ..Self::default()
        }
    }
}

impl Logic for Front {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, saved_index, idle_now);
        clock!(
            self,
            clock,
            command_port,
            decoder,
            address_map,
            ordering,
            ranges,
            matrix,
            slots,
            dispatcher,
            host_port,
            queue,
            multi,
            losses
        );
        self.command_port.reset.next = self.reset.val();
        self.decoder.reset.next = self.reset.val();
        self.address_map.reset.next = self.reset.val();
        self.address_map.clear.next = self.clear.val();
        self.address_map.keep.next = self.multi.waiting.val();
        self.multi.reset.next = self.reset.val();
        self.ordering.reset.next = self.reset.val();
        self.ranges.reset.next = self.reset.val();
        self.matrix.reset.next = self.reset.val();
        self.dispatcher.reset.next = self.reset.val();
        self.host_port.reset.next = self.reset.val();
        self.queue.reset.next = self.reset.val();
        self.losses.reset.next = self.reset.val();
        AxiSlave::<16, 512, 64, 6>::link(&mut self.cmd, &mut self.command_port.s);
        AxiSlave::<40, 512, 64, 6>::link(&mut self.host, &mut self.host_port.s);
        MemoryRequester::link(&mut self.mem, &mut self.queue.mem);

        // Command port to decoder. While the window is closed a full slot is dropped.
        self.closed.next = !self.window_open.val();
        self.command_port.stop.next = self.stop.val();
        self.command_port.clear.next = self.clear.val();
        self.command_port.order.next = self.ordering.order.val();
        self.command_port.latched.next = self.address_map.latched.val();
        self.command_port.parked.next = self.multi.busy.val();
        self.decoder.cmd_valid.next = self.command_port.cmd_valid.val() & !self.closed.val();
        self.decoder.cmd_data.next = self.command_port.cmd_data.val();
        self.decoder.cmd_page.next = self.command_port.cmd_page.val();
        self.command_port.cmd_ready.next = self.decoder.cmd_ready.val() | self.closed.val();
        self.command_port.cmd_done.next =
            self.decoder.cmd_done.val() | (self.command_port.cmd_valid.val() & self.closed.val());
        self.ev_dropped.next =
            self.command_port.ev_dropped.val() | (self.command_port.cmd_valid.val() & self.closed.val());
        // What was accepted before: a replay, while the window is closed, or what has waited for
        // other devices.
        self.injects_replay.next = self.inject_command_valid.val();
        self.decoder.inject_valid.next = self.injects_replay.val() | self.multi.release_valid.val();
        self.decoder.inject_data.next = self.multi.release_raw.val();
        self.decoder.inject_page.next = self.multi.release_page.val();
        self.decoder.inject_resume.next = self.no_resume.val();
        self.decoder.inject_released.next = true;
        self.decoder.inject_parks.next = false;
        self.decoder.inject_accepted.next = self.multi.release_order.val();
        if self.injects_replay.val() {
            self.decoder.inject_data.next = self.inject_command.val();
            self.decoder.inject_page.next = self.inject_page.val();
            self.decoder.inject_resume.next = self.inject_resume.val();
            self.decoder.inject_released.next = self.inject_released.val();
            self.decoder.inject_parks.next = self.inject_parks.val();
            self.decoder.inject_accepted.next = self.inject_accepted.val();
        }
        self.inject_command_ready.next = self.decoder.inject_ready.val();
        self.multi.release_taken.next = self.decoder.inject_taken.val() & !self.injects_replay.val();
        self.multi.release_ready.next = self.decoder.inject_ready.val();
        self.multi.slot_any.next = self.dispatcher.slot_any.val();
        self.decoder.speaks.next = self.multi.speaks.val();
        self.decoder.busy.next = self.multi.busy.val();
        self.decoder.full.next = self.multi.full.val();
        self.decoder.device_number.next = self.device_number.val();
        self.decoder.pm_lines.next = self.pm_lines.val();
        self.descriptor_index.next = self.decoder.descriptor_index.val();
        self.decoder.descriptor.next = self.descriptor.val();

        // Decoder and address map.
        self.address_map.lookup_pool.next = self.decoder.lookup_pool.val();
        self.address_map.lookup_thread.next = self.decoder.lookup_thread.val();
        self.decoder.found.next = self.address_map.found.val();
        self.decoder.found_index.next = self.address_map.found_index.val();
        self.decoder.entry.next = self.address_map.entry.val();
        self.decoder.any_free.next = self.address_map.any_free.val();
        self.decoder.free_index.next = self.address_map.free_index.val();
        self.address_map.write_valid.next = self.decoder.item_maps.val() & self.ordering.enter_slot.val();
        self.address_map.write_index.next = self.address_map.free_index.val();
        self.address_map.write_entry.next = self.decoder.item_entry.val();
        if self.map_restore_valid.val() {
            self.address_map.write_valid.next = true;
            self.address_map.write_index.next = self.map_restore_index.val();
            self.address_map.write_entry.next = self.map_restore.val();
        }
        // An unmap closes its entry as soon as it is offered: what failed logs hold may be the slot
        // that it waits for.
        self.address_map.close_valid.next = self.decoder.item_unmaps.val() & self.decoder.item_valid.val();
        self.address_map.close_index.next = self.address_map.found_index.val();
        self.address_map.commit_valid.next = self.dispatcher.commit_valid.val();
        self.address_map.latch_valid.next = self.dispatcher.latch_valid.val();
        self.address_map.free_valid.next = self.dispatcher.free_valid.val();
        self.address_map.retire_index.next = self.dispatcher.retire_map.val();
        self.address_map.txid.next = self.dispatcher.retire_txid.val();
        self.mapped.next = self.address_map.mapped.val() & !self.address_map.orphans.val();
        self.latched.next = self.address_map.latched.val();

        // Into the one order.
        self.ordering.item_valid.next = self.decoder.item_valid.val();
        self.decoder.item_ready.next = self.ordering.item_ready.val();
        self.ordering.item_work.next = self.decoder.item_work.val();
        self.ordering.item_ticket.next = self.decoder.item_ticket.val();
        self.ordering.item_ordered.next = self.decoder.item_ordered.val();
        self.ordering.item_again.next = self.decoder.item_again.val();
        self.ordering.item_accepted.next = self.decoder.item_accepted.val();
        self.ordering.restore_valid.next = self.restore_valid.val();
        self.ordering.restore_order.next = self.restore_order.val();
        for i in 0..3 {
            self.ordering.item_ranges[i].next = self.decoder.item_ranges[i].val();
            self.ordering.item_first[i].next = self.decoder.item_first[i].val();
            self.ordering.item_last[i].next = self.decoder.item_last[i].val();
            self.ranges.slot_ranges[i].next = self.decoder.item_ranges[i].val();
            self.ranges.slot_first[i].next = self.decoder.item_first[i].val();
            self.ranges.slot_last[i].next = self.decoder.item_last[i].val();
        }
        self.ordering.slot_any.next = self.dispatcher.slot_any.val();
        self.ordering.slot_index.next = self.dispatcher.slot_index.val();
        self.ordering.acc_valid.next = self.host_port.acc_valid.val();
        self.ordering.acc_write.next = self.host_port.acc_write.val();
        self.ordering.acc_line.next = self.host_port.acc_line.val();
        self.host_port.acc_ready.next = self.ordering.acc_ready.val();
        self.ordering.store_valid.next = self.inject_store_valid.val();
        self.ordering.store_line.next = self.inject_store_line.val();
        self.inject_store_ready.next = self.ordering.store_ready.val();
        self.ordering.line_any.next = self.queue.free_any.val();
        self.ordering.line_index.next = self.queue.free_index.val();
        self.order.next = self.ordering.order.val();

        self.ranges.slot_valid.next = self.ordering.enter_slot.val();
        self.ranges.slot_index.next = self.dispatcher.slot_index.val();
        self.ranges.slot_map.next = self.ordering.query_map.val();
        self.ranges.line_valid.next = self.ordering.enter_line.val();
        self.ranges.line_index.next = self.queue.free_index.val();
        self.ranges.line_address.next = self.ordering.enter_address.val();
        self.ranges.line_write.next = self.ordering.enter_write.val();
        self.ranges.query_valid.next = self.ordering.query_valid.val();
        self.ranges.query_first.next = self.ordering.query_first.val();
        self.ranges.query_last.next = self.ordering.query_last.val();
        self.ranges.query_range.next = self.ordering.query_range.val();
        self.ranges.query_write.next = self.ordering.query_write.val();
        self.ranges.query_command.next = self.ordering.query_command.val();
        self.ranges.query_ordered.next = self.ordering.query_ordered.val();
        self.ranges.query_map.next = self.ordering.query_map.val();
        self.ranges.query_row.next = self.ordering.query_row.val();
        self.ranges.query_end.next = self.ordering.query_end.val();
        self.ranges.close_valid.next = self.decoder.item_unmaps.val() & self.decoder.item_valid.val();
        self.ranges.close_map.next = self.address_map.found_index.val();
        self.decoder.slots_lost.next = self.dispatcher.slots_lost.val();
        self.ranges.close_all.next = self.clear.val();
        self.ranges.retire_slot_valid.next = self.dispatcher.retire_valid.val();
        self.ranges.retire_slot.next = self.dispatcher.retire_slot.val();
        self.ranges.retire_failed.next = self.dispatcher.retire_failed.val();
        self.ranges.retire_write_valid.next = self.queue.retw_valid.val();
        self.ranges.retire_write.next = self.queue.retw_index.val();
        self.ranges.retire_read_valid.next = self.queue.retr_valid.val();
        self.ranges.retire_read.next = self.queue.retr_index.val();

        self.matrix.enter_valid.next = self.ordering.enter_slot.val() | self.ordering.enter_line.val();
        self.matrix.enter_row.next = self.ordering.enter_row.val();
        self.matrix.set_valid.next = self.ranges.hits_valid.val();
        self.matrix.set_row.next = self.ranges.hits_row.val();
        self.matrix.set_bits.next = self.ranges.hits.val();
        self.matrix.set_end.next = self.ranges.hits_end.val();
        self.matrix.retire_slot_valid.next = self.dispatcher.retire_valid.val();
        self.matrix.retire_slot.next = self.dispatcher.retire_slot.val();
        self.matrix.retire_failed.next = self.dispatcher.retire_failed.val();
        self.matrix.let_go.next = self.ranges.let_go.val();
        self.matrix.kept_lines.next = self.queue.kept_lines.val();
        self.matrix.retire_write_valid.next = self.queue.retw_valid.val();
        self.matrix.retire_write.next = self.queue.retw_index.val();
        self.matrix.retire_read_valid.next = self.queue.retr_valid.val();
        self.matrix.retire_read.next = self.queue.retr_index.val();

        self.slots.write_valid.next = self.ordering.enter_slot.val();
        self.slots.write_slot.next = self.dispatcher.slot_index.val();
        self.slots.write_raw.next = self.decoder.item_raw.val();
        self.slots.write_work.next = self.ordering.enter_work.val();
        self.slots.write_ticket.next = self.ordering.enter_ticket.val();
        self.slots.write_accepted.next = self.ordering.enter_accepted.val();
        self.slots.write_resume.next = self.decoder.item_resume.val();
        self.slots.progress_valid.next = self.dispatcher.store_progress.val();
        self.slots.progress_slot.next = self.dispatcher.store_slot.val();
        self.slots.progress_pc.next = self.dispatcher.gate_pc.val();
        self.slots.issue_slot.next = self.dispatcher.issue_slot.val();
        self.slots.retire_slot.next = self.dispatcher.retire_slot.val();

        // Issue, retirement, progress.
        self.dispatcher.quiesce.next = self.quiesce.val();
        self.dispatcher.redo.next = self.redo.val();
        self.dispatcher.enter_valid.next = self.ordering.enter_slot.val();
        self.dispatcher.ready.next = self.matrix.ready_slots.val();
        self.dispatcher.blocked.next = self.matrix.blocked_slots.val();
        self.dispatcher.let_go.next = self.ranges.let_go.val();
        self.dispatcher.issue_ticket.next = self.slots.issue_ticket.val();
        self.dispatcher.retire_ticket.next = self.slots.retire_ticket.val();
        self.dispatcher.latched.next = self.address_map.latched.val();
        self.dispatcher.closing.next = self.address_map.closing.val();
        self.work.next = self.slots.issue_work.val();
        for i in 0..4 {
            self.issue_valid[i].next = self.dispatcher.issue_valid[i].val();
            self.dispatcher.issue_ready[i].next = self.issue_ready[i].val();
            self.dispatcher.done_valid[i].next = self.done_valid[i].val();
            self.done_ready[i].next = self.dispatcher.done_ready[i].val();
            self.dispatcher.done_slot[i].next = self.done_slot[i].val();
            self.dispatcher.done_status[i].next = self.done_status[i].val();
            self.dispatcher.progress_valid[i].next = self.progress_valid[i].val();
            self.progress_ready[i].next = self.dispatcher.progress_ready[i].val();
            self.dispatcher.progress_slot[i].next = self.progress_slot[i].val();
            self.dispatcher.progress_pc[i].next = self.progress_pc[i].val();
        }
        self.gate_valid.next = self.dispatcher.gate_valid.val();
        self.gate_pc.next = self.dispatcher.gate_pc.val();
        self.dispatcher.gate_ready.next = self.gate_ready.val();

        // Records: retirement first; a refusal of the decoder waits, and behind it what software
        // has taken away.
        self.record.next = self.no_record.val();
        self.discarded.next = self.multi.discard_valid.val();
        self.record_valid.next =
            self.dispatcher.record_valid.val() | self.decoder.refused_valid.val() | self.discarded.val();
        self.multi.discard_ready.next =
            self.record_ready.val() & !self.dispatcher.record_valid.val() & !self.decoder.refused_valid.val();
        self.dispatcher.record_ready.next = self.record_ready.val();
        self.decoder.refused_ready.next = self.record_ready.val() & !self.dispatcher.record_valid.val();
        if self.dispatcher.record_valid.val() {
            self.record.next.tag = self.dispatcher.retire_tag.val();
            self.record.next.status = self.dispatcher.retire_status.val();
            self.record.next.page = self.dispatcher.retire_page.val();
            self.record.next.order = self.dispatcher.retire_order.val();
        } else if self.discarded.val() {
            self.record.next.tag = self.multi.discard_tag.val();
            self.record.next.status = self.discarded_status.val();
            self.record.next.page = self.multi.discard_page.val();
        } else {
            self.record.next.tag = self.decoder.refused_tag.val();
            self.record.next.status = self.decoder.refused_status.val();
            self.record.next.page = self.decoder.refused_page.val();
        }
        self.command_port.accepted_valid.next = self.decoder.cmd_done.val() & !self.decoder.refused_valid.val();
        self.command_port.accepted_page.next = self.decoder.refused_page.val();
        // What a replay does was accepted, and counted, before the power went.
        self.command_port.retired_valid.next = self.dispatcher.retire_ok.val() & !self.closed.val();
        self.command_port.retired_page.next = self.dispatcher.retire_page.val();
        self.command_port.failed_valid.next = self.dispatcher.retire_bad.val() & !self.closed.val();
        self.command_port.failed_page.next = self.dispatcher.retire_page.val();
        self.command_port.failed_tag.next = self.dispatcher.retire_tag.val();
        self.command_port.failed_status.next = self.dispatcher.retire_status.val();
        self.retire_refused.next = self.dispatcher.retire_refused.val();
        self.command_port.refused_valid.next =
            (self.retire_refused.val() | self.decoder.refused_valid.val() | self.discarded.val()) & !self.closed.val();
        self.command_port.refused_page.next = self.decoder.refused_page.val();
        self.command_port.refused_tag.next = self.decoder.refused_tag.val();
        self.command_port.refused_status.next = self.decoder.refused_status.val();
        if self.discarded.val() {
            self.command_port.refused_page.next = self.multi.discard_page.val();
            self.command_port.refused_tag.next = self.multi.discard_tag.val();
            self.command_port.refused_status.next = self.discarded_status.val();
        }
        if self.retire_refused.val() {
            self.command_port.refused_page.next = self.dispatcher.retire_page.val();
            self.command_port.refused_tag.next = self.dispatcher.retire_tag.val();
            self.command_port.refused_status.next = self.dispatcher.retire_status.val();
        }

        // Host accesses.
        self.host_port.window_open.next = self.window_open.val();
        self.host_port.pm_lines.next = self.pm_lines.val();
        self.host_port.firmware_slot.next = self.firmware_slot.val();
        self.host_port.firmware_ok.next = self.firmware_ok.val();
        self.host_port.hold.next = self.command_port.busy.val();
        self.command_port.host_asks.next = self.host_port.asks.val() & self.queue.free_any.val();
        self.command_port.host_takes.next = self.host_port.takes.val();
        self.host_port.stop.next = self.stop.val();
        self.host_port.status_waits.next = self.cmd.arvalid.val() & !self.cmd.rvalid.val();
        self.command_port.host_writes_pending.next = self.host_port.writes_pending.val();
        self.host_port.rsp_valid.next = self.queue.rsp_valid.val();
        self.host_port.rsp_id.next = self.queue.rsp_id.val();
        self.host_port.rsp_data.next = self.queue.rsp_data.val();
        self.host_port.rsp_error.next = self.queue.rsp_error.val();
        self.queue.rsp_ready.next = self.host_port.rsp_ready.val();
        self.queue.quiesce.next = self.quiesce.val();
        self.queue.ready.next = self.matrix.ready_lines.val();
        self.queue.held.next = self.matrix.held_lines.val();
        self.queue.ins_valid.next = self.ordering.enter_line.val();
        self.queue.ins_write.next = self.ordering.enter_write.val();
        self.queue.ins_line.next = self.ordering.enter_address.val();
        self.queue.ins_order.next = self.ordering.enter_order.val();
        self.queue.ins_id.next = self.host_port.acc_id.val();
        self.queue.ins_data.next = self.host_port.acc_data.val();
        self.queue.ins_strb.next = self.host_port.acc_strb.val();
        if self.inject_store_valid.val() {
            self.queue.ins_data.next = self.inject_store_data.val();
            self.queue.ins_strb.next = self.inject_store_strobes.val();
        }

        // A store that memory refuses was accepted: its pool is latched, and software hears of it.
        self.losses.refused.next = self.queue.lost.val();
        self.losses.line.next = self.queue.lost_line.val();
        self.losses.forget.next = self.lost_forget.val();
        self.losses.restore_valid.next = self.lost_restore_valid.val();
        self.losses.restore.next = self.lost_restore.val();
        self.lost.next = self.losses.lost.val();
        self.lost_any.next = self.losses.any.val();
        self.ev_lost.next = self.queue.lost.val();
        self.command_port.stores_lost.next = self.losses.lost.val().count;
        self.address_map.lost_valid.next = self.queue.lost.val();
        self.address_map.lost_line.next = self.queue.lost_line.val();

        // Save read-out, one cycle after the index.
        self.saved_index.d.next = self.save_index.val();
        self.address_map.save_index.next = self.multi.look_map.val();
        if self.quiesce.val() {
            self.address_map.save_index.next = self.save_index.val().get_bits::<4>(0);
        }
        self.saved_map.next = self.address_map.saved.val();
        self.slots.save_slot.next = self.dispatcher.retire_slot.val();
        if self.quiesce.val() & !self.dispatcher.park_valid.val() {
            self.slots.save_slot.next = self.saved_index.q.val().get_bits::<5>(0);
        }
        self.saved_live.next = self.dispatcher.live.val() >> self.saved_index.q.val().get_bits::<5>(0);
        self.saved_slot_valid.next = self.saved_live.val().get_bit(0);
        self.saved_ticket.next = self.slots.save_ticket.val();
        self.saved_slot_command.next = self.slots.save_raw.val();
        self.saved_slot_order.next = self.slots.save_accepted.val();
        self.saved_slot_released.next = self.saved_ticket.val().released;
        self.saved_parked_valid.next = self.multi.saved_valid.val();
        self.saved_parked_command.next = self.multi.saved_raw.val();
        self.saved_parked_order.next = self.multi.saved_order.val();
        self.saved_parked_page.next = self.multi.saved_page.val();
        self.multi.save_place.next = self.saved_index.q.val().get_bits::<5>(0);
        self.saved_slot_page.next = self.saved_ticket.val().page;
        self.saved_slot_resume.next = self.slots.save_resume.val();
        self.queue.save_index.next = self.save_index.val().get_bits::<6>(0);
        self.saved_line_valid.next = self.queue.save_valid.val();
        self.saved_line_data.next = self.queue.save_data.val();
        self.saved_line_line.next = self.queue.save_line.val();
        self.saved_line_strobes.next = self.queue.save_strb.val();
        self.saved_line_order.next = self.queue.save_order.val();

        // Commands that wait for other devices.
        self.multi.device_number.next = self.device_number.val();
        self.multi.numbered.next = self.numbered.val();
        self.multi.clear.next = self.clear.val();
        self.multi.window_open.next = self.window_open.val();
        self.multi.stop.next = self.stop.val();
        self.multi.quiesce.next = self.quiesce.val();
        self.ticket_in.next = self.decoder.item_ticket.val();
        self.enters_released.next = self.ticket_in.val().released;
        self.multi.keep_valid.next = self.ordering.enter_slot.val() & self.ticket_in.val().parks;
        self.multi.keep_map.next = self.ticket_in.val().map;
        self.multi.let_valid.next = self.ordering.enter_slot.val() & self.enters_released.val();
        self.multi.let_map.next = self.ticket_in.val().map;
        self.multi.give_valid.next = self.dispatcher.give_valid.val();
        self.multi.give_map.next = self.dispatcher.retire_map.val();
        self.multi.back_valid.next = self.dispatcher.back_valid.val();
        self.multi.back_map.next = self.dispatcher.retire_map.val();
        self.multi.back_failed.next = self.dispatcher.retire_failed.val();
        self.multi.close_valid.next = self.decoder.item_unmaps.val() & self.decoder.item_valid.val();
        self.multi.close_map.next = self.address_map.found_index.val();
        self.multi.park_valid.next = self.dispatcher.park_valid.val();
        self.multi.park_raw.next = self.slots.save_raw.val();
        self.multi.park_order.next = self.slots.save_accepted.val();
        self.multi.park_ticket.next = self.slots.retire_ticket.val();
        self.parked_any.next = self.multi.any.val();
        self.multi.looked.next = self.address_map.saved.val();
        self.address_map.peer_pool.next = self.multi.lookup_pool.val();
        self.address_map.peer_thread.next = self.multi.lookup_thread.val();
        self.multi.lookup_found.next = self.address_map.peer_found.val();
        self.multi.lookup_index.next = self.address_map.peer_index.val();
        self.address_map.reach_valid.next = self.multi.reach_valid.val();
        self.address_map.reach_index.next = self.multi.reach_map.val();
        self.address_map.reach_txid.next = self.multi.reach_txid.val();
        self.address_map.reopen_valid.next = self.multi.reopen_valid.val();
        self.address_map.reopen_index.next = self.multi.reach_map.val();
        self.address_map.drop.next = self.multi.drop.val();
        self.multi.orphans.next = self.address_map.orphans.val();
        self.multi.forget_valid.next = self.address_map.write_valid.val();
        self.multi.forget_map.next = self.address_map.write_index.val();
        self.multi.act_valid.next = self.act_valid.val();
        self.multi.act_place.next = self.act_place.val();
        self.multi.act_action.next = self.act_action.val();
        self.multi.select.next = self.select.val();
        self.parked.next = self.multi.parked.val();
        self.shown.next = self.multi.shown.val();
        self.shown_reached.next = self.multi.shown_reached.val();
        self.address_map.shown_index.next = self.multi.shown_map.val();
        self.multi.shown_turn.next = self.address_map.shown_reached.val();
        self.peer_out_valid.next = self.multi.peer_out_valid.val();
        self.multi.peer_out_ready.next = self.peer_out_ready.val();
        self.peer_out_data.next = self.multi.peer_out_data.val();
        self.multi.peer_in_valid.next = self.peer_in_valid.val();
        self.peer_in_ready.next = self.multi.peer_in_ready.val();
        self.multi.peer_in_data.next = self.peer_in_data.val();

        self.quiet.next = self.dispatcher.quiet.val() & self.queue.quiet.val() & !self.ordering.busy.val();
        self.idle_now.d.next =
            self.dispatcher.empty.val() & self.queue.empty.val() & self.decoder.idle.val() & !self.ordering.busy.val();
        self.idle.next = self.idle_now.q.val();

        // `ev_failed` is also Persistence's to hear: what fails in a replay is a loss.
        self.ev_accepted.next = self.ordering.enter_slot.val() & !self.enters_released.val() & !self.closed.val();
        self.ev_retired.next = self.dispatcher.retire_ok.val() & !self.closed.val();
        self.ev_refused.next =
            (self.retire_refused.val() | self.decoder.refused_valid.val() | self.discarded.val()) & !self.closed.val();
        self.ev_failed.next = self.dispatcher.retire_bad.val();
        self.ev_command_held.next = self.matrix.held_command.val();
        self.ev_host_held.next = self.matrix.held_host.val();
        self.ev_host_read.next = self.host_port.ev_read.val();
        self.ev_host_write.next = self.host_port.ev_write.val();
        self.ev_host_refused.next = self.host_port.ev_refused.val();
        self.ev_host_latched.next = self.queue.ev_latched.val();
        self.ev_stall_request.next = self.decoder.item_valid.val() & !self.dispatcher.slot_any.val();
        self.ev_stall_host.next = self.host_port.acc_valid.val() & !self.queue.free_any.val();
    }
}
