//! The whole card.

use crate::bundles::{AxiLiteSlave, AxiMaster, AxiSlave, AxiWriteMaster, MemoryRequester};
use crate::dut::Ports;
use crate::sizes::Sizes;
use crate::units::back::Back;
use crate::units::completion_writer::CompletionWriter;
use crate::units::front::Front;
use crate::units::multi_device::Message;
use crate::units::persistence::Persistence;
use crate::units::registers::Registers;
use nearpm_interface::geometry::{COMMAND_PAGES, UNITS};
use rust_hdl::prelude::*;

/// The card between its AXI ports; see `docs/hardware.md`.
///
/// Makes no promise of its own: it only joins [`Front`], [`Back`], [`Persistence`], [`Registers`]
/// and [`CompletionWriter`]. `reset` and `power_fail` are synchronous to the clock; the Verilog
/// wrapper brings them there.
#[derive(Default, LogicBlock, Ports)]
pub struct Card<const U: usize = UNITS> {
    /// Rising edge; 300 MHz on the VCU118.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: the card boots when it goes low.
    pub reset: Signal<In, Bit>,
    /// Power is about to go: save. Stays high.
    pub power_fail: Signal<In, Bit>,
    /// What has to survive is durable: power may go.
    pub save_done: Signal<Out, Bit>,
    /// Bytes of memory, a multiple of 64; constant.
    pub pm_bytes: Signal<In, Bits<64>>,
    /// The PM window; addresses are device addresses.
    pub s_axi_host: AxiSlave<40, 512, 64, 6>,
    /// The command pages.
    pub s_axi_cmd: AxiSlave<16, 512, 64, 6>,
    /// The registers.
    pub s_axil_ctrl: AxiLiteSlave<12, 32, 4>,
    /// The memory.
    pub m_axi_mem0: AxiMaster<40, 512, 64, 6>,
    /// Completion records into host memory.
    pub m_axi_cpl: AxiWriteMaster<64, 512, 64, 1>,
    /// A message to every other device.
    pub peer_out_valid: Signal<Out, Bit>,
    /// The message is taken.
    pub peer_out_ready: Signal<In, Bit>,
    /// The message.
    pub peer_out_data: Signal<Out, Message>,
    /// A message from another device.
    pub peer_in_valid: Signal<In, Bit>,
    /// The message is taken.
    pub peer_in_ready: Signal<Out, Bit>,
    /// The message.
    pub peer_in_data: Signal<In, Message>,

    front: Front,
    back: Back<U>,
    persistence: Persistence,
    registers: Registers,
    completions: CompletionWriter,
}

impl<const U: usize> Card<U> {
    /// A card with `U` units and tables of these sizes, whose `CAPABILITIES` register has these
    /// bits.
    pub fn new(capabilities: u32, sizes: &Sizes) -> Self {
        sizes.check();
        Self {
            front: Front::new(sizes),
            persistence: Persistence::new(sizes),
            registers: Registers::new(capabilities, sizes.geometry(U)),
            ..Self::default()
        }
    }
}

impl<const U: usize> Logic for Card<U> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, front, back, persistence, registers, completions);
        self.front.reset.next = self.reset.val();
        self.back.reset.next = self.reset.val();
        self.persistence.reset.next = self.reset.val();
        self.registers.reset.next = self.reset.val();
        self.completions.reset.next = self.reset.val();

        AxiSlave::<40, 512, 64, 6>::link(&mut self.s_axi_host, &mut self.front.host);
        AxiSlave::<16, 512, 64, 6>::link(&mut self.s_axi_cmd, &mut self.front.cmd);
        AxiLiteSlave::<12, 32, 4>::link(&mut self.s_axil_ctrl, &mut self.registers.axi);
        AxiMaster::<40, 512, 64, 6>::link(&mut self.m_axi_mem0, &mut self.back.m);
        AxiWriteMaster::<64, 512, 64, 1>::link(&mut self.m_axi_cpl, &mut self.completions.axi);
        MemoryRequester::join(&mut self.front.mem, &mut self.back.host);
        MemoryRequester::join(&mut self.persistence.mem, &mut self.back.system);

        // Persistence and the tables.
        self.persistence.power_fail.next = self.power_fail.val();
        self.save_done.next = self.persistence.save_done.val();
        self.front.window_open.next = self.persistence.window_open.val();
        self.front.stop.next = self.persistence.stop.val();
        self.front.quiesce.next = self.persistence.quiesce.val();
        self.front.clear.next = self.persistence.clear.val();
        self.front.save_index.next = self.persistence.save_index.val();
        self.front.map_restore_valid.next = self.persistence.map_restore_valid.val();
        self.front.map_restore_index.next = self.persistence.map_restore_index.val();
        self.front.map_restore.next = self.persistence.map_restore.val();
        self.front.inject_command_valid.next = self.persistence.inject_command_valid.val();
        self.front.inject_command.next = self.persistence.inject_command.val();
        self.front.inject_page.next = self.persistence.inject_page.val();
        self.front.inject_resume.next = self.persistence.inject_resume.val();
        self.front.inject_released.next = self.persistence.inject_released.val();
        self.front.inject_parks.next = self.persistence.inject_parks.val();
        self.front.inject_accepted.next = self.persistence.inject_accepted.val();
        self.front.restore_valid.next = self.persistence.restore_valid.val();
        self.front.restore_order.next = self.persistence.restore_order.val();
        self.front.redo.next = self.persistence.redo.val();
        self.front.inject_store_valid.next = self.persistence.inject_store_valid.val();
        self.front.inject_store_line.next = self.persistence.inject_store_line.val();
        self.front.inject_store_data.next = self.persistence.inject_store_data.val();
        self.front.inject_store_strobes.next = self.persistence.inject_store_strobes.val();
        self.front.gate_ready.next = self.persistence.gate_ready.val();
        self.persistence.idle.next = self.front.idle.val();
        self.persistence.order.next = self.front.order.val();
        self.persistence.saved_map.next = self.front.saved_map.val();
        self.persistence.saved_slot_valid.next = self.front.saved_slot_valid.val();
        self.persistence.saved_slot_command.next = self.front.saved_slot_command.val();
        self.persistence.saved_slot_order.next = self.front.saved_slot_order.val();
        self.persistence.saved_slot_page.next = self.front.saved_slot_page.val();
        self.persistence.saved_slot_resume.next = self.front.saved_slot_resume.val();
        self.persistence.saved_slot_released.next = self.front.saved_slot_released.val();
        self.persistence.saved_parked_valid.next = self.front.saved_parked_valid.val();
        self.persistence.saved_parked_command.next = self.front.saved_parked_command.val();
        self.persistence.saved_parked_order.next = self.front.saved_parked_order.val();
        self.persistence.saved_parked_page.next = self.front.saved_parked_page.val();
        self.persistence.parked_any.next = self.front.parked_any.val();
        self.persistence.device_number.next = self.registers.device_number.val();
        self.persistence.saved_line_valid.next = self.front.saved_line_valid.val();
        self.persistence.saved_line_data.next = self.front.saved_line_data.val();
        self.persistence.saved_line_line.next = self.front.saved_line_line.val();
        self.persistence.saved_line_strobes.next = self.front.saved_line_strobes.val();
        self.persistence.saved_line_order.next = self.front.saved_line_order.val();
        self.persistence.inject_command_ready.next = self.front.inject_command_ready.val();
        self.persistence.inject_store_ready.next = self.front.inject_store_ready.val();
        self.persistence.gate_valid.next = self.front.gate_valid.val();
        self.persistence.gate_pc.next = self.front.gate_pc.val();
        self.persistence.quiet.next = self.front.quiet.val() & self.back.quiet.val();
        self.persistence.failed.next = self.front.ev_failed.val();
        self.persistence.store_failed.next = self.front.ev_lost.val();
        self.persistence.lost.next = self.front.lost.val();
        self.persistence.lost_any.next = self.front.lost_any.val();
        self.front.lost_forget.next = self.persistence.lost_forget.val();
        self.front.lost_restore_valid.next = self.persistence.restore_valid.val();
        self.front.lost_restore.next = self.persistence.restore_lost.val();
        self.persistence.latched_any.next = self.front.latched.val().any();

        // Firmware.
        self.back.firmware_load.next = self.persistence.firmware_load.val();
        self.back.firmware_slot.next = self.persistence.firmware_slot.val();
        self.back.firmware_boot.next = self.persistence.firmware_boot.val();
        self.back.firmware_expect.next = self.persistence.firmware_expect.val();
        self.persistence.firmware_busy.next = self.back.firmware_busy.val();
        self.persistence.firmware_ok.next = self.back.firmware_ok.val();
        self.persistence.firmware_crc.next = self.back.firmware_crc.val();
        self.back.descriptor_index[0].next = self.front.descriptor_index.val();
        self.back.descriptor_index[1].next = 0.into();
        self.front.descriptor.next = self.back.descriptor[0].val();
        self.front.firmware_ok.next = self.back.firmware_ok.val();
        self.front.firmware_slot.next = self.back.firmware_slot_in_force.val().get_bit(0);

        // Commands to the units and back.
        self.back.work.next = self.front.work.val();
        self.back.quiesce.next = self.persistence.quiesce.val();
        for i in 0..U {
            self.back.issue_valid[i].next = self.front.issue_valid[i].val();
            self.front.issue_ready[i].next = self.back.issue_ready[i].val();
            self.front.done_valid[i].next = self.back.done_valid[i].val();
            self.back.done_ready[i].next = self.front.done_ready[i].val();
            self.front.done_slot[i].next = self.back.done_slot[i].val();
            self.front.done_status[i].next = self.back.done_status[i].val();
            self.front.progress_valid[i].next = self.back.progress_valid[i].val();
            self.back.progress_ready[i].next = self.front.progress_ready[i].val();
            self.front.progress_slot[i].next = self.back.progress_slot[i].val();
            self.front.progress_pc[i].next = self.back.progress_pc[i].val();
        }

        for i in U..UNITS {
            self.front.issue_ready[i].next = false;
            self.front.done_valid[i].next = false;
            self.front.done_slot[i].next = 0.into();
            self.front.done_status[i].next = 0.into();
            self.front.progress_valid[i].next = false;
            self.front.progress_slot[i].next = 0.into();
            self.front.progress_pc[i].next = 0.into();
        }

        // Other devices.
        self.front.device_number.next = self.registers.device_number.val();
        self.front.numbered.next = self.registers.numbered.val();
        self.registers.device_restore_valid.next = self.persistence.restore_valid.val();
        self.registers.device_restore.next = self.persistence.restore_device.val();
        self.peer_out_valid.next = self.front.peer_out_valid.val();
        self.front.peer_out_ready.next = self.peer_out_ready.val();
        self.peer_out_data.next = self.front.peer_out_data.val();
        self.front.peer_in_valid.next = self.peer_in_valid.val();
        self.peer_in_ready.next = self.front.peer_in_ready.val();
        self.front.peer_in_data.next = self.peer_in_data.val();
        self.front.act_valid.next = self.registers.act_valid.val();
        self.front.act_place.next = self.registers.act_place.val();
        self.front.act_action.next = self.registers.act_action.val();
        self.front.select.next = self.registers.select.val();
        self.registers.parked.next = self.front.parked.val();
        self.registers.shown_command.next = self.front.shown.val();
        self.registers.shown_reached.next = self.front.shown_reached.val();

        // Completion records.
        self.completions.record_valid.next = self.front.record_valid.val();
        self.front.record_ready.next = self.completions.record_ready.val();
        self.completions.record.next = self.front.record.val();
        self.completions.clear.next = self.persistence.clear.val();
        self.completions.quiesce.next = self.persistence.quiesce.val();
        for i in 0..COMMAND_PAGES {
            self.completions.ring_base[i].next = self.registers.ring_base[i].val();
            self.completions.ring_size[i].next = self.registers.ring_size[i].val();
            self.completions.ring_start[i].next = self.registers.ring_start[i].val();
        }

        // Registers.
        self.front.pm_lines.next = self.pm_bytes.val().get_bits::<34>(6);
        self.registers.pm_bytes.next = self.pm_bytes.val();
        self.registers.clear.next = self.persistence.clear.val();
        self.registers.state.next = self.persistence.state.val();
        self.registers.generation.next = self.persistence.generation.val();
        self.registers.replayed.next = self.persistence.replayed.val();
        self.registers.save_cycles.next = self.persistence.save_cycles.val();
        self.registers.load_waits.next = self.persistence.load_waits.val();
        self.registers.load_refused.next = self.persistence.load_refused.val();
        self.registers.latched.next = self.front.latched.val();
        self.registers.mapped.next = self.front.mapped.val();
        self.registers.lost.next = self.front.lost.val();
        self.registers.firmware_status.next = self.back.firmware_status.val();
        self.registers.firmware_slot.next = self.back.firmware_slot_in_force.val();
        self.registers.firmware_crc.next = self.back.firmware_crc.val();
        self.persistence.shut_down.next = self.registers.shut_down.val();
        self.persistence.acknowledge_loss.next = self.registers.acknowledge_loss.val();
        self.persistence.function_reset.next = self.registers.function_reset.val();
        self.persistence.load_request.next = self.registers.load_request.val();
        self.persistence.load_slot.next = self.registers.load_slot.val();
        self.registers.commands_accepted.next = self.front.ev_accepted.val();
        self.registers.commands_retired.next = self.front.ev_retired.val();
        self.registers.commands_refused.next = self.front.ev_refused.val();
        self.registers.commands_failed.next = self.front.ev_failed.val();
        self.registers.commands_dropped.next = self.front.ev_dropped.val();
        self.registers.commands_held.next = self.front.ev_command_held.val();
        self.registers.host_reads.next = self.front.ev_host_read.val();
        self.registers.host_writes.next = self.front.ev_host_write.val();
        self.registers.host_held.next = self.front.ev_host_held.val();
        self.registers.host_refused.next = self.front.ev_host_refused.val();
        self.registers.host_latched.next = self.front.ev_host_latched.val();
        self.registers.records_lost.next = self.completions.ev_lost.val();
        self.registers.unit_read_lines.next = self.back.ev_read_line.val();
        self.registers.unit_write_lines.next = self.back.ev_write_line.val();
        self.registers.direction_switches.next = self.back.ev_direction.val();
        self.registers.stall_request_full.next = self.front.ev_stall_request.val();
        self.registers.stall_host_full.next = self.front.ev_stall_host.val();
    }
}
