//! The generated card: its Verilog.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use nearpm_hdl::Parameters;
use nearpm_interface::memory_ports::MemoryPorts;

/// Arguments of `nearpm verilog`.
#[derive(Args, Clone, Debug)]
pub struct VerilogArguments {
    /// Folder to write `nearpm_card.v` and `nearpm_card.json` to
    #[arg(long)]
    out: PathBuf,
    /// The board keeps what the card acknowledged through a power cut (the VCU118 does not)
    #[arg(long)]
    power_fail_safe: bool,
    /// Other cards are at the card's port for them (the VCU118 has none)
    #[arg(long)]
    peers: bool,
    /// AXI4 ports towards memory: 1 or 2
    #[arg(long, default_value_t)]
    memory_ports: MemoryPorts,
}

/// `nearpm verilog`: writes the card.
pub fn verilog(arguments: &VerilogArguments) -> Result<()> {
    let VerilogArguments { power_fail_safe, memory_ports, peers, .. } = *arguments;
    let card = nearpm_hdl::generate(&Parameters { power_fail_safe, memory_ports, peers });
    std::fs::create_dir_all(&arguments.out).with_context(|| format!("cannot make {}", arguments.out.display()))?;
    for (ending, text) in [("v", &card.verilog), ("json", &card.ports_json)] {
        let path = arguments.out.join(nearpm_hdl::MODULE).with_extension(ending);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        println!("{} ({} bytes)", path.display(), text.len());
    }
    Ok(())
}
