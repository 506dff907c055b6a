"""The whole card behind its PCIe bridge: what a host does through the root complex and the hard block of cocotbext-pcie ends in a memory of
cocotbext-axi, and what the card tells comes back as a record in host memory and an interrupt.

The oracle is that of the card's ports (`card_ports.py`), and so is the case.
"""

import random

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import AxiBus, AxiRam

import card_case
from card_case import CASE
from holding import hold_back
from host import COMMANDS, REGISTERS, VECTOR_COUNT, WINDOW, Host, quiet

SEED = 13
RECORD = 16


class Bench(Host):
    """The card with its memory and a host."""

    def __init__(self, dut):
        super().__init__(dut, (CASE["bytes"] - 1).bit_length())
        self.random = random.Random(SEED)
        reset = {"clock": dut.clk, "reset": dut.rst_n, "reset_active_level": False}
        self.memory = AxiRam(AxiBus.from_prefix(dut, "m_axi_mem0"), **reset, size=CASE["bytes"])
        for at, data in card_case.image():
            self.memory.write(at, data)
        hold_back((self.memory.write_if, self.memory.read_if), self.random)

    async def open(self):
        """Powers the card up on the memory, and waits until the host reads that it takes commands."""
        card_case.power(self.dut)
        await self.start()
        await card_case.opened(lambda: self.bars[REGISTERS].read_dword(CASE["registers"]["STATE"]))

    async def command(self, name):
        """Posts a command. Nothing says that it has arrived: what is read behind it pushes it."""
        command, at, data = card_case.command(name)
        await self.bars[COMMANDS].write(at, data)
        return command

    async def status(self, page):
        """A page's status line."""
        return card_case.status(await with_timeout(self.bars[COMMANDS].read(page * 4096, 64), 20, "us"))

    async def map(self):
        """Maps the pool that the logs are of."""
        await self.command("map")
        for _ in range(400):
            if (await self.status(0))["retired"] == 1:
                return
        raise AssertionError("the pool is not mapped")


async def bench(dut):
    """A card that is open."""
    await quiet(dut)
    made = Bench(dut)
    await with_timeout(made.open(), 200, "us")
    return made


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def stores_and_loads_against_an_array(dut):
    """Stores and loads of all shapes from the host, inside a line and across: every load has the bytes of the last store before it."""
    b = await bench(dut)
    base, size = CASE["pools"], 0x2000
    oracle = bytearray(size)
    for length in [1, 3, 4, 8, 60, 64, 65, 127, 128, 200, 256, 511, 512, 1500]:
        for _ in range(3):
            at = b.random.randrange(0, size - length)
            data = b.random.randbytes(length)
            await b.bars[WINDOW].write(base + at, data)
            oracle[at : at + length] = data
            back = b.random.randrange(max(0, at - 40), at + 40)
            want = b.random.randrange(1, min(600, size - back))
            found = await with_timeout(b.bars[WINDOW].read(base + back, want), 40, "us")
            assert found == oracle[back : back + want], (hex(at), length, hex(back), want)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def logs_are_whole_when_their_interrupts_come(dut):
    """Undo logs with stores to what they log right behind them: at the interrupt the record is in host memory and says that the log has retired;
    the log holds the bytes of before."""
    b = await bench(dut)
    await b.map()
    page = 1
    host = b.root.mem_pool.alloc_region(4096)
    ring = host.get_absolute_address(0)
    await b.device.enable_msix_range(VECTOR_COUNT, VECTOR_COUNT, 0)
    for half in range(2):
        await b.bars[REGISTERS].write_dword(CASE["registers"]["RING"] + 4 * half, ring >> 32 * half & 0xFFFFFFFF)
    await b.bars[REGISTERS].write_dword(CASE["registers"]["RING_SIZE"], 4)
    event = b.device.msi_vectors[page].event
    for number, name in enumerate(CASE["logs"]):
        command = CASE["commands"][name]
        at, length = command["source"], command["length"]
        before = b.random.randbytes(length)
        await b.bars[WINDOW].write(at, before)
        event.clear()
        await b.command(name)
        after = b.random.randbytes(min(length, 64))
        await b.bars[WINDOW].write(at, after)
        await with_timeout(event.wait(), 80, "us")
        assert b.memory.read(command["entry"], length) == before, name
        record = host[RECORD * number : RECORD * (number + 1)]
        assert (int.from_bytes(record[:4], "little"), record[4], record[5]) == (CASE["tag"], 0, page), record.hex()
        # The host's store, which waits for the log, is in the memory soon.
        assert await with_timeout(b.bars[WINDOW].read(at, len(after)), 40, "us") == after
        await ClockCycles(dut.clk, 200)
        assert b.memory.read(at, len(after)) == after, name
    status = await b.status(page)
    assert (status["retired"], status["failed"], status["refused"]) == (len(CASE["logs"]), 0, 0), status


async def function_level_reset(dut):
    """The block's side of a function-level reset, which its model does not have; ends in the cycle of `cfg_flr_done`."""
    dut.cfg_flr_in_process.value = 1
    while True:
        await RisingEdge(dut.clk)
        if int(dut.cfg_flr_done.value) == 1:
            dut.cfg_flr_in_process.value = 0
            return


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def a_function_level_reset_drains_logs(dut):
    """Logs that were posted before a function-level reset are in the memory when it is done, and the card takes accesses after it."""
    b = await bench(dut)
    await b.map()
    before = {}
    for name in CASE["logs"]:
        command = CASE["commands"][name]
        before[name] = b.random.randbytes(command["length"])
        await b.bars[WINDOW].write(command["source"], before[name])
    for name in CASE["logs"]:
        await b.command(name)
    # The answer of the configuration space comes behind what was posted.
    await b.device.config_read_dword(0)
    await with_timeout(function_level_reset(dut), 80, "us")
    for name, data in before.items():
        assert b.memory.read(CASE["commands"][name]["entry"], len(data)) == data, name
    await card_case.opened(lambda: b.bars[REGISTERS].read_dword(CASE["registers"]["STATE"]))
    for name, data in before.items():
        assert await with_timeout(b.bars[WINDOW].read(CASE["commands"][name]["source"], len(data)), 40, "us") == data, name
