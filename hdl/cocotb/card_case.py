"""What is the same of a card whatever stands at its ports: the case that the test in Rust writes (the memory of a card after a clean shutdown,
commands with their checksums, where registers are), pins at power-up, and the status line of a page."""

import json
import os
import pathlib

CASE = json.loads(pathlib.Path(os.environ["NEARPM_CASE"]).read_text())


def image():
    """What the memory holds: places with their bytes. The rest of it is zero."""
    for block in CASE["image"]:
        yield block["at"], bytes.fromhex(block["data"])


def power(dut):
    """Sets the pins of a card that has power, its memory, and no other cards."""
    dut.power_fail.value = 0
    dut.pm_bytes.value = CASE["bytes"]
    dut.peer_out_ready.value = 1
    dut.peer_in_valid.value = 0
    dut.peer_in_data.value = 0


async def opened(state):
    """Waits until the card takes commands; `state` reads its state."""
    for _ in range(400):
        found = await state()
        if found == CASE["open"]:
            return
    raise AssertionError(f"the card does not open: state {found}")


def command(name):
    """A command with the bytes that are stored for it, and where."""
    found = CASE["commands"][name]
    return found, found["at"], bytes.fromhex(found["data"])


def status(line):
    """Accepted, retired, refused, failed: the first words of a page's status line."""
    return {name: int.from_bytes(line[at : at + 4], "little") for name, at in CASE["status"].items()}
