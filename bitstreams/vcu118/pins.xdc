# Pins that the board's files do not place by themselves. Memories, their clocks and the lanes: board part and PCIe core.

# Edge connector: `pcie_mgt_clkp`, `pcie_mgt_clkn`, `pcie_perstn_rst`. LED 0: `GPIO_LED_0_LS`. Source: the board's files,
# boards/Xilinx/vcu118/2.4/part0_pins.xml of Xilinx/XilinxBoardStore; Corundum's constraints for this board
# (fpga/mqnic/VCU118/fpga_100g/fpga.xdc) say the same.
set_property PACKAGE_PIN AL9 [get_ports pcie_refclk_clk_p]
set_property PACKAGE_PIN AL8 [get_ports pcie_refclk_clk_n]
set_property -dict {PACKAGE_PIN AM17 IOSTANDARD LVCMOS18 PULLUP true} [get_ports pcie_reset_n]
set_property -dict {PACKAGE_PIN AT32 IOSTANDARD LVCMOS12 SLEW SLOW DRIVE 8} [get_ports save_done]
# PMOD0, pin 0; not in the board's files. Source: Corundum's constraints; sifive/fpga-shells has the pad on this connector, too
# (xilinx/vcu118/constraints/vcu118-master.xdc, `sdio_dat[3]`), with the same standard.
set_property -dict {PACKAGE_PIN AY14 IOSTANDARD LVCMOS18 PULLDOWN true} [get_ports power_fail]
create_clock -period 10.000 -name pcie_refclk [get_ports pcie_refclk_clk_p]

# Levels that are brought into the clock inside, or that people look at.
set_false_path -from [get_ports {pcie_reset_n power_fail}]
set_false_path -to [get_ports save_done]

# How the flash is read. Source: Corundum's constraints; the mode: sifive/fpga-shells.
set_property CONFIG_MODE SPIx8 [current_design]
set_property CFGBVS GND [current_design]
set_property CONFIG_VOLTAGE 1.8 [current_design]
set_property BITSTREAM.GENERAL.COMPRESS true [current_design]
set_property BITSTREAM.CONFIG.SPI_32BIT_ADDR YES [current_design]
set_property BITSTREAM.CONFIG.SPI_BUSWIDTH 8 [current_design]
# By the board's clock at its full rate: the part's own would load the design for seconds, while the machine already looks for its devices.
set_property BITSTREAM.CONFIG.EXTMASTERCCLK_EN {DIV-1} [current_design]
set_property BITSTREAM.CONFIG.SPI_FALL_EDGE YES [current_design]
