//! Cards of the Verilated RTL.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};
use nearpm_hdl::Parameters;
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_sim::ddr4;
use nearpm_sim::rtl::{Options, RtlCards};

/// Cards of the Verilated RTL at a clock in MHz.
///
/// # Errors
/// The simulation of the RTL cannot be built: a tool is missing, or the folder of the built models
/// cannot be written.
pub fn rtl_cards(mhz: u64, memory_ports: MemoryPorts) -> Result<RtlCards> {
    built(memory_ports, Options { mhz, memory: ddr4::Config::default(), waveform: None })
}

/// The same at 300 MHz, writing every signal of every cycle: the first power-up to `waveform`, a
/// VCD file, the n-th to `NAME.n.vcd` beside it. They run at a tenth of the speed and write about
/// 200 bytes a cycle.
///
/// # Errors
/// Those of [`rtl_cards`], and where the file cannot be written.
pub fn traced_rtl_cards(memory_ports: MemoryPorts, waveform: &Path) -> Result<RtlCards> {
    // Here, with an error, and not in the first power-up.
    File::create(waveform).with_context(|| format!("{} cannot be written", waveform.display()))?;
    let waveform = Some(waveform.to_owned());
    built(memory_ports, Options { waveform, ..Options::default() })
}

fn built(memory_ports: MemoryPorts, options: Options) -> Result<RtlCards> {
    let card = nearpm_hdl::try_generated(&Parameters { memory_ports, ..Parameters::default() });
    let card = card.context("the card's Verilog cannot be kept")?;
    // A waveform shows the hardware's own signals.
    let verilog = if options.waveform.is_some() { card.verilog } else { card.simulated() };
    RtlCards::build(nearpm_hdl::MODULE, &verilog, options).context("the card's RTL cannot be built for simulation")
}
