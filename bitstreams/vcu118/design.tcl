# The block design: PCIe block, bridge, card, two memories.
#
#   pcie (250 MHz) == bridge (250 MHz) == crossings == card (300, 250 or 200 MHz)
#   card == crossings == ddr4_0, ddr4_1 (300 MHz)
#
# The card's clock and reset are the memories', not the link's, and so are those of every port
# between card and bridge: a host that starts again, or a link that goes down, is told to the bridge
# as `link_down`, and what is under way at the ports runs to its end. Every reset is brought into
# the clock that it is used with. Of each net the first end drives. Where the names of the cores'
# parameters are seen in public is in `bitstreams/tests/vendor`, whose test they have to pass.

# Every address of a master is one of its slave's: at 0, `range` bytes of it. Segment of a module of
# ours: the port's `reg0`. Names as in `board/u200/m2/riscv-2021.1.tcl` of
# eugene-tarassov/vivado-risc-v, which has a module reference as master and as slave, too. The
# answer is empty where it fails (UG835, "assign_bd_address").
proc nearpm_address {space segment range} {
    set assigned [assign_bd_address -offset 0x0 -range $range -target_address_space [get_bd_addr_spaces $space] \
        [get_bd_addr_segs $segment] -force]
    if {$assigned eq ""} {
        error "$segment has no address in $space"
    }
}

# One AXI connection from one clock to another.
proc nearpm_crossing {name from to from_clock to_clock reset} {
    create_bd_cell -type ip -vlnv xilinx.com:ip:smartconnect $name
    set_property -dict [list CONFIG.NUM_SI 1 CONFIG.NUM_MI 1 CONFIG.NUM_CLKS 2] [get_bd_cells $name]
    connect_bd_intf_net [get_bd_intf_pins $from] [get_bd_intf_pins $name/S00_AXI]
    connect_bd_intf_net [get_bd_intf_pins $name/M00_AXI] [get_bd_intf_pins $to]
    connect_bd_net [get_bd_pins $from_clock] [get_bd_pins $name/aclk]
    connect_bd_net [get_bd_pins $to_clock] [get_bd_pins $name/aclk1]
    connect_bd_net [get_bd_pins $reset] [get_bd_pins $name/aresetn]
}

# A reset, active low, in the clock `clock`: follows `source`, of which `high` says whether it is
# active high.
proc nearpm_reset {name clock source high} {
    create_bd_cell -type ip -vlnv xilinx.com:ip:proc_sys_reset $name
    set_property -dict [list CONFIG.C_EXT_RESET_HIGH $high] [get_bd_cells $name]
    connect_bd_net [get_bd_pins $clock] [get_bd_pins $name/slowest_sync_clk]
    connect_bd_net [get_bd_pins $source] [get_bd_pins $name/ext_reset_in]
}

# A gate of one bit: `operation` is `and`, `or` or `not`.
proc nearpm_gate {name operation} {
    create_bd_cell -type ip -vlnv xilinx.com:ip:util_vector_logic $name
    set_property -dict [list CONFIG.C_OPERATION $operation CONFIG.C_SIZE {1}] [get_bd_cells $name]
}

# One memory of the board: 2 GiB, 64 bits, DDR4-2400, so that its own clock has 300 MHz. Part,
# widths and times are those that the board's files give to this interface; the chip that would hold
# check bits has no pins in it.
proc nearpm_memory {number} {
    set name ddr4_$number
    create_bd_cell -type ip -vlnv xilinx.com:ip:ddr4 $name
    set_property -dict [list \
        CONFIG.C0.DDR4_AxiSelection {true} \
        CONFIG.C0.DDR4_AxiDataWidth {512} \
        CONFIG.C0.DDR4_AxiIDWidth {6} \
        CONFIG.C0.DDR4_AxiArbitrationScheme {RD_PRI_REG} \
        CONFIG.C0.DDR4_TimePeriod {833} \
        CONFIG.C0.DDR4_InputClockPeriod {4000} \
        CONFIG.C0.DDR4_MemoryType {Components} \
        CONFIG.C0.DDR4_MemoryPart {MT40A256M16LY-062E} \
        CONFIG.C0.DDR4_DataWidth {64} \
        CONFIG.C0.DDR4_DataMask {DM_NO_DBI} \
        CONFIG.C0_CLOCK_BOARD_INTERFACE default_250mhz_clk[expr {$number + 1}] \
        CONFIG.C0_DDR4_BOARD_INTERFACE ddr4_sdram_c[expr {$number + 1}]_062 \
    ] [get_bd_cells $name]
    foreach {pin vlnv mode} {
        C0_DDR4 xilinx.com:interface:ddr4_rtl:1.0 Master
        C0_SYS_CLK xilinx.com:interface:diff_clock_rtl:1.0 Slave
    } {
        set port [string tolower $pin]_$number
        create_bd_intf_port -mode $mode -vlnv $vlnv $port
        connect_bd_intf_net [get_bd_intf_ports $port] [get_bd_intf_pins $name/$pin]
    }
    set_property CONFIG.FREQ_HZ 250000000 [get_bd_intf_ports c0_sys_clk_$number]
    # Its reset (active high) is not used: it starts by itself when the part is configured, and must
    # not forget what it holds because somebody presses the board's button, to which the board's
    # files would join it.
    create_bd_cell -type ip -vlnv xilinx.com:ip:xlconstant constant_sys_rst_$number
    set_property -dict [list CONFIG.CONST_WIDTH 1 CONFIG.CONST_VAL 0] [get_bd_cells constant_sys_rst_$number]
    connect_bd_net [get_bd_pins constant_sys_rst_$number/dout] [get_bd_pins $name/sys_rst]
    # Its AXI port begins with the memory's own clock, which is before it is calibrated and so
    # before the card.
    nearpm_reset memory_reset_$number $name/c0_ddr4_ui_clk $name/c0_ddr4_ui_clk_sync_rst 1
    connect_bd_net [get_bd_pins memory_reset_$number/peripheral_aresetn] [get_bd_pins $name/c0_ddr4_aresetn]
}

# The PCIe block: Gen3 x16, 512 bits, no straddling, the BARs of the card, MSI-X with the table in
# the bridge.
proc nearpm_pcie {} {
    create_bd_cell -type ip -vlnv xilinx.com:ip:pcie4_uscale_plus pcie
    set_property -dict [list \
        CONFIG.PL_LINK_CAP_MAX_LINK_SPEED {8.0_GT/s} \
        CONFIG.PL_LINK_CAP_MAX_LINK_WIDTH {X16} \
        CONFIG.axisten_if_width {512_bit} \
        CONFIG.axisten_freq {250} \
        CONFIG.pf0_dev_cap_max_payload {512_bytes} \
        CONFIG.extended_tag_field {true} \
        CONFIG.PF0_DEV_CAP_FUNCTION_LEVEL_RESET_CAPABLE {true} \
        CONFIG.AXISTEN_IF_EXT_512_CQ_STRADDLE {false} \
        CONFIG.AXISTEN_IF_EXT_512_CC_STRADDLE {false} \
        CONFIG.AXISTEN_IF_EXT_512_RQ_STRADDLE {false} \
        CONFIG.AXISTEN_IF_EXT_512_RC_STRADDLE {false} \
        CONFIG.AXISTEN_IF_EXT_512_RC_4TLP_STRADDLE {false} \
        CONFIG.vendor_id {10ee} \
        CONFIG.PF0_DEVICE_ID {9e38} \
        CONFIG.PF0_CLASS_CODE {058000} \
        CONFIG.pf0_bar0_64bit {false} \
        CONFIG.pf0_bar0_scale {Kilobytes} \
        CONFIG.pf0_bar0_size {4} \
        CONFIG.pf0_bar1_enabled {true} \
        CONFIG.pf0_bar1_type {Memory} \
        CONFIG.pf0_bar1_scale {Kilobytes} \
        CONFIG.pf0_bar1_size {4} \
        CONFIG.pf0_bar2_enabled {true} \
        CONFIG.pf0_bar2_type {Memory} \
        CONFIG.pf0_bar2_64bit {true} \
        CONFIG.pf0_bar2_prefetchable {true} \
        CONFIG.pf0_bar2_scale {Kilobytes} \
        CONFIG.pf0_bar2_size {16} \
        CONFIG.pf0_bar4_enabled {true} \
        CONFIG.pf0_bar4_type {Memory} \
        CONFIG.pf0_bar4_64bit {true} \
        CONFIG.pf0_bar4_prefetchable {true} \
        CONFIG.pf0_bar4_scale {Gigabytes} \
        CONFIG.pf0_bar4_size {4} \
        CONFIG.pf0_msi_enabled {false} \
        CONFIG.pf0_msix_enabled {true} \
        CONFIG.MSI_X_OPTIONS {MSI-X_External} \
        CONFIG.PF0_MSIX_CAP_TABLE_SIZE {003} \
        CONFIG.PF0_MSIX_CAP_TABLE_BIR {BAR_1} \
        CONFIG.PF0_MSIX_CAP_TABLE_OFFSET {00000000} \
        CONFIG.PF0_MSIX_CAP_PBA_BIR {BAR_1} \
        CONFIG.PF0_MSIX_CAP_PBA_OFFSET {00000800} \
    ] [get_bd_cells pcie]
    create_bd_cell -type ip -vlnv xilinx.com:ip:util_ds_buf reference
    set_property -dict [list CONFIG.C_BUF_TYPE {IBUFDSGTE}] [get_bd_cells reference]
    create_bd_intf_port -mode Slave -vlnv xilinx.com:interface:diff_clock_rtl:1.0 pcie_refclk
    set_property CONFIG.FREQ_HZ 100000000 [get_bd_intf_ports pcie_refclk]
    connect_bd_intf_net [get_bd_intf_ports pcie_refclk] [get_bd_intf_pins reference/CLK_IN_D]
    connect_bd_net [get_bd_pins reference/IBUF_OUT] [get_bd_pins pcie/sys_clk_gt]
    connect_bd_net [get_bd_pins reference/IBUF_DS_ODIV2] [get_bd_pins pcie/sys_clk]
    create_bd_port -dir I -type rst pcie_reset_n
    connect_bd_net [get_bd_ports pcie_reset_n] [get_bd_pins pcie/sys_reset]
    create_bd_intf_port -mode Master -vlnv xilinx.com:interface:pcie_7x_mgt_rtl:1.0 pcie_lanes
    connect_bd_intf_net [get_bd_intf_ports pcie_lanes] [get_bd_intf_pins pcie/pcie4_mgt]
}

# The bridge's streams and what it is told of the function. Pin by pin, because `tkeep` has a bit
# for each Dword.
proc nearpm_bridge {} {
    create_bd_cell -type module -reference nearpm_pcie_bridge bridge
    foreach stream {cq rc} {
        foreach signal {tdata tkeep tuser tlast tvalid} {
            connect_bd_net [get_bd_pins pcie/m_axis_${stream}_$signal] [get_bd_pins bridge/${stream}_$signal]
        }
        connect_bd_net [get_bd_pins bridge/${stream}_tready] [get_bd_pins pcie/m_axis_${stream}_tready]
    }
    foreach stream {cc rq} {
        foreach signal {tdata tkeep tuser tlast tvalid} {
            connect_bd_net [get_bd_pins bridge/${stream}_$signal] [get_bd_pins pcie/s_axis_${stream}_$signal]
        }
        # The block says with four bits that it is ready, all of them the same.
        create_bd_cell -type ip -vlnv xilinx.com:ip:xlslice ready_$stream
        set_property -dict [list CONFIG.DIN_WIDTH 4 CONFIG.DIN_FROM 0 CONFIG.DIN_TO 0 CONFIG.DOUT_WIDTH 1] \
            [get_bd_cells ready_$stream]
        connect_bd_net [get_bd_pins pcie/s_axis_${stream}_tready] [get_bd_pins ready_$stream/Din]
        connect_bd_net [get_bd_pins ready_$stream/Dout] [get_bd_pins bridge/${stream}_tready]
    }
    # A function-level reset: the block waits until the bridge says that the card has drained.
    connect_bd_net [get_bd_pins bridge/cfg_flr_done] [get_bd_pins pcie/cfg_flr_done]
    foreach signal {cfg_flr_in_process cfg_function_status cfg_interrupt_msix_enable cfg_interrupt_msix_mask} {
        connect_bd_net [get_bd_pins pcie/$signal] [get_bd_pins bridge/$signal]
    }
    # Inputs that may read 0 where they are open: no training, no configuration space, no requests
    # that are not posted.
    foreach {pin width} {cfg_link_training_enable 1 cfg_config_space_enable 1 cfg_power_state_change_ack 1 pcie_cq_np_req 2} {
        create_bd_cell -type ip -vlnv xilinx.com:ip:xlconstant constant_$pin
        set_property -dict [list CONFIG.CONST_WIDTH $width CONFIG.CONST_VAL 1] [get_bd_cells constant_$pin]
        connect_bd_net [get_bd_pins constant_$pin/dout] [get_bd_pins pcie/$pin]
    }
    connect_bd_net [get_bd_pins pcie/user_clk] [get_bd_pins bridge/clk]
    # The link is down while the block is in reset, and while it is out of reset without a link.
    # Both are of the block's clock.
    nearpm_gate no_link not
    nearpm_gate link_down or
    connect_bd_net [get_bd_pins pcie/user_lnk_up] [get_bd_pins no_link/Op1]
    connect_bd_net [get_bd_pins pcie/user_reset] [get_bd_pins link_down/Op1]
    connect_bd_net [get_bd_pins no_link/Res] [get_bd_pins link_down/Op2]
    connect_bd_net [get_bd_pins link_down/Res] [get_bd_pins bridge/link_down]
}

# The card, its clock made from the first memory's, and its reset, which ends when both memories are
# calibrated.
proc nearpm_card {mhz} {
    create_bd_cell -type module -reference nearpm_card card
    # The clock that it is made from is known from the net: 833 ps make a little more than 300 MHz
    # of it.
    create_bd_cell -type ip -vlnv xilinx.com:ip:clk_wiz card_clock
    set_property -dict [list \
        CONFIG.PRIM_SOURCE {No_buffer} \
        CONFIG.CLKOUT1_REQUESTED_OUT_FREQ $mhz.000 \
        CONFIG.USE_RESET {false} \
    ] [get_bd_cells card_clock]
    connect_bd_net [get_bd_pins ddr4_0/c0_ddr4_ui_clk] [get_bd_pins card_clock/clk_in1]
    connect_bd_net [get_bd_pins card_clock/clk_out1] [get_bd_pins card/clk]
    # What a memory says is of its own clock. Each is brought into the card's before they are
    # joined: logic of two clocks in front of a synchroniser can glitch into it (UG906, "Multi-Clock
    # Fanin"; CDC-12 and CDC-10, critical).
    nearpm_gate calibrated and
    foreach number {0 1} operand {Op1 Op2} {
        nearpm_reset calibrated_$number card_clock/clk_out1 ddr4_$number/c0_init_calib_complete 0
        connect_bd_net [get_bd_pins calibrated_$number/peripheral_aresetn] [get_bd_pins calibrated/$operand]
    }
    nearpm_reset card_reset card_clock/clk_out1 calibrated/Res 0
    connect_bd_net [get_bd_pins card_clock/locked] [get_bd_pins card_reset/dcm_locked]
    connect_bd_net [get_bd_pins card_reset/peripheral_aresetn] [get_bd_pins card/rst_n]
    # The card's reset for the bridge and for its side of the crossings. From an output of its own,
    # a register that leads nowhere else: the crossings bring `peripheral_aresetn` into the link's
    # clock, too, and one that enters a clock twice is critical (CDC-11).
    nearpm_reset bridge_reset pcie/user_clk card_reset/peripheral_reset 1
    connect_bd_net [get_bd_pins bridge_reset/peripheral_aresetn] [get_bd_pins bridge/rst_n]
    foreach {name width value pin} {
        pm_bytes 64 4294967296 card/pm_bytes
        peer_out_ready 1 1 card/peer_out_ready
        peer_in_valid 1 0 card/peer_in_valid
        peer_in_data 128 0 card/peer_in_data
    } {
        create_bd_cell -type ip -vlnv xilinx.com:ip:xlconstant constant_$name
        set_property -dict [list CONFIG.CONST_WIDTH $width CONFIG.CONST_VAL $value] [get_bd_cells constant_$name]
        connect_bd_net [get_bd_pins constant_$name/dout] [get_bd_pins $pin]
    }
    create_bd_port -dir I power_fail
    create_bd_port -dir O save_done
    connect_bd_net [get_bd_ports power_fail] [get_bd_pins card/power_fail]
    connect_bd_net [get_bd_pins card/save_done] [get_bd_ports save_done]
}

# Makes the whole design and its wrapper, with the card at `mhz`.
proc nearpm_design {out mhz} {
    create_bd_design -dir [file join $out design] nearpm_vcu118
    nearpm_pcie
    nearpm_memory 0
    nearpm_memory 1
    nearpm_bridge
    nearpm_card $mhz
    set link pcie/user_clk
    set card card_clock/clk_out1
    nearpm_crossing crossing_host bridge/m_axi_host card/s_axi_host $link $card bridge_reset/peripheral_aresetn
    nearpm_crossing crossing_cmd bridge/m_axi_cmd card/s_axi_cmd $link $card bridge_reset/peripheral_aresetn
    nearpm_crossing crossing_ctrl bridge/m_axil_ctrl card/s_axil_ctrl $link $card bridge_reset/peripheral_aresetn
    nearpm_crossing crossing_cpl card/m_axi_cpl bridge/s_axi_cpl $card $link card_reset/peripheral_aresetn
    foreach number {0 1} {
        set clock ddr4_$number/c0_ddr4_ui_clk
        nearpm_crossing crossing_mem$number card/m_axi_mem$number ddr4_$number/C0_DDR4_S_AXI $card $clock \
            card_reset/peripheral_aresetn
    }
    # The window is as large as both memories. Commands, registers and host memory: all that the
    # ports can say.
    nearpm_address bridge/m_axi_host card/s_axi_host/reg0 4G
    nearpm_address bridge/m_axi_cmd card/s_axi_cmd/reg0 64K
    nearpm_address bridge/m_axil_ctrl card/s_axil_ctrl/reg0 4K
    nearpm_address card/m_axi_cpl bridge/s_axi_cpl/reg0 16E
    # The card counts each memory from 0.
    foreach number {0 1} {
        nearpm_address card/m_axi_mem$number ddr4_$number/C0_DDR4_MEMORY_MAP/C0_DDR4_ADDRESS_BLOCK 2G
    }
    validate_bd_design
    save_bd_design
    set file [get_files nearpm_vcu118.bd]
    # Cores are synthesised with the whole. By default each would get a run of its own, which nobody
    # starts outside of a project, and `synth_design` would see black boxes, at which `opt_design`
    # ends (UG912, "SYNTH_CHECKPOINT_MODE"; UG994, "Global Synthesis").
    set_property synth_checkpoint_mode None $file
    generate_target all $file
    read_verilog [make_wrapper -files $file -top]
}
