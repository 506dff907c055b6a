//! Cards of the Verilated RTL.

use anyhow::{Context, Result};
use nearpm_hdl::Parameters;
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_sim::ddr4;
use nearpm_sim::rtl::{Options, RtlCards};

/// Cards of the Verilated RTL at a clock in MHz.
///
/// # Errors
/// The simulation of the RTL cannot be built: a tool is missing, or the folder of the built models cannot be written.
pub fn rtl_cards(mhz: u64, memory_ports: MemoryPorts) -> Result<RtlCards> {
    let generate = || {
        eprintln!("generating the card's Verilog");
        [nearpm_hdl::generate(&Parameters { memory_ports, ..Parameters::default() }).verilog]
    };
    let name = format!("card with memory ports: {memory_ports}");
    let [verilog] = nearpm_verilate::kept(&name, ["card.v"], generate).context("the card's Verilog cannot be kept")?;
    let options = Options { mhz, memory: ddr4::Config::default(), waveform: None };
    RtlCards::build(nearpm_hdl::MODULE, &verilog, options).context("the card's RTL cannot be built for simulation")
}
