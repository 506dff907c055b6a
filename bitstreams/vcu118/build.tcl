# The VCU118's bitstream, in Vivado's non-project mode:
#
#   vivado -mode batch -source bitstreams/vcu118/build.tcl -tclargs VERILOG OUT [MHZ]
#
# VERILOG is the folder that `cargo run -p nearpm-bitstreams --bin vcu118 VERILOG` fills. OUT gets
# the bitstream, the files for the board's flash, the checkpoints and the reports. It ends with an
# error where a path misses its time, or a crossing between clocks is critical.
#
# MHZ is the card's clock: 300, or 250 or 200 where 300 is not met. Nothing else depends on it: the
# PCIe block and the bridge stay at 250 MHz, the memories at 300, and every port of the card crosses
# to them.

if {[llength $argv] ni {2 3}} {
    error "build.tcl takes the folder of the Verilog, the folder of the results, and the card's clock if it is not to be 300 MHz"
}
lassign $argv verilog out mhz
if {$mhz eq ""} {
    set mhz 300
}
if {$mhz ni {300 250 200}} {
    error "the card's clock is 300, 250 or 200 MHz, and not $mhz"
}
set here [file dirname [file normalize [info script]]]
file mkdir $out

create_project -in_memory -part xcvu9p-flga2104-2L-e
set_property board_part xilinx.com:vcu118:part0:2.4 [current_project]
set_property target_language Verilog [current_project]
# The hierarchy of what is read has to be known when the block design refers to our modules. (Public
# flows in memory set it, too: vkomenda/warpshell-user-template,
# personas/xilinx_u55n_xdma_gen3x8_v1/default/synth.tcl.)
set_property source_mgmt_mode All [current_project]
foreach name {nearpm_card nearpm_pcie_bridge} {
    set file [file join $verilog $name.v]
    if {![file exists $file]} {
        error "$file is missing"
    }
    read_verilog $file
}
source [file join $here design.tcl]
nearpm_design $out $mhz
read_xdc [file join $here pins.xdc]

synth_design -top nearpm_vcu118_wrapper -part xcvu9p-flga2104-2L-e
write_checkpoint -force [file join $out synthesised.dcp]
report_utilization -file [file join $out utilisation_synthesised.txt]
opt_design
place_design -directive ExtraTimingOpt
phys_opt_design -directive AggressiveExplore
route_design -directive Explore
phys_opt_design
write_checkpoint -force [file join $out routed.dcp]
report_utilization -file [file join $out utilisation.txt]
report_timing_summary -max_paths 40 -file [file join $out timing.txt]
report_cdc -details -file [file join $out cdc.txt]
report_drc -file [file join $out drc.txt]
foreach kind {setup hold} {
    set slack [get_property SLACK [get_timing_paths -max_paths 1 -$kind]]
    if {$slack < 0} {
        error "a path misses its $kind time by [expr {-$slack}] ns: see timing.txt"
    }
}
set crossings [get_cdc_violations -filter {SEVERITY == Critical}]
if {[llength $crossings] > 0} {
    error "[llength $crossings] crossings between clocks are critical ([join $crossings {, }]): see cdc.txt"
}
# Only of a design that keeps its times and crosses its clocks as it should.
set bitstream [file join $out nearpm_vcu118.bit]
write_bitstream -force $bitstream
# The board configures itself from two quad flash chips of 128 MiB that are read side by side:
# `spi_flash`, 2 Gbit of MT25QU01G, in `boards/Xilinx/vcu118/2.4/board.xml` of
# Xilinx/XilinxBoardStore. The size is that of both, and each gets a file of its own, `_primary` and
# `_secondary` (UG908, "Creating a Configuration Memory File for SPI Dual Quad (x8) Devices"). Same
# figures: Corundum's VCU118 makefiles.
write_cfgmem -force -format mcs -interface SPIx8 -size 256 -loadbit "up 0x00000000 $bitstream" -checksum -file \
    [file join $out nearpm_vcu118.mcs]
