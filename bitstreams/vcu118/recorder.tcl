# Runs the flow without Vivado: its commands only write down what they are asked. Any other command is an error, as it would be there.
#
#   tclsh recorder.tcl FLOW [ARGS]
#
# Prints a line for each cell, pin and port that the flow names, for each net, and for each parameter of a cell.

proc note {kind name} {
    puts "$kind $name"
    return $name
}
foreach name {
    create_project set_property current_project current_design read_verilog read_xdc synth_design write_checkpoint report_utilization
    opt_design place_design phys_opt_design route_design report_timing_summary report_cdc report_drc get_timing_paths write_bitstream
    create_bd_design assign_bd_address validate_bd_design save_bd_design generate_target get_files make_wrapper set_false_path
    create_clock get_bd_addr_spaces get_bd_addr_segs
} {
    proc $name {args} [list return $name]
}
proc get_property {args} { return 0.1 }
proc get_cdc_violations {args} { return {} }
proc create_bd_cell {args} { note cell [lindex $args end] }
proc create_bd_port {args} { note port [lindex $args end] }
proc create_bd_intf_port {args} { note interface_port [lindex $args end] }
proc get_bd_cells {name} { note use_cell $name }
proc get_bd_ports {name} { note use_port $name }
proc get_bd_intf_ports {name} { note use_interface_port $name }
proc get_bd_pins {name} { note pin $name }
proc get_bd_intf_pins {name} { note interface_pin $name }
proc get_ports {names} { foreach name $names { note constrained $name } }
proc connect_bd_net {from to} { note net "$from $to" }
proc connect_bd_intf_net {from to} { note interface_net "$from $to" }
rename set_property {}
proc set_property {args} {
    set properties [lrange $args 0 1]
    if {[lindex $args 0] eq "-dict"} { set properties [lindex $args 1] }
    foreach {name value} $properties {
        if {$name eq "PACKAGE_PIN"} { note pad $value }
        if {[string match CONFIG.* $name]} { note config "[lindex $args 2] $name $value" }
    }
}
# Constraints are Tcl, too, and are read here so that they are checked likewise.
rename read_xdc {}
proc read_xdc {file} { uplevel #0 [list source $file] }

set flow [lindex $argv 0]
set argv [lrange $argv 1 end]
set argc [llength $argv]
source $flow
