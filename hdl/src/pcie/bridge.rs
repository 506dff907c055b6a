//! The bridge.

use super::completer::Completer;
use super::function_reset::FunctionReset;
use super::line_access::LineAccess;
use super::msix::MsixTable;
use super::requester::Requester;
use super::responder::Responder;
use crate::bundles::{AxiLiteMaster, AxiMaster, AxiWriteSlave};
use crate::dut::Ports;
use rust_hdl::prelude::*;

/// log2 of the cycles after which a function-level reset is done whatever the card does: 67 ms at
/// 250 MHz, of the 100 ms that PCIe allows.
const RESET_BITS: usize = 24;
/// log2 of the accesses that are under way at a port at a time, and of the requests that are
/// answered.
const OVERLAP_BITS: usize = 3;
const OVERLAP_COUNT_BITS: usize = OVERLAP_BITS + 1;
/// Accesses that are under way at a port at a time.
pub const OVERLAP: u64 = 1 << OVERLAP_BITS;

/// Between the streams of the PCIe block and the card's ports; guarantees are those of
/// [`Completer`], [`LineAccess`], [`Responder`], [`FunctionReset`], [`MsixTable`] and
/// [`Requester`], which it only wires. The link may go down and come back at any moment: the card's
/// ports stay in step.
#[derive(LogicBlock, Default, Ports)]
pub struct PcieBridge {
    /// Rising edge; the PCIe block's `user_clk`.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: together with the card, whose ports would otherwise wait for answers that
    /// nobody gives.
    pub reset: Signal<In, Bit>,
    /// The link is down: the PCIe block in reset (`user_reset`), or without a link. Vectors are
    /// masked, and what the host has asked is forgotten.
    pub link_down: Signal<In, Bit>,
    /// Completer requests; see PG213.
    pub cq_tdata: Signal<In, Bits<512>>,
    /// See PG213; `cq_tuser` says the same.
    pub cq_tkeep: Signal<In, Bits<16>>,
    /// See PG213.
    pub cq_tuser: Signal<In, Bits<183>>,
    /// See PG213.
    pub cq_tlast: Signal<In, Bit>,
    /// See PG213.
    pub cq_tvalid: Signal<In, Bit>,
    /// See PG213.
    pub cq_tready: Signal<Out, Bit>,
    /// Completer completions; see PG213.
    pub cc_tdata: Signal<Out, Bits<512>>,
    /// See PG213.
    pub cc_tkeep: Signal<Out, Bits<16>>,
    /// See PG213.
    pub cc_tuser: Signal<Out, Bits<81>>,
    /// See PG213.
    pub cc_tlast: Signal<Out, Bit>,
    /// See PG213.
    pub cc_tvalid: Signal<Out, Bit>,
    /// See PG213.
    pub cc_tready: Signal<In, Bit>,
    /// Requester requests; see PG213.
    pub rq_tdata: Signal<Out, Bits<512>>,
    /// See PG213.
    pub rq_tkeep: Signal<Out, Bits<16>>,
    /// See PG213.
    pub rq_tuser: Signal<Out, Bits<137>>,
    /// See PG213.
    pub rq_tlast: Signal<Out, Bit>,
    /// See PG213.
    pub rq_tvalid: Signal<Out, Bit>,
    /// See PG213.
    pub rq_tready: Signal<In, Bit>,
    /// Requester completions: the bridge reads nothing, and takes whatever comes.
    pub rc_tdata: Signal<In, Bits<512>>,
    /// See PG213.
    pub rc_tkeep: Signal<In, Bits<16>>,
    /// See PG213.
    pub rc_tuser: Signal<In, Bits<161>>,
    /// See PG213.
    pub rc_tlast: Signal<In, Bit>,
    /// See PG213.
    pub rc_tvalid: Signal<In, Bit>,
    /// See PG213.
    pub rc_tready: Signal<Out, Bit>,
    /// Status of the functions, four bits each: bit 2 lets function 0 be bus master.
    pub cfg_function_status: Signal<In, Bits<16>>,
    /// The host has asked for a function-level reset, a bit a function.
    pub cfg_flr_in_process: Signal<In, Bits<4>>,
    /// Pulse: it is done, a bit a function; functions but 0 are not there.
    pub cfg_flr_done: Signal<Out, Bits<4>>,
    /// MSI-X is enabled, a bit a function.
    pub cfg_interrupt_msix_enable: Signal<In, Bits<4>>,
    /// All vectors are masked, a bit a function.
    pub cfg_interrupt_msix_mask: Signal<In, Bits<4>>,
    /// Pulse: a request that is not supported.
    pub unsupported: Signal<Out, Bit>,
    /// The PM window.
    pub m_axi_host: AxiMaster<40, 512, 64, 6>,
    /// The command pages.
    pub m_axi_cmd: AxiMaster<16, 512, 64, 6>,
    /// The registers.
    pub m_axil_ctrl: AxiLiteMaster<12, 32, 4>,
    /// Completion records.
    pub s_axi_cpl: AxiWriteSlave<64, 512, 64, 1>,

    completer: Completer,
    access: LineAccess<OVERLAP_BITS, OVERLAP_COUNT_BITS>,
    responder: Responder<OVERLAP_BITS, OVERLAP_COUNT_BITS>,
    function_reset: FunctionReset<RESET_BITS>,
    msix: MsixTable,
    requester: Requester,
}

impl Logic for PcieBridge {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, completer, access, responder, function_reset, msix, requester);
        self.completer.reset.next = self.reset.val();
        self.access.reset.next = self.reset.val();
        self.responder.reset.next = self.reset.val();
        self.function_reset.reset.next = self.reset.val();
        self.msix.reset.next = self.reset.val() | self.link_down.val() | self.function_reset.active.val();
        self.requester.reset.next = self.reset.val();
        self.completer.link_down.next = self.link_down.val();
        self.requester.link_down.next = self.link_down.val();
        self.function_reset.link_down.next = self.link_down.val();
        AxiMaster::<40, 512, 64, 6>::link(&mut self.m_axi_host, &mut self.access.host);
        AxiMaster::<16, 512, 64, 6>::link(&mut self.m_axi_cmd, &mut self.access.cmd);
        AxiLiteMaster::<12, 32, 4>::join(&mut self.access.ctrl, &mut self.function_reset.host);
        AxiLiteMaster::<12, 32, 4>::link(&mut self.m_axil_ctrl, &mut self.function_reset.ctrl);
        AxiWriteSlave::<64, 512, 64, 1>::link(&mut self.s_axi_cpl, &mut self.requester.axi);

        self.completer.cq_tdata.next = self.cq_tdata.val();
        self.completer.cq_tuser.next = self.cq_tuser.val();
        self.completer.cq_tlast.next = self.cq_tlast.val();
        self.completer.cq_tvalid.next = self.cq_tvalid.val();
        self.cq_tready.next = self.completer.cq_tready.val();
        self.unsupported.next = self.completer.unsupported.val();

        self.responder.forget.next = self.completer.shut.val();
        self.responder.owe.next = self.completer.owe.val();
        self.responder.owed.next = self.completer.owed.val();
        self.completer.owe_full.next = self.responder.full.val();
        self.responder.answered.next = self.access.answered.val();
        self.responder.read.next = self.access.read.val();
        self.responder.error.next = self.access.error.val();
        self.access.take.next = self.responder.take.val();
        self.access.poisoned.next = self.completer.poisoned.val();
        self.cc_tdata.next = self.responder.cc_tdata.val();
        self.cc_tkeep.next = self.responder.cc_tkeep.val();
        self.cc_tuser.next = self.responder.cc_tuser.val();
        self.cc_tlast.next = self.responder.cc_tlast.val();
        self.cc_tvalid.next = self.responder.cc_tvalid.val();
        self.responder.cc_tready.next = self.cc_tready.val();

        self.access.valid.next = self.completer.access_valid.val();
        self.access.write.next = self.completer.access_write.val();
        self.access.bar.next = self.completer.access_bar.val();
        self.access.line.next = self.completer.access_line.val();
        self.access.data.next = self.completer.access_data.val();
        self.access.strobes.next = self.completer.access_strobes.val();
        self.access.lanes.next = self.completer.access_lanes.val();
        self.completer.access_ready.next = self.access.ready.val();
        self.completer.access_idle.next = self.access.idle.val();

        self.function_reset.in_process.next = self.cfg_flr_in_process.val();
        self.function_reset.arriving.next = self.cq_tvalid.val();
        self.function_reset.idle.next = self.completer.idle.val() & self.access.idle.val() & self.responder.idle.val();
        self.function_reset.offering.next = self.requester.rq_tvalid.val();
        self.completer.hold.next = self.function_reset.hold.val();
        self.cfg_flr_done.next = self.function_reset.done.val();

        self.msix.enable.next = self.cfg_interrupt_msix_enable.val().get_bit(0);
        self.msix.function_mask.next = self.cfg_interrupt_msix_mask.val().get_bit(0);
        self.msix.write.next = self.access.table_write.val();
        self.msix.line.next = self.completer.access_line.val().get_bits::<6>(0);
        self.msix.data.next = self.completer.access_data.val();
        self.msix.strobes.next = self.completer.access_strobes.val();
        self.access.table_read.next = self.msix.read.val();
        self.msix.fire.next = self.requester.fire.val();
        self.msix.page.next = self.requester.page.val();
        self.msix.sent.next = self.requester.sent.val();
        self.msix.sent_vector.next = self.requester.sent_vector.val();

        self.requester.bus_master.next = self.cfg_function_status.val().get_bit(2) & !self.function_reset.active.val();
        self.requester.send.next = self.msix.send.val();
        self.requester.address.next = self.msix.address.val();
        self.requester.message.next = self.msix.message.val();
        self.requester.vector.next = self.msix.vector.val();
        self.rq_tdata.next = self.requester.rq_tdata.val();
        self.rq_tkeep.next = self.requester.rq_tkeep.val();
        self.rq_tuser.next = self.requester.rq_tuser.val();
        self.rq_tlast.next = self.requester.rq_tlast.val();
        self.rq_tvalid.next = self.requester.rq_tvalid.val();
        self.requester.rq_tready.next = self.rq_tready.val();
        self.rc_tready.next = true;
    }
}
