"""Runs the tests of a module, or one of them: run.py VERILOG TOP TESTS FOLDER [TEST]. Exits with 1 where one fails."""

import pathlib
import sys

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

verilog, top, tests, folder = sys.argv[1:5]
verilog, folder = pathlib.Path(verilog).resolve(), pathlib.Path(folder).resolve()
runner = get_runner("icarus")
runner.build(
    sources=[verilog],
    hdl_toplevel=top,
    build_dir=folder,
    timescale=("1ns", "1ps"),
    build_args=["-g2012"],
)
results = runner.test(
    hdl_toplevel=top,
    test_module=tests,
    test_filter=sys.argv[5] if len(sys.argv) > 5 else None,
    test_dir=pathlib.Path(__file__).resolve().parent,
    build_dir=folder,
    results_xml=str(folder / "results.xml"),
)
count, failed = get_results(results)
print(f"cocotb: {count} tests, {failed} failed")
sys.exit(1 if failed or not count else 0)
