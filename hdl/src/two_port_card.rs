//! The whole card with two ports to memory.

use crate::bundles::{AxiLiteSlave, AxiMaster, AxiSlave, AxiWriteMaster};
use crate::card::Card;
use crate::dut::Ports;
use crate::sizes::Sizes;
use crate::units::memory_split::MemorySplit;
use crate::units::multi_device::Message;
use rust_hdl::prelude::*;

/// [`Card`] with [`MemorySplit`] behind its port to memory; all other ports are the card's own.
#[derive(Default, LogicBlock, Ports)]
pub struct TwoPortCard {
    /// Rising edge; 300 MHz on the VCU118.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: the card boots when it goes low.
    pub reset: Signal<In, Bit>,
    /// Power is about to go: save. Stays high.
    pub power_fail: Signal<In, Bit>,
    /// What has to survive is durable: power may go.
    pub save_done: Signal<Out, Bit>,
    /// Bytes of memory behind both ports, a multiple of twice the interleave; constant.
    pub pm_bytes: Signal<In, Bits<64>>,
    /// The PM window; addresses are device addresses.
    pub s_axi_host: AxiSlave<40, 512, 64, 6>,
    /// The command pages.
    pub s_axi_cmd: AxiSlave<16, 512, 64, 6>,
    /// The registers.
    pub s_axil_ctrl: AxiLiteSlave<12, 32, 4>,
    /// One half of the memory.
    pub m_axi_mem0: AxiMaster<40, 512, 64, 6>,
    /// The other half.
    pub m_axi_mem1: AxiMaster<40, 512, 64, 6>,
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

    card: Card,
    split: MemorySplit,
}

impl TwoPortCard {
    /// A card whose `CAPABILITIES` register has these bits.
    pub fn new(capabilities: u32) -> Self {
        Self { card: Card::new(capabilities, &Sizes::FULL), ..Self::default() }
    }
}

impl Logic for TwoPortCard {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, card, split);
        self.card.reset.next = self.reset.val();
        self.split.reset.next = self.reset.val();
        self.card.power_fail.next = self.power_fail.val();
        self.save_done.next = self.card.save_done.val();
        self.card.pm_bytes.next = self.pm_bytes.val();
        AxiSlave::<40, 512, 64, 6>::link(&mut self.s_axi_host, &mut self.card.s_axi_host);
        AxiSlave::<16, 512, 64, 6>::link(&mut self.s_axi_cmd, &mut self.card.s_axi_cmd);
        AxiLiteSlave::<12, 32, 4>::link(&mut self.s_axil_ctrl, &mut self.card.s_axil_ctrl);
        AxiWriteMaster::<64, 512, 64, 1>::link(&mut self.m_axi_cpl, &mut self.card.m_axi_cpl);
        AxiMaster::<40, 512, 64, 6>::join(&mut self.card.m_axi_mem0, &mut self.split.s);
        AxiMaster::<40, 512, 64, 6>::link(&mut self.m_axi_mem0, &mut self.split.m[0]);
        AxiMaster::<40, 512, 64, 6>::link(&mut self.m_axi_mem1, &mut self.split.m[1]);
        self.peer_out_valid.next = self.card.peer_out_valid.val();
        self.card.peer_out_ready.next = self.peer_out_ready.val();
        self.peer_out_data.next = self.card.peer_out_data.val();
        self.card.peer_in_valid.next = self.peer_in_valid.val();
        self.peer_in_ready.next = self.card.peer_in_ready.val();
        self.card.peer_in_data.next = self.peer_in_data.val();
    }
}
