# Runs the flow without Vivado: its commands only write down what they are asked. Any other command
# is an error, as it would be there.
#
#   tclsh recorder.tcl FLOW [ARGS]
#
# Prints a line for each cell, core, pin and port that the flow names, for each net and address, for
# each parameter of a cell, for each port that is placed, for what is generated, and for what a
# board is loaded with. Files that Vivado would write for a board are made, empty.

proc note {kind name} {
    puts "$kind $name"
    return $name
}
foreach name {
    create_project set_property current_project current_design read_verilog read_xdc synth_design write_checkpoint report_utilization
    opt_design place_design phys_opt_design route_design report_timing_summary report_cdc report_drc get_timing_paths
    create_bd_design validate_bd_design save_bd_design get_files make_wrapper set_false_path create_clock get_bd_addr_spaces
    get_bd_addr_segs open_hw_manager connect_hw_server open_hw_target get_hw_devices current_hw_device refresh_hw_device create_hw_cfgmem
    get_cfgmem_parts create_hw_bitstream
} {
    proc $name {args} [list return $name]
}
foreach name {program_hw_devices program_hw_cfgmem boot_hw_device} {
    proc $name {args} [list note step $name]
}
foreach name {get_bd_addr_spaces get_bd_addr_segs get_files} {
    rename $name {}
    proc $name {name} { return $name }
}
proc get_property {args} { return 0.1 }
proc get_cdc_violations {args} { return {} }
proc create_bd_cell {args} {
    set name [lindex $args end]
    if {[dict exists [lrange $args 0 end-1] -vlnv]} {
        note core "$name [lindex [split [dict get [lrange $args 0 end-1] -vlnv] :] 2]"
    }
    note cell $name
}
proc create_bd_port {args} { note port [lindex $args end] }
proc create_bd_intf_port {args} { note interface_port [lindex $args end] }
proc get_bd_cells {name} { note use_cell $name }
proc get_bd_ports {name} { note use_port $name }
proc get_bd_intf_ports {name} { note use_interface_port $name }
proc get_bd_pins {name} { note pin $name }
proc get_bd_intf_pins {name} { note interface_pin $name }
proc get_ports {names} {
    foreach name $names { note constrained $name }
    return $names
}
proc connect_bd_net {from to} { note net "$from $to" }
proc connect_bd_intf_net {from to} { note interface_net "$from $to" }
# Only explicit addresses: what Vivado chooses by itself is nobody's to rely on.
proc assign_bd_address {args} {
    if {[llength $args] != 8 || [lindex $args end] ne "-force"} {
        error "an address that is left to Vivado: assign_bd_address $args"
    }
    set options [lrange $args 0 5]
    note address "[dict get $options -target_address_space] [lindex $args 6] [dict get $options -offset] [dict get $options -range]"
}
rename set_property {}
# How the block design is synthesised unless it is told.
set checkpoint_mode Hierarchical
proc set_property {args} {
    set properties [lrange $args 0 1]
    if {[lindex $args 0] eq "-dict"} { set properties [lindex $args 1] }
    set objects [lindex $args 2]
    foreach {name value} $properties {
        switch -glob $name {
            PACKAGE_PIN {
                set standard -
                if {[dict exists $properties IOSTANDARD]} { set standard [dict get $properties IOSTANDARD] }
                note placed "$objects $value $standard"
            }
            CONFIG.* { note config "$objects $name $value" }
            PROGRAM.FILE* { note loaded $value }
            synth_checkpoint_mode { set ::checkpoint_mode $value }
        }
    }
}
proc generate_target {what file} { note generated "$file $::checkpoint_mode" }
proc make_file {name} { close [open $name w] }
proc write_bitstream {args} { make_file [lindex $args end] }
# For an interface of eight bits, files for each of both chips.
proc write_cfgmem {args} {
    set options [lsearch -all -inline -not -regexp $args {^-(force|checksum)$}]
    note flash "[dict get $options -interface] [dict get $options -size] [dict get $options -loadbit]"
    set root [file rootname [dict get $options -file]]
    foreach chip {primary secondary} {
        foreach kind {mcs prm} { make_file ${root}_$chip.$kind }
    }
}
# Constraints are Tcl, too, and are read here so that they are checked likewise.
rename read_xdc {}
proc read_xdc {file} { uplevel #0 [list source $file] }

set flow [lindex $argv 0]
set argv [lrange $argv 1 end]
set argc [llength $argv]
source $flow
