"""Running commands that may hang, crash, or fill the disk."""

import dataclasses
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PASS, FAIL, SKIP, CANNOT = "passes", "fails", "not run", "cannot run"
# Most output of a test that is kept: one that prints in a loop must not fill the disk.
OUTPUT_BYTES = 4 << 20


def die(text):
    """Ends the run with a sentence for its user."""
    sys.exit(f"suites: {text}")


@dataclasses.dataclass
class Result:
    """What a test did on one library: a status, and in words why it did not pass."""

    status: str
    reason: str = ""
    # It was stopped: by time, by output, or by the bytes of its files.
    beyond_bounds: bool = False


@dataclasses.dataclass
class Test:
    """A test: its name, what runs it on a library's folder, and why it can run on PMDK alone, where it can."""

    name: str
    run: object
    cannot: str = ""
    # Its script makes pool sets, of which this library has those of one part alone.
    of_pool_sets: bool = False

    def group(self):
        """Tests of a group write files of the same names: they are run one after the other."""
        return self.name.split("/")[0]



def session_of(pid):
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[3])
    except (OSError, IndexError, ValueError):
        return None


def kill_session(session):
    """Ends every process of a session: tests start others, some in process groups of their own."""
    for _ in range(10):
        pids = [int(p) for p in os.listdir("/proc") if p.isdigit() and session_of(p) == session]
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if not pids:
            return
        time.sleep(0.05)


def bytes_in(folders):
    total = 0
    for folder in folders:
        for root, _, names in os.walk(folder):
            for name in names:
                try:
                    total += os.lstat(os.path.join(root, name)).st_blocks * 512
                except OSError:
                    pass
    return total


def limited(command, cwd, env, seconds, folders=(), most=0):
    """Runs a command within bounds of time and of bytes in folders. Gives its status, its output and what stopped it."""
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        stopped, end, look = "", time.monotonic() + seconds, 0.02
        try:
            while child.poll() is None and not stopped:
                time.sleep(look)
                look = min(look * 1.5, 0.5)
                if time.monotonic() > end:
                    stopped = f"ran longer than {seconds} s"
                elif os.fstat(output.fileno()).st_size > OUTPUT_BYTES:
                    stopped = f"wrote more than {OUTPUT_BYTES >> 20} MiB of output"
                elif most and bytes_in(folders) > most:
                    stopped = f"filled more than {most >> 20} MiB with files"
        finally:
            kill_session(child.pid)
            child.wait()
        output.seek(0)
        return child.returncode, output.read(OUTPUT_BYTES).decode(errors="replace"), stopped


def one_line(text):
    """A reason as a cell of a table: one line, without paths of this machine's temporary folders."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r"/\S*/(suites-[a-z0-9_]+)/\S*", "FILE", text).replace("|", "\\|")
    return " ".join(text.split())[:160]


class Bench:
    """Where and within which bounds tests run."""

    def __init__(self, arguments):
        self.work = Path(arguments.work).resolve()
        self.pools = Path(arguments.pools).resolve()
        self.files = Path(arguments.files).resolve()
        self.seconds = arguments.seconds
        self.most = arguments.mebibytes << 20
        self.jobs = arguments.jobs
        self.valgrind = arguments.valgrind
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("PMEMOBJ_", "PMEM_", "UNITTEST"))}
        self.environment["LC_ALL"] = "C"

    def within(self, run):
        """Gives a test two folders of its own: for pools that count as persistent memory, and for ordinary files."""
        with self.folder(self.pools) as pools, self.folder(self.files) as files:
            return run(pools, files, {"folders": [pools, files], "most": self.most})

    @staticmethod
    def folder(parent):
        return tempfile.TemporaryDirectory(prefix="suites-", dir=parent, ignore_cleanup_errors=True)

    def build(self, what, command, cwd, log):
        """Runs a step of a build without which nothing can be run."""
        print(f"suites: {what}", file=sys.stderr, flush=True)
        with open(log, "ab") as file:
            code = subprocess.run(command, cwd=cwd, stdout=file, stderr=file, stdin=subprocess.DEVNULL).returncode
        if code != 0:
            die(f"{what} failed; {log} has what it printed")


# What lines of an output say most likely what went wrong, the surest first.
TELLING = [
    r"Error: (.*)", r"(terminate called.*)", r"(?:what\(\)): (.*)", r"(.*\(signal \d+\).*)", r"(.*[Aa]ssert.*)", r"(error: .*)",
    r"(FAIL.*)", r"(.*unexpected.*)", r"(.*!=.*)",
]


def last_error(output):
    """The line of an output that says most likely what went wrong."""
    pair = re.search(r"^\S+\.match:\d+ +(.*)\n\S+\.log:\d+ +(.*)\n\s*FAIL: match:", output, re.M)
    if pair:
        return one_line(f"prints {pair[2]!r}, where PMDK prints {pair[1]!r}")
    for pattern in TELLING:
        if found := re.search(pattern, output):
            return one_line(found[1])
    lines = [line for line in output.splitlines() if line.strip()]
    return one_line((lines or ["no output"])[-1])
