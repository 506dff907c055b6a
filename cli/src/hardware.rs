//! The generated card: its Verilog, and simulated cards made of it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use clap::Args;
use nearpm_hdl::Parameters;
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_sim::ddr4;
use nearpm_sim::rtl::{Options, RtlCards};

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

/// Verilog of the card that simulations use. Generating it takes seconds, so the text is kept beside the built models under the
/// checksum of this program, which is what makes it.
fn simulated_verilog(memory_ports: MemoryPorts) -> Result<String> {
    static TEXTS: Mutex<Vec<(MemoryPorts, String)>> = Mutex::new(Vec::new());
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, text)) = texts.iter().find(|(ports, _)| *ports == memory_ports) {
        return Ok(text.clone());
    }
    let program = std::env::current_exe().context("this program does not know where it lies")?;
    let bytes = std::fs::read(&program).with_context(|| format!("cannot read {}", program.display()))?;
    let name = format!("nearpm-card-{:08x}-{memory_ports}.v", crc32c::crc32c(&bytes));
    let kept = std::env::temp_dir().join(name);
    let text = match std::fs::read_to_string(&kept) {
        Ok(text) => text,
        Err(_) => {
            eprintln!("generating the card's Verilog");
            let text = nearpm_hdl::generate(&Parameters { memory_ports, ..Parameters::default() }).verilog;
            keep(&kept, &text);
            text
        }
    };
    texts.push((memory_ports, text.clone()));
    Ok(text)
}

/// Keeps a text for the next run, whole or not at all; a full disk only costs the time again.
fn keep(path: &Path, text: &str) {
    let part = path.with_extension(format!("{}.part", std::process::id()));
    if std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, path)).is_err() {
        let _ = std::fs::remove_file(&part);
    }
}

/// Cards of the Verilated RTL at a clock in MHz.
pub fn rtl_cards(mhz: u64, memory_ports: MemoryPorts) -> Result<RtlCards> {
    let verilog = &simulated_verilog(memory_ports)?;
    let options = Options { mhz, memory: ddr4::Config::default(), waveform: None };
    RtlCards::build(nearpm_hdl::MODULE, verilog, options).context("the card's RTL cannot be built for simulation")
}
