"""The whole card between AXI masters, memories and an AXI-Lite master that are not this project's (cocotbext-axi), with random stalls on every
channel, and a memory that answers out of order.

The oracle is a plain array: stores and loads of the host in the order in which they were answered, and the bytes that a log must hold, which are
those of the moment when its command was accepted.
"""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiMaster, AxiRamRead, AxiRamWrite, AxiReadBus, AxiWriteBus
from cocotbext.axi.axi_channels import AxiBSource

import card_case
from card_case import CASE
from holding import hold_back

SEED = 11
PERIOD_NS = 4
# Operations that one side may have open: the memory answers them in any order that AXI allows.
OPEN = 12


class Shuffled:
    """A channel of addresses whose entries are served some time later and in any order, except that those of one identifier keep theirs."""

    def __init__(self, channel, identifier, clock, generator):
        self.channel, self.identifier, self.clock, self.random = channel, identifier, clock, generator
        self.waiting = []
        self.reordered = 0
        channel.queue_occupancy_limit = OPEN

    async def recv(self):
        if not self.waiting:
            self.waiting.append(await self.channel.recv())
        await ClockCycles(self.clock, self.random.randrange(1, 10))
        while not self.channel.empty():
            self.waiting.append(self.channel.recv_nowait())
        first = {}
        for place, entry in enumerate(self.waiting):
            first.setdefault(int(getattr(entry, self.identifier)), place)
        place = self.random.choice(sorted(first.values()))
        self.reordered += place > 0
        return self.waiting.pop(place)

    def __getattr__(self, name):
        return getattr(self.channel, name)


class ShuffledAnswers:
    """Answers to writes, which leave in any order and some time later, except that those of one identifier keep theirs."""

    def __init__(self, channel, clock, generator):
        self.channel, self.clock, self.random = channel, clock, generator
        self.waiting = []
        self.reordered = 0
        cocotb.start_soon(self.serve())

    async def send(self, answer):
        self.waiting.append(answer)

    async def serve(self):
        while True:
            await RisingEdge(self.clock)
            if not self.waiting or self.random.random() < 0.6:
                continue
            first = {}
            for place, answer in enumerate(self.waiting):
                first.setdefault(int(answer.bid), place)
            place = self.random.choice(sorted(first.values()))
            self.reordered += place > 0
            await self.channel.send(self.waiting.pop(place))

    def __getattr__(self, name):
        return getattr(self.channel, name)


class Bench:
    """The card with everything around it."""

    def __init__(self, dut):
        self.dut = dut
        self.random = random.Random(SEED)
        # Sparse: what neither the image nor anybody wrote is zero.
        self.memory = bytearray(CASE["bytes"])
        for at, data in card_case.image():
            self.memory[at : at + len(data)] = data
        reset = {"clock": dut.clk, "reset": dut.rst_n, "reset_active_level": False}
        memory = AxiBus.from_prefix(dut, "m_axi_mem0")
        self.writes = AxiRamWrite(memory.write, **reset, mem=memoryview(self.memory))
        self.reads = AxiRamRead(memory.read, **reset, mem=memoryview(self.memory))
        self.records = AxiRamWrite(AxiWriteBus.from_prefix(dut, "m_axi_cpl"), **reset, size=1 << 16)
        # The card's ports take accesses inside a line.
        self.window = AxiMaster(AxiBus.from_prefix(dut, "s_axi_host"), **reset, max_burst_len=1)
        self.commands = AxiMaster(AxiBus.from_prefix(dut, "s_axi_cmd"), **reset, max_burst_len=1)
        self.registers = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil_ctrl"), **reset)
        masters = (self.window, self.commands, self.registers)
        sides = [side for master in masters for side in (master.write_if, master.read_if)]
        hold_back([self.writes, self.reads, self.records, *sides], self.random)
        self.reads.ar_channel = Shuffled(self.reads.ar_channel, "arid", dut.clk, random.Random(1))
        self.writes.b_channel = ShuffledAnswers(self.writes.b_channel, dut.clk, random.Random(2))

    async def register(self, name):
        return await self.registers.read_dword(CASE["registers"][name])

    async def open(self):
        """Powers the card up on the memory and waits until it takes commands."""
        dut = self.dut
        card_case.power(dut)
        dut.rst_n.value = 0
        await ClockCycles(dut.clk, 10)
        dut.rst_n.value = 1
        await card_case.opened(lambda: self.register("STATE"))

    async def command(self, name):
        """Posts a command; it is accepted when this comes back."""
        command, at, data = card_case.command(name)
        await self.commands.write(at, data)
        return command

    async def status(self, page):
        """A page's status line."""
        return card_case.status((await self.commands.read(page * 4096, 64)).data)

    async def retired(self, page):
        """Waits until all that was accepted of a page has retired."""
        for _ in range(400):
            status = await self.status(page)
            if status["accepted"] == status["retired"] + status["failed"]:
                return status
        raise AssertionError(f"commands do not retire: {status}")


async def bench(dut):
    """A card that is open. The models look at what the card drives from the first cycle on, so it is reset before they are."""
    dut.rst_n.value = 0
    cocotb.start_soon(Clock(dut.clk, PERIOD_NS, "ns").start())
    await ClockCycles(dut.clk, 8)
    made = Bench(dut)
    await with_timeout(made.open(), 100, "us")
    return made


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def stores_and_loads_against_an_array(dut):
    """Stores and loads of several masters in flight at once: every load has the bytes of the last store before it."""
    b = await bench(dut)
    base = CASE["pools"]
    # Each worker has its own lines in turn with the others', so that lines of different workers
    # stand side by side in the card.
    workers, lines = 6, 8

    async def worker(number):
        source = random.Random(100 + number)
        oracle = bytearray(64 * lines)
        for _ in range(14):
            line = source.randrange(lines)
            at = source.randrange(64)
            length = source.randrange(1, 65 - at)
            address = base + 64 * (line * workers + number) + at
            if source.random() < 0.6:
                data = source.randbytes(length)
                answer = await with_timeout(b.window.write(address, data), 40, "us")
                oracle[64 * line + at : 64 * line + at + length] = data
            else:
                answer = await with_timeout(b.window.read(address, length), 40, "us")
                assert answer.data == oracle[64 * line + at : 64 * line + at + length], hex(address)
            assert answer.resp == 0, hex(address)
        for line in range(lines):
            answer = await with_timeout(b.window.read(base + 64 * (line * workers + number), 64), 40, "us")
            assert answer.data == oracle[64 * line : 64 * line + 64], (number, line)

    for task in [cocotb.start_soon(worker(number)) for number in range(workers)]:
        await task
    assert b.reads.ar_channel.reordered > 0 and b.writes.b_channel.reordered > 0, "the memory kept every order"
    # Beyond the memory nothing is.
    answer = await with_timeout(b.window.write(CASE["bytes"], bytes(8)), 40, "us")
    assert answer.resp == 2


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def logs_hold_what_was_there_when_they_were_accepted(dut):
    """Undo logs among stores to what they log: each holds the bytes of its moment, the stores come behind it, a record says so."""
    b = await bench(dut)
    await b.command("map")
    assert (await b.retired(0))["accepted"] == 1
    ring = 0x4000
    page = 1
    for half, value in enumerate((ring, 0)):
        await b.registers.write_dword(CASE["registers"]["RING"] + 4 * half, value)
    await b.registers.write_dword(CASE["registers"]["RING_SIZE"], 4)
    for name in CASE["logs"]:
        command = CASE["commands"][name]
        at, length = command["source"], command["length"]
        before = b.random.randbytes(length)
        for piece in range(0, length, 64):
            await with_timeout(b.window.write(at + piece, before[piece : piece + 64]), 40, "us")
        await with_timeout(b.command(name), 40, "us")
        # Stores behind the log to what it reads, at once.
        after = b.random.randbytes(min(length, 64))
        await with_timeout(b.window.write(at, after), 40, "us")
        assert (await with_timeout(b.window.read(at, len(after)), 40, "us")).data == after
        status = await with_timeout(b.retired(page), 80, "us")
        assert (status["failed"], status["refused"]) == (0, 0), status
        entry = command["entry"]
        await ClockCycles(dut.clk, 200)
        assert bytes(b.memory[entry : entry + length]) == before, name
        assert bytes(b.memory[at : at + len(after)]) == after, name
    record = b.records.read(ring, 16)
    assert record[5] == page and int.from_bytes(record[:4], "little") == CASE["tag"], record.hex()
