//! What the vendor's cores and the board have, as far as the flow uses it, and where each of it is
//! seen in public. No Vivado confirmed it.
//!
//! A name that the flow uses and that is not here fails the test: a new one needs a source.

use super::Port;

/// A core, the source of its parameters' names, and these.
pub struct Core {
    /// As in `xilinx.com:ip:NAME`.
    pub name: &'static str,
    /// Repository and file, or document. The test wants one for each core.
    pub source: &'static str,
    /// Without `CONFIG.`, and as they are spelled there: some are in capitals and some are not.
    pub parameters: &'static [&'static str],
}

/// A script that Vivado wrote for a design with most of the cores used here, and with modules in
/// Verilog as masters and slaves.
const RISCV: &str = "eugene-tarassov/vivado-risc-v, board/u200/m2/riscv-2021.1.tcl";

/// The cores that the flow uses.
pub const CORES: [Core; 9] = [
    Core {
        name: "pcie4_uscale_plus",
        // What Vivado 2019.1 wrote for version 1.3 of the core on the same part, with 512 bits:
        // every parameter of the core is in it.
        source: "corundum/corundum, fpga/mqnic/VCU1525/fpga_100g/ip/pcie4_uscale_plus_0.xci (commit 70450a4d), `PARAM_VALUE`",
        parameters: &[
            "AXISTEN_IF_EXT_512_CC_STRADDLE",
            "AXISTEN_IF_EXT_512_CQ_STRADDLE",
            "AXISTEN_IF_EXT_512_RC_4TLP_STRADDLE",
            "AXISTEN_IF_EXT_512_RC_STRADDLE",
            "AXISTEN_IF_EXT_512_RQ_STRADDLE",
            "MSI_X_OPTIONS",
            "PF0_CLASS_CODE",
            "PF0_DEVICE_ID",
            "PF0_DEV_CAP_FUNCTION_LEVEL_RESET_CAPABLE",
            "PF0_MSIX_CAP_PBA_BIR",
            "PF0_MSIX_CAP_PBA_OFFSET",
            "PF0_MSIX_CAP_TABLE_BIR",
            "PF0_MSIX_CAP_TABLE_OFFSET",
            "PF0_MSIX_CAP_TABLE_SIZE",
            "PL_LINK_CAP_MAX_LINK_SPEED",
            "PL_LINK_CAP_MAX_LINK_WIDTH",
            "axisten_freq",
            "axisten_if_width",
            "extended_tag_field",
            "pf0_bar0_64bit",
            "pf0_bar0_scale",
            "pf0_bar0_size",
            "pf0_bar1_enabled",
            "pf0_bar1_scale",
            "pf0_bar1_size",
            "pf0_bar1_type",
            "pf0_bar2_64bit",
            "pf0_bar2_enabled",
            "pf0_bar2_prefetchable",
            "pf0_bar2_scale",
            "pf0_bar2_size",
            "pf0_bar2_type",
            "pf0_bar4_64bit",
            "pf0_bar4_enabled",
            "pf0_bar4_prefetchable",
            "pf0_bar4_scale",
            "pf0_bar4_size",
            "pf0_bar4_type",
            "pf0_dev_cap_max_payload",
            "pf0_msi_enabled",
            "pf0_msix_enabled",
            "vendor_id",
        ],
    },
    Core {
        name: "ddr4",
        // The board's interfaces: analogdevicesinc/hdl,
        // projects/common/vcu118/vcu118_system_bd.tcl. Part, width and times are those of the
        // preset `ddr4_sdram_preset_062`, Xilinx/XilinxBoardStore,
        // boards/Xilinx/vcu118/2.4/preset.xml.
        source: "corundum/corundum, fpga/mqnic/VCU118/fpga_100g/ip/ddr4_0.tcl; analogdevicesinc/hdl",
        parameters: &[
            "C0.DDR4_AxiArbitrationScheme",
            "C0.DDR4_AxiDataWidth",
            "C0.DDR4_AxiIDWidth",
            "C0.DDR4_AxiSelection",
            "C0.DDR4_DataMask",
            "C0.DDR4_DataWidth",
            "C0.DDR4_InputClockPeriod",
            "C0.DDR4_MemoryPart",
            "C0.DDR4_MemoryType",
            "C0.DDR4_TimePeriod",
            "C0_CLOCK_BOARD_INTERFACE",
            "C0_DDR4_BOARD_INTERFACE",
        ],
    },
    Core { name: "smartconnect", source: RISCV, parameters: &["NUM_CLKS", "NUM_MI", "NUM_SI"] },
    Core {
        name: "proc_sys_reset",
        source: "PG164 (v5.0); project scripts of NetFPGA SUME, `proc_sys_reset_ip`",
        parameters: &["C_EXT_RESET_HIGH"],
    },
    // That the clock it is made from is known from the net, without `PRIM_IN_FREQ`:
    // `clk_wiz_125mhz` of analogdevicesinc/hdl on this board.
    Core { name: "clk_wiz", source: RISCV, parameters: &["CLKOUT1_REQUESTED_OUT_FREQ", "PRIM_SOURCE", "USE_RESET"] },
    Core { name: "util_vector_logic", source: RISCV, parameters: &["C_OPERATION", "C_SIZE"] },
    Core { name: "util_ds_buf", source: RISCV, parameters: &["C_BUF_TYPE"] },
    Core { name: "xlconstant", source: RISCV, parameters: &["CONST_VAL", "CONST_WIDTH"] },
    Core {
        name: "xlslice",
        source: "pavel-demin/red-pitaya-notes, projects/pulsed_nmr/tx.tcl",
        parameters: &["DIN_FROM", "DIN_TO", "DIN_WIDTH", "DOUT_WIDTH"],
    },
];

/// Parameters of the whole design's ports. Source: as [`RISCV`].
pub const OF_PORTS: [&str; 1] = ["FREQ_HZ"];

/// What the flow places: port, pad, standard, and the source's name of it.
///
/// Sources: Xilinx/XilinxBoardStore, boards/Xilinx/vcu118/2.4/part0_pins.xml, and the same in
/// corundum/corundum, fpga/mqnic/VCU118/fpga_100g/fpga.xdc; `pmod0[0]` is in the latter only, and
/// as a pad of this connector, with the same standard, in sifive/fpga-shells,
/// xilinx/vcu118/constraints/vcu118-master.xdc.
pub const PLACED: [(&str, &str, &str, &str); 5] = [
    ("pcie_refclk_clk_p", "AL9", "-", "pcie_mgt_clkp"),
    ("pcie_refclk_clk_n", "AL8", "-", "pcie_mgt_clkn"),
    ("pcie_reset_n", "AM17", "LVCMOS18", "pcie_perstn_rst"),
    ("save_done", "AT32", "LVCMOS12", "GPIO_LED_0_LS"),
    ("power_fail", "AY14", "LVCMOS18", "pmod0[0]"),
];

/// Ports of the PCIe block with an interface of 512 bits that the flow has to connect.
///
/// Sources: PG213 (v1.3), pages "Completer Request Interface", "Completer Completion Interface",
/// "Requester Request Interface", "Requester Completion Interface" and "MSI-X Interrupt External
/// Interface"; for the other widths, and the four bits of `tready`, the component that Vivado
/// writes for `pcie4_uscale_plus` 1.1. cocotbext-pcie 0.2.16 (`xilinx/us/interface.py`,
/// `usp_model.py`) has the same widths of `tuser` and `cfg_*`.
pub fn pcie_ports() -> Vec<(String, Port)> {
    const STREAMS: [(&str, bool, u64, u64); 4] = [
        ("m_axis_cq", false, 183, 1),
        ("m_axis_rc", false, 161, 1),
        ("s_axis_cc", true, 81, 4),
        ("s_axis_rq", true, 137, 4),
    ];
    const OTHERS: [(&str, bool, u64); 15] = [
        ("user_clk", false, 1),
        ("user_reset", false, 1),
        ("user_lnk_up", false, 1),
        ("sys_clk", true, 1),
        ("sys_clk_gt", true, 1),
        ("sys_reset", true, 1),
        ("cfg_function_status", false, 16),
        ("cfg_flr_in_process", false, 4),
        ("cfg_flr_done", true, 4),
        ("cfg_interrupt_msix_enable", false, 4),
        ("cfg_interrupt_msix_mask", false, 4),
        ("cfg_link_training_enable", true, 1),
        ("cfg_config_space_enable", true, 1),
        ("cfg_power_state_change_ack", true, 1),
        ("pcie_cq_np_req", true, 2),
    ];
    let streams = STREAMS.iter().flat_map(|&(stream, input, tuser, tready)| {
        let with = [("tdata", 512), ("tkeep", 16), ("tuser", tuser), ("tlast", 1), ("tvalid", 1)];
        let with = with.map(|(signal, bits)| (signal, Port { input, bits }));
        let signals = with.into_iter().chain([("tready", Port { input: !input, bits: tready })]);
        signals.map(move |(signal, port)| (format!("pcie/{stream}_{signal}"), port))
    });
    let others = OTHERS.iter().map(|&(name, input, bits)| (format!("pcie/{name}"), Port { input, bits }));
    streams.chain(others).collect()
}

/// Ports of both memory controllers, besides their interfaces. Source: [`RISCV`], which joins each
/// of them.
pub fn memory_ports() -> Vec<(String, Port)> {
    const PORTS: [(&str, bool); 5] = [
        ("c0_ddr4_ui_clk", false),
        ("c0_ddr4_ui_clk_sync_rst", false),
        ("c0_init_calib_complete", false),
        ("c0_ddr4_aresetn", true),
        ("sys_rst", true),
    ];
    let of = |cell: &'static str| PORTS.map(|(name, input)| (format!("{cell}/{name}"), Port { input, bits: 1 }));
    ["ddr4_0", "ddr4_1"].into_iter().flat_map(of).collect()
}
