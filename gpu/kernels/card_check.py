#!/usr/bin/env python3
"""Runs Scan, Red and MQ of sbrp_card.ptx on a GPU, from pinned memory of the host, recovers each from an image that a late
crash may leave, and compares with the processor. Needs a driver; nothing else."""

import ctypes
import pathlib
import sys

EMPTY = 0x80000000
cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code:
        sys.exit(f"card_check.py: {name}: error {code}")


def mix(x):
    x = ((x ^ (x >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    x = ((x ^ (x >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    return x ^ (x >> 16)


def pinned(words):
    """Words that processor and GPU share."""
    pointer = ctypes.c_void_p()
    call("cuMemHostAlloc", ctypes.byref(pointer), ctypes.c_size_t(4 * len(words)), 2)
    array = (ctypes.c_uint32 * len(words)).from_address(pointer.value)
    array[:] = words
    return array


def launch(module, kernel, blocks, threads, *values):
    function = ctypes.c_void_p()
    call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
    held = [ctypes.c_uint32(v) if isinstance(v, int) else ctypes.c_uint64(ctypes.addressof(v)) for v in values]
    pointers = (ctypes.c_void_p * len(held))(*[ctypes.cast(ctypes.byref(v), ctypes.c_void_p) for v in held])
    call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, None, pointers, None)
    call("cuCtxSynchronize")


def scan(module):
    blocks, threads, length, count = 240, 128, 512, 9
    numbers = pinned([mix(i) % 100 for i in range(blocks * length)])
    stages = pinned([EMPTY] * (blocks * (count + 1) * length))
    run = lambda: launch(module, "sbrp_scan", blocks, threads, numbers, stages, pinned([0] * (blocks * (count + 1) * threads)), length, count)
    last = lambda block: stages[(block * (count + 1) + count) * length : (block + 1) * (count + 1) * length]
    for crashed in (False, True):
        if crashed:
            for block in range(blocks):
                start = (block * (count + 1) + count) * length
                stages[start : start + length] = [EMPTY] * length
        run()
        for block in range(blocks):
            total, expected = 0, []
            for number in numbers[block * length : (block + 1) * length]:
                total += number
                expected.append(total)
            assert last(block) == expected, f"Scan, array {block}, after a crash: {crashed}"


def red(module):
    blocks, threads, rounds, n = 60, 512, 4, 262144
    numbers = pinned([mix(i) % 100 for i in range(rounds * n)])
    partial, sums, totals = (pinned([EMPTY] * k) for k in (rounds * blocks * threads, rounds * blocks, rounds))
    for crashed in (False, True):
        if crashed:
            totals[:] = [EMPTY] * rounds
            sums[:] = [EMPTY if i % 3 else sums[i] for i in range(len(sums))]
        launch(module, "sbrp_red", blocks, threads, numbers, n, rounds, partial, sums, totals, pinned([0] * len(partial)))
        assert list(totals) == [sum(numbers[r * n : (r + 1) * n]) for r in range(rounds)], f"Red, after a crash: {crashed}"


def mq(module):
    queues, threads, capacity, commands, size = 60, 128, 8192, 420, 1024
    entries, heads, removed = pinned([0] * (queues * capacity)), pinned([0] * (queues * 96)), pinned([0] * queues)
    launch(module, "sbrp_mq", queues, threads, entries, capacity, heads, commands, size, pinned([0] * (queues * threads)), removed)
    for crashed in (False, True):
        if crashed:
            # The last command, an insertion, had not committed.
            for queue in range(queues):
                heads[queue * 96 + 32], heads[queue * 96 + 33], heads[queue * 96 + 64] = 3 * size, 3 * size, 7
            launch(module, "sbrp_mq_recover", 2, 32, heads, queues)
        for queue in range(queues):
            head, tail = heads[queue * 96], heads[queue * 96 + 1]
            assert (head, tail) == (3 * size, (3 if crashed else 4) * size), f"MQ, queue {queue}: {head}, {tail}"
            assert all(
                entries[queue * capacity + p % capacity] == mix((queue * 0x10001 + p) & 0xFFFFFFFF) for p in range(head, tail)
            ), f"MQ, queue {queue}, entries"
            assert removed[queue] == sum(mix((queue * 0x10001 + p) & 0xFFFFFFFF) for p in range(3 * size)) & 0xFFFFFFFF


def main():
    call("cuInit", 0)
    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    call("cuDeviceGet", ctypes.byref(device), 0)
    name = ctypes.create_string_buffer(100)
    call("cuDeviceGetName", name, 100, device)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    text = (pathlib.Path(__file__).parent / "ptx" / "sbrp_card.ptx").read_bytes()
    call("cuModuleLoadData", ctypes.byref(module), text)
    for check in (scan, red, mq):
        check(module)
        print(f"{check.__name__}: as on the processor, on {name.value.decode()}")


main()
