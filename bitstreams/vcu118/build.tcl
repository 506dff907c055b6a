# The VCU118's bitstream, in Vivado's non-project mode:
#
#   vivado -mode batch -source bitstreams/vcu118/build.tcl -tclargs VERILOG OUT
#
# VERILOG is the folder that `cargo run -p nearpm-bitstreams --bin vcu118 VERILOG` fills. OUT gets the bitstream, the checkpoints and the
# reports. It ends with an error where a path misses its time, or a crossing between clocks is critical.

if {[llength $argv] != 2} {
    error "build.tcl takes the folder of the Verilog and the folder of the results"
}
lassign $argv verilog out
set here [file dirname [file normalize [info script]]]
file mkdir $out

create_project -in_memory -part xcvu9p-flga2104-2L-e
set_property board_part xilinx.com:vcu118:part0:2.4 [current_project]
set_property target_language Verilog [current_project]
foreach name {nearpm_card nearpm_pcie_bridge} {
    set file [file join $verilog $name.v]
    if {![file exists $file]} {
        error "$file is missing"
    }
    read_verilog $file
}
source [file join $here design.tcl]
nearpm_design $out
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
write_bitstream -force [file join $out nearpm_vcu118.bit]
