#!/usr/bin/env python3
"""Memory and restart with a million keys, beside redis-server.

    serve/tests/suites/memory.py FOLDER [SERVER]

FOLDER is where pools lie; SERVER is nearpm-serve [target/release/nearpm-serve]. It prints megabytes of the processes
(/proc/PID/status), and how long a restart takes until the server says that it is ready, with its processor time by then.
"""
import os
import signal
import socket
import subprocess
import sys
import time

FOLDER = sys.argv[1]
SERVER = sys.argv[2] if len(sys.argv) > 2 else "target/release/nearpm-serve"
KEYS, AT_ONCE, VALUE = 1_000_000, 500, b"v" * 100


def sets(first, value):
    return b"".join(
        b"*3\r\n$3\r\nSET\r\n$16\r\nkey:%012d\r\n$%d\r\n%s\r\n" % (number, len(value), value)
        for number in range(first, first + AT_ONCE)
    )


def load(port, keys, value):
    """Sets keys, each of which is acknowledged."""
    client = socket.create_connection(("127.0.0.1", port))
    replies = client.makefile("rb")
    for first in range(0, keys, AT_ONCE):
        client.sendall(sets(first, value))
        assert replies.read(5 * AT_ONCE) == b"+OK\r\n" * AT_ONCE
    client.sendall(b"DBSIZE\r\n")
    assert replies.readline() == b":%d\r\n" % KEYS


def check(port):
    """All keys are there, and the bytes of one."""
    client = socket.create_connection(("127.0.0.1", port))
    replies = client.makefile("rb")
    client.sendall(b"DBSIZE\r\nGET key:000000777777\r\n")
    assert replies.readline() == b":%d\r\n" % KEYS
    assert (replies.readline(), replies.readline()) == (b"$100\r\n", VALUE + b"\r\n")


def memory(process):
    with open(f"/proc/{process.pid}/status") as status:
        rows = (row.split(":") for row in status)
        return {name: int(value.split()[0]) // 1024 for name, value in rows if name in ("VmRSS", "RssAnon", "RssFile")}


def start(arguments, pool):
    begin = time.time()
    command = [SERVER, "redis", "--pool", pool, "--bytes", "1G", "--listen", "127.0.0.1:0", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    ready = process.stdout.readline()
    took = time.time() - begin
    with open(f"/proc/{process.pid}/stat") as stat:
        words = stat.read().rsplit(") ", 1)[1].split()
    ticks = int(words[11]) + int(words[12])
    return process, int(ready.rsplit(":", 1)[1]), f"ready after {took:.3f} s, {10 * ticks} ms of processors"


def stock():
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    listener.close()
    arguments = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    process = subprocess.Popen(["redis-server", *arguments], stdout=subprocess.DEVNULL)
    time.sleep(1)
    load(port, KEYS, VALUE)
    print("redis-server", memory(process))
    process.kill()


def ours(arguments):
    pool = os.path.join(FOLDER, "million.pool")
    process, port, _ = start(arguments, pool)
    load(port, KEYS, VALUE)
    # What is put off has been done, and pages that were written have left.
    time.sleep(8)
    print(arguments, memory(process))
    for ending, how in ((signal.SIGTERM, "in order"), (signal.SIGKILL, "by kill -9")):
        process.send_signal(ending)
        process.wait()
        process, port, told = start(arguments, pool)
        check(port)
        print(f"  after an end {how}: {told}", flush=True)
    load(port, 20_000, VALUE)
    process.kill()
    process.wait()
    process, port, told = start(arguments, pool)
    check(port)
    print(f"  by kill -9 behind 20000 SETs: {told}", flush=True)
    process.kill()
    process.wait()
    os.remove(pool)


stock()
ours(["--durability", "async"])
ours(["--survives", "process-crash"])
