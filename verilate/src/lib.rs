//! Builds a Verilog module with Verilator at run time and hands out its ports
