//! The execution side of the card.

use super::firmware_store::FirmwareStore;
use super::memory_port::MemoryPort;
use super::nearpm_unit::NearPmUnit;
use super::system_mux::SystemMux;
use crate::bundles::{AxiMaster, MemoryRequester, MemoryResponder, Work};
use crate::dut::Ports;
use nearpm_interface::geometry::UNITS;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// `U` units, 1 to 4, the firmware store and the memory port. A card has four; fewer are for a part
/// that is too small for them, and the memory port's requesters that would be the others' never
/// ask.
///
/// Guarantees and bounds are those of [`NearPmUnit`], [`FirmwareStore`] and [`MemoryPort`]. The
/// firmware store shares the requester `system` with Persistence.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct Back<const U: usize = UNITS> {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high.
    pub reset: Signal<In, Bit>,

    /// A command is issued to the unit; to one unit at a time.
    #[default(each())]
    pub issue_valid: [Signal<In, Bit>; U],
    /// A context of the unit is free.
    #[default(each())]
    pub issue_ready: [Signal<Out, Bit>; U],
    /// The command, for whichever unit it is issued to.
    pub work: Signal<In, Work>,
    /// A command of the unit is done. Stays until it is taken.
    #[default(each())]
    pub done_valid: [Signal<Out, Bit>; U],
    /// That is noted.
    #[default(each())]
    pub done_ready: [Signal<In, Bit>; U],
    /// Its request slot.
    #[default(each())]
    pub done_slot: [Signal<Out, Bits<5>>; U],
    /// Its status.
    #[default(each())]
    pub done_status: [Signal<Out, Bits<8>>; U],
    /// A command of the unit waited, and everything before is durable. Stays until it is taken.
    #[default(each())]
    pub progress_valid: [Signal<Out, Bit>; U],
    /// That is noted: the command goes on.
    #[default(each())]
    pub progress_ready: [Signal<In, Bit>; U],
    /// Its request slot.
    #[default(each())]
    pub progress_slot: [Signal<Out, Bits<5>>; U],
    /// Where a replay resumes.
    #[default(each())]
    pub progress_pc: [Signal<Out, Bits<8>>; U],

    /// The units request no new burst.
    pub quiesce: Signal<In, Bit>,
    /// No burst of anybody is requested or outstanding, and no unit has a command whose end is not
    /// told.
    pub quiet: Signal<Out, Bit>,

    /// Pulse while not busy: load a firmware image. Only while no unit has a command.
    pub firmware_load: Signal<In, Bit>,
    /// Its slot, 0 or 1.
    pub firmware_slot: Signal<In, Bits<8>>,
    /// Boot: the image must have the checksum `firmware_expect`, and the firmware word stands
    /// already.
    pub firmware_boot: Signal<In, Bit>,
    /// Checksum that the image must have at boot.
    pub firmware_expect: Signal<In, Bits<32>>,
    /// Loading, from the cycle after the pulse on.
    pub firmware_busy: Signal<Out, Bit>,
    /// Pulse: the load has ended.
    pub firmware_done: Signal<Out, Bit>,
    /// One of `registers::firmware_status`.
    pub firmware_status: Signal<Out, Bits<8>>,
    /// An image is in force.
    pub firmware_ok: Signal<Out, Bit>,
    /// Its checksum; 0 if there is none.
    pub firmware_crc: Signal<Out, Bits<32>>,
    /// Its slot.
    pub firmware_slot_in_force: Signal<Out, Bits<8>>,
    /// Opcodes to look up.
    #[default(each())]
    pub descriptor_index: [Signal<In, Bits<5>>; 2],
    /// Their descriptors, one cycle later; 0 while no image is in force.
    #[default(each())]
    pub descriptor: [Signal<Out, Bits<32>>; 2],

    /// Memory for the host queue.
    pub host: MemoryResponder,
    /// Memory for Persistence, which asks for nothing while `firmware_busy`.
    pub system: MemoryResponder,
    /// The memory.
    pub m: AxiMaster<40, 512, 64, 6>,

    /// Pulse: a line was read for a unit.
    pub ev_read_line: Signal<Out, Bit>,
    /// Pulse: a line was written for a unit.
    pub ev_write_line: Signal<Out, Bit>,
    /// Pulse: the memory port changed its direction.
    pub ev_direction: Signal<Out, Bit>,

    #[default(units())]
    unit: [NearPmUnit; U],
    port: MemoryPort,
    store: FirmwareStore,
    mux: SystemMux,
    all_quiet: Signal<Local, Bit>,
}

fn each<T: Default, const U: usize>() -> [T; U] {
    std::array::from_fn(|_| T::default())
}

fn units<const U: usize>() -> [NearPmUnit; U] {
    const { assert!(U >= 1 && U <= UNITS, "the memory port has requesters for four units") };
    each()
}

impl<const U: usize> Logic for Back<U> {
    #[hdl_gen]
    fn update(&mut self) {
        MemoryResponder::link(&mut self.host, &mut self.port.req[4]);
        MemoryResponder::link(&mut self.system, &mut self.mux.persistence);
        MemoryRequester::join(&mut self.store.mem, &mut self.mux.firmware);
        MemoryRequester::join(&mut self.mux.mem, &mut self.port.req[5]);
        AxiMaster::<40, 512, 64, 6>::link(&mut self.m, &mut self.port.m);
        clock!(self, clock, port, store);
        self.port.reset.next = self.reset.val();
        self.store.reset.next = self.reset.val();
        self.mux.firmware_busy.next = self.store.busy.val();
        self.all_quiet.next = self.port.quiet.val() & !self.store.busy.val();
        for i in 0..U {
            MemoryRequester::join(&mut self.unit[i].mem, &mut self.port.req[i]);
            self.unit[i].clock.next = self.clock.val();
            self.unit[i].reset.next = self.reset.val();
            self.unit[i].issue_valid.next = self.issue_valid[i].val();
            self.issue_ready[i].next = self.unit[i].issue_ready.val();
            self.unit[i].work.next = self.work.val();
            self.done_valid[i].next = self.unit[i].done_valid.val();
            self.unit[i].done_ready.next = self.done_ready[i].val();
            self.done_slot[i].next = self.unit[i].done_slot.val();
            self.done_status[i].next = self.unit[i].done_status.val();
            self.progress_valid[i].next = self.unit[i].progress_valid.val();
            self.unit[i].progress_ready.next = self.progress_ready[i].val();
            self.progress_slot[i].next = self.unit[i].progress_slot.val();
            self.progress_pc[i].next = self.unit[i].progress_pc.val();
            self.unit[i].prog_we.next = self.store.prog_we.val();
            self.unit[i].prog_addr.next = self.store.prog_addr.val();
            self.unit[i].prog_data.next = self.store.prog_data.val();
            self.unit[i].quiesce.next = self.quiesce.val();
            if !self.unit[i].quiet.val() {
                self.all_quiet.next = false;
            }
        }
        for i in U..UNITS {
            self.port.req[i].rd_valid.next = false;
            self.port.req[i].rd_line.next = 0.into();
            self.port.req[i].rd_beats.next = 0.into();
            self.port.req[i].rd_tag.next = 0.into();
            self.port.req[i].wr_valid.next = false;
            self.port.req[i].wr_line.next = 0.into();
            self.port.req[i].wr_beats.next = 0.into();
            self.port.req[i].wr_tag.next = 0.into();
            self.port.req[i].wdata.next = 0.into();
            self.port.req[i].wstrb.next = 0.into();
        }
        self.quiet.next = self.all_quiet.val();

        self.store.load.next = self.firmware_load.val();
        self.store.slot.next = self.firmware_slot.val();
        self.store.boot.next = self.firmware_boot.val();
        self.store.expect_crc.next = self.firmware_expect.val();
        self.firmware_busy.next = self.store.busy.val();
        self.firmware_done.next = self.store.load_done.val();
        self.firmware_status.next = self.store.status.val();
        self.firmware_ok.next = self.store.valid.val();
        self.firmware_crc.next = self.store.crc.val();
        self.firmware_slot_in_force.next = self.store.slot_in_force.val();
        for i in 0..2 {
            self.store.descriptor_index[i].next = self.descriptor_index[i].val();
            self.descriptor[i].next = self.store.descriptor[i].val();
        }
        self.ev_read_line.next = self.port.ev_read_line.val();
        self.ev_write_line.next = self.port.ev_write_line.val();
        self.ev_direction.next = self.port.ev_direction.val();
    }
}
