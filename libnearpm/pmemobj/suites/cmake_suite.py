"""Suites that are built by CMake and run by CTest: libpmemobj-cpp's and pmemkv's."""

import json
import os
import re
import subprocess

from bounds import FAIL, PASS, SKIP, Result, Test, die, last_error, limited

OPTIONS = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DCMAKE_C_FLAGS_DEBUG=-O0", "-DBUILD_EXAMPLES=OFF",
           "-DBUILD_DOC=OFF", "-DTESTS_USE_VALGRIND=OFF", "-DTESTS_USE_FORCED_PMEM=ON"]


class CMakeSuite:
    """Tests that CTest knows: each is a command, whose folders are given in its arguments."""

    # Given by each suite.
    name = title = ""
    options = []

    def __init__(self, bench, checkout):
        self.bench, self.checkout, self.tree = bench, checkout, bench.work / self.name
        text = checkout / "CMakeLists.txt"
        if not text.is_file() or not re.search(rf"project\({re.escape(self.project)}\b", text.read_text()):
            die(f"{checkout} is no checkout of {self.project}: no CMakeLists.txt there has that project")

    def prepare(self):
        self.tree.mkdir(exist_ok=True)
        log = self.bench.work / f"{self.name}.log"
        command = ["cmake", str(self.checkout), *OPTIONS, *self.options]
        self.bench.build(f"configure {self.project}", [*self.environment_of_build(), *command], self.tree, log)
        self.bench.build(f"build {self.project}", self.build_command(), self.tree, log)

    def environment_of_build(self):
        return []

    def build_command(self):
        # A test that this compiler refuses must not keep the others from being built: it is seen
        # when it is run.
        return ["sh", "-c", f"make -k -j{self.bench.jobs} tests || true"]

    def tests(self):
        shown = subprocess.run(["ctest", "--show-only=json-v1"], cwd=self.tree, capture_output=True, check=True)
        for test in json.loads(shown.stdout)["tests"]:
            # Placeholders, and tests that a compiler must refuse: no library is part of those.
            if "SKIPPED" not in test["name"] and not test["name"].endswith("fail_expected"):
                yield Test(test["name"], self.runner(test))

    def runner(self, test):
        built = [a.split("=", 1)[1] for a in test["command"] if a.startswith("-DTEST_EXECUTABLE=")]
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}

        def run(library):
            if any(not os.path.exists(path) for path in built):
                return Result(SKIP, f"is not built: {self.name}.log in the folder of --work says why")
            return self.bench.within(lambda *given: attempt(library, *given))

        def attempt(library, pools, files, bounds):
            env = {**self.bench.environment, "LD_LIBRARY_PATH": str(library)}
            command = [moved(argument, pools, files) for argument in test["command"]]
            folder = properties.get("WORKING_DIRECTORY", str(self.tree))
            code, output, stopped = limited(command, folder, env, self.bench.seconds, **bounds)
            if code == 0 and not stopped:
                return Result(PASS)
            return Result(FAIL, stopped or last_error(output), beyond_bounds=bool(stopped))

        return run


def moved(argument, pools, files):
    """An argument of a test, with its folders replaced by those that it is given here."""
    if argument.startswith("-DPARENT_DIR="):
        return f"-DPARENT_DIR={pools}"
    return f"-DBIN_DIR={files}" if argument.startswith("-DBIN_DIR=") else argument


class Cpp(CMakeSuite):
    """libpmemobj-cpp: its containers, pointers, transactions, locks."""

    name, project, title = "cpp", "libpmemobj-cpp", "libpmemobj-cpp"
    options = ["-DBUILD_BENCHMARKS=OFF"]


class Pmemkv(CMakeSuite):
    """pmemkv: its engines on libpmemobj."""

    name, project, title = "pmemkv", "pmemkv", "pmemkv's engines on libpmemobj"
    options = ["-DCXX_STANDARD=14", *(f"-DENGINE_{e}=ON" for e in ("CMAP", "CSMAP", "STREE", "TREE3", "RADIX", "ROBINHOOD")),
               *(f"-DENGINE_{e}=OFF" for e in ("VCMAP", "VSMAP", "DRAM_VCMAP"))]

    def __init__(self, bench, checkout, headers):
        super().__init__(bench, checkout)
        self.headers, self.prefix = headers, bench.work / "prefix"

    def prepare(self):
        log, headers = self.bench.work / "headers.log", self.bench.work / "headers"
        headers.mkdir(exist_ok=True)
        options = ["-DBUILD_TESTS=OFF", "-DBUILD_EXAMPLES=OFF", "-DBUILD_DOC=OFF", "-DBUILD_BENCHMARKS=OFF"]
        command = ["cmake", str(self.headers), *options, f"-DCMAKE_INSTALL_PREFIX={self.prefix}"]
        self.bench.build("configure libpmemobj-cpp's headers for pmemkv", command, headers, log)
        self.bench.build("install libpmemobj-cpp's headers for pmemkv", ["make", "install"], headers, log)
        super().prepare()

    def environment_of_build(self):
        found = next(self.prefix.glob("lib*/**/libpmemobj++.pc"), None)
        return ["env", f"PKG_CONFIG_PATH={found.parent}"] if found else []

    def build_command(self):
        return ["sh", "-c", f"make -k -j{self.bench.jobs} || true"]
