# Loads the VCU118 through its JTAG connector:
#
#   vivado -mode batch -source bitstreams/vcu118/program.tcl -tclargs OUT part|flash
#
# OUT is the folder that build.tcl filled. `part` loads the part itself, until its power goes.
# `flash` writes the two chips of flash that the board configures itself from, and has it do so. The
# commands are those of Corundum's VCU118 makefiles (`program`, `flash`).

if {[llength $argv] != 2 || [lindex $argv 1] ni {part flash}} {
    error "program.tcl takes the folder that build.tcl filled, and `part` or `flash`"
}
lassign $argv out what

# A file of the folder, which is there.
proc nearpm_file {out name} {
    set file [file join $out $name]
    if {![file exists $file]} {
        error "$file is missing: build.tcl makes it"
    }
    return $file
}
# Found before anything is opened or erased.
if {$what eq "part"} {
    set bitstream [nearpm_file $out nearpm_vcu118.bit]
} else {
    foreach chip {primary secondary} {
        lappend contents [nearpm_file $out nearpm_vcu118_$chip.mcs]
        lappend checksums [nearpm_file $out nearpm_vcu118_$chip.prm]
    }
}

open_hw_manager
connect_hw_server
open_hw_target
set part [lindex [get_hw_devices xcvu9p_0] 0]
current_hw_device $part
refresh_hw_device -update_hw_probes false $part
if {$what eq "part"} {
    set_property PROGRAM.FILE $bitstream $part
    program_hw_devices $part
} else {
    set flash [create_hw_cfgmem -hw_device $part [lindex [get_cfgmem_parts mt25qu01g-spi-x1_x2_x4_x8] 0]]
    set_property PROGRAM.FILES $contents $flash
    set_property PROGRAM.PRM_FILES $checksums $flash
    foreach {property value} {
        ERASE 1
        BLANK_CHECK 0
        CFG_PROGRAM 1
        VERIFY 1
        CHECKSUM 0
        ADDRESS_RANGE use_file
        UNUSED_PIN_TERMINATION pull-none
    } {
        set_property PROGRAM.$property $value $flash
    }
    # What writes the flash is loaded into the part first.
    create_hw_bitstream -hw_device $part [get_property PROGRAM.HW_CFGMEM_BITFILE $part]
    program_hw_devices $part
    refresh_hw_device $part
    program_hw_cfgmem -hw_cfgmem $flash
    boot_hw_device $part
}
