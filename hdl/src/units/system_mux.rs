//! Who speaks as the memory port's `system` requester.

use crate::bundles::{MemoryRequester, MemoryResponder};
use crate::dut::Ports;
use rust_hdl::prelude::*;

/// Joins Persistence and FirmwareStore into one requester, combinationally.
///
/// Guarantees nothing about two that ask at once: while the firmware store is busy it has the port,
/// and Persistence asks for nothing (it waits for it at boot, at a load and before a save).
#[derive(LogicBlock, Default, Ports)]
pub struct SystemMux {
    /// The firmware store is loading.
    pub firmware_busy: Signal<In, Bit>,
    /// Persistence.
    pub persistence: MemoryResponder,
    /// The firmware store.
    pub firmware: MemoryResponder,
    /// The memory port.
    pub mem: MemoryRequester,
}

impl Logic for SystemMux {
    #[hdl_gen]
    fn update(&mut self) {
        self.mem.rd_valid.next = self.persistence.rd_valid.val();
        self.mem.rd_line.next = self.persistence.rd_line.val();
        self.mem.rd_beats.next = self.persistence.rd_beats.val();
        self.mem.rd_tag.next = self.persistence.rd_tag.val();
        self.mem.wr_valid.next = self.persistence.wr_valid.val();
        self.mem.wr_line.next = self.persistence.wr_line.val();
        self.mem.wr_beats.next = self.persistence.wr_beats.val();
        self.mem.wr_tag.next = self.persistence.wr_tag.val();
        self.mem.wdata.next = self.persistence.wdata.val();
        self.mem.wstrb.next = self.persistence.wstrb.val();
        if self.firmware_busy.val() {
            self.mem.rd_valid.next = self.firmware.rd_valid.val();
            self.mem.rd_line.next = self.firmware.rd_line.val();
            self.mem.rd_beats.next = self.firmware.rd_beats.val();
            self.mem.rd_tag.next = self.firmware.rd_tag.val();
            self.mem.wr_valid.next = self.firmware.wr_valid.val();
            self.mem.wr_line.next = self.firmware.wr_line.val();
            self.mem.wr_beats.next = self.firmware.wr_beats.val();
            self.mem.wr_tag.next = self.firmware.wr_tag.val();
            self.mem.wdata.next = self.firmware.wdata.val();
            self.mem.wstrb.next = self.firmware.wstrb.val();
        }
        self.persistence.rd_ready.next = self.mem.rd_ready.val() & !self.firmware_busy.val();
        self.persistence.rdata_valid.next = self.mem.rdata_valid.val() & !self.firmware_busy.val();
        self.persistence.rdata.next = self.mem.rdata.val();
        self.persistence.rdata_tag.next = self.mem.rdata_tag.val();
        self.persistence.rdata_last.next = self.mem.rdata_last.val();
        self.persistence.rdata_error.next = self.mem.rdata_error.val();
        self.persistence.wr_ready.next = self.mem.wr_ready.val() & !self.firmware_busy.val();
        self.persistence.wdata_ready.next = self.mem.wdata_ready.val() & !self.firmware_busy.val();
        self.persistence.b_valid.next = self.mem.b_valid.val() & !self.firmware_busy.val();
        self.persistence.b_tag.next = self.mem.b_tag.val();
        self.persistence.b_error.next = self.mem.b_error.val();
        self.firmware.rd_ready.next = self.mem.rd_ready.val() & self.firmware_busy.val();
        self.firmware.rdata_valid.next = self.mem.rdata_valid.val() & self.firmware_busy.val();
        self.firmware.rdata.next = self.mem.rdata.val();
        self.firmware.rdata_tag.next = self.mem.rdata_tag.val();
        self.firmware.rdata_last.next = self.mem.rdata_last.val();
        self.firmware.rdata_error.next = self.mem.rdata_error.val();
        self.firmware.wr_ready.next = self.mem.wr_ready.val() & self.firmware_busy.val();
        self.firmware.wdata_ready.next = self.mem.wdata_ready.val() & self.firmware_busy.val();
        self.firmware.b_valid.next = self.mem.b_valid.val() & self.firmware_busy.val();
        self.firmware.b_tag.next = self.mem.b_tag.val();
        self.firmware.b_error.next = self.mem.b_error.val();
    }
}
