"""The obj_* tests of a PMDK checkout."""

import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from bounds import FAIL, PASS, SKIP, Result, Test, die, last_error, limited, one_line
from words import same_but_for_words

FLAGS = ["NDCTL_ENABLE=n", "DOC=n", "BUILD_RPMEM=n", "EXTRA_CFLAGS=-Wno-error -I../../libpmemobj"]
TOOLS = ["pmemspoil", "pmemwrite", "pmemalloc", "pmemobjcli", "obj_verify", "cmpmap", "extents", "pmemdetect",
         "fallocate_detect", "gran_detecto"]
# The parts of a test's script that decide on which kind of file system and build it may run.
RUNS = [("pmem", "nondebug"), ("non-pmem", "nondebug"), ("none", "nondebug"),
             ("pmem", "debug"), ("non-pmem", "debug"), ("none", "debug")]

CONFIG_SH = """PMEM_FS_DIR="$SUITES_POOLS"
PMEM_FS_DIR_FORCE_PMEM=2
NON_PMEM_FS_DIR="$SUITES_FILES"
"""
CONFIG_PY = """import os
config = {
    'unittest_log_level': 1, 'cacheline_fs_dir': os.environ['SUITES_POOLS'], 'page_fs_dir': os.environ['SUITES_FILES'],
    'force_page': False, 'force_cacheline': True, 'force_byte': False, 'tm': False, 'test_type': 'all',
    'build': 'release', 'granularity': 'all', 'keep_going': True, 'fail_on_skip': False, 'timeout': '10m',
    'dump_lines': 30, 'force_enable': None, 'device_dax_path': [], 'enable_admin_tests': False,
}
"""


class Pmdk:
    """The obj_* tests of a PMDK checkout, driven by their own scripts, which also compare their output."""

    title = "PMDK's unit tests (`obj_*`)"

    def __init__(self, bench, checkout):
        self.bench, self.checkout, self.tree = bench, checkout, bench.work / "pmdk"
        if not (checkout / "src/test/unittest/unittest.sh").is_file():
            die(f"{checkout} is no checkout of PMDK: it has no src/test/unittest/unittest.sh")
        self.test = self.tree / "src/test"
        # Which groups cannot be built, and why, for runs that do not build.
        self.built = bench.work / "pmdk-groups.json"

    def prepare(self):
        log = self.bench.work / "pmdk.log"
        if not self.tree.exists():
            shutil.copytree(self.checkout, self.tree, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        make = ["make", f"-j{self.bench.jobs}", *FLAGS]
        source = self.tree / "src"
        libraries = [n for n in ("core", "common", "libpmem", "libpmem2", "libpmemblk", "libpmemlog", "libpmemobj", "libpmempool") if (source / n).is_dir()]
        self.bench.build("build PMDK's libraries, which its tests link parts of", [*make, *libraries], source, log)
        self.bench.build("build PMDK's test framework", make, self.test / "unittest", log)
        for tool in TOOLS:
            if (self.test / "tools" / tool / "Makefile").is_file():
                self.bench.build(f"build PMDK's tool {tool}", make, self.test / "tools" / tool, log)
        self.bench.build("write PMDK's envconfig", ["make", "envconfig.sh", "envconfig.py"], self.test, log)
        (self.test / "testconfig.sh").write_text(CONFIG_SH)
        (self.test / "testconfig.py").write_text(CONFIG_PY)
        groups = self.groups()
        print(f"suites: build {len(groups)} groups of tests", file=sys.stderr, flush=True)
        with ThreadPoolExecutor(self.bench.jobs) as pool:
            built = dict(zip([g.name for g in groups], pool.map(self.build_group, groups)))
        self.built.write_text(json.dumps(built, indent=1))

    def groups(self):
        groups = sorted(p for p in self.test.glob("obj_*") if p.is_dir())
        return [group for group in groups if any(group.glob("TEST[0-9]*")) or (group / "TESTS.py").is_file()]

    def tests(self):
        built = json.loads(self.built.read_text())
        for group in self.groups():
            yield from self.tests_of(group, built)

    def build_group(self, group):
        """Builds the tests of a folder against the library's interface alone. Gives why that cannot be, or nothing."""
        makefile = (group / "Makefile").read_text(errors="replace") if (group / "Makefile").is_file() else ""
        if "rpmem" in group.name or "remote" in group.name:
            return "is of remote pools, which PMDK itself has removed"
        target = re.search(r"^TARGET\s*=\s*(\S+)", makefile, re.M)
        if not target:
            return ""
        # Given on the command line, this overrides a Makefile that links PMDK's own objects into
        # the test.
        command = ["make", *FLAGS, "LIBPMEMOBJ=y", "BUILD_STATIC=n"]
        code, output, stopped = limited(command, group, self.bench.environment, 600)
        (self.bench.work / f"build-{group.name}.log").write_text(output)
        inner = sorted(set(re.findall(r"undefined reference to `(\w+)'", output)))
        if inner:
            return "calls functions inside of PMDK: " + ", ".join(inner[:3]) + (" ..." if inner[3:] else "")
        if code != 0:
            return f"does not compile here: {stopped or last_error(output)}"
        return "" if uses_library(group / target[1]) else "tests object files of PMDK, which are part of the test itself"

    def tests_of(self, group, built):
        scripts = sorted(group.glob("TEST[0-9]*"), key=lambda p: int(re.sub(r"\D", "", p.name) or 0))
        for script in (s for s in scripts if s.suffix == ""):
            text = script.read_text(errors="replace")
            for common in group.glob("*.sh"):
                text += common.read_text(errors="replace")
            others = [built.get(name, "") for name in [group.name, *re.findall(r"\.\./(obj_\w+)", text)]]
            test = Test(f"{group.name}/{script.name}", self.bash(group, script), next((o for o in others if o), ""))
            test.of_pool_sets = "create_poolset" in text
            yield test
        if (group / "TESTS.py").is_file():
            for number in self.numbers(group):
                yield Test(f"{group.name}/TESTS.py {number}", self.python(group, number), built[group.name])

    def numbers(self, group):
        command = [sys.executable, "RUNTESTS.py", "--list-testcases", group.name]
        env = {**self.bench.environment, "SUITES_POOLS": "/tmp", "SUITES_FILES": "/tmp"}
        code, output, _ = limited(command, self.test, env, 60)
        names = output.split() if code == 0 else []
        return [re.sub(r".*?(\d+)$", r"\1", name) for name in names if re.search(r"\d$", name)]

    def environment(self, library, pools, files):
        return {
            **self.bench.environment, "SUITES_POOLS": pools, "SUITES_FILES": files, "LD_LIBRARY_PATH": str(library),
            "PMDK_LIB_PATH_NONDEBUG": str(library), "PMDK_LIB_PATH_DEBUG": str(library), "TEST": "all",
            "PMEMPOOL": shutil.which("pmempool"), "UNITTEST_LOG_LEVEL": "2", "FORCE_FS": "1", "SUFFIX": "", "CHECK_TYPE": "none",
        }

    def bash(self, group, script):
        valgrind = re.search(r"configure_valgrind (\w+) force-enable", script.read_text(errors="replace"))

        def run(library):
            if valgrind and not self.bench.valgrind:
                return Result(SKIP, f"is for valgrind's {valgrind[1]} (--valgrind)")
            return self.bench.within(lambda *given: attempt(library, *given))

        def attempt(library, pools, files, bounds):
            for kind, build in RUNS:
                env = {**self.environment(library, pools, files), "FS": kind, "BUILD": build}
                command = ["bash", f"./{script.name}"]
                code, output, stopped = limited(command, group, env, self.bench.seconds, **bounds)
                if not re.search(r"SKIP (fs|build)-type", output) and not (code == 0 and not output.strip()):
                    break
            result = verdict(code, output, stopped)
            if "MATCHING FAILED" in output and self.differs_in_words(group, script.name):
                return Result(PASS, "error messages have other words; errno is the same")
            return result

        return run

    @staticmethod
    def differs_in_words(group, script):
        """Whether everything that a test has printed is as its patterns say, but for the words of error messages."""
        patterns = list(group.glob(f"*[a-z]{script.removeprefix('TEST')}.log.match"))
        logs = [(p.with_suffix(""), p) for p in patterns]
        return bool(logs) and all(
            log.is_file() and same_but_for_words(log.read_text(errors="replace"), pattern.read_text(errors="replace"))
            for log, pattern in logs
        )

    def python(self, group, number):
        def run(library):
            return self.bench.within(lambda *given: attempt(library, *given))

        def attempt(library, pools, files, bounds):
            command = [sys.executable, "RUNTESTS.py", "-u", number, "--", group.name]
            env = self.environment(library, pools, files)
            return verdict(*limited(command, self.test, env, self.bench.seconds, **bounds))

        return run


def uses_library(program):
    """Whether a test loads libpmemobj; where its Makefile makes several things, it is not looked at."""
    shown = subprocess.run(["readelf", "-d", program], capture_output=True, text=True)
    return shown.returncode != 0 or "libpmemobj.so" in shown.stdout


def verdict(code, output, stopped):
    if stopped:
        return Result(FAIL, stopped, beyond_bounds=True)
    skipped = re.search(r"SKIP:?\s*(.*)", output)
    if code == 0 and skipped and "PASS" not in output:
        return Result(SKIP, one_line(skipped[1]))
    if code == 0 and "FAILED" not in output:
        return Result(PASS)
    return Result(FAIL, last_error(output))
