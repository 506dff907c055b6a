"""The bridge between a root complex with the hard-block model of UltraScale+ (cocotbext-pcie) and AXI memories with stalls (cocotbext-axi).

Neither model is this project's own: what they take for PCIe, AXI and the block's streams is what the bridge is held to.
"""

import random
import struct

import cocotb
from cocotb.triggers import with_timeout
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteRam, AxiMasterWrite, AxiRam, AxiWriteBus
from cocotbext.pcie.core.tlp import CplStatus, Tlp, TlpType
from cocotbext.pcie.core.utils import PcieId

from holding import hold_back
from host import COMMANDS, PORTS, REGISTERS, VECTOR_COUNT, WINDOW, Host, quiet

SEED = 7
WINDOW_BITS = 20


class Bench(Host):
    """The bridge with everything around it."""

    def __init__(self, dut):
        super().__init__(dut, WINDOW_BITS)
        self.random = random.Random(SEED)
        reset = {"clock": dut.clk, "reset": dut.rst_n, "reset_active_level": False}
        self.window = AxiRam(AxiBus.from_prefix(dut, "m_axi_host"), **reset, size=1 << WINDOW_BITS)
        self.commands = AxiRam(AxiBus.from_prefix(dut, "m_axi_cmd"), **reset, size=16384)
        self.registers = AxiLiteRam(AxiLiteBus.from_prefix(dut, "m_axil_ctrl"), **reset, size=4096)
        self.records = AxiMasterWrite(AxiWriteBus.from_prefix(dut, "s_axi_cpl"), **reset)
        for memory in (self.window, self.commands, self.registers):
            hold_back((memory.write_if, memory.read_if), self.random)


async def bench(dut):
    """A bench after enumeration."""
    await quiet(dut)
    made = Bench(dut)
    await made.start()
    return made


@cocotb.test(timeout_time=200, timeout_unit="us")
async def writes_and_reads_of_all_shapes(dut):
    """Bytes at random places come back, and stand where they belong."""
    b = await bench(dut)
    oracle = bytearray(1 << WINDOW_BITS)
    for length in [1, 2, 3, 4, 7, 8, 60, 64, 65, 100, 127, 128, 129, 200, 256, 511, 512, 700, 1500]:
        for _ in range(3):
            at = b.random.randrange(0, 0x4000)
            data = b.random.randbytes(length)
            await b.bars[WINDOW].write(at, data)
            oracle[at : at + length] = data
            back = b.random.randrange(max(0, at - 40), at + 40)
            want = b.random.randrange(1, 900)
            assert await with_timeout(b.bars[WINDOW].read(back, want), 10, "us") == oracle[back : back + want]
    await with_timeout(b.bars[WINDOW].read(0, 4), 10, "us")
    assert b.window.read(0, 0x5000) == oracle[:0x5000]


@cocotb.test(timeout_time=200, timeout_unit="us")
async def several_readers_at_a_time(dut):
    """Answers go to the reads that asked for them."""
    b = await bench(dut)
    b.window.write(0, bytes(n * 7 % 251 for n in range(0x4000)))

    async def reader(seed):
        source = random.Random(seed)
        for _ in range(12):
            at, length = source.randrange(0, 0x3000), source.randrange(1, 600)
            got = await with_timeout(b.bars[WINDOW].read(at, length), 20, "us")
            assert got == b.window.read(at, length), (at, length)

    tasks = [cocotb.start_soon(reader(seed)) for seed in range(6)]
    for task in tasks:
        await task


@cocotb.test(timeout_time=200, timeout_unit="us")
async def registers_and_command_pages(dut):
    """Dwords, halves and single bytes of registers; a command as one write."""
    b = await bench(dut)
    await b.bars[REGISTERS].write_dword(0x10, 0x11223344)
    await b.bars[REGISTERS].write_byte(0x12, 0xAA)
    await b.bars[REGISTERS].write_qword(0x38, 0x0102030405060708)
    assert await b.bars[REGISTERS].read_dword(0x10) == 0x11AA3344
    assert await b.bars[REGISTERS].read_qword(0x38) == 0x0102030405060708
    assert b.registers.read_qword(0x38) == 0x0102030405060708
    command = b.random.randbytes(64)
    await b.bars[COMMANDS].write(0x1040, command)
    assert await b.bars[COMMANDS].read(0x1040, 64) == command
    assert b.commands.read(0x1040, 64) == command


@cocotb.test(timeout_time=200, timeout_unit="us")
async def requests_of_ports_are_refused(dut):
    """A request that the card does not have is answered as unsupported, and the next one is served."""
    b = await bench(dut)
    for kind, data in ((TlpType.IO_READ, None), (TlpType.IO_WRITE, struct.pack("<L", 5))):
        request = Tlp()
        request.fmt_type = kind
        request.requester_id = PcieId(0, 0, 0)
        request.length = 1
        request.first_be = 0xF
        request.address = b.device.bar_addr[PORTS] + 8
        if data:
            request.set_data(data)
        answers = await with_timeout(b.root.perform_nonposted_operation(request), 10, "us")
        assert [answer.status for answer in answers] == [CplStatus.UR]
    await b.bars[WINDOW].write_dword(64, 77)
    assert await b.bars[WINDOW].read_dword(64) == 77


@cocotb.test(timeout_time=200, timeout_unit="us")
async def records_and_interrupts(dut):
    """A record is in host memory when its interrupt comes, and the vector is that of its page."""
    b = await bench(dut)
    memory = b.root.mem_pool.alloc_region(4096)
    ring = memory.get_absolute_address(0)
    await b.device.enable_msix_range(VECTOR_COUNT, VECTOR_COUNT, 0)
    for n in range(8):
        page = n % VECTOR_COUNT
        record = struct.pack("<LBBHQ", 100 + n, 0, page, 1, n)
        event = b.device.msi_vectors[page].event
        event.clear()
        await with_timeout(b.records.write(ring + 16 * n, record), 20, "us")
        await with_timeout(event.wait(), 20, "us")
        assert memory[16 * n : 16 * n + 16] == record, n
