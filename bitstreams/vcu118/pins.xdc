# Pins that the board's files do not place. Source: the constraints that the open project Corundum uses on this board
# (fpga/mqnic/VCU118/fpga_100g/fpga.xdc); the board's document is UG1224. The memories' pins and clocks come with the board part.

set_property PACKAGE_PIN AL9 [get_ports pcie_refclk_clk_p]
set_property PACKAGE_PIN AL8 [get_ports pcie_refclk_clk_n]
set_property -dict {PACKAGE_PIN AM17 IOSTANDARD LVCMOS18 PULLUP true} [get_ports pcie_reset_n]
set_property -dict {PACKAGE_PIN AY14 IOSTANDARD LVCMOS18 PULLDOWN true} [get_ports power_fail]
set_property -dict {PACKAGE_PIN AT32 IOSTANDARD LVCMOS12 SLEW SLOW DRIVE 8} [get_ports save_done]
create_clock -period 10.000 -name pcie_refclk [get_ports pcie_refclk_clk_p]

# Levels that are brought into the clock inside, or that people look at.
set_false_path -from [get_ports {pcie_reset_n power_fail}]
set_false_path -to [get_ports save_done]

set_property CFGBVS GND [current_design]
set_property CONFIG_VOLTAGE 1.8 [current_design]
set_property BITSTREAM.GENERAL.COMPRESS true [current_design]
set_property BITSTREAM.CONFIG.SPI_32BIT_ADDR YES [current_design]
set_property BITSTREAM.CONFIG.SPI_BUSWIDTH 8 [current_design]
# By the board's clock at its full rate: the part's own would load the design for seconds, while the machine already looks for its devices.
set_property BITSTREAM.CONFIG.EXTMASTERCCLK_EN {DIV-1} [current_design]
set_property BITSTREAM.CONFIG.SPI_FALL_EDGE YES [current_design]
