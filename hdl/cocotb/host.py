"""A host with a PCIe root complex, and the hard block of UltraScale+ in front of the design (cocotbext-pcie). None of it is this project's own."""

import random

from cocotb.triggers import ClockCycles, RisingEdge, Timer, with_timeout
from cocotbext.axi import AxiStreamBus
from cocotbext.pcie.core import RootComplex
from cocotbext.pcie.xilinx.us import UltraScalePlusPcieDevice

from holding import stalls

# The last is no BAR of the card: the block hands its requests over all the same.
REGISTERS, VECTORS, COMMANDS, WINDOW, PORTS = 0, 1, 2, 4, 3
VECTOR_COUNT = 4
PENDING = 0x800


class Host:
    """What is on the other side of the design's streams, which it holds back at random."""

    def __init__(self, dut, window_bits):
        self.dut = dut
        self.root = RootComplex()
        self.block = UltraScalePlusPcieDevice(
            pcie_generation=3,
            pcie_link_width=16,
            user_clk_frequency=250e6,
            alignment="dword",
            pf_count=1,
            max_payload_size=512,
            enable_extended_tag=True,
            pf0_msix_enable=True,
            pf0_msix_table_size=VECTOR_COUNT - 1,
            pf0_msix_table_bir=VECTORS,
            pf0_msix_pba_bir=VECTORS,
            pf0_msix_pba_offset=PENDING,
            user_clk=dut.clk,
            rq_bus=AxiStreamBus.from_prefix(dut, "rq"),
            rc_bus=AxiStreamBus.from_prefix(dut, "rc"),
            cq_bus=AxiStreamBus.from_prefix(dut, "cq"),
            cc_bus=AxiStreamBus.from_prefix(dut, "cc"),
            cfg_function_status=dut.cfg_function_status,
            cfg_interrupt_msix_enable=dut.cfg_interrupt_msix_enable,
            cfg_interrupt_msix_mask=dut.cfg_interrupt_msix_mask,
        )
        self.root.make_port().connect(self.block)
        function = self.block.functions[0]
        function.configure_bar(REGISTERS, 4096)
        function.configure_bar(VECTORS, 4096)
        function.configure_bar(COMMANDS, 16384)
        function.configure_bar(WINDOW, 1 << window_bits, ext=True, prefetch=True)
        function.configure_bar(PORTS, 256, io=True)
        for seed, share, stream in ((8, 0.3, "cc_sink"), (9, 0.2, "cq_source"), (10, 0.3, "rq_sink")):
            getattr(self.block, stream).set_pause_generator(stalls(random.Random(seed), share))

    async def start(self):
        """Resets the design, enumerates, and finds the BARs."""
        await RisingEdge(self.dut.clk)
        self.dut.rst_n.value = 0
        await ClockCycles(self.dut.clk, 8)
        self.dut.rst_n.value = 1
        await ClockCycles(self.dut.clk, 8)
        await with_timeout(self.root.enumerate(), 20, "us")
        self.device = self.root.find_device(self.block.functions[0].pcie_id)
        await self.device.enable_device()
        await self.device.set_master()
        self.bars = [self.device.bar_window[bar] for bar in range(6)]


async def quiet(dut):
    """The models look at what the design drives from the first cycle on, so it is reset before they are."""
    dut.rst_n.value = 0
    dut.link_down.value = 0
    # The block's model has no function-level reset.
    dut.cfg_flr_in_process.value = 0
    for level in (0, 1) * 8:
        dut.clk.value = level
        await Timer(2, "ns")
