"""Runs the tests of the bridge, or one of them: run.py VERILOG FOLDER [TEST]. Exits with 1 where one fails."""

import pathlib
import sys

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

verilog, folder = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
runner = get_runner("icarus")
runner.build(
    sources=[verilog],
    hdl_toplevel="nearpm_pcie_bridge",
    build_dir=folder,
    timescale=("1ns", "1ps"),
    build_args=["-g2012"],
)
results = runner.test(
    hdl_toplevel="nearpm_pcie_bridge",
    test_module="pcie_bridge",
    test_filter=sys.argv[3] if len(sys.argv) > 3 else None,
    test_dir=pathlib.Path(__file__).resolve().parent,
    build_dir=folder,
    results_xml=str(folder / "results.xml"),
)
tests, failed = get_results(results)
print(f"cocotb: {tests} tests, {failed} failed")
sys.exit(1 if failed or not tests else 0)
