//! The generated card: its Verilog, and simulated cards made of it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result};
use clap::Args;
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
}

/// `nearpm verilog`: writes the card.
pub fn verilog(arguments: &VerilogArguments) -> Result<()> {
    let card = nearpm_hdl::generate(&nearpm_hdl::Parameters { power_fail_safe: arguments.power_fail_safe });
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
fn simulated_verilog() -> Result<&'static str> {
    static TEXT: OnceLock<String> = OnceLock::new();
    if let Some(text) = TEXT.get() {
        return Ok(text);
    }
    let program = std::env::current_exe().context("this program does not know where it lies")?;
    let bytes = std::fs::read(&program).with_context(|| format!("cannot read {}", program.display()))?;
    let kept = std::env::temp_dir().join(format!("nearpm-card-{:08x}.v", crc32c::crc32c(&bytes)));
    let text = match std::fs::read_to_string(&kept) {
        Ok(text) => text,
        Err(_) => {
            eprintln!("generating the card's Verilog");
            let text = nearpm_hdl::generate(&nearpm_hdl::Parameters::default()).verilog;
            keep(&kept, &text);
            text
        }
    };
    Ok(TEXT.get_or_init(|| text))
}

/// Keeps a text for the next run, whole or not at all; a full disk only costs the time again.
fn keep(path: &Path, text: &str) {
    let part = path.with_extension(format!("{}.part", std::process::id()));
    if std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, path)).is_err() {
        let _ = std::fs::remove_file(&part);
    }
}

/// Cards of the Verilated RTL at a clock in MHz.
pub fn rtl_cards(mhz: u64) -> Result<RtlCards> {
    let verilog = simulated_verilog()?;
    let options = Options { mhz, memory: ddr4::Config::default(), waveform: None };
    RtlCards::build(nearpm_hdl::MODULE, verilog, options).context("the card's RTL cannot be built for simulation")
}
